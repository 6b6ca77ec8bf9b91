"""Images of other sizes, and thumbnails."""

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

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
    for j, given in enumerate(sizes):
        save(tmp_path / f"{j}.png", size=given)
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
        "where they are not square; another size may be asked for",
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
    found = read_images(tmp_path, size=16).x[0, 0]
    exact = photo.reshape(16, 48, 16, 64).mean(axis=(1, 3))
    np.testing.assert_allclose(found[:, 1:-1], exact[:, 1:-1], atol=2)


def test_a_photograph_is_not_decoded_more_coarsely_than_it_is_shown(tmp_path: Path) -> None:
    coarse = np.random.default_rng(0).integers(0, 255, (128, 128), np.uint8)
    for name in ("a.jpg", "b.jpg"):
        Image.fromarray(coarse.repeat(4, 0).repeat(4, 1)).save(tmp_path / name, quality=95)
    found = read_images(tmp_path, size=128).x[0, 0]
    thumbnail = np.asarray(read_images(tmp_path).thumbnail(0, 128).convert("L"))
    for shown in (found, thumbnail):  # an eighth of the photograph would be off by 50
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
