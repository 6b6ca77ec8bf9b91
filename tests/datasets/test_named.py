"""The datasets of the paper are split and scaled as it says, and files that lie are refused."""

import hashlib
import time
import tracemalloc
import zipfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from evgp._errors import DatasetError
from evgp.datasets import Dataset, Known, known, load, names
from tests.conftest import data_folder, missing

Load = Callable[..., Dataset]
HALVED = ["boston", "naval", "protein", "kin8nm", "california", "optdigits"]
IMAGES = ["mnist", "emnist", "svhn", "cifar100"]
REAL = data_folder()
RNG = np.random.default_rng(0)


@pytest.fixture
def real(monkeypatch: pytest.MonkeyPatch) -> Load:
    """`load`, from the real files if they are here."""

    def loaded(name: str, **options: object) -> Dataset:
        file = names()[name].file
        if REAL is None or not (REAL / file).exists():
            missing(file)
        monkeypatch.setenv("EVGP_DATA", str(REAL))
        return load(name, **options)

    return loaded


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
    made: dict[str, object] = {
        "X_train": RNG.integers(0, 256, (n, 1, 28, 28), np.uint8),
        "y_train": np.arange(n) % 10,
        "X_test": RNG.integers(0, 256, (m, 1, 28, 28), np.uint8),
        "y_test": np.arange(m) % 10,
    }
    return made | change


# What the real data become


