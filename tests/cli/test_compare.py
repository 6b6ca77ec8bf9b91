"""`evgp compare` as a person runs it: what it writes, what it prints, what it refuses."""

import csv
import json
import os
from pathlib import Path

import numpy as np
import pytest

from evgp import comparison
from evgp.comparison import read_rows
from tests.messages import printed

QUICK = ("--budget", 6, "--batch", 3, "--members", 2, "--seeds", 2, "--jobs", 1)
QUICK = (*QUICK, "--depth", 1, "--width", 8, "--steps", 5)


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """Forty rows: three columns, a price, and a kind."""
    random = np.random.default_rng(0)
    path = tmp_path / "houses.csv"
    lines = ["a,b,c,price,kind"]
    for a, b, c in random.normal(size=(40, 3)):
        lines.append(f"{a:.5f},{b:.5f},{c:.5f},{a + b:.5f},{'dear' if a > 0 else 'cheap'}")
    path.write_text("\n".join(lines) + "\n")
    return path


def test_a_table_of_ones_own(run, table, tmp_path) -> None:
    out = tmp_path / "out"
    names = "evgp,random,kmeans++,badge"
    ran = run("compare", table, "--label", "price", "--drop", "kind", "--strategies", names,
              "--out", out, *QUICK)  # fmt: skip
    assert ran.code == 0, ran.err
    lines = list(csv.DictReader(ran.out.splitlines(), delimiter="\t"))
    assert {line["strategy"] for line in lines} == set(names.split(","))
    assert {line["metric"] for line in lines} == {"mse", "output_variance_p90"}
    assert "houses: On houses" in ran.err and "page.html" in ran.err and " rounds\n" in ran.err
    assert "note: A test of 2 seeds proves little" in ran.err
    rows = read_rows(out / "rows.parquet")
    assert len(rows) == 4 * 2 * 2 and repr(rows) == repr(read_rows(out / "rows.csv"))
    for line in lines:
        heights = [getattr(row, line["metric"]) for row in rows if row.strategy == line["strategy"]]
        assert float(line["area"]) == pytest.approx(np.mean(heights))  # two rounds: their mean
    page = (out / "page.html").read_text()
    assert "houses" in page and "kmeans++" in page and "evgp compare" in page
    assert (out / "houses.png").stat().st_size > 5000 and (out / "houses.svg").exists()


def test_finished_cells_are_kept_and_commands_remembered(run, table, tmp_path) -> None:
    out = tmp_path / "out"
    call = ("compare", table, "--label", "kind", "--drop", "price", "--out", out, *QUICK)
    assert run(*call, "--strategies", "random").code == 0
    before = {path: path.stat().st_mtime_ns for path in (out / "cells").iterdir()}
    ran = run(*call, "--strategies", "random,coreset", "--json")
    assert ran.code == 0
    assert all(path.stat().st_mtime_ns == at for path, at in before.items())
    document = json.loads(ran.out)
    assert document["contests"][0]["kind"] == "classification"
    assert len(document["contests"][0]["entrants"]) == 2


