"""`evgp plan` says what a pick would take, and does nothing."""

import json
from pathlib import Path


def test_a_plan_is_told(run, pool: Path) -> None:
    ran = run("plan", pool, "-k", 5, "--id", "name")
    assert ran.code == 0
    told = dict(line.split("\t") for line in ran.out.splitlines())
    assert (told["rows"], told["columns"], told["features"], told["k"]) == ("40", "4", "6", "5")
    assert int(told["memory"]) > 0
    assert "40 rows" in ran.err


def test_a_plan_is_one_json_document(run, pool: Path) -> None:
    made = json.loads(run("plan", pool, "-k", 5, "--id", "name", "--thin", 7, "--json").out)
    assert made["test_points"] == 7
    assert made["fits"] is True
    assert made["greedy"]


def test_k_is_checked(run, pool: Path) -> None:
    for k in (0, 41):
        ran = run("plan", pool, "-k", k, "--id", "name")
        assert ran.code == 1
        assert "expected k in 1..40" in ran.err and f"got k={k}" in ran.err


def test_test_rows_and_labelled_rows_count(run, pool: Path, tmp_path: Path) -> None:
    test = tmp_path / "test.csv"
    test.write_text("a,b,kind,price\n0,0,x,1\n1,1,y,2\n")
    (tmp_path / "known.txt").write_text("row-01\n")
    options = ("--test", test, "--labelled", tmp_path / "known.txt", "--json")
    made = json.loads(run("plan", pool, "-k", 5, "--id", "name", *options).out)
    assert made["test_points"] == 2
