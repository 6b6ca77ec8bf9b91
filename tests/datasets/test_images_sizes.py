"""Images of other sizes, and thumbnails."""

import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from evgp.datasets import images as photos
from evgp.datasets import read_images
from tests.datasets.test_images import BLUE, RED, colours, halves, save


@pytest.mark.parametrize(
    ("sizes", "size", "shape"),
    [
        ([(64, 64)] * 2, None, (64, 64)),
        ([(20, 10)] * 2, None, (10, 20)),
        ([(65, 64)] * 2, None, (32, 32)),
        ([(8, 8), (9, 8)], None, (32, 32)),
        ([(64, 64)] * 2, 16, (16, 16)),
        ([(1, 200), (200, 1)], 7, (7, 7)),
    ],
)
def test_sizes(tmp_path: Path, sizes, size: int | None, shape: tuple[int, int]) -> None:
    for j, saved in enumerate(sizes):
        save(tmp_path / f"{j}.png", size=saved)
    images = read_images(tmp_path, size=size)
    assert images.x.shape == (2, 3, *shape)
    assert images.sizes == tuple(sizes)
    assert colours(images) == [RED, RED]
    was = {(height, width) for width, height in sizes}
    assert bool(images.notes) == (was != {shape})


def test_a_note_says_what_was_resized(tmp_path: Path) -> None:
    save(tmp_path / "a.png", size=(100, 40))
    save(tmp_path / "b.png", size=(300, 200))
    assert read_images(tmp_path).notes == (
        "2 images of 100 x 40 to 300 x 200 pixels were resized to 32 x 32, stretched "
        "where they are not square; image_size= chooses another size",
    )


def test_shrinking_averages(tmp_path: Path) -> None:
    checks = np.indices((256, 256)).sum(axis=0) % 2 * 255
    for name in ("a.png", "b.bmp"):
        Image.fromarray(checks.astype(np.uint8)).save(tmp_path / name)
    inner = read_images(tmp_path).x[:, 0, 4:-4, 4:-4].astype(int)
    assert (abs(inner - 127) <= 2).all()


def test_a_large_photograph_agrees_with_its_exact_average(tmp_path: Path) -> None:
    slope = np.linspace(0, 255, 1024, dtype=np.float32)
    photo = np.broadcast_to(slope, (768, 1024)).astype(np.uint8)
    for name in ("a.jpg", "b.jpg"):
        Image.fromarray(photo).save(tmp_path / name, quality=95)
    actual = read_images(tmp_path, size=16).x[0, 0]
    exact = photo.reshape(16, 48, 16, 64).mean(axis=(1, 3))
    np.testing.assert_allclose(actual[:, 1:-1], exact[:, 1:-1], atol=2)


def test_a_photograph_is_not_decoded_more_coarsely_than_it_is_shown(tmp_path: Path) -> None:
    coarse = np.random.default_rng(0).integers(0, 255, (128, 128), np.uint8)
    for name in ("a.jpg", "b.jpg"):
        Image.fromarray(coarse.repeat(4, 0).repeat(4, 1)).save(tmp_path / name, quality=95)
    actual = read_images(tmp_path, size=128).x[0, 0]
    thumbnail = np.asarray(read_images(tmp_path).thumbnail(0, 128).convert("L"))
    for shown in (actual, thumbnail):  # an eighth of the photograph would be off by 50
        assert abs(shown.astype(int) - coarse).mean() < 25


def test_a_thumbnail_comes_from_the_file_in_its_proportions(tmp_path: Path) -> None:
    for name in "ab":
        halves((300, 100)).save(tmp_path / f"{name}.png")
    images = read_images(tmp_path)
    large = images.thumbnail(1, 150)
    assert (large.mode, large.size) == ("RGB", (150, 50))
    assert large.getpixel((70, 25)) == RED
    assert large.getpixel((79, 25)) == BLUE
    assert images.thumbnail(1, 1000).size == (300, 100)
    assert images.thumbnail(1, 30).size == (30, 10)


