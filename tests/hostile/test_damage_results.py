"""Bits flipped, files cut and emptied: results that were written, and are read again."""

import hashlib
import json
from dataclasses import replace

import numpy as np

import evgp
from evgp.comparison import DatasetSource, Protocol, Row, compare
from evgp.comparison.cells import Cell, Store
from evgp.comparison.rows import read_rows
from evgp.comparison.rows import write_rows as write_compared
from evgp.datasets import load, named, read_labelled, write_rows
from experiments.runner import reproduce, rows_of
from tests.hostile.conftest import Tally
from tests.hostile.harms import GENERAL, flip, holds, news


def test_the_cells_of_a_comparison(tmp_path, rng, tally: Tally) -> None:
    x = rng.normal(size=(30, 3))
    table = tmp_path / "prices.csv"
    rows = [",".join(f"{value:.4f}" for value in (*row, row.sum())) for row in x]
    table.write_text("\n".join(["a,b,c,price", *rows]) + "\n")
    protocol = Protocol(budget=4, batch=2, members=2, depth=1, width=8, steps=3)
    out, source = tmp_path / "out", DatasetSource(str(table), label="price")

    def compared() -> list[str]:
        names = ["random", "coreset"]
        rows = compare([source], names, out=out, protocol=protocol, seeds=[0], jobs=1)
        return [repr((row.strategy, row.round, row.mse, row.output_variance)) for row in rows]

    whole, tried, held = compared(), 0, 0
    cells = sorted((out / "cells").iterdir())
    for turn, harm in enumerate((*GENERAL, *GENERAL, flip, flip, flip, flip)):
        harm(cells[turn % 2], rng)
        tried += 1
        held += holds(cells[turn % 2], whole, compared)
    contents = [cell.read_bytes() for cell in cells]
    for cell, content in zip(cells, reversed(contents), strict=True):
        cell.write_bytes(content)
    outcome, reported = news(compared)
    tried, held = tried + 1, held + (outcome == whole and len(reported) == 2)
    tables = out / "tables.json"
    content = tables.read_bytes()
    for harm in (*GENERAL, flip, flip):
        harm(tables, rng)
        tried += 1
        # The sentence names the file, or the folder and the table that would have changed.
        held += holds(tables, whole, compared) or holds(out, whole, compared)
        tables.write_bytes(content)
    assert compared() == whole
    tally("damage", "cells of evgp compare", tried, held)


def test_what_a_comparison_wrote_is_read_back(tmp_path, rng, tally: Tally) -> None:
    rows = tuple(
        Row("yacht", "regression", "evgp", seed, 0, 10, 10, 5, 0.1, 0.2, 3.0, mse=seed / 7)
        for seed in range(40)
    )
    path = tmp_path / "rows.parquet"
    write_compared(path, rows)
    whole, content, held = repr(read_rows(path)), path.read_bytes(), 0
    harms = (*GENERAL, *[flip] * 12)
    for harm in harms:
        harm(path, rng)
        held += holds(path, whole, lambda: repr(read_rows(path)))
        path.write_bytes(content)
    tally("damage", "Parquet files of evgp, read back", len(harms), held)


def test_picks_that_are_read_back(tmp_path, rng, tally: Tally) -> None:
    names = [f"digit-{row:04}" for row in range(900)]
    ids = [names[row] for row in rng.choice(900, 60, replace=False)]
    path = tmp_path / "picks.parquet"
    write_rows(path, {"rank": list(range(60)), "id": ids, "gain": rng.random(60).tolist()})

    def rows() -> list[int]:
        return read_labelled(path, None, names, id="image").rows.tolist()

    whole, content, held = rows(), path.read_bytes(), 0
    harms = (*GENERAL, *[flip] * 12)
    for harm in harms:
        harm(path, rng)
        held += holds(path, whole, rows)
        path.write_bytes(content)
    tally("damage", "Parquet files of evgp, read back", len(harms), held)


def test_cells_rows_and_records_of_studies(tmp_path, rng, tally: Tally) -> None:
    name, tried, held = "exchange-and-certificate", 0, 0
    reproduce(name, scale="smoke", out=tmp_path, jobs=1)
    folder = tmp_path / name
    whole = rows_of(folder)
    for path in (folder / "rows.csv", folder / "study.json"):
        content = path.read_bytes()
        for harm in (*GENERAL, *[flip] * 8):
            harm(path, rng)
            tried += 1
            held += holds(path, whole, lambda: rows_of(folder)) or (
                # Rows that do not fit their record are reported by the name of either.
                holds(folder / "rows.csv", whole, lambda: rows_of(folder))
            )
            path.write_bytes(content)
    (path,) = (tmp_path / "cells").iterdir()
    document = json.loads(path.read_text())
    cell, store = Cell(document["work"], document["settings"]), Store(tmp_path)
    content, finished = path.read_bytes(), store.found(cell)
    assert finished is not None
    for harm in (*GENERAL, *[flip] * 8):
        harm(path, rng)
        tried += 1
        again = store.found(cell)
        damage = store.damage([cell])
        held += again == finished or (again is None and path.name in damage[0].path)
        path.write_bytes(content)
    tally("damage", "cells, rows and records of studies", tried, held)


def test_the_data_of_the_paper(tmp_path, rng, monkeypatch, tally: Tally) -> None:
    path = tmp_path / "boston.npz"
    np.savez(path, X=rng.normal(size=(506, 13)), y=rng.normal(size=506))
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    result = {**named.KNOWN, "boston": replace(named.KNOWN["boston"], sha256=digest)}
    monkeypatch.setattr(named, "KNOWN", result)
    monkeypatch.setenv("EVGP_DATA", str(tmp_path))

    def points() -> list[list[float]]:
        return load("boston").x.tolist()

    whole, content, held = points(), path.read_bytes(), 0
    for harm in GENERAL:
        harm(path, rng)
        held += holds(path, whole, points)
        path.write_bytes(content)
    tally("damage", "datasets with a checksum", len(GENERAL), held)


def test_saved_selections(tmp_path, rng, tally: Tally) -> None:
    path = tmp_path / "picks.json"
    selection = evgp.pick(rng.normal(size=(40, 3)), 6)
    selection.save(path)
    content, held = path.read_bytes(), 0
    harms = (*GENERAL, *[flip] * 40)
    for harm in harms:
        harm(path, rng)
        held += holds(path, selection, lambda: evgp.Selection.load(path))
        path.write_bytes(content)
    tally("damage", "saved selections", len(harms), held)
