"""Honest NumPy files are read; those with false headers are refused before they cost anything."""

import io
import struct
import tracemalloc
import zipfile
from pathlib import Path

import numpy as np
import pytest

from evgp.datasets.arrays import read_array, read_npy, read_npz
from evgp.errors import DatasetError, DataWarning
from tests.messages import refused, warned

X = np.arange(12.0).reshape(4, 3)


def forged(shape: str, dtype: str = "<f8", data: bytes = b"\0" * 64) -> bytes:
    header = f"{{'descr': '{dtype}', 'fortran_order': False, 'shape': {shape}, }}".encode()
    header += b" " * (-(len(header) + 11) % 64) + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + data


@pytest.mark.parametrize(
    "dtype", ["float16", "float32", "float64", "longdouble", "int8", "uint64", "bool", ">f4", ">i8"]
)
def test_every_kind_of_number_becomes_float64(tmp_path: Path, dtype: str) -> None:
    np.save(tmp_path / "x.npy", X.astype(dtype))
    x = read_npy(tmp_path / "x.npy")
    assert x.dtype == np.float64
    np.testing.assert_array_equal(x, X.astype(dtype).astype(float))


def test_columns_first_is_understood(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.asfortranarray(X))
    np.testing.assert_array_equal(read_npy(tmp_path / "x.npy"), X)


@pytest.mark.parametrize(
    "array",
    [
        np.array([[1, "a"]], dtype=object),
        X + 1j,
        np.array([["a", "b"]]),
        np.array([["2020-01-01"]], dtype="M8[D]"),
        np.zeros(3, dtype=[("a", "f8"), ("b", "f8")]),
        X[0],
        np.array(3.0),
        np.empty((0, 3)),
        np.empty((3, 0)),
    ],
)
def test_anything_but_a_table_of_numbers_is_refused(tmp_path: Path, array: object) -> None:
    np.save(tmp_path / "x.npy", array, allow_pickle=True)
    with refused(DatasetError):
        read_npy(tmp_path / "x.npy")


@pytest.mark.parametrize(
    "content",
    [
        forged("(2500000000, 1000)"),
        forged("(9223372036854775807, 9223372036854775807)"),
        forged("(-2, 4)"),
        forged("(8, 1)", data=b"\0" * 63),
        forged("(8, 1)")[:40],
        forged(".8, 1)"),
        b"not an array at all",
        b"\x80\x04N.",
        b"\x93NUMPY\x01\x00\xff\xff{",
        b"\x93NUMPY\x09\x00",
    ],
)
def test_a_lying_npy_is_refused_without_allocating(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "x.npy").write_bytes(content)
    tracemalloc.start()
    with refused(DatasetError):
        read_npy(tmp_path / "x.npy")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 2**22


def test_the_only_table_of_an_archive_is_taken(tmp_path: Path) -> None:
    np.savez(tmp_path / "x.npz", x=X, y=X[0])
    np.testing.assert_array_equal(read_npz(tmp_path / "x.npz"), X)
    np.savez_compressed(tmp_path / "x.npz", a=X, b=X + 1)
    np.testing.assert_array_equal(read_npz(tmp_path / "x.npz", "b"), X + 1)


def test_a_choice_of_arrays_is_required(tmp_path: Path) -> None:
    np.savez(tmp_path / "x.npz", a=X, b=X, c=X[0])
    with refused(DatasetError):
        read_npz(tmp_path / "x.npz")
    with refused(DatasetError):
        read_npz(tmp_path / "x.npz", "z")


PACKED = [zipfile.ZIP_DEFLATED, zipfile.ZIP_LZMA, zipfile.ZIP_BZIP2]


def packed(array: np.ndarray, method: int) -> bytes:
    content, whole = io.BytesIO(), io.BytesIO()
    np.save(content, array)
    with zipfile.ZipFile(whole, "w", method) as archive:
        archive.writestr("x.npy", content.getvalue())
    return whole.getvalue()


@pytest.mark.parametrize("method", PACKED)
def test_every_packing_is_read(tmp_path: Path, method: int) -> None:
    x = np.random.default_rng(0).normal(size=(3000, 40))
    (tmp_path / "x.npz").write_bytes(packed(x, method))
    np.testing.assert_array_equal(read_npz(tmp_path / "x.npz"), x)


