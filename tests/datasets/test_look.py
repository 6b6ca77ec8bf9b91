"""All problems of a table are found at once, and the options that are offered help."""

import pickle
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from evgp.datasets import look, read_pool
from evgp.errors import DatasetError, MissingColumn, MissingValues, TableProblems
from tests.messages import refused

N = 60
PROBLEMS = {
    "missing": [None, *range(N - 1)],
    "infinite": [np.inf, *np.arange(N - 1.0)],
    "word": [*["x", "y"] * (N // 2 - 1), None, "x"],
    "name": [chr(97 + at // 26) + chr(97 + at % 26) for at in range(N)],
    "text": [f"some words {at}" for at in range(N)],
    "many": [f"w{at % 55}" for at in range(N)],
    "bytes": [b"x"] * N,
    "long": ["x" * 2000, *["y"] * (N - 1)],
    "nearly": [*map(str, range(N - 1)), "none"],
}
FINE = {"size": np.arange(N) % 7, "constant": [1] * N, "user_id": range(N), "kind": ["a", "b"] * 30}


@pytest.fixture
def messy() -> pa.Table:
    return pa.table(FINE | PROBLEMS)


def test_all_problems_are_in_one_message(messy: pa.Table) -> None:
    with refused(TableProblems) as caught:
        read_pool(messy)
    error = caught.value
    assert len(error.problems) == len(PROBLEMS)
    assert all(any(repr(name) in text for text in error.problems) for name in PROBLEMS)
    assert "1 missing or NaN in column 'missing' (row 0)" in error.problems
    assert str(pickle.loads(pickle.dumps(error))) == str(error)
    pool = eval(error.call, {"evgp": __import__("evgp"), "x": messy})
    assert set(pool.features) == {
        "size",
        "kind=a",
        "kind=b",
        "missing",
        "infinite",
        "word=x",
        "word=y",
    }
    # user_id names the rows, so that no other column has to.
    with pytest.raises(TableProblems) as caught:
        read_pool(messy.drop_columns(["user_id"]))
    assert caught.value.options["id"] == "name"


@settings(deadline=None, max_examples=25)
@given(st.sets(st.sampled_from(sorted(PROBLEMS)), min_size=2), st.sampled_from([(), ("kind",)]))
def test_the_offered_options_always_help(names: set[str], drop: tuple[str, ...]) -> None:
    assume(not names <= {"missing", "infinite", "word"})
    table = pa.table(FINE | {name: PROBLEMS[name] for name in sorted(names)})
    with pytest.raises(TableProblems) as caught:
        read_pool(table, drop=drop)
    error = caught.value
    assert len(error.problems) == len(names)
    assert "size" in read_pool(table, **{**error.given, **error.options}).features
    assert {problem.words for problem in look(table, drop=drop).problems} == {*error.problems}
    assert look(table, drop=drop).options == error.options


def test_missing_cells_alone_keep_their_own_error() -> None:
    with pytest.raises(MissingValues) as caught:
        read_pool(pa.table({"a": [1, None, 3], "b": ["x", "y", None]}))
    assert caught.value.columns == {"a": 1, "b": 1}


def test_if_no_column_is_left_that_is_reported() -> None:
    table = pa.table({name: PROBLEMS[name] for name in ("bytes", "text")})
    with refused(TableProblems) as caught:
        read_pool(table)
    assert not caught.value.options
    report = look(table)
    assert report.options is None and len(report.problems) == 2


def test_each_column_is_described(messy: pa.Table) -> None:
    report = look(messy)
    columns = {column.name: column for column in report.columns}
    assert list(columns) == messy.column_names and report.rows == N
    uses = {
        "size": "number",
        "constant": "left out: constant",
        "user_id": "left out: id",
        "kind": "2 categories",
        "missing": "number",
        "bytes": "problem",
        "many": "problem",
    }
    assert {name: columns[name].use for name in uses} == uses
    assert (columns["missing"].missing, columns["missing"].distinct) == (1, N - 1)
    assert columns["kind"].example == "a" and columns["bytes"].distinct is None
    assert "problem: 1 missing or NaN in column 'missing' (row 0)" in str(report)


def test_what_is_odd_is_with_its_column(tmp_path: Path) -> None:
    lines = ["when;price;y", *(f"{1 + at % 28:02d}.01.2024;{at},5 €;{at % 2}" for at in range(N))]
    (tmp_path / "a.csv").write_text("\n".join(lines))
    report = look(tmp_path / "a.csv")
    odd = {column.name: " ".join(column.odd) for column in report.columns}
    assert "'€', decimal commas" in odd["price"] and "named like the label" in odd["y"]
    assert "day.month.year" in odd["when"] and report.columns[0].use == "number, weekday"
    assert len(report.notes) == 1 and "';'" in report.notes[0]
    with_names = look(tmp_path / "a.csv", id="when", drop="y", costs="price")
    assert [column.use for column in with_names.columns] == ["names the rows", "costs", "left out"]


def test_pools_of_other_kinds_are_looked_at(tmp_path: Path) -> None:
    frame = pd.DataFrame({"a": np.arange(N) % 7, "b": np.arange(N) % 3})
    pq.write_table(pa.Table.from_pandas(frame), tmp_path / "a.parquet")
    uses = ["number", "number"]
    for pool in (frame, frame.to_numpy(), tmp_path, tmp_path / "a.parquet"):
        assert [column.use for column in look(pool).columns] == uses


def test_names_that_are_nearly_right_get_a_suggestion(messy: pa.Table) -> None:
    for how in ({"id": "usr_id"}, {"drop": "constnat"}, {"costs": "Size"}):
        for door in (look, read_pool):
            with refused(MissingColumn) as caught:
                door(messy, **how)
            assert "did you mean" in str(caught.value)
    with refused(DatasetError):
        look(np.zeros((2, 3, 3)))


def test_look_and_pick_agree_on_text(tmp_path: Path) -> None:
    """Text that `pick` embeds is not to be dropped, whatever else is wrong with the table."""
    words = np.random.default_rng(0).choice(["red", "green", "blue", "cat", "dog"], (N, 6))
    texts = [" ".join(row) for row in words]
    table = pa.table({"body": texts, "many": PROBLEMS["many"], "hole": PROBLEMS["missing"]})
    report = look(table)
    assert "body" not in str(report.options) and "body" not in str(report.problems)
    assert "body[0]" in read_pool(table, **report.options).features
    both = pa.table({"a": texts, "b": texts[::-1], "size": FINE["size"]})
    report = look(both)
    assert report.options == {"text": "a,b"} and len(report.problems) == 1
    with refused(DatasetError):
        read_pool(both)
    assert "a[0]" in read_pool(both, **report.options).features


def test_texts_are_not_embedded_to_be_looked_at(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setenv("EVGP_CACHE", str(tmp_path / "cache"))
    texts = [f"the parcel number {at} has not arrived" for at in range(N - 1)]
    table = pa.table({"body": [*texts, ""], "size": np.arange(N) % 7})
    report = look(table)
    assert report.columns[0].use == "text, embedded by tfidf"
    assert any("1 of 60 rows has no text" in part for part in report.columns[0].odd)
    assert not report.problems and not (tmp_path / "cache").exists()


def test_several_texts_come_with_the_other_problems() -> None:
    texts = [f"the parcel number {at} has not arrived" for at in range(N)]
    table = pa.table({"a": texts, "b": texts[::-1], "size": [None, *range(N - 1)]})
    with refused(TableProblems) as caught:
        read_pool(table)
    assert caught.value.options == {"impute": True, "text": "a,b"}
    assert look(table).options == caught.value.options
    data = eval(caught.value.call, {"evgp": __import__("evgp"), "x": table})
    assert "size" in data.features and len(data.features) > 2
