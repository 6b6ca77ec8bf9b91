"""Photographs: compared by an embedder, or by pixels with a note on what that means."""

from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from torch import nn

import evgp
from evgp.errors import DatasetError, EmbedderError
from tests.datasets.test_images import bomb
from tests.messages import printed, refused, warned


@pytest.fixture(autouse=True)
def no_cache(tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("EVGP_CACHE", str(tmp_path / "cache"))


def images_of(folder: Path, side: int, count: int = 8) -> Path:
    folder.mkdir()
    random = np.random.default_rng(side)
    for at in range(count):
        pixels = random.integers(0, 256, (side, side, 3), dtype=np.uint8)
        Image.fromarray(pixels).save(folder / f"{at}.png")
    return folder


def means(batch: np.ndarray) -> np.ndarray:
    """The mean of each channel, and of its upper half."""
    half = batch[:, :, : batch.shape[2] // 2]
    return np.concatenate([batch.mean((2, 3)), half.mean((2, 3))], axis=1)


def test_photographs_without_an_embedder_get_a_note(tmp_path: Path) -> None:
    data = evgp.read_pool(images_of(tmp_path / "large", 80))
    printed("\n".join(note for note in data.notes if "photographs" in note))


def test_small_images_and_networks_of_their_own_get_none(tmp_path: Path) -> None:
    assert not evgp.read_pool(images_of(tmp_path / "small", 16)).notes
    with warned(evgp.errors.DataWarning) as caught:
        evgp.plan(images_of(tmp_path / "large", 80, 4), 2, network=evgp.cnn())
    assert len(caught) == 1


def test_a_folder_is_embedded_at_the_size_of_the_embedder(tmp_path: Path) -> None:
    folder = images_of(tmp_path / "large", 80)
    data = evgp.read_pool(folder, embed=means, image_size=80, scale=None)
    expected = np.stack([np.asarray(Image.open(folder / name)) for name in data.ids])
    np.testing.assert_allclose(data.x, means(expected.transpose(0, 3, 1, 2)), rtol=1e-6)
    printed("\n".join(data.notes))


def test_test_points_are_embedded_too(tmp_path: Path) -> None:
    data = evgp.read_pool(images_of(tmp_path / "pool", 80), embed=means)
    np.testing.assert_allclose(data.like(tmp_path / "pool"), data.x)
    assert data.like(images_of(tmp_path / "test", 70, 3)).shape == (3, 6)
    assert data.labelled(images_of(tmp_path / "more", 60, 2)).x.shape == (2, 6)


def test_a_changed_file_is_embedded_again(tmp_path: Path) -> None:
    folder = images_of(tmp_path / "pool", 80)
    before = evgp.read_pool(folder, embed=means, scale=None).x
    Image.new("RGB", (80, 80), "white").save(folder / "3.png")
    after = evgp.read_pool(folder, embed=means, scale=None).x
    assert after[3].tolist() == [255.0] * 6
    np.testing.assert_array_equal(after[:3], before[:3])
    np.testing.assert_array_equal(after[4:], before[4:])


def test_damaged_files_are_left_out(tmp_path: Path) -> None:
    folder = images_of(tmp_path / "pool", 80)
    content = (folder / "2.png").read_bytes()
    (folder / "2.png").write_bytes(content[: len(content) // 2])
    (folder / "enormous.png").write_bytes(bomb(60_000, 60_000))
    data = evgp.read_pool(folder, embed=means)
    assert len(data) == 7
    printed("\n".join(data.notes))


@pytest.mark.parametrize("kind", ["bytes", "floats", "channels last", "tensor"])
def test_arrays_of_images_are_embedded(kind: str) -> None:
    pixels = np.random.default_rng(0).integers(0, 256, (6, 3, 20, 20), dtype=np.uint8)
    expected = evgp.read_pool(pixels, embed=means, image_size=20, scale=None).x
    np.testing.assert_allclose(expected, means(pixels), rtol=1e-6)
    other = {
        "bytes": pixels,
        "floats": pixels / 255,
        "channels last": pixels.transpose(0, 2, 3, 1),
        "tensor": torch.from_numpy(pixels),
    }[kind]
    np.testing.assert_array_equal(
        evgp.read_pool(other, embed=means, image_size=20, scale=None).x, expected
    )


def test_a_network_picks_among_images() -> None:
    network = nn.Sequential(nn.Conv2d(3, 8, 5), nn.ReLU(), nn.AdaptiveAvgPool2d(1))
    pixels = np.random.default_rng(0).integers(0, 256, (20, 3, 16, 16), dtype=np.uint8)
    with warned(evgp.errors.DataWarning):
        picked = evgp.pick(pixels, 3, embed=network, image_size=16)
    assert len(set(picked)) == 3


@pytest.mark.parametrize("pool", [np.ones((5, 7)), np.full((5, 3, 4, 4), -1.0)])
def test_anything_but_an_image_is_refused(pool: np.ndarray) -> None:
    with refused(DatasetError):
        evgp.read_pool(pool, embed=means)


def test_text_options_are_refused_for_images(tmp_path: Path) -> None:
    folder = images_of(tmp_path / "pool", 8)
    with refused(DatasetError):
        evgp.read_pool(folder, text="body")
    with refused(EmbedderError):
        evgp.read_pool(folder, embed="tfidf")