@pytest.mark.parametrize("name", HALVED)
def test_a_half_is_the_pool_and_the_other_the_test(real: Load, name: str) -> None:
    data, about = real(name), names()[name]
    n = about.rows + about.rows_test
    assert data.kind == "regression"
    assert data.classes == 0
    assert data.x.shape == (n // 2, *about.shape)
    assert data.y.shape == (n // 2, 1)
    assert len(data.x_test) == len(data.y_test) == n - n // 2
    rows = torch.cat([data.rows, data.rows_test])
    assert rows.sort().values.tolist() == list(range(n))
    assert data.about and data.citation and data.licence


@pytest.mark.parametrize("name", HALVED)
def test_columns_and_targets_are_scaled_by_the_pool(real: Load, name: str) -> None:
    data = real(name)
    assert data.x.dtype == data.y.dtype == torch.float64
    spread = data.x.std(0, correction=0)
    assert data.x.mean(0).abs().max() < 1e-10
    assert torch.all(((spread - 1).abs() < 1e-10) | (spread == 0))
    assert abs(float(data.y.mean())) < 1e-10
    assert float(data.y.std(correction=0)) == pytest.approx(1)
    # By the pool, not by itself.
    assert float(data.y_test.mean()) != pytest.approx(0, abs=1e-10)
    assert torch.isfinite(data.x_test).all()


@pytest.mark.parametrize("name", ["kin8nm", "optdigits"])
def test_seed_0_is_the_pool_of_the_recorded_figures(
    real: Load, half: Callable[[str], np.ndarray], name: str
) -> None:
    x = half(name)
    spread = x.std(0)
    expected = (x - x.mean(0)) / np.where(spread == 0, 1, spread)
    np.testing.assert_allclose(real(name).x.numpy(), expected, atol=1e-12)


def test_targets_return_to_their_unit(real: Load) -> None:
    data = real("boston")
    raw = np.load(REAL / "boston.npz")["y"]
    found = data.y[:, 0].numpy() * data.y_std + data.y_mean
    np.testing.assert_allclose(found, raw[data.rows.numpy()])


def test_constant_columns_of_naval_are_zero(real: Load) -> None:
    data = real("naval")
    constant = data.x.abs().sum(0) == 0
    assert constant.sum() == 2
    assert float(data.x_test[:, constant].abs().max()) == 0


def test_digits_are_a_regression_on_the_label_or_classes(real: Load) -> None:
    data = real("optdigits")
    labels = data.y[:, 0] * data.y_std + data.y_mean
    assert sorted({round(float(value), 9) for value in labels}) == list(range(10))
    data = real("optdigits", task="classification")
    assert (len(data.x), len(data.x_test), data.classes) == (3823, 1797, 10)
    assert data.y.dtype == torch.int64
    assert data.rows_test.tolist() == list(range(1797))


@pytest.mark.parametrize("name", IMAGES)
def test_images_have_the_pool_of_the_paper_and_the_given_test_part(real: Load, name: str) -> None:
    data, about = real(name, test=100), names()[name]
    assert data.kind == "classification"
    assert data.x.shape == (10_000 if name == "mnist" else 20_000, *about.shape)
    assert data.x_test.shape == (100, *about.shape)
    assert len(set(data.rows.tolist())) == len(data.rows)
    assert data.classes == len(data.class_names) == len(data.y.unique()) == about.classes
    assert data.x.mean((0, 2, 3)).abs().max() < 1e-10
    torch.testing.assert_close(
        data.x.std((0, 2, 3), correction=0), torch.ones(about.shape[0], dtype=torch.float64)
    )
    assert data.licence and data.citation


def test_mnist_is_read_in_little_time_and_memory(real: Load) -> None:
    tracemalloc.start()
    start = time.perf_counter()
    data = real("mnist")
    took, (_, peak) = time.perf_counter() - start, tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(data.x_test) == 10_000
    assert data.rows_test.tolist() == list(range(10_000))
    # The train part in float64 would be 376 MB.
    assert peak < 200e6
    assert took < 30


def test_a_seed_repeats_itself_and_another_differs(real: Load) -> None:
    for name, options in [("kin8nm", {}), ("optdigits", {"task": "classification"})]:
        one, two = real(name, seed=3, **options), real(name, seed=3, **options)
        assert torch.equal(one.x, two.x) and torch.equal(one.y_test, two.y_test)
        assert not torch.equal(one.rows, real(name, seed=4, **options).rows)


def test_a_smaller_pool_or_test_is_a_part_of_the_usual_one(real: Load) -> None:
    whole, part = real("kin8nm"), real("kin8nm", pool=100, test=50)
    assert torch.equal(part.rows, whole.rows[:100])
    assert torch.equal(part.rows_test, whole.rows_test[:50])
    assert float(part.y.std(correction=0)) == pytest.approx(1)


# What is made up, and what is refused


def test_every_name_is_listed_with_kind_size_and_citation() -> None:
    assert [str(one).split(":")[0] for one in names().values()] == list(names())
    assert set(HALVED + IMAGES) == set(names())
    assert str(names()["mnist"]).startswith(
        "mnist: classification, 60,000 + 10,000 x 1 x 28 x 28; LeCun"
    )
    for one in names().values():
        assert len(one.sha256) == 64 and one.citation and one.licence and one.source


def test_the_checksums_are_those_of_the_data() -> None:
    if REAL is None or not (REAL / "SHA256SUMS").exists():
        missing("SHA256SUMS")
    lines = (REAL / "SHA256SUMS").read_text().splitlines()
    assert {one.file: one.sha256 for one in names().values()} == {
        line.split()[1]: line.split()[0] for line in lines
    }


@pytest.mark.parametrize(("name", "hint"), [("minst", "'mnist'"), ("", ""), ("titanic", "")])
def test_an_unknown_name_is_told_which_exist(name: str, hint: str) -> None:
    with pytest.raises(DatasetError, match=", ".join(names())) as told:
        load(name)
    assert f"got {name!r}" in str(told.value)
    assert ("perhaps for " + hint in str(told.value)) if hint else "perhaps" not in str(told.value)


def test_a_missing_file_is_told_where_it_was_looked_for_and_where_to_get_it(folder: Path) -> None:
    with pytest.raises(DatasetError) as told:
        load("kin8nm")
    said = str(told.value)
    for word in ("kin8nm.npz", str(folder), "cache", "OpenML 189", "n x 8", "verify=False"):
        assert word in said
    assert "\n" not in said


def test_without_a_folder_it_is_said_that_there_is_none(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("EVGP_DATA")
    with pytest.raises(DatasetError, match=r"\$EVGP_DATA is not set"):
        load("svhn")


def test_the_cache_is_looked_in_after_the_folder(folder: Path) -> None:
    cache = folder.parent / "cache" / "data"
    cache.mkdir(parents=True)
    np.savez(cache / "kin8nm.npz", **regression(20))
    assert len(load("kin8nm", verify=False).x) == 10
    np.savez(folder / "kin8nm.npz", **regression(40))
    assert len(load("kin8nm", verify=False).x) == 20


def test_another_checksum_is_refused_with_both(folder: Path) -> None:
    path = folder / "kin8nm.npz"
    np.savez(path, **regression())
    found = hashlib.sha256(path.read_bytes()).hexdigest()
    with pytest.raises(DatasetError) as told:
        load("kin8nm")
    assert names()["kin8nm"].sha256[:12] in str(told.value)
    assert found[:12] in str(told.value)
    assert found[:13] not in str(told.value)


def test_a_file_that_was_cut_short_is_refused(folder: Path) -> None:
    if REAL is None or not (REAL / "boston.npz").exists():
        missing("boston.npz")
    whole = (REAL / "boston.npz").read_bytes()
    for size in (0, 1, 100, len(whole) // 2, len(whole) - 1):
        (folder / "boston.npz").write_bytes(whole[:size])
        with pytest.raises(DatasetError, match="SHA-256" if size else "empty file"):
            load("boston")
        with pytest.raises(DatasetError):
            load("boston", verify=False)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"y": np.array([None] * 20, dtype=object)}, "never unpickled"),
        ({"X": np.array([["a"] * 8] * 20, dtype=object)}, "never unpickled"),
        ({"X": np.zeros((20, 7))}, r"got X \(20 x 7\)"),
        ({"X": np.zeros((20, 8)) + 1j}, "complex"),
        ({"y": np.zeros((20, 1))}, r"got y \(20 x 1\)"),
        ({"y": np.zeros(19)}, "20 rows of X and 19 labels"),
        ({"y": np.full(20, np.nan)}, "missing or infinite"),
        ({"X": np.full((20, 8), np.inf)}, "missing or infinite"),
        ({"y": np.array(["a"] * 20)}, "<U1"),
        ({"y": np.ones(20)}, "expected targets that differ"),
        ({"X": np.zeros((3, 8)), "y": np.zeros(3)}, "too few"),
        ({"X": np.zeros((0, 8)), "y": np.zeros(0)}, r"X \(0 x 8\)"),
    ],
)
def test_a_regression_of_another_layout_is_refused(
    folder: Path, change: dict[str, object], said: str
) -> None:
    np.savez(folder / "kin8nm.npz", **regression(**change))
    with pytest.raises(DatasetError, match=said):
        load("kin8nm", verify=False)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"X_train": np.zeros((30, 784), np.uint8)}, "X_train"),
        ({"X_train": np.zeros((30, 1, 28, 28))}, "float64"),
        ({"y_train": np.arange(30)}, "labels from 0 to 29"),
        ({"y_test": np.arange(12) - 1}, "labels from -1 to 10"),
        ({"y_test": np.arange(12) / 10}, "float64"),
        ({"class_names": np.array(["a"])}, "class_names"),
        ({"class_names": np.array([None] * 10)}, "never unpickled"),
    ],
)
def test_images_of_another_layout_are_refused(
    folder: Path, change: dict[str, object], said: str
) -> None:
    np.savez(folder / "mnist.npz", **images(**change))
    with pytest.raises(DatasetError, match=said):
        load("mnist", verify=False)


