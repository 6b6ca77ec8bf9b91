"""Errors have fields, one sentence, and survive a copy and a trip to another process."""

import copy
import dataclasses
import inspect
import pickle
from collections.abc import Mapping
from pathlib import Path
from typing import get_type_hints

import numpy as np
import pandas as pd
import pytest

import evgp
from evgp import errors
from evgp.errors import BadArgument, Detailed, EvgpError, MissingColumn, UnknownName, sentence
from tests.messages import printed

SAMPLES = {
    int: 7,
    float: 0.5,
    bool: True,
    int | None: 3,
    tuple[int, ...]: (3, 1),
    tuple[str, ...]: (".csv", ".tsv"),
    Mapping[str, int]: {"price": 2},
    Mapping[str, object]: {"impute": True},
}
KINDS = [
    kind
    for _, kind in inspect.getmembers(errors, inspect.isclass)
    if issubclass(kind, EvgpError) and not issubclass(kind, Detailed) and kind is not EvgpError
]
CLASSES = [
    kind
    for _, kind in inspect.getmembers(errors, inspect.isclass)
    if issubclass(kind, Detailed) and kind is not Detailed
]


def sample(kind: type[Detailed]) -> Detailed:
    types = get_type_hints(kind)
    named = [field.name for field in dataclasses.fields(kind)]
    return kind(**{name: SAMPLES.get(types[name], f"<{name}>") for name in named})


def fields(error: Detailed) -> dict[str, object]:
    return {field.name: getattr(error, field.name) for field in dataclasses.fields(error)}


def test_there_are_many() -> None:
    assert len(CLASSES) >= 20 and BadArgument in CLASSES


@pytest.mark.parametrize("kind", CLASSES, ids=lambda kind: kind.__name__)
def test_fields_make_the_message(kind) -> None:
    printed(f"{kind.__name__}: {sample(kind)}")
    assert "\n" not in str(sample(kind)) and kind.__name__ in repr(sample(kind))


@pytest.mark.parametrize("kind", CLASSES, ids=lambda kind: kind.__name__)
def test_copies_and_pickles_keep_class_fields_and_sentence(kind) -> None:
    # An OSError is laid out in a way of its own, so that it cannot be a ValueError too.
    for base in [None, *(base for base in KINDS if not issubclass(base, OSError))]:
        result = sample(kind if base is None else kind.of(base))
        result.add_note("seen twice")
        for again in (pickle.loads(pickle.dumps(result)), copy.copy(result), copy.deepcopy(result)):
            assert type(again) is type(result) and fields(again) == fields(result)
            assert str(again) == str(result) and again.__notes__ == ["seen twice"]
        if base is not None:
            assert isinstance(result, base) and isinstance(result, kind)
            assert kind.of(base) is kind.of(base)


def test_every_class_is_in_the_docs() -> None:
    page = (Path(__file__).parents[1] / "docs" / "python.md").read_text()
    assert [kind.__name__ for kind in CLASSES if f"`{kind.__name__}`" not in page] == []
    assert {kind.__name__ for kind in [*KINDS, *CLASSES]} <= {*errors.__all__}


def test_a_name_that_is_nearly_right_is_suggested() -> None:
    with pytest.raises(UnknownName) as caught:
        evgp.mlp(activation="Rellu")
    assert (caught.value.argument, caught.value.suggestion) == ("an activation", "relu")
    assert isinstance(caught.value, errors.NetworkError)
    assert UnknownName("a kernel", "x" * 40, ("ntk", "nngp")).suggestion is None
    assert MissingColumn("pool.csv", "Prize", ("age", "price")).suggestion == "price"


def test_the_fields_that_users_meet_most(tmp_path) -> None:
    x = np.random.default_rng(0).normal(size=(12, 2))
    with pytest.raises(BadArgument) as caught:
        evgp.pick(x, 13)
    assert (caught.value.argument, caught.value.got) == ("k", "13")
    with pytest.raises(errors.RowsOutOfRange) as caught:
        evgp.pick(x, 2, labelled=[3, 12, 40])
    assert fields(caught.value) == {"argument": "labelled", "rows": 12, "count": 2, "first": 12}
    frame = pd.DataFrame({"a": x[:, 0], "b": x[:, 1]})
    frame.loc[[2, 5], "b"] = np.nan
    with pytest.raises(errors.MissingValues) as caught:
        evgp.pick(frame, 2)
    assert (caught.value.columns, caught.value.rows) == ({"b": 2}, (2, 5))
    (tmp_path / "pool.csv").write_text("a,b\n1,2\n3,4,5\n6,7\n")
    with pytest.raises(errors.RaggedRow) as caught:
        evgp.pick(tmp_path / "pool.csv", 1)
    assert (caught.value.line, caught.value.expected, caught.value.got) == (3, 2, 3)
    with pytest.raises(errors.MissingFile) as caught:
        evgp.pick(tmp_path / "none.csv", 1)
    assert caught.value.path == str(tmp_path / "none.csv")
    with pytest.raises(MissingColumn) as caught:
        evgp.pick(frame.dropna(), 1, drop="c")
    assert (caught.value.name, caught.value.columns) == ("c", ("a", "b"))


def test_a_comma_in_what_was_expected_needs_a_stronger_stop() -> None:
    assert sentence("a number", 3) == "expected a number, got 3"
    assert sentence("a number, not a word", "'a'") == "expected a number, not a word; got 'a'"
