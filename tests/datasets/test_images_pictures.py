"""Any pool of images can be looked at, whatever its numbers."""

import numpy as np
import pytest

from evgp.datasets import pictures_of
from evgp.errors import DatasetError
from tests.messages import refused


def greys(x: np.ndarray, row: int = 0) -> list[int]:
    return np.asarray(pictures_of(x).thumbnail(row, 64)).ravel().tolist()


def column(*values: float) -> np.ndarray:
    return np.array(values).reshape(1, 1, -1, 1)


@pytest.mark.parametrize(
    ("x", "expected"),
    [
        (column(0, 100, 255).astype(np.uint8), [0, 100, 255]),
        (column(0, 8, 16).astype(np.uint8), [0, 128, 255]),
        (column(-1.0, 0.0, 1.0), [0, 128, 255]),
        (column(-5, 0, 5).astype(np.int64), [0, 128, 255]),
        (column(0, 1, 0) > 0, [0, 255, 0]),
        (column(7.0, 7.0), [0, 0]),
        (column(0.0, 1.0, np.nan, np.inf, -np.inf), [0, 255, 0, 255, 0]),
        (column(np.nan, np.nan), [0, 0]),
    ],
)
def test_black_to_white_is_the_range_of_the_pool(x: np.ndarray, expected: list[int]) -> None:
    np.testing.assert_allclose(greys(x), expected, atol=1)


def test_all_images_share_one_scale() -> None:
    x = np.stack([np.zeros((1, 2, 2)), np.full((1, 2, 2), 2.0), np.full((1, 2, 2), 4.0)])
    assert [greys(x, row)[0] for row in range(3)] == [0, 128, 255]


def test_one_odd_pixel_does_not_darken_all() -> None:
    x = np.random.default_rng(0).random((100, 1, 10, 10))
    x[3, 0, 2, 2] = 1e9
    assert np.mean(greys(x, 0)) > 100


def test_a_few_bright_pixels_on_black_are_seen() -> None:
    x = np.zeros((100, 1, 10, 10))
    x[4, 0, 3, 3] = 0.5
    assert max(greys(x, 4)) == 255


def test_three_channels_are_colours() -> None:
    x = np.zeros((2, 3, 4, 6))
    x[1, 2] = 1.0
    picture = pictures_of(x).thumbnail(1, 64)
    assert (picture.mode, picture.size, picture.getpixel((0, 0))) == ("RGB", (6, 4), (0, 0, 255))
    assert len(pictures_of(x)) == 2
    assert pictures_of(x).thumbnail(1, 3).size == (3, 2)


@pytest.mark.parametrize(
    "x", [np.zeros((2, 4, 8, 8)), np.zeros((2, 1, 8, 8), complex), np.zeros((0, 1, 8, 8))]
)
def test_what_cannot_be_looked_at_is_refused(x: np.ndarray) -> None:
    with refused(DatasetError):
        pictures_of(x)