def test_a_thumbnail_survives_its_file(tmp_path: Path) -> None:
    for name in "ab":
        halves((300, 100)).save(tmp_path / f"{name}.png")
    images = read_images(tmp_path)
    (tmp_path / "a.png").unlink()
    (tmp_path / "b.png").write_text("changed")
    for row in (0, 1):
        small = images.thumbnail(row, 150)
        assert small.size == (32, 11)
        assert small.getpixel((5, 5)) == RED


MODES = ["RGB", "RGBA", "L", "LA", "P", "1", "CMYK", "I;16"]


def noise(path: Path, mode: str, orientation: int = 1) -> Path:
    """A picture of smooth noise, some of it transparent where it can be."""
    pixels = np.random.default_rng(0).integers(60, 190, (14, 20, 4), dtype=np.uint8)
    # A grid of whole cells is the same from either end; upright pictures need none.
    size = (331, 217) if orientation == 1 else (360, 240)
    result = Image.fromarray(pixels).resize(size, Image.Resampling.BICUBIC)
    if mode == "I;16":
        result = Image.fromarray(np.asarray(result)[..., 0].astype(np.uint16) * 257)
    else:
        result = result.convert("RGB").convert(mode) if mode in ("P", "1") else result.convert(mode)
    exif = Image.Exif()
    exif[0x0112] = orientation
    result.save(path, exif=exif)
    return path


@pytest.mark.parametrize("orientation", range(1, 9))
@pytest.mark.parametrize("mode", MODES)
def test_a_large_picture_is_the_same_strip_by_strip(
    tmp_path: Path, monkeypatch, mode: str, orientation: int
) -> None:
    most = 0 if orientation == 1 else 3  # turned before the filter, or after it
    kind = "tiff" if mode == "CMYK" else "png"
    path = noise(tmp_path / f"a.{kind}", mode, orientation=orientation)
    whole = [photos.read_pixels(path, 20, 30, grey=grey) for grey in (False, True)]
    small = photos.read_thumbnail(path, 50)
    monkeypatch.setattr(photos, "_LARGE_PIXELS", 1_000)
    monkeypatch.setattr(photos, "_STRIP_PIXELS", 5_000)
    strips = [photos.read_pixels(path, 20, 30, grey=grey) for grey in (False, True)]
    for item, two in zip(whole, strips, strict=True):
        np.testing.assert_allclose(item.astype(int), two.astype(int), atol=most)
    assert photos.read_thumbnail(path, 50).size == small.size
    np.testing.assert_allclose(
        np.asarray(small).astype(int), np.asarray(photos.read_thumbnail(path, 50)), atol=most
    )
    assert np.ptp(whole[0]) > 50  # it is not a plain area, for which everything would be true


def test_one_large_picture_is_in_memory_at_a_time(tmp_path: Path, monkeypatch) -> None:
    path = noise(tmp_path / "a.png", "RGB")
    monkeypatch.setattr(photos, "_LARGE_PIXELS", 1_000)
    seen, held, now, most, large = [], 0, 0, 0, photos._large

    def is_held(image) -> bool:
        try:
            return image.getpixel((0, 0)) is not None
        except ValueError:  # it was closed
            return False

    def counted(image, *given, **more):
        nonlocal held, now, most
        held = max(held, sum(map(is_held, seen)))
        seen.append(image)
        now += 1
        most = max(most, now)
        time.sleep(0.02)
        result = large(image, *given, **more)
        now -= 1
        return result

    monkeypatch.setattr(photos, "_large", counted)
    with ThreadPoolExecutor(8) as workers:
        sizes = {image.size for image in workers.map(photos.read_thumbnail, [path] * 16, [50] * 16)}
    assert sizes == {(50, 33)} and most == 1 and held == 0 and len(seen) == 16