def test_several_learners_and_cold_starts(run, table, tmp_path) -> None:
    out = tmp_path / "out"
    call = ("compare", table, "--label", "kind", "--drop", "price", "--strategies", "evgp,random",
             "--out", out, "--budgets", "4,8,12", "--seeds", 2, "--jobs", 1)  # fmt: skip
    ran = run(*call, "--learner", "1nn,linear", "--learner", "trees")
    assert ran.code == 0, ran.err
    lines = list(csv.DictReader(ran.out.splitlines(), delimiter="\t"))
    learners = ["mean", "1nn", "linear", "trees"]
    assert list(dict.fromkeys(line["learner"] for line in lines)) == learners
    assert len(lines) == 4 * 2 and {line["metric"] for line in lines} == {"accuracy"}
    rows = read_rows(out / "rows.csv")
    assert {(row.labels, row.batch) for row in rows} == {(4, 0), (8, 0), (12, 0)}
    assert len(rows) == 2 * 3 * 3 * 2
    for line in lines:
        own = [row for row in rows if row.strategy == line["strategy"] and
               line["learner"] in (row.learner, "mean")]  # fmt: skip
        heights = [np.mean([row.accuracy for row in own if row.labels == at]) for at in (4, 8, 12)]
        assert float(line["area"]) == pytest.approx(np.trapezoid(heights, [4, 8, 12]) / 8)
    page = (out / "page.html").read_text()
    assert "test accuracy by learner" in page and "4 to 12 labels, each in one batch" in page
    assert "<dt>budgets</dt><dd>4, 8, 12</dd>" in page and "members" not in page
    names = ["houses-1nn", "houses-linear", "houses-trees", "houses"]
    assert sorted(path.stem for path in out.glob("*.png")) == sorted(names)
    before = {path: path.stat().st_mtime_ns for path in (out / "cells").iterdir()}
    grown = run(*call, "--learner", "1nn,boosting", "--quiet")
    assert grown.code == 0 and "boosting" in grown.out and "trees" in grown.out
    assert all(path.stat().st_mtime_ns == at for path, at in before.items())
    assert len(list((out / "cells").iterdir())) == 2 * len(before)


@pytest.mark.parametrize(
    "arguments",
    [
        ["--strategies", "evgp,bagde"],
        ["--strategies", ","],
        ["--strategies", "batchbald"],
        ["--budget", 30, "--batch", 10],
        ["--budget", 7],
        ["--label", "colour"],
        ["--network", "nonsense"],
        ["--network", "cnn"],
        ["--learner", "1nn,lineer"],
        ["--learner", ","],
        ["--budgets", "10,twenty"],
        ["--budgets", ","],
    ],
)
def test_bad_input_is_refused_in_one_line(run, table, tmp_path, arguments) -> None:
    options = ["--label", "price", "--drop", "kind", "--strategies", "evgp,random"]
    ran = run("compare", table, *options, "--out", tmp_path / "out", *QUICK, *arguments)
    assert ran.code == 1, ran.err
    printed(ran.err)
    assert ran.err.count("\n") == 1 and ran.err.startswith("evgp: ")
    assert not (tmp_path / "out").exists() and not ran.out


def test_a_class_in_the_test_part_of_a_later_seed_is_refused_before_anything_runs(
    run, table, tmp_path
) -> None:
    text = table.read_text().splitlines()
    random = np.random.RandomState(0)
    pool = random.permutation(40)[:20]  # of seed 0, as the split draws it
    for row in pool[:2]:
        text[1 + row] = text[1 + row].rsplit(",", 1)[0] + ",rare"
    table.write_text("\n".join(text) + "\n")
    out = tmp_path / "out"
    call = ("compare", table, "--label", "kind", "--drop", "price", "--strategies", "random")
    ran = run(*call, "--out", out, *QUICK, "--seeds", 20)
    assert ran.code == 1, ran.err
    printed(ran.err)
    assert ran.err.count("\n") == 1 and not out.exists()
    assert run(*call, "--out", out, *QUICK, "--seeds", 1).code == 0


def test_a_smaller_pool_of_a_table(run, table, tmp_path) -> None:
    call = ["compare", table, "--label", "price", "--drop", "kind", "--strategies", "random"]
    ran = run(*call, *QUICK, "--pool", 5, "--out", tmp_path / "out")
    assert ran.code == 1, ran.err
    printed(ran.err)
    ran = run(*call, *QUICK, "--pool", 21, "--out", tmp_path / "out")
    assert ran.code == 1, ran.err
    printed(ran.err)
    ran = run(*call, *QUICK, "--pool", 8, "--out", tmp_path / "out")
    assert ran.code == 0
    for cell in (tmp_path / "out" / "cells").iterdir():
        assert max(json.loads(cell.read_text())["extra"]["picks"]) < 8


def test_a_folder_that_cannot_be_written_is_refused_before_anything_runs(
    run, table, tmp_path, monkeypatch
) -> None:
    monkeypatch.setattr("evgp.comparison.play_cell", lambda **_: pytest.fail("it ran"))
    taken = tmp_path / "taken"
    taken.write_text("mine")
    call = ("compare", table, "--label", "price", "--drop", "kind", *QUICK)
    for out in (taken, taken / "below"):
        ran = run(*call, "--out", out)
        assert ran.code == 1, ran.err
        printed(ran.err)
        assert ran.err.count("\n") == 1 and taken.read_text() == "mine"


