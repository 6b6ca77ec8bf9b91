"""A folder of images becomes one array, and every file that cannot be used is named."""

import logging
import os
import struct
import sys
import threading
import warnings
import zlib
from io import BytesIO
from pathlib import Path

import numpy as np
import pytest
from PIL import Image, ImageFile, features

from evgp.datasets import images as photos
from evgp.datasets import read_images
from evgp.datasets.images import Images
from evgp.errors import DatasetError
from tests.conftest import absent
from tests.messages import refused

RED, BLUE = (255, 0, 0), (0, 0, 255)


def save(
    path: Path, colour: object = RED, size: tuple[int, int] = (8, 8), mode: str = "RGB"
) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new(mode, size, colour).save(path)
    return path


def halves(size: tuple[int, int]) -> Image.Image:
    """Red on the left, blue on the right."""
    image = Image.new("RGB", size, RED)
    image.paste(BLUE, (size[0] // 2, 0, *size))
    return image


def colours(images: Images) -> list[tuple[int, ...]]:
    """The one colour of each image; fails if it has several."""
    assert (images.x == images.x[:, :, :1, :1]).all()
    return [tuple(pixel) for pixel in images.x[:, :, 0, 0].tolist()]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Two good images next to what is tested."""
    save(tmp_path / "good1.png")
    save(tmp_path / "good2.png", BLUE)
    return tmp_path


def test_names_are_sorted_paths_below_the_folder(tmp_path: Path) -> None:
    for name in ("b.png", "a/z.png", "a/b/c.png", "é/日本.png", "B.png"):
        save(tmp_path / name)
    images = read_images(str(tmp_path))
    assert images.names == ("B.png", "a/b/c.png", "a/z.png", "b.png", "é/日本.png")
    assert images.folder == tmp_path
    assert images.x.shape == (5, 3, 8, 8)
    assert images.x.dtype == np.uint8
    assert images.notes == ()
    assert set(colours(images)) == {RED}


@pytest.mark.parametrize("kind", ["PNG", "JPEG", "BMP", "GIF", "WEBP", "TIFF"])
def test_content_decides_what_is_an_image(folder: Path, kind: str) -> None:
    if kind == "WEBP" and not features.check("webp"):
        absent("this Pillow has no WebP")
    Image.new("RGB", (8, 8), BLUE).save(folder / "image", format=kind)
    Image.new("RGB", (8, 8), BLUE).save(folder / "wrong.txt", format=kind)
    images = read_images(folder)
    assert images.names == ("good1.png", "good2.png", "image", "wrong.txt")
    np.testing.assert_allclose(images.x[2:, :, 4, 4], [BLUE, BLUE], atol=2)


def test_the_first_frame_of_an_animation_counts(folder: Path) -> None:
    frames = [Image.new("RGB", (8, 8), colour) for colour in (BLUE, RED)]
    frames[0].save(folder / "moving.gif", save_all=True, append_images=frames[1:])
    assert colours(read_images(folder)) == [RED, BLUE, BLUE]


def test_hidden_files_and_folders_are_passed_over(folder: Path) -> None:
    save(folder / ".hidden.png")
    save(folder / ".cache" / "seen.png")
    (folder / "._good1.png").write_bytes(b"resource fork")
    images = read_images(folder)
    assert images.names == ("good1.png", "good2.png")
    assert images.notes == ()


def bomb(width: int, height: int) -> bytes:
    """A PNG whose header claims a size that its data never fill."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        check = zlib.crc32(kind + data)
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", check)

    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    parts = [(b"IHDR", header), (b"IDAT", zlib.compress(b"\0" * 1000)), (b"IEND", b"")]
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunk(*part) for part in parts)


def cut(kind: str, side: int = 64, mode: str = "RGB") -> bytes:
    """The first half of an image file."""
    stream, noise = BytesIO(), np.random.default_rng(0).integers(0, 255, (side, side, 3), np.uint8)
    Image.fromarray(noise).convert(mode).save(stream, format=kind)
    return stream.getvalue()[: len(stream.getvalue()) // 2]


BAD = {
    "labels.csv": (b"a,b\n1,2\n", photos.NO_IMAGE),
    "README": (b"read me", photos.NO_IMAGE),
    "Thumbs.db": (b"\xd0\xcf\x11\xe0", photos.NO_IMAGE),
    "nothing": (b"", photos.NO_IMAGE),
    "empty.png": (b"", photos.MISNAMED),
    "text.PNG": (b"not an image at all", photos.MISNAMED),
    "head.jpg": (b"\xff\xd8\xff\xe0\0\x10JFIF", photos.DAMAGED),
    "cut.jpg": (cut("JPEG"), photos.DAMAGED),
    "cut.png": (cut("PNG"), photos.DAMAGED),
    "cut.bmp": (cut("BMP"), photos.DAMAGED),
    "cut.tiff": (cut("TIFF"), None),
    "large.png": (bomb(10_001, 10_000), photos.TOO_LARGE),
    "huge.png": (bomb(60_000, 60_000), photos.TOO_LARGE),
    "hollow.png": (bomb(9_500, 9_500), photos.DAMAGED),
    "vector.svg": (b"<svg xmlns='http://www.w3.org/2000/svg'/>", photos.FOREIGN),
    "page.eps": (b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 8 8\n", photos.NO_IMAGE),
}


@pytest.mark.parametrize("name", BAD)
def test_anything_but_an_image_is_left_out_and_named(folder: Path, name: str) -> None:
    data, reason = BAD[name]
    (folder / name).write_bytes(data)
    images = read_images(folder)
    assert images.names == ("good1.png", "good2.png")
    assert colours(images) == [RED, BLUE]
    (note,) = images.notes
    assert note.startswith("1 file left out, ")
    assert note.endswith(f": {name}")
    assert reason is None or reason in note


def test_files_just_within_the_limit_are_counted_by_their_header(monkeypatch, folder: Path) -> None:
    monkeypatch.setattr(photos, "MOST_PIXELS", 64)
    save(folder / "larger.png", size=(13, 5))
    images = read_images(folder)
    assert images.names == ("good1.png", "good2.png")
    assert "larger.png" in images.notes[0]


def test_notes_name_five_files_and_count_the_rest(folder: Path) -> None:
    for j in range(7):
        (folder / f"note{j}.txt").write_text("text")
    assert read_images(folder).notes == (
        "7 files left out, not images: note0.txt, note1.txt, note2.txt, note3.txt, note4.txt "
        "and 2 more",
    )


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes on this system")
def test_a_pipe_is_never_waited_for(folder: Path) -> None:
    os.mkfifo(folder / "pipe.png")
    done = threading.Event()
    notes: list[str] = []

    def run() -> None:
        notes.extend(read_images(folder).notes)
        with refused(photos.Unusable):
            photos.read_header(folder / "pipe.png")
        done.set()

    threading.Thread(target=run, daemon=True).start()
    assert done.wait(20), "it hangs on the pipe"
    assert notes == ["1 file left out, not plain files: pipe.png"]


def test_links_to_files_count_and_links_to_folders_do_not(folder: Path) -> None:
    save(folder / "deep" / "inside.png")
    (folder / "deep" / "loop").symlink_to(folder, target_is_directory=True)
    (folder / "link.png").symlink_to(folder / "good2.png")
    (folder / "broken.png").symlink_to(folder / "gone.png")
    images = read_images(folder)
    assert images.names == ("deep/inside.png", "good1.png", "good2.png", "link.png")
    assert colours(images)[-1] == BLUE
    assert images.notes == (
        "1 file left out, linked folders are not followed: deep/loop",
        "1 file left out, not readable: broken.png",
    )


def test_formats_of_cameras_are_named(folder: Path) -> None:
    (folder / "phone.HEIC").write_bytes(b"\0\0\0\x18ftypheic" + bytes(100))
    note = "1 file left out, of a format that is not read; save as JPEG or PNG: phone.HEIC"
    assert read_images(folder).notes == (note,)


def test_the_folder_itself_may_be_a_link(folder: Path, tmp_path_factory) -> None:
    link = tmp_path_factory.mktemp("elsewhere") / "link"
    link.symlink_to(folder, target_is_directory=True)
    assert len(read_images(link)) == 2


def test_what_may_not_be_read_is_named(folder: Path, monkeypatch) -> None:
    save(folder / "secret.png").chmod(0)
    save(folder / "closed" / "inside.png")
    (folder / "closed").chmod(0)
    if os.geteuid() == 0:  # root may read all: say no in its place
        scandir, opens = os.scandir, os.open

        def refuse(path, then, *more):
            if Path(path).name in ("secret.png", "closed"):
                raise PermissionError(13, "no", str(path))
            return then(path, *more)

        monkeypatch.setattr(os, "scandir", lambda path: refuse(path, scandir))
        monkeypatch.setattr(os, "open", lambda path, *more: refuse(path, opens, *more))
    try:
        images = read_images(folder)
    finally:
        (folder / "closed").chmod(0o700)
    assert images.names == ("good1.png", "good2.png")
    assert images.notes == ("2 files left out, not readable: closed/, secret.png",)


@pytest.mark.skipif(sys.platform != "linux", reason="names there are always UTF-8")
def test_a_name_that_utf8_cannot_hold_is_written_with_question_marks(folder: Path) -> None:
    os.rename(os.fsencode(folder / "good1.png"), os.fsencode(folder) + b"/b\xff.png")
    images = read_images(folder)
    assert images.names == ("b?.png", "good2.png")
    assert images.thumbnail(0, 64).getpixel((0, 0)) == RED


@pytest.mark.parametrize(
    "files",
    [
        {},
        {"a.txt": b"text"},
        {"a.jpg": cut("JPEG"), "b.jpg": cut("JPEG")},
        {"a.jpg": cut("JPEG"), "b.bmp": None},
        {"b.bmp": None},
    ],
)
def test_too_few_images_are_refused_with_the_reasons(tmp_path: Path, files) -> None:
    for name, data in files.items():
        save(tmp_path / name) if data is None else (tmp_path / name).write_bytes(data)
    with refused(DatasetError):
        read_images(tmp_path)


def test_anything_but_a_folder_is_refused(tmp_path: Path) -> None:
    with refused(DatasetError):
        read_images(tmp_path / "gone")
    with refused(DatasetError):
        read_images(save(tmp_path / "a.png"))
    with refused(DatasetError):
        read_images(tmp_path, size=0)


@pytest.mark.parametrize(
    ("mode", "colour", "grey"),
    [("1", 1, 255), ("L", 77, 77), ("LA", (77, 255), 77), ("I;16", 257 * 9, 9)],
)
def test_greys_alone_have_one_channel(tmp_path: Path, mode: str, colour, grey: int) -> None:
    save(tmp_path / "a.png", colour, mode=mode)
    save(tmp_path / "b.png", 12, mode="L")
    images = read_images(tmp_path)
    assert images.x.shape == (2, 1, 8, 8)
    assert colours(images) == [(grey,), (12,)]


def test_one_colour_image_makes_all_have_three_channels(folder: Path) -> None:
    save(folder / "grey.png", 77, mode="L")
    assert colours(read_images(folder)) == [RED, BLUE, (77, 77, 77)]


def test_16_bit_greys_are_scaled_to_the_nearest(tmp_path: Path) -> None:
    deep = np.array([[0, 128, 129, 257], [32_768, 65_535, 65_406, 65_407]], np.uint16)
    Image.fromarray(deep).save(tmp_path / "a.png")
    Image.fromarray(deep).save(tmp_path / "b.tiff")
    expected = [[0, 0, 1, 1], [128, 255, 254, 255]]
    for row in read_images(tmp_path).x:
        assert row[0].tolist() == expected


def test_32_bit_greys_are_left_out_because_their_white_is_unknown(folder: Path) -> None:
    Image.fromarray(np.full((8, 8), 0.5, np.float32)).save(folder / "float.tiff")
    Image.fromarray(np.full((8, 8), 70_000, np.int32)).save(folder / "long.tiff")
    assert read_images(folder).notes == (
        "2 files left out, of 32-bit greys, where the value of white is unknown: float.tiff, "
        "long.tiff",
    )


def test_transparency_becomes_white(folder: Path) -> None:
    save(folder / "rgba.png", (0, 0, 255, 51), mode="RGBA")
    palette = Image.new("P", (8, 8), 1)
    palette.putpalette([*RED, *BLUE])
    palette.save(folder / "p1.png", transparency=1)
    palette.save(folder / "p2.png", transparency=b"\x00\xff")
    Image.new("RGB", (8, 8), BLUE).save(folder / "rgb.png", transparency=BLUE)
    white = (255, 255, 255)
    assert colours(read_images(folder)) == [RED, BLUE, white, BLUE, white, (204, 204, 255)]


def test_cmyk_becomes_colour(folder: Path) -> None:
    Image.new("CMYK", (8, 8), (0, 255, 255, 0)).save(folder / "print.jpg", quality=100)
    np.testing.assert_allclose(read_images(folder).x[2, :, 4, 4], RED, atol=3)


@pytest.mark.parametrize("kind", ["jpg", "png", "tiff", "webp"])
@pytest.mark.parametrize("orientation", range(1, 9))
def test_images_are_upright(tmp_path: Path, kind: str, orientation: int) -> None:
    if kind == "webp" and not features.check("webp"):
        absent("this Pillow has no WebP")
    upright = halves((16, 32))
    # How a camera in that position stores it: the turn that undoes the orientation.
    back = {6: 8, 8: 6}.get(orientation, orientation)
    stored = upright if back == 1 else upright.transpose(photos._TURNS[back])
    exif = Image.Exif()
    exif[0x0112] = orientation
    for name in "ab":
        stored.save(tmp_path / f"{name}.{kind}", exif=exif, quality=95)
    images = read_images(tmp_path)
    assert images.sizes == ((16, 32), (16, 32))
    assert images.x.shape == (2, 3, 32, 16)
    np.testing.assert_allclose(images.x[0, :, 16, 3], RED, atol=12)
    np.testing.assert_allclose(images.x[0, :, 16, 12], BLUE, atol=12)
    large = read_images(tmp_path, size=4).thumbnail(0, 32)
    assert large.size == (16, 32)
    np.testing.assert_allclose(large.getpixel((3, 16)), RED, atol=12)


def test_broken_notes_in_an_image_are_harmless(folder: Path) -> None:
    exif = b"Exif\0\0II*\0\x08\0\0\0\xff\xff" + b"\x12\x01\x03\0\xff\xff\xff\xff" * 3
    Image.new("RGB", (8, 8), RED).save(folder / "odd.jpg", exif=exif)
    assert read_images(folder).names[-1] == "odd.jpg"


def test_a_damaged_file_does_not_set_the_size_of_the_others(folder: Path) -> None:
    (folder / "cut.jpg").write_bytes(cut("JPEG"))
    grey = folder / "greys"
    for j in range(2):
        save(grey / f"{j}.png", 50 + j, mode="L")
    (grey / "cut.jpg").write_bytes(cut("JPEG"))
    assert read_images(folder).x.shape == (4, 3, 8, 8)
    assert read_images(grey).x.shape == (2, 1, 8, 8)
    assert colours(read_images(grey)) == [(50,), (51,)]


def test_a_link_to_itself_is_left_out(tmp_path) -> None:
    for name in ("a.png", "b.png"):
        Image.new("L", (4, 4)).save(tmp_path / name)
    (tmp_path / "me.png").symlink_to("me.png")
    images = read_images(tmp_path)
    assert images.names == ("a.png", "b.png")
    assert any("me.png" in note for note in images.notes)


def test_many_files_keep_their_order_and_progress_is_reported(tmp_path: Path) -> None:
    for j in range(300):
        save(tmp_path / f"{j:03d}.png", j % 256, mode="L")
    (tmp_path / "007.png").write_bytes(cut("PNG", 8, "L"))
    calls: list[tuple[str, int, int]] = []
    images = read_images(tmp_path, progress=lambda *step: calls.append(step))
    expected = [j % 256 for j in range(300) if j != 7]
    assert images.x[:, 0, 0, 0].tolist() == expected
    assert images.names[7] == "008.png"
    assert calls[0] == ("looking", 128, 300)
    assert ("looking", 300, 300) in calls
    assert calls[-1] == ("reading", 300, 300)


def test_pillow_stays_as_it_was(folder: Path) -> None:
    (folder / "large.png").write_bytes(bomb(9_800, 9_800))  # Pillow itself would warn
    before = (ImageFile.LOAD_TRUNCATED_IMAGES, Image.MAX_IMAGE_PIXELS, list(warnings.filters))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        read_images(folder).thumbnail(0, 100)
    assert not caught
    after = (ImageFile.LOAD_TRUNCATED_IMAGES, Image.MAX_IMAGE_PIXELS, list(warnings.filters))
    assert after == before


def test_a_broken_tiff_says_nothing_on_stderr(folder: Path, capfd, monkeypatch) -> None:
    stream = BytesIO()
    Image.new("RGB", (8, 8), RED).save(stream, "TIFF")
    tag = struct.pack("<HHI", 277, 3, 1)  # samples per pixel
    broken = stream.getvalue().replace(tag + b"\x03\0", tag + b"\0\x08")
    assert broken != stream.getvalue()
    (folder / "odd.tiff").write_bytes(broken)
    monkeypatch.setattr(logging.getLogger(), "handlers", [])  # as if no log were requested
    read_images(folder)
    assert capfd.readouterr().err == ""


def test_an_array_that_would_not_fit_is_refused_before_it_is_made(folder: Path) -> None:
    with refused(DatasetError):
        read_images(folder, size=10_000_000)