def test_absent_arrays_are_named(folder: Path) -> None:
    np.savez(folder / "mnist.npz", X=np.zeros((3, 8)))
    with pytest.raises(DatasetError, match="none named X_train, X_test, y_train, y_test"):
        load("mnist", verify=False)


def test_a_pickle_with_the_right_checksum_is_still_not_opened(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = folder / "kin8nm.npz"
    np.savez(path, **regression(y=np.array([print] * 20, dtype=object)))
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    monkeypatch.setitem(known.KNOWN, "kin8nm", replace(names()["kin8nm"], sha256=digest))
    with pytest.raises(DatasetError, match="never unpickled"):
        load("kin8nm")


@pytest.mark.parametrize(
    ("rows", "said"), [(90, "cut short"), (10**13, "of memory are free"), (-1, r"X \(-1 x 8\)")]
)
def test_a_header_that_promises_more_than_there_is_is_refused(
    folder: Path, rows: int, said: str
) -> None:
    np.savez(folder / "kin8nm.npz", y=np.zeros(20))
    header = f"{{'descr': '<f8', 'fortran_order': False, 'shape': ({rows}, 8), }}".ljust(117)
    member = b"\x93NUMPY\x01\x00" + (118).to_bytes(2, "little") + header.encode() + b"\n"
    with zipfile.ZipFile(folder / "kin8nm.npz", "a") as archive:
        archive.writestr("X.npy", member + bytes(640))
    with pytest.raises(DatasetError, match=said):
        load("kin8nm", verify=False)


@given(data=st.data())
@settings(max_examples=60, deadline=None)
def test_damage_anywhere_is_one_sentence_or_harmless(
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
@settings(max_examples=40, deadline=None)
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
    ((what, size),) = option.items()
    with pytest.raises(DatasetError, match=f"expected {what} from . to 10 points, got {size}"):
        load("kin8nm", verify=False, **option)


def test_all_of_the_train_part_may_be_the_pool(folder: Path) -> None:
    np.savez(folder / "mnist.npz", **images(30))
    data = load("mnist", verify=False, pool=30, test=5)
    assert sorted(data.rows.tolist()) == list(range(30))
    assert len(set(data.rows_test.tolist())) == 5
    assert data.class_names == tuple("0123456789")


def test_a_constant_channel_becomes_zero(folder: Path) -> None:
    made = images(X_train=np.full((30, 1, 28, 28), 7, np.uint8))
    np.savez(folder / "mnist.npz", **made)
    assert float(load("mnist", verify=False).x.abs().max()) == 0


@pytest.mark.parametrize("seed", [-1, 2**32])
def test_a_seed_out_of_range_is_refused(folder: Path, seed: int) -> None:
    with pytest.raises(DatasetError, match="expected a seed from 0"):
        load("kin8nm", seed=seed)


def test_a_task_that_a_dataset_has_not_is_refused(folder: Path) -> None:
    with pytest.raises(DatasetError, match="mnist: expected task 'classification', got 'regress"):
        load("mnist", task="regression")
    with pytest.raises(DatasetError, match="expected task 'regression' or 'classification'"):
        load("optdigits", task="ranking")


def test_a_description_says_what_it_holds() -> None:
    about: Known = names()["optdigits"]
    assert about.kinds == ("regression", "classification")
    assert about.layout.startswith("X_train and X_test (n x 64)")
