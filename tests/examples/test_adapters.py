"""Every example with another package runs, and prints what it promises."""

import re
import runpy
import sys
import warnings
from pathlib import Path

import pytest

from evgp import EvgpWarning

EXAMPLES = Path(__file__).parents[2] / "examples"
LINES = {
    "with_scikit_learn": r"^ +60 +0\.[78]\d\d +0\.[78]\d\d$",
    "with_scikit_activeml": r"^EV-GP, then uncertainty( +0\.\d{3}){5}$",
    "with_modal": r"^EV-GP .*15: 0\.(8|9)\d\d",
    "with_skorch": r"^EV-GP +0\.[89]\d\d +0\.0\d\d$",
    "with_pandas": r"^12 of 442 people have an answer$",
    "with_hugging_face": r"^at least \d\d % of the largest reduction any 6 texts could achieve$",
}

WRITTEN = {
    "with_scikit_learn": {"with_scikit_learn.png": b"\x89PNG"},
    "with_pandas": {"first.html": b"<!do", "first.json": b'{"fo'},
}


@pytest.mark.parametrize("name", LINES)
def test_an_example_prints_what_it_promises(name, tmp_path, monkeypatch, capsys) -> None:
    run(name, tmp_path, monkeypatch)
    assert re.search(LINES[name], capsys.readouterr().out, re.MULTILINE)
    written = {path.name: path.read_bytes()[:4] for path in tmp_path.iterdir()}
    assert written == WRITTEN.get(name, {})


@pytest.mark.slow  # the package takes seconds to import
def test_lightning_trains_on_a_subset(tmp_path, monkeypatch, capsys) -> None:
    run("with_lightning", tmp_path, monkeypatch)
    text = re.findall(r"60 labels, accuracy on 1197 digits: (0\.\d+)", capsys.readouterr().out)
    assert len(text) == 2 and all(float(item) > 0.7 for item in text)


def test_every_example_is_tested() -> None:
    paths = {path.stem for path in EXAMPLES.glob("with_*.py")}
    assert paths == {*LINES, "with_lightning"}


def run(name: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As a script; what others warn of is theirs, what we warn of is an error."""
    monkeypatch.setattr(sys, "argv", [name, str(folder)])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warnings.simplefilter("error", EvgpWarning)
        runpy.run_path(str(EXAMPLES / f"{name}.py"), run_name="__main__")
