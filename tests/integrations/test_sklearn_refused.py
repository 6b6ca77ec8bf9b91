"""What the estimator cannot use is told in a sentence."""

import datetime
import json
import subprocess
import sys

import numpy as np
import pandas as pd
import polars as pl
import pytest
import torch

import evgp
from evgp._errors import PoolError
from evgp.integrations.sklearn import EVGPSelector
from evgp.kernels import Raw

X = np.random.default_rng(0).normal(size=(20, 2))
DAYS = pd.date_range("2020", periods=20)


@pytest.mark.parametrize(
    ("arguments", "match"),
    [
        ({"noise": "a"}, "expected noise >= 0 .*got 'a'"),
        ({"noise": None}, "expected noise >= 0 .*got None"),
        ({"noise": [1]}, "expected noise >= 0"),
        ({"noise": np.array([0.1])}, "expected noise >= 0"),
        ({"noise": -1.0}, "expected noise >= 0"),
        ({"noise": float("nan")}, "expected noise >= 0"),
        ({"features": -1}, "features as a name, .*got -1"),
        ({"features": ["raw"]}, r"features as a name, .*got \['raw'\]"),
        ({"features": True}, "features as a name, .*got True"),
        ({"features": Raw}, "features as a name, .*Raw"),
        ({"standardise": "no"}, "standardise as True or False, got 'no'"),
        ({"standardise": np.array([1, 2])}, "standardise as True or False"),
    ],
)  # fmt: skip
def test_arguments(arguments, match) -> None:
    with pytest.raises(PoolError, match=match) as told:
        EVGPSelector(k=2, **arguments).fit(X)
    assert "\n" not in str(told.value)


def test_numbers_of_numpy_are_numbers() -> None:
    made = EVGPSelector(2, noise=np.float64(0.1), standardise=np.bool_(True)).fit(X)
    assert made.indices_.tolist() == evgp.pick(X, 2, noise=0.1).indices.tolist()
    made = EVGPSelector(2, features=Raw()).fit(X)
    assert made.selection_.settings["kernel_features"] == "Raw()"


@pytest.mark.parametrize(
    ("column", "kind"),
    [
        (DAYS, "datetime64"),
        (DAYS.tz_localize("UTC"), "datetime64.*UTC"),
        (DAYS - DAYS[0], "timedelta64"),
        (DAYS.to_period("D"), "period"),
        ([datetime.date(2020, 1, 1)] * 20, "object"),
    ],
)
def test_columns_of_dates(column, kind) -> None:
    frame = pd.DataFrame({"size": X[:, 0], "when": column})
    with pytest.raises(PoolError, match=f"numbers in X, got {kind}.* in column 'when'; ") as told:
        EVGPSelector(k=2).fit(frame)
    assert "\n" not in str(told.value) and "size" not in str(told.value)


def test_an_array_of_objects() -> None:
    given = np.array([[1.0, datetime.date(2020, 1, 1)]] * 20, dtype=object)
    with pytest.raises(PoolError, match=r"numbers in X, got .*datetime\.date"):
        EVGPSelector(k=2).fit(given)


def test_the_front_door_says_the_same_to_who_checks_no_types() -> None:
    # In a process of its own, as the types of arguments are checked in this one.
    code = """
import json, evgp, numpy
x, told = numpy.random.default_rng(0).normal(size=(20, 2)), []
wrong = {"noise": ["a"], "features": -1, "kernel": 5, "greedy": [1], "criterion": ["ev"]}
for name, value in wrong.items():
    try:
        evgp.pick(x, 2, **{name: value})
    except evgp._errors.EvgpError as error:
        told.append(str(error))
print(json.dumps(told))
"""
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    told = json.loads(ran.stdout)
    words = ("noise", "features", "a kernel", "a greedy", "a criterion")
    for sentence, word in zip(told, words, strict=True):
        assert sentence.startswith(f"expected {word}") and "\n" not in sentence


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (pd.DataFrame({"a": DAYS, "b": DAYS}), r"datetime64\S* in column 'a', datetime64\S* in"),
        (pl.DataFrame({"a": list(DAYS), "size": range(20)}), r"Datetime\(.*\) in column 'a'"),
        (pl.DataFrame({"day": [datetime.date(2020, 1, 1)] * 20}), "Date in column 'day'"),
        (pl.DataFrame({"day": ["monday"] * 20, "yes": [True] * 20}), "String in column 'day'"),
        (np.stack([DAYS, DAYS], axis=1), r"datetime64\S*"),
    ],
)
def test_dates_are_no_numbers_anywhere(given, told) -> None:
    with pytest.raises(PoolError, match=rf"^expected numbers in X, got {told}[^,]*; encode"):
        EVGPSelector(k=2).fit(given)


def test_numbers_of_every_kind_are_numbers() -> None:
    number = pl.DataFrame({"a": pl.Series(range(20), dtype=pl.UInt8), "b": [True, False] * 10})
    frames = (number, number.to_pandas(), number.to_pandas().convert_dtypes())
    picks = [EVGPSelector(k=3).fit(frame).indices_.tolist() for frame in frames]
    x = np.array([range(20), [1, 0] * 10], dtype=float).T
    assert picks == [evgp.pick(x, 3).indices.tolist()] * 3


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (pd.Series(X[:, 0]), "Expected a 2-dimensional container"),
        (pl.LazyFrame({"a": [1.0, 2.0]}), "got a LazyFrame; call its collect"),
        (np.ma.masked_greater(X, 1), "every cell of X, got [0-9]+ masked"),
        (pd.DataFrame(X[:, :2], columns=["a", 1]), "Feature names are only supported"),
    ],
)
def test_other_containers_are_told(given, told) -> None:
    with pytest.raises((ValueError, TypeError), match=told):
        EVGPSelector(k=2).fit(given)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_tensors_are_rows_too(dtype) -> None:
    x = torch.from_numpy(X).to(dtype).requires_grad_()
    picks = EVGPSelector(k=2).fit(x).indices_.tolist()
    assert picks == evgp.pick(x.detach().double().numpy(), 2).indices.tolist()
