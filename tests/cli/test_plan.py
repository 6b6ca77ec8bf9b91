"""`evgp plan` says what a pick would take, and does nothing."""

import json
from pathlib import Path

import pytest
from typer.main import get_command

from evgp.cli.main import app
from tests.messages import printed


def test_a_plan_is_printed(run, pool: Path) -> None:
    ran = run("plan", pool, "-k", 5, "--id", "name")
    assert ran.code == 0
    text = dict(line.split("\t") for line in ran.out.splitlines())
    assert (text["rows"], text["columns"], text["features"], text["k"]) == ("40", "4", "6", "5")
    assert int(text["memory"]) > 0
    assert "40 rows" in ran.err


def test_a_plan_is_one_json_document(run, pool: Path) -> None:
    document = json.loads(run("plan", pool, "-k", 5, "--id", "name", "--thin", 7, "--json").out)
    assert document["test_points"] == 7
    assert document["fits"] is True
    assert document["greedy"]


def test_k_is_checked(run, pool: Path) -> None:
    for k in (0, 41):
        ran = run("plan", pool, "-k", k, "--id", "name")
        assert ran.code == 1
        printed(ran.err)


def test_test_rows_and_labelled_rows_count(run, pool: Path, tmp_path: Path) -> None:
    test = tmp_path / "test.csv"
    test.write_text("a,b,kind,price\n0,0,x,1\n1,1,y,2\n")
    (tmp_path / "known.txt").write_text("row-01\n")
    options = ("--test", test, "--labelled", tmp_path / "known.txt", "--json")
    document = json.loads(run("plan", pool, "-k", 5, "--id", "name", *options).out)
    assert document["test_points"] == 2


def test_a_plan_takes_every_option_of_a_pick() -> None:
    commands = get_command(app).commands
    pick, plan = ({param.name for param in commands[name].params} for name in ("pick", "plan"))
    assert plan == pick


def test_a_pick_is_planned_by_changing_one_word(run, pool: Path, tmp_path: Path) -> None:
    line = (pool, "-k", 3, "--id", "name", "--drop", "price", "--w-std", 1.5, "--b-std", 0.2)
    line += ("--noise", 0.01, "--seed", 4, "--scale", "none")
    line += ("-o", tmp_path / "out.csv", "--report", tmp_path / "out.html")
    assert run("plan", *line).code == 0
    assert [path.name for path in tmp_path.iterdir()] == ["pool.csv"]
    assert run("pick", *line).code == 0


def test_money_is_planned_for(run, pool: Path, tmp_path: Path) -> None:
    line = (pool, "--id", "name", "--costs", "price", "--json")
    # Ten rows cost 1, ten cost 2.
    assert json.loads(run("plan", *line, "--budget", 14).out)["k"] == 12
    assert json.loads(run("plan", *line, "--budget", 14, "-k", 5).out)["k"] == 5
    (tmp_path / "known.txt").write_text("row-00\nrow-04\n")
    known = ("--labelled", tmp_path / "known.txt")
    assert json.loads(run("plan", *line, "--budget", 14, *known).out)["k"] == 11


@pytest.mark.parametrize(
    "wish",
    [
        ("-k", 38),
        ("-k", 2, "--noise", -1),
        ("-k", 2, "--seed", -1),
        ("-k", 2, "--random-state", -1),
        ("-k", 2, "--w-std", -1),
        ("-k", 2, "-o", "nowhere/out.csv"),
        ("--costs", "price", "--budget", 0.5),
        ("--costs", "a", "--budget", 5),
    ],
)
def test_what_pick_refuses_plan_refuses(
    run, pool: Path, tmp_path: Path, wish: tuple[object, ...]
) -> None:
    (tmp_path / "known.txt").write_text("row-00\nrow-04\nrow-07\n")
    line = (pool, "--id", "name", "--labelled", tmp_path / "known.txt", *wish)
    pick, plan = run("pick", *line), run("plan", *line)
    assert pick.code == plan.code == 1
    assert plan.err.splitlines()[-1] == pick.err.splitlines()[-1]