@pytest.mark.parametrize("method", PACKED)
def test_no_packing_unpacks_more_than_is_read(tmp_path: Path, method: int) -> None:
    (tmp_path / "x.npz").write_bytes(packed(np.zeros((5000, 1000)), method))
    tracemalloc.start()
    with refused(DatasetError):
        read_npz(tmp_path / "x.npz")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 2**24  # LZMA has a window of 2**23


@pytest.mark.parametrize("method", PACKED)
def test_every_packing_may_be_damaged(tmp_path: Path, method: int) -> None:
    whole = packed(np.random.default_rng(0).normal(size=(50, 40)), method)
    for content in (_spoiled(whole), whole[:50] + b"\xff" * 9 + whole[59:]):
        (tmp_path / "x.npz").write_bytes(content)
        with refused(DatasetError):
            read_npz(tmp_path / "x.npz")


def test_more_axes_are_flattened_with_a_warning(tmp_path: Path) -> None:
    images = np.arange(48.0).reshape(4, 1, 3, 4)
    np.savez(tmp_path / "x.npz", x=images, y=np.arange(4))
    with warned(DataWarning):
        np.testing.assert_array_equal(read_npz(tmp_path / "x.npz"), images.reshape(4, 12))
    np.save(tmp_path / "x.npy", np.asfortranarray(images))
    with warned(DataWarning):
        np.testing.assert_array_equal(read_npy(tmp_path / "x.npy"), images.reshape(4, 12))


def test_a_bomb_is_refused(tmp_path: Path) -> None:
    np.savez_compressed(tmp_path / "bomb.npz", x=np.zeros((5000, 1000)))
    assert (tmp_path / "bomb.npz").stat().st_size < 10**5
    tracemalloc.start()
    with refused(DatasetError):
        read_npz(tmp_path / "bomb.npz")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 2**22


@pytest.mark.parametrize("shape", ["(2500000000, 1000)", "(9, 1)"])
def test_a_lying_archive_is_refused(tmp_path: Path, shape: str) -> None:
    with zipfile.ZipFile(tmp_path / "x.npz", "w") as archive:
        archive.writestr("x.npy", forged(shape))
    with refused(DatasetError):
        read_npz(tmp_path / "x.npz")


@pytest.mark.parametrize("objects", [[[1, "a"]], [{"a": 1}]], ids=["two axes", "one axis"])
def test_objects_in_an_archive_are_refused(tmp_path: Path, objects: list[object]) -> None:
    np.savez(tmp_path / "x.npz", x=np.array(objects, dtype=object))
    with refused(DatasetError):
        read_npz(tmp_path / "x.npz")


def test_a_damaged_archive_is_refused(tmp_path: Path) -> None:
    whole = io.BytesIO()
    np.savez_compressed(whole, x=np.random.default_rng(0).normal(size=(50, 40)))
    for content in (b"", b"PK", whole.getvalue()[:-30], _spoiled(whole.getvalue())):
        (tmp_path / "x.npz").write_bytes(content)
        with refused(DatasetError):
            read_npz(tmp_path / "x.npz")


def test_what_does_not_fit_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    np.save(tmp_path / "x.npy", X)

    class Little:
        available = 100

    monkeypatch.setattr("psutil.virtual_memory", Little)
    with refused(DatasetError):
        read_npy(tmp_path / "x.npy")


def _spoiled(content: bytes) -> bytes:
    middle = len(content) // 2
    return content[:middle] + b"\xff" * 20 + content[middle + 20 :]


def test_axes_and_types_can_be_kept(tmp_path) -> None:
    images = np.arange(24, dtype=np.uint8).reshape(2, 3, 2, 2)
    np.save(tmp_path / "x.npy", np.asfortranarray(images))
    np.savez_compressed(tmp_path / "x.npz", y=np.arange(2), x=images)
    for name in ("x.npy", "x.npz"):
        actual = read_array(tmp_path / name)
        assert actual.dtype == np.uint8
        np.testing.assert_array_equal(actual, images)
