"""Any table with a column of labels becomes a pool and a test part, or a clear sentence."""

import warnings
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from evgp.datasets import load_csv
from evgp.errors import DatasetError, DataWarning, TableProblems
from tests.conftest import examples
from tests.messages import refused, warned

RNG = np.random.default_rng(0)


def table(folder: Path, n: int = 60, **columns: object) -> Path:
    """A CSV with two columns of numbers and one of words, and those given."""
    base: dict[str, object] = {
        "size": RNG.normal(size=n).round(6),
        "weight": RNG.normal(5, 2, size=n).round(6),
        "kind": ["round" if row % 3 else "flat" for row in range(n)],
    }
    path = folder / "things.csv"
    pa.csv.write_csv(pa.table(base | columns), path)
    return path


def test_numbers_are_targets_scaled_by_the_pool(tmp_path: Path) -> None:
    price = RNG.normal(100, 20, size=60).round(3)
    data = load_csv(table(tmp_path, price=price), "price")
    assert (data.kind, data.classes, data.name) == ("regression", 0, "things")
    assert data.about == "numbers in column 'price', as targets"
    assert data.x.shape == data.x_test.shape == (30, 4)
    assert data.y.shape == (30, 1)
    assert float(data.y.std(correction=0)) == pytest.approx(1)
    raw = data.y_test[:, 0].numpy() * data.y_std + data.y_mean
    np.testing.assert_allclose(raw, price[data.rows_test.numpy()])
    assert data.x[:, :2].mean(0).abs().max() < 1e-12
    assert data.x_test[:, :2].mean(0).abs().max() > 1e-3


@pytest.mark.parametrize(
    ("labels", "names"),
    [
        (["no", "yes"], ("no", "yes")),
        ([True, False], ("false", "true")),
        ([10, 9], ("9", "10")),
        ([0.0, 1.0], ("0", "1")),
        ([2**60 + 1, 2**60], (str(2**60), str(2**60 + 1))),
    ],
)
def test_words_and_few_integers_are_classes(
    tmp_path: Path, labels: list[object], names: tuple[str, ...]
) -> None:
    data = load_csv(table(tmp_path, label=labels * 30), "label")
    assert (data.kind, data.classes, data.class_names) == ("classification", 2, names)
    assert data.about == "2 classes in column 'label'"
    assert data.y.dtype == torch.int64
    for row, code in zip(data.rows.tolist(), data.y.tolist(), strict=True):
        assert names[code] == str(labels[row % 2]).removesuffix(".0").lower()


@pytest.mark.parametrize("values", [np.arange(60), np.arange(60) % 2 / 2, np.arange(60) % 21])
def test_many_or_broken_numbers_are_targets(tmp_path: Path, values: np.ndarray) -> None:
    assert load_csv(table(tmp_path, label=values), "label").kind == "regression"


def test_the_task_may_be_chosen(tmp_path: Path) -> None:
    path = table(tmp_path, grade=np.arange(60) % 5)
    assert load_csv(path, "grade").classes == 5
    data = load_csv(path, "grade", task="regression")
    assert data.y.shape == (30, 1)
    path = table(tmp_path, grade=np.arange(60) % 4 / 2)
    assert load_csv(path, "grade", task="classification").class_names == ("0", "0.5", "1", "1.5")


@given(n=st.integers(4, 50), share=st.floats(0.05, 0.5), seed=st.integers(0, 99))
@settings(max_examples=examples(40), deadline=None)
def test_any_parts_are_disjoint_and_whole(
    tmp_path_factory: pytest.TempPathFactory, n: int, share: float, seed: int
) -> None:
    path = tmp_path_factory.mktemp("parts") / "t.parquet"
    x = np.random.default_rng(n).normal(size=n)
    pq.write_table(pa.table({"x": x, "y": x + 1}), path)
    data = load_csv(path, "y", test=share, seed=seed)
    rows = torch.cat([data.rows, data.rows_test])
    assert rows.tolist() == np.random.RandomState(seed).permutation(n).tolist()
    assert len(data.x_test) >= 1
    assert abs(len(data.x_test) - share * n) < 1
    torch.testing.assert_close(data.x, data.y)
    torch.testing.assert_close(data.x_test, data.y_test)


def test_a_half_and_a_number_of_rows(tmp_path: Path) -> None:
    path = table(tmp_path, 61, y=np.arange(61.0))
    assert len(load_csv(path, "y").x) == 30
    assert len(load_csv(path, "y", test=11).x_test) == 11
    assert not torch.equal(load_csv(path, "y").rows, load_csv(path, "y", seed=1).rows)


def test_the_id_and_what_is_dropped_are_no_features(tmp_path: Path) -> None:
    path = table(tmp_path, y=np.arange(60.0), name=[f"n{row}" for row in range(60)])
    assert load_csv(path, "y", id="name").x.shape[1] == 4
    assert load_csv(path, "y", id="name", drop=["kind"]).x.shape[1] == 2
    assert load_csv(path, "y", drop=["kind", "name"]).x.shape[1] == 2