def test_a_pipe_for_what_is_published_is_refused_before_anything_runs(
    run, table, tmp_path, monkeypatch
) -> None:
    monkeypatch.setattr("evgp.comparison.play_cell", lambda **_: pytest.fail("it ran"))
    call = ("compare", table, "--label", "price", "--drop", "kind", *QUICK)
    for name in ("rows.csv", "rows.parquet", "page.html", "commands.txt"):
        out = tmp_path / f"{name}-out"
        out.mkdir()
        os.mkfifo(out / name)
        ran = run(*call, "--out", out)
        assert ran.code == 1, ran.err
        printed(ran.err)
        assert ran.err.count("\n") == 1 and os.listdir(out) == [name]


def test_warnings_are_notes_and_quiet_is_quiet(run, table, tmp_path) -> None:
    text = table.read_text().splitlines()
    text[1:] = ["," + line.split(",", 1)[1] if i % 9 == 4 else line for i, line in
                enumerate(text[1:])]  # fmt: skip
    formula = tmp_path / "=1+1.csv"
    formula.write_text("\n".join(text) + "\n")
    call = ("compare", formula, "--label", "price", "--drop", "kind, b", "--impute",
             "--strategies", "random", *QUICK, "--seeds", 4)  # fmt: skip
    ran = run(*call, "--out", tmp_path / "out")
    assert ran.code == 0 and "note: " in ran.err and "DataWarning" not in ran.err
    assert " more like these" in ran.err
    ran = run(*call, "--out", tmp_path / "out", "--quiet")
    assert ran.code == 0 and ran.err == ""
    page = (tmp_path / "out" / "page.html").read_text()
    assert "<dt>steps</dt><dd>5</dd>" in page and "None" not in page


def test_a_stopped_run_says_what_is_kept(run, table, tmp_path, monkeypatch) -> None:
    play_cell, played = comparison.play_cell, []

    def once(**settings) -> object:
        if played:
            raise KeyboardInterrupt
        played.append(settings)
        return play_cell(**settings)

    monkeypatch.setattr(comparison, "play_cell", once)
    ran = run("compare", table, "--label", "price", "--drop", "kind", "--strategies", "random",
              "--out", tmp_path / "out", *QUICK)  # fmt: skip
    assert ran.code == 130 and "1 finished cell in" in ran.err and "is kept" in ran.err
    assert len(list((tmp_path / "out" / "cells").iterdir())) == 1


def test_labels_are_looked_at(run, table, tmp_path) -> None:
    text = table.read_text().splitlines()
    holes, same, alone = (tmp_path / f"{name}.csv" for name in ("holes", "same", "alone"))
    holes.write_text(
        "\n".join([text[0], text[1].replace("dear", "").replace("cheap", ""), *text[2:]])
    )
    same.write_text("\n".join([text[0], *(line.replace("dear", "cheap") for line in text[1:])]))
    rest = [line.replace("dear", "cheap") for line in text[2:]]
    for seed in range(20):  # one row of a class is in the pool for some seeds only
        alone.write_text("\n".join([text[0], text[1].rsplit(",", 1)[0] + ",rare", *rest]))
        from evgp.datasets import load_csv

        try:
            load_csv(alone, "kind", seed=seed, drop=["price"])
        except ValueError as error:
            assert "'rare' in the test part only" in str(error)
            break
    else:
        raise AssertionError("the row was in the pool of every seed")
    for path in (holes, same):
        ran = run("compare", path, "--label", "kind", "--drop", "price", "--out", tmp_path / "x")
        assert ran.code == 1, ran.err
        printed(ran.err)
    ran = run("compare", "kin9nm")
    assert ran.code == 1, ran.err
    printed(ran.err)
    ran = run("compare", table)
    assert ran.code == 1, ran.err
    printed(ran.err)
