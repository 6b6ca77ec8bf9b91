"""The datasets of the paper are split and scaled as it says."""

import time
import tracemalloc
from collections.abc import Callable

import numpy as np
import pytest
import torch

from evgp.datasets import Dataset, Known, load, names
from evgp.errors import DatasetError, UnknownName
from tests.conftest import data_folder, missing
from tests.messages import refused

Load = Callable[..., Dataset]
HALVED = ["boston", "naval", "protein", "kin8nm", "california", "optdigits"]
IMAGES = ["mnist", "emnist", "svhn", "cifar100"]
REAL = data_folder()


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
    actual = data.y[:, 0].numpy() * data.y_std + data.y_mean
    np.testing.assert_allclose(actual, raw[data.rows.numpy()])


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
        first, two = real(name, seed=3, **options), real(name, seed=3, **options)
        assert torch.equal(first.x, two.x) and torch.equal(first.y_test, two.y_test)
        assert not torch.equal(first.rows, real(name, seed=4, **options).rows)


def test_a_smaller_pool_or_test_is_a_part_of_the_usual_one(real: Load) -> None:
    whole, part = real("kin8nm"), real("kin8nm", pool=100, test=50)
    assert torch.equal(part.rows, whole.rows[:100])
    assert torch.equal(part.rows_test, whole.rows_test[:50])
    assert float(part.y.std(correction=0)) == pytest.approx(1)


def test_every_name_is_listed_with_kind_size_and_citation() -> None:
    assert [str(name).split(":")[0] for name in names().values()] == list(names())
    assert set(HALVED + IMAGES) == set(names())
    assert str(names()["mnist"]).startswith(
        "mnist: classification, 60,000 + 10,000 x 1 x 28 x 28; LeCun"
    )
    for name in names().values():
        assert len(name.sha256) == 64 and name.citation and name.licence and name.source


def test_the_checksums_are_those_of_the_data() -> None:
    if REAL is None or not (REAL / "SHA256SUMS").exists():
        missing("SHA256SUMS")
    lines = (REAL / "SHA256SUMS").read_text().splitlines()
    assert {name.file: name.sha256 for name in names().values()} == {
        line.split()[1]: line.split()[0] for line in lines
    }


@pytest.mark.parametrize(("name", "hint"), [("minst", "mnist"), ("", None), ("titanic", None)])
def test_an_unknown_name_lists_those_that_exist(name: str, hint: str | None) -> None:
    with refused(UnknownName) as caught:
        load(name)
    assert isinstance(caught.value, DatasetError) and caught.value.value == name
    assert caught.value.suggestion == hint and caught.value.choices == tuple(names())


@pytest.mark.parametrize("seed", [-1, 2**32])
def test_a_seed_out_of_range_is_refused(seed: int) -> None:
    with refused(DatasetError):
        load("kin8nm", seed=seed)


def test_a_task_that_a_dataset_has_not_is_refused() -> None:
    with refused(DatasetError):
        load("mnist", task="regression")
    with refused(DatasetError):
        load("optdigits", task="ranking")


def test_a_description_says_what_it_holds() -> None:
    about: Known = names()["optdigits"]
    assert about.kinds == ("regression", "classification")
    assert about.layout.startswith("X_train and X_test (n x 64)")
