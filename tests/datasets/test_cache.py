"""Arrays with checksums: whatever is not as it was written is noticed."""

from pathlib import Path

import numpy as np
import pytest

from evgp.datasets import array_file, cache, fingerprint, verify
from evgp.errors import DamagedFile, DatasetError
from tests.messages import refused


def written(path: Path, rows: int = 50, origin: str = "a", seed: int = 0) -> Path:
    values = np.random.default_rng(seed).normal(size=(rows, 7))
    with array_file(path, values.shape, "float32", origin) as x:
        x[:] = values
    return path


@pytest.fixture(autouse=True)
def small(monkeypatch) -> None:
    monkeypatch.setattr(cache, "BLOCK_BYTES", 256)


def test_a_file_is_an_npy_file_and_has_one_fingerprint(tmp_path) -> None:
    first, other = written(tmp_path / "one.npy"), written(tmp_path / "other.npy")
    assert np.load(first).shape == (50, 7)
    assert np.array_equal(np.load(first, mmap_mode="c"), np.load(other))
    assert verify(first, "a") == verify(other, "a") == fingerprint(first)
    assert verify(written(tmp_path / "b.npy", origin="b"), "b") != verify(first, "a")
    assert verify(written(tmp_path / "c.npy", seed=1), "a") != verify(first, "a")


@pytest.mark.parametrize("rows", [0, 1, 50])
def test_every_flipped_bit_is_noticed(tmp_path, rows) -> None:
    path = written(tmp_path / "x.npy", rows)
    whole = path.read_bytes()
    for at in range(len(whole)):
        damaged = bytearray(whole)
        damaged[at] ^= 1 << (at % 8)
        path.write_bytes(damaged)
        with refused(DamagedFile):
            verify(path, "a")
    path.write_bytes(whole)
    assert verify(path, "a")


def test_the_damaged_block_is_named(tmp_path) -> None:
    path = written(tmp_path / "x.npy")
    whole = bytearray(path.read_bytes())
    whole[3 * 256 + 17] ^= 4
    path.write_bytes(whole)
    with refused(DamagedFile):
        verify(path, "a")


def test_cuts_other_origins_and_files_without_checksums_are_distinguished(tmp_path) -> None:
    path = written(tmp_path / "x.npy")
    whole = path.read_bytes()
    for size in range(len(whole)):
        path.write_bytes(whole[:size])
        with pytest.raises(DamagedFile):
            verify(path, "a")
    path.write_bytes(whole + b"more")
    with refused(DamagedFile):
        verify(path, "a")
    path.write_bytes(whole)
    with refused(DamagedFile):
        verify(path, "b")
    np.save(path, np.ones(3))
    with refused(DamagedFile):
        verify(path, "a")
    with pytest.raises(FileNotFoundError):
        verify(tmp_path / "none.npy", "a")
    with refused(DatasetError):
        verify(tmp_path, "a")


def test_words_that_change_places_are_noticed(tmp_path) -> None:
    """The sum of all words cannot see it; the other checksum must."""
    path = written(tmp_path / "x.npy")
    whole = bytearray(path.read_bytes())
    whole[512:520], whole[520:528] = whole[520:528], whole[512:520]
    path.write_bytes(whole)
    with refused(DamagedFile):
        verify(path, "a")


def test_damage_survives_pickling() -> None:
    import pickle

    error = pickle.loads(pickle.dumps(DamagedFile("x.npy", "it was cut")))
    assert (error.path, error.why) == ("x.npy", "it was cut") and "x.npy" in str(error)
