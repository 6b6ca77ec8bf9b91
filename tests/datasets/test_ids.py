"""Columns that only name the rows are left out by themselves, and others never are."""

import hashlib
import uuid
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from evgp.datasets import open_pool, read_pool

N = 40
SIZE = np.arange(N) % 7 + 0.5
SHUFFLED = np.random.default_rng(0).permutation(N)


@pytest.mark.parametrize(
    ("name", "cells"),
    [
        ("id", np.arange(N)),
        ("customer_id", SHUFFLED * 17),
        ("customer_id", [f"C{at:04d}" for at in SHUFFLED]),
        ("Unnamed: 0", np.arange(N)),
        ("index", np.arange(N) + 1),
        ("code", [str(uuid.UUID(int=at)) for at in range(N)]),
        ("part", [f"K{at:04d}" for at in SHUFFLED]),
        ("order", [f"DE-{at}" for at in SHUFFLED]),
        ("file", [hashlib.sha1(bytes([at])).hexdigest() for at in range(N)]),
    ],
)
def test_ids_are_left_out_with_a_note(name: str, cells: object) -> None:
    pool = read_pool(pd.DataFrame({name: cells, "size": SIZE}))
    assert pool.features == ("size",)
    assert any(note.startswith(f"column {name!r} left out") for note in pool.notes)
    assert name in pool.columns  # it is still shown with the picks
    named = read_pool(pd.DataFrame({name: cells, "size": SIZE}), id=name)
    assert named.features == ("size",) and not any("left out" in note for note in named.notes)


@pytest.mark.parametrize(
    ("name", "cells"),
    [
        ("id", np.arange(N) % 9),  # occurs twice
        ("price_index", SHUFFLED * 3),  # does not count
        ("week", np.arange(N)),  # not named like an id
        ("id", np.arange(N) / 2),
    ],
)
def test_other_columns_stay(name: str, cells: object) -> None:
    pool = read_pool(pd.DataFrame({name: cells, "size": SIZE}))
    assert pool.features == (name, "size")


def test_a_short_table_shows_no_ids() -> None:
    assert read_pool(pd.DataFrame({"id": [1, 2, 3], "a": [1, 2, 2]})).features == ("id", "a")


def test_rising_ids_of_a_pool_in_files_are_left_out(tmp_path: Path) -> None:
    columns = {"user_id": np.arange(N) * 3, "row": np.arange(N), "size": SIZE, "week": np.arange(N)}
    pq.write_table(pa.table(columns), tmp_path / "pool.parquet")
    streamed = open_pool(tmp_path / "pool.parquet")
    fitted = streamed.fitted(streamed.survey(0, N, np.arange(N)))
    whole = read_pool(tmp_path / "pool.parquet")
    assert fitted.names == whole.features == ("size", "week")
    assert np.array_equal(fitted.sample, whole.x.numpy())
    assert [note for note in fitted.notes if "left out" in note] == list(whole.notes[:2])
