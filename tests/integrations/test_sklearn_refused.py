"""Input that the estimator cannot use gives one sentence."""

import datetime
import json

import numpy as np
import pandas as pd
import polars as pl
import pytest
import torch

import evgp
from evgp.errors import DatasetError, MissingValues, PoolError
from evgp.integrations.sklearn import EVGPSelector
from evgp.kernels import Raw
from tests.forked import python
from tests.messages import refused

X = np.random.default_rng(0).normal(size=(20, 2))
DAYS = pd.date_range("2020", periods=20)


@pytest.mark.parametrize(
    "arguments",
    [
        {"noise": "a"},
        {"noise": None},
        {"noise": [1]},
        {"noise": np.array([0.1])},
        {"noise": -1.0},
        {"noise": float("nan")},
        {"features": -1},
        {"features": ["raw"]},
        {"features": True},
        {"features": Raw},
        {"scale": "no"},
        {"scale": np.array([1, 2])},
    ],
)  # fmt: skip
def test_arguments(arguments) -> None:
    with refused(PoolError):
        EVGPSelector(k=2, **arguments).fit(X)


def test_numbers_of_numpy_are_numbers() -> None:
    fitted = EVGPSelector(2, noise=np.float64(0.1), scale="columns").fit(X)
    expected = evgp.pick(X, 2, noise=0.1, scale="columns")
    assert fitted.indices_.tolist() == expected.indices.tolist()
    fitted = EVGPSelector(2, features=Raw()).fit(X)
    assert fitted.selection_.settings["kernel_features"] == "Raw()"


@pytest.mark.parametrize(
    "column",
    [
        DAYS,
        DAYS.tz_localize("UTC"),
        DAYS - DAYS[0],
        [datetime.date(2020, 1, 1 + row) for row in range(20)],
    ],
)
@pytest.mark.filterwarnings("ignore::evgp.errors.DataWarning")
def test_columns_of_dates_are_read_as_by_pick(column) -> None:
    frame = pd.DataFrame({"size": X[:, 0], "when": column})
    assert EVGPSelector(k=2).fit(frame).selection_ == evgp.pick(frame, 2)


def test_missing_values_of_frames_are_named_by_column() -> None:
    with refused(MissingValues) as raised:
        EVGPSelector(k=2).fit(pd.DataFrame({"size": [1.0, None, 3.0], "kind": list("aba")}))
    assert list(raised.value.columns) == ["size"] and "impute" not in str(raised.value)
    with refused(PoolError):
        EVGPSelector(k=2).fit(pl.DataFrame({"size": [1.0, 2.0]}).lazy())


def test_an_array_of_objects() -> None:
    inputs = np.array([[1.0, datetime.date(2020, 1, 1)]] * 20, dtype=object)
    with refused(PoolError):
        EVGPSelector(k=2).fit(inputs)


def test_errors_are_the_same_without_type_checks() -> None:
    # In a process of its own, as the types of arguments are checked in this one.
    code = """
import json, evgp, evgp.errors, numpy
x, told = numpy.random.default_rng(0).normal(size=(20, 2)), []
wrong = {"noise": ["a"], "features": -1, "kernel": 5, "greedy": [1], "criterion": ["ev"]}
for name, value in wrong.items():
    try:
        evgp.pick(x, 2, **{name: value})
    except evgp.errors.EvgpError as error:
        told.append(str(error))
print(json.dumps(told))
"""
    ran = python(code)
    assert ran.returncode == 0, ran.stderr
    document = json.loads(ran.stdout)
    words = ("noise", "features", "a kernel", "greedy", "a criterion")
    for sentence, word in zip(document, words, strict=True):
        assert sentence.startswith(f"expected {word}") and "\n" not in sentence


@pytest.mark.parametrize(
    "given",
    [
        pl.DataFrame({"day": [datetime.date(2020, 1, 1)] * 20}),
        pl.DataFrame({"day": ["monday"] * 20, "yes": [True] * 20}),
        np.stack([DAYS, DAYS], axis=1),
    ],
)
def test_what_cannot_be_picked_from_is_refused(given) -> None:
    with refused((DatasetError, PoolError)):
        EVGPSelector(k=2).fit(given)


def test_numbers_of_every_kind_are_numbers() -> None:
    number = pl.DataFrame(
        {"a": pl.Series([*range(10)] * 2, dtype=pl.UInt8), "b": [at / 2 for at in range(20)]}
    )
    frames = (number, number.to_pandas(), number.to_pandas().convert_dtypes())
    picks = [EVGPSelector(k=3).fit(frame).indices_.tolist() for frame in frames]
    assert picks == [evgp.pick(number.to_numpy(), 3).indices.tolist()] * 3


@pytest.mark.parametrize(
    "given",
    [
        pd.Series(X[:, 0]),
        pl.LazyFrame({"a": [1.0, 2.0]}),
        np.ma.masked_greater(X, 1),
        pd.DataFrame(X[:, :2], columns=["a", 1]),
    ],
)
def test_other_containers_are_rejected_with_a_reason(given) -> None:
    with refused((ValueError, TypeError)):
        EVGPSelector(k=2).fit(given)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_tensors_are_rows_too(dtype) -> None:
    x = torch.from_numpy(X).to(dtype).requires_grad_()
    picks = EVGPSelector(k=2).fit(x).indices_.tolist()
    assert picks == evgp.pick(x.detach().double().numpy(), 2).indices.tolist()
