"""Studies of the paper from the command line."""

import json

from typer.testing import CliRunner

from experiments import NAMES, worth
from experiments.__main__ import app

RUN = CliRunner()


def test_all_studies_are_listed() -> None:
    result = RUN.invoke(app, ["--list"])
    assert result.exit_code == 0
    lines = result.stdout.splitlines()
    assert lines[0] == "study\tpaper\tshows"
    assert [line.split("\t")[0] for line in lines[1:]] == [*NAMES, "worth"]
    outcome = json.loads(RUN.invoke(app, ["--list", "--json"]).stdout)
    assert [study["study"] for study in outcome["studies"]] == [*NAMES, "worth"]


def test_a_study_is_run_printed_and_drawn_again(tmp_path) -> None:
    call = ["exchange-and-certificate", "--scale", "smoke", "--out", str(tmp_path)]
    result = RUN.invoke(app, call)
    assert result.exit_code == 0, result.output
    assert result.stdout.splitlines()[0] == "claim\tours\tverdict"
    assert "wrote" in result.stderr
    folder = tmp_path / "exchange-and-certificate"
    assert {path.suffix for path in folder.iterdir()} == {".csv", ".json", ".png", ".svg"}
    figure = folder / "exchange-and-certificate.svg"
    before = figure.read_bytes()
    figure.unlink()
    again = RUN.invoke(app, [*call, "--draw", "--json", "--quiet"])
    assert again.exit_code == 0 and again.stderr == ""
    assert figure.read_bytes() == before
    claims = json.loads(again.stdout)["claims"]
    assert {claim["verdict"] for claim in claims} <= {"holds", "holds in part", "does not hold"}
    assert "--draw" not in json.loads((folder / "study.json").read_text())["command"]


def test_verdicts_say_what_they_are_about(tmp_path) -> None:
    call = ["exchange-and-certificate", "--scale", "smoke", "--out", str(tmp_path)]
    nothing = "smoke sizes, which say nothing about the paper"
    first = RUN.invoke(app, call).stdout.splitlines()[1]
    assert first.endswith(nothing)
    record = tmp_path / "exchange-and-certificate" / "study.json"
    document = json.loads(record.read_text())
    document.pop("digest")  # an older record has none
    record.write_text(json.dumps({**document, "scale": "laptop", "finished": 4, "cells": 6}))
    for cell in (tmp_path / "cells").iterdir():
        cell.unlink()
    call[2] = "laptop"
    assert RUN.invoke(app, [*call, "--draw"]).stdout.splitlines()[1].endswith("; 4 of 6 cells")
    result = json.loads(RUN.invoke(app, [*call, "--draw", "--json"]).stdout)
    assert (result["finished"], result["cells"], result["caution"]) == (4, 6, "4 of 6 cells")


def test_what_cannot_be_run_is_reported(tmp_path) -> None:
    for call, words in (
        (["width", "--scale", "huge"], "expected --scale among smoke, laptop, paper; got 'huge'"),
        (["figure-1"], "expected a study among initialisation-illustration"),
        (["wdth"], "did you mean 'width'?"),
        ([], "got none"),
        (["worth"], "expected a folder of tables for the study worth, got none"),
        (["width", "tables"], "for worth only"),
        (["width", "--draw"], "expected the rows of a study, got no file"),
    ):
        result = RUN.invoke(app, [*call, "--out", str(tmp_path)])
        assert result.exit_code == 1
        assert words in result.stderr and len(result.stderr.splitlines()) == 1


def test_what_picks_are_worth_is_a_study_by_name(tmp_path, monkeypatch) -> None:
    asked = []
    monkeypatch.setattr(worth, "run", lambda *given: asked.append(given))
    result = RUN.invoke(app, ["worth", str(tmp_path), "--seeds", "3", "--jobs", "2"])
    assert result.exit_code == 0, result.output
    assert asked == [(tmp_path, 3, 2)]


def test_data_that_is_not_here_says_how_to_get_it(tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("EVGP_DATA", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    call = ["width", "--scale", "smoke", "--jobs", "1", "--out", str(tmp_path)]
    result = RUN.invoke(app, call)
    assert result.exit_code == 1
    assert "expected optdigits.npz in" in result.stderr
