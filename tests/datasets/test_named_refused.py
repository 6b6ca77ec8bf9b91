"""Files of named datasets with false content are refused, each in one line."""

import hashlib
import zipfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from evgp.datasets import load, named, names
from evgp.errors import DatasetError
from tests.conftest import data_folder, examples, missing
from tests.messages import refused

REAL = data_folder()
RNG = np.random.default_rng(0)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder of data, and an empty cache."""
    (tmp_path / "data").mkdir()
    monkeypatch.setenv("EVGP_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("EVGP_CACHE", str(tmp_path / "cache"))
    return tmp_path / "data"


def regression(n: int = 20, **change: object) -> dict[str, object]:
    return {"X": RNG.normal(size=(n, 8)), "y": RNG.normal(size=n)} | change


def images(n: int = 30, m: int = 12, **change: object) -> dict[str, object]:
    entries: dict[str, object] = {
        "X_train": RNG.integers(0, 256, (n, 1, 28, 28), np.uint8),
        "y_train": np.arange(n) % 10,
        "X_test": RNG.integers(0, 256, (m, 1, 28, 28), np.uint8),
        "y_test": np.arange(m) % 10,
    }
    return entries | change


def test_the_error_for_a_missing_file_says_where_it_was_looked_for_and_where_to_get_it(
    folder: Path,
) -> None:
    with pytest.raises(DatasetError) as caught:
        load("kin8nm")
    text = str(caught.value)
    for word in ("kin8nm.npz", str(folder), "cache", "OpenML 189", "n x 8", "verify=False"):
        assert word in text
    assert "\n" not in text


def test_without_a_folder_its_absence_is_reported(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("EVGP_DATA")
    with refused(DatasetError):
        load("svhn")


def test_the_cache_is_looked_in_after_the_folder(folder: Path) -> None:
    cache = folder.parent / "cache" / "data"
    cache.mkdir(parents=True)
    np.savez(cache / "kin8nm.npz", **regression(20))
    data = load("kin8nm", verify=False)
    assert len(data.x) == 10
    assert data.about.endswith("not verified")
    np.savez(folder / "kin8nm.npz", **regression(40))
    assert len(load("kin8nm", verify=False).x) == 20


def test_another_checksum_is_refused_with_both(folder: Path) -> None:
    path = folder / "kin8nm.npz"
    np.savez(path, **regression())
    actual = hashlib.sha256(path.read_bytes()).hexdigest()
    with pytest.raises(DatasetError) as caught:
        load("kin8nm")
    assert names()["kin8nm"].sha256[:12] in str(caught.value)
    assert actual[:12] in str(caught.value)
    assert actual[:13] not in str(caught.value)


def test_a_file_that_was_cut_short_is_refused(folder: Path) -> None:
    if REAL is None or not (REAL / "boston.npz").exists():
        missing("boston.npz")
    whole = (REAL / "boston.npz").read_bytes()
    for size in (0, 1, 100, len(whole) // 2, len(whole) - 1):
        (folder / "boston.npz").write_bytes(whole[:size])
        with refused(DatasetError):
            load("boston")
        with pytest.raises(DatasetError):
            load("boston", verify=False)


@pytest.mark.parametrize(
    "change",
    [
        {"y": np.array([None] * 20, dtype=object)},
        {"X": np.array([["a"] * 8] * 20, dtype=object)},
        {"X": np.zeros((20, 7))},
        {"X": np.zeros((20, 8)) + 1j},
        {"y": np.zeros((20, 1))},
        {"y": np.zeros(19)},
        {"y": np.full(20, np.nan)},
        {"X": np.full((20, 8), np.inf)},
        {"y": np.array(["a"] * 20)},
        {"y": np.ones(20)},
        {"X": np.zeros((3, 8)), "y": np.zeros(3)},
        {"X": np.zeros((0, 8)), "y": np.zeros(0)},
    ],
)
def test_a_regression_of_another_layout_is_refused(folder: Path, change: dict[str, object]) -> None:
    np.savez(folder / "kin8nm.npz", **regression(**change))
    with refused(DatasetError):
        load("kin8nm", verify=False)


@pytest.mark.parametrize(
    "change",
    [
        {"X_train": np.zeros((30, 784), np.uint8)},
        {"X_train": np.zeros((30, 1, 28, 28))},
        {"y_train": np.arange(30)},
        {"y_test": np.arange(12) - 1},
        {"y_test": np.arange(12) / 10},
        {"class_names": np.array(["a"])},
        {"class_names": np.array([None] * 10)},
    ],
)
def test_images_of_another_layout_are_refused(folder: Path, change: dict[str, object]) -> None:
    np.savez(folder / "mnist.npz", **images(**change))
    with refused(DatasetError):
        load("mnist", verify=False)


def test_absent_arrays_are_named(folder: Path) -> None:
    np.savez(folder / "mnist.npz", X=np.zeros((3, 8)))
    with refused(DatasetError):
        load("mnist", verify=False)


def test_a_pickle_with_the_right_checksum_is_still_not_opened(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = folder / "kin8nm.npz"
    np.savez(path, **regression(y=np.array([print] * 20, dtype=object)))
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    monkeypatch.setitem(named.KNOWN, "kin8nm", replace(names()["kin8nm"], sha256=digest))
    with refused(DatasetError):
        load("kin8nm")


@pytest.mark.parametrize(
    "rows",
    [90, 10**13, -1],
)
def test_a_header_that_promises_more_than_there_is_is_refused(folder: Path, rows: int) -> None:
    np.savez(folder / "kin8nm.npz", y=np.zeros(20))
    header = f"{{'descr': '<f8', 'fortran_order': False, 'shape': ({rows}, 8), }}".ljust(117)
    member = b"\x93NUMPY\x01\x00" + (118).to_bytes(2, "little") + header.encode() + b"\n"
    with zipfile.ZipFile(folder / "kin8nm.npz", "a") as archive:
        archive.writestr("X.npy", member + bytes(640))
    with refused(DatasetError):
        load("kin8nm", verify=False)


@given(data=st.data())
@settings(max_examples=examples(60), deadline=None)
def test_damage_anywhere_is_reported_or_harmless(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    folder = tmp_path_factory.mktemp("damaged")
    path = folder / "kin8nm.npz"
    np.savez_compressed(path, X=np.arange(160.0).reshape(20, 8), y=np.arange(20.0))
    raw = bytearray(path.read_bytes())
    for _ in range(data.draw(st.integers(1, 4))):
        raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(0, 255))
    path.write_bytes(raw)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("EVGP_DATA", str(folder))
        try:
            assert load("kin8nm", verify=False).x.shape == (10, 8)
        except DatasetError as error:
            assert "\n" not in str(error)


@given(
    n=st.integers(4, 40),
    seed=st.integers(0, 2**32 - 1),
    scale=st.sampled_from([1e-300, 1e-9, 1.0, 1e300]),
)
@settings(max_examples=examples(40), deadline=None)
def test_any_halves_are_disjoint_whole_and_scaled(
    tmp_path_factory: pytest.TempPathFactory, n: int, seed: int, scale: float
) -> None:
    folder = tmp_path_factory.mktemp("halves")
    random = np.random.default_rng(n)
    x, y = scale * random.normal(size=(n, 8)), scale * random.normal(size=n)
    np.savez(folder / "kin8nm.npz", X=x, y=y)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("EVGP_DATA", str(folder))
        data = load("kin8nm", seed=seed, verify=False)
    order = np.random.RandomState(seed).permutation(n)
    assert data.rows.tolist() == order[: n // 2].tolist()
    assert data.rows_test.tolist() == order[n // 2 :].tolist()
    assert data.x.mean(0).abs().max() < 1e-9
    assert float(data.y.std(correction=0)) == pytest.approx(1)
    assert torch.isfinite(data.x_test).all()


@pytest.mark.parametrize("option", [{"pool": 1}, {"pool": 11}, {"test": 0}, {"test": 11}])
def test_a_part_of_the_wrong_size_is_refused(folder: Path, option: dict[str, int]) -> None:
    np.savez(folder / "kin8nm.npz", **regression(20))
    with refused(DatasetError):
        load("kin8nm", verify=False, **option)


def test_all_of_the_train_part_may_be_the_pool(folder: Path) -> None:
    np.savez(folder / "mnist.npz", **images(30))
    data = load("mnist", verify=False, pool=30, test=5)
    assert sorted(data.rows.tolist()) == list(range(30))
    assert len(set(data.rows_test.tolist())) == 5
    assert data.class_names == tuple("0123456789")


def test_a_constant_channel_becomes_zero(folder: Path) -> None:
    result = images(X_train=np.full((30, 1, 28, 28), 7, np.uint8))
    np.savez(folder / "mnist.npz", **result)
    assert float(load("mnist", verify=False).x.abs().max()) == 0


def test_a_header_that_is_not_python_is_refused_clearly(folder: Path) -> None:
    text = b"{'descr': '<f8', 'fortran_order': False, 'shape': ((((\n"
    with zipfile.ZipFile(folder / "kin8nm.npz", "w") as archive:
        for name in ("X.npy", "y.npy"):
            head = np.lib.format.magic(1, 0) + len(text).to_bytes(2, "little")
            archive.writestr(name, head + text)
    with refused(DatasetError):
        load("kin8nm", verify=False)
