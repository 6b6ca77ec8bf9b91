"""`evgp look` lists columns and problems, and prints a command that works."""

import json
import shlex
import sys
from pathlib import Path

import pytest

from tests.messages import printed

LINES = ["key;income;text;seen;kind"]
for at in range(40):
    kind = "" if at == 3 else "xy"[at % 2]
    cells = [f"K{at:03d}", f"{at * 7 % 50},{at % 9}", f"a few words {at}", f"{1 + at % 28}.03.2024"]
    LINES.append(";".join([*cells, kind]))


@pytest.fixture
def messy(tmp_path: Path) -> Path:
    (tmp_path / "messy.csv").write_text("\n".join(LINES), encoding="utf-16")
    return tmp_path / "messy.csv"


def test_problems_do_not_fail_and_the_command_works(run, messy: Path) -> None:
    ran = run("look", messy)
    assert ran.code == 0
    assert [line.split("\t")[0] for line in ran.out.splitlines()[1:]] == LINES[0].split(";")
    printed(ran.err)
    command = shlex.split(ran.err.splitlines()[-1])
    assert command[:2] == ["evgp", "pick"]
    again = run(*command[1:])
    assert again.code == 0 and len(again.out.splitlines()) == 11, again.err


def test_a_pick_says_all_problems_and_the_whole_command(
    run, messy: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ["pick", str(messy), "-k", "3", "--drop", "seen"]
    monkeypatch.setattr(sys, "argv", ["evgp", *words])
    ran = run(*words)
    assert ran.code == 1 and not ran.out
    printed(ran.err)
    command = shlex.split(ran.err.splitlines()[-1])
    assert command[1 : len(words) + 1] == words
    assert run(*command[1:]).code == 0


def test_notes_are_printed_before_the_error_that_they_explain(run, tmp_path: Path) -> None:
    path = tmp_path / "days.csv"
    days = (f"{1 + at % 12:02d}/{1 + at // 12:02d}/2024" for at in range(60))
    path.write_text("day\n" + "\n".join(days))
    ran = run("pick", path, "-k", "2")
    assert ran.code == 1 and ran.err.startswith("note:") and "--dates" in ran.err
    printed(ran.err)
    assert run("pick", path, "-k", "2", "--dates", "day-first").code == 0


def test_a_look_as_json(run, messy: Path) -> None:
    document = json.loads(run("look", messy, "--json", "--id", "key").out)
    assert document["rows"] == 40 and document["columns"][0]["use"] == "names the rows"
    assert document["options"] == {"drop": ["text"], "impute": True}


def test_what_is_no_table_fails(run, tmp_path: Path) -> None:
    photos = tmp_path / "photos"
    photos.mkdir()
    (photos / "a.png").write_bytes(b"x")
    for path in (tmp_path / "nowhere.csv", tmp_path, photos):
        ran = run("look", path)
        assert ran.code == 1
        printed(ran.err)
