"""What `evgp.datasets.subset` is not for, and what to do instead."""

import datasets
import numpy as np
import pandas as pd
import polars as pl
import pytest

import evgp
from evgp.errors import DatasetError
from tests.messages import refused

X = np.random.default_rng(0).normal(size=(20, 3))
PART = datasets.Dataset.from_dict({"embedding": X.tolist(), "label": list(range(20))})


@pytest.mark.parametrize("names", [["train", "test"], ["test", "train"], ["all"], []])
def test_a_dictionary_of_splits(names) -> None:
    splits = datasets.DatasetDict(dict.fromkeys(names, PART))
    with refused(DatasetError):
        evgp.datasets.subset(splits, [3, 1])
    with refused(DatasetError):
        evgp.pick(splits, 2)


def test_the_advice_helps() -> None:
    splits = datasets.DatasetDict({"train": PART, "test": PART})
    selection = evgp.pick(splits["train"], 2)
    assert (
        evgp.datasets.subset(splits["train"], selection)["label"][:] == selection.indices.tolist()
    )


@pytest.mark.parametrize(
    ("frame", "advice"),
    [
        (pd.DataFrame(X), "x.iloc[selection]"),
        (pd.Series(X[:, 0]), "x.iloc[selection]"),
        (pl.DataFrame(X), "x[selection]"),
        (X, "x[selection]"),
    ],
)
def test_a_frame_or_an_array(frame, advice) -> None:
    selection = evgp.pick(X, 2)
    with pytest.raises(DatasetError) as caught:
        evgp.datasets.subset(frame, selection)
    assert str(caught.value).endswith(f" use {advice}")
    kept = eval(advice, {"x": frame, "selection": selection})
    assert np.array_equal(np.asarray(kept), np.asarray(frame)[selection.indices])