def test_words_that_only_the_test_has_are_a_warning(tmp_path: Path) -> None:
    order = np.random.RandomState(0).permutation(60)
    kinds = np.array(["a", "b"] * 30, dtype=object)
    kinds[order[40]] = "new"
    path = table(tmp_path, kind=kinds.tolist(), y=np.arange(60.0))
    with warned(DataWarning):
        data = load_csv(path, "y")
    assert data.x_test[10, 2:].tolist() == [0, 0]


def test_constant_columns_are_left_out_and_reported(tmp_path: Path) -> None:
    with warned(DataWarning):
        data = load_csv(table(tmp_path, y=np.arange(60.0), same=[1] * 60), "y")
    assert data.x.shape[1] == 4


@pytest.mark.parametrize(
    "labels",
    [
        [None, 2.5, *range(58)],
        ["a", None, *["b"] * 58],
        [1.0, np.inf, *range(58)],
        [None] * 60,
        [7] * 60,
        ["a"] * 60,
        [f"word {row}" for row in range(60)],
    ],
)
def test_labels_that_cannot_be_learnt_are_refused(tmp_path: Path, labels: list[object]) -> None:
    path = table(tmp_path, label=labels)
    with refused(DatasetError):
        load_csv(path, "label")


def test_classes_seen_only_in_the_test_are_named(tmp_path: Path) -> None:
    order = np.random.RandomState(0).permutation(60)
    labels = np.array(["a", "b"] * 30, dtype=object)
    labels[order[[40, 41, 50]]] = ["rare", "odd", "rare"]
    path = table(tmp_path, label=labels.tolist())
    with refused(DatasetError):
        load_csv(path, "label")
    assert load_csv(path, "label", seed=5, test=0.1).classes == 4


def test_targets_that_differ_only_in_the_test_are_refused(tmp_path: Path) -> None:
    order = np.random.RandomState(0).permutation(60)
    y = np.ones(60)
    y[order[30:]] = RNG.normal(size=30)
    with refused(DatasetError):
        load_csv(table(tmp_path, y=y), "y")


def test_empty_cells_are_named_by_the_rows_of_the_file(tmp_path: Path) -> None:
    hole: list[object] = [1.5, 2.5] * 30
    hole[17] = None
    path = table(tmp_path, y=np.arange(60.0), hole=hole)
    with refused(DatasetError):
        load_csv(path, "y")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        assert torch.isfinite(load_csv(path, "y", impute=True).x).all()


@pytest.mark.parametrize("test", [0.0, 1.0, -0.5, 1.5, float("nan"), -3, True, 59, 60, 0.99])
def test_a_test_part_of_the_wrong_size_is_refused(tmp_path: Path, test: float) -> None:
    path = table(tmp_path, y=np.arange(60.0))
    with refused(DatasetError):
        load_csv(path, "y", test=test)


def test_wrong_names_and_tasks_are_refused(tmp_path: Path) -> None:
    path = table(tmp_path, y=np.arange(60.0), word=["a", "b"] * 30)
    with refused(DatasetError):
        load_csv(path, "z")
    with refused(DatasetError):
        load_csv(path, "y", drop=["z"])
    with refused(DatasetError):
        load_csv(path, "y", drop=["y"])
    with refused(DatasetError):
        load_csv(path, "y", id="y")
    with refused(DatasetError):
        load_csv(path, "y", task="ranking")
    with refused(DatasetError):
        load_csv(path, "word", task="regression")
    with refused(DatasetError):
        load_csv(path, "y", task="classification")
    with refused(DatasetError):
        load_csv(tmp_path / "none.csv", "y")


def test_a_label_alone_is_refused(tmp_path: Path) -> None:
    (tmp_path / "y.csv").write_text("y\n" + "\n".join(map(str, range(10))) + "\n")
    with refused(DatasetError):
        load_csv(tmp_path / "y.csv", "y")


def test_times_are_no_labels(tmp_path: Path) -> None:
    day = pa.array(range(60), pa.date32())
    pq.write_table(pa.table({"x": np.arange(60.0), "day": day}), tmp_path / "t.parquet")
    with refused(DatasetError):
        load_csv(tmp_path / "t.parquet", "day")


@pytest.mark.filterwarnings("ignore::evgp.errors.DataWarning")
def test_all_problems_of_a_table_with_labels_are_in_one_message(tmp_path: Path) -> None:
    values = {
        "word": [chr(97 + at % 26) + chr(97 + at // 26) for at in range(60)],
        "hole": [None, *np.linspace(0, 1, 59)],
    }
    path = table(tmp_path, y=np.arange(60.0), **values)
    with refused(TableProblems) as caught:
        load_csv(path, "y")
    assert len(load_csv(path, "y", **caught.value.options).x) == 30
    texts = {name: [f"the parcel {at} has not come" for at in range(60)] for name in "ab"}
    path = table(tmp_path, y=np.arange(60.0), **texts)
    with refused(TableProblems) as caught:
        load_csv(path, "y")
    assert caught.value.options == {"text": "a,b"}
