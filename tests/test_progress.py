"""What `progress=` may be, and what is seen of it where."""

import io
import sys
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest

import evgp
from evgp._executor import silent
from evgp._progress import bar, reporting
from evgp.errors import PoolError
from tests.messages import refused

X = np.random.default_rng(0).normal(size=(30, 3))
RUNS = {
    "pick": lambda progress: evgp.pick(X, 3, progress=progress),
    "audit": lambda progress: evgp.audit(X[:9], X[9:], pool=X[:5] + 1, k=2, progress=progress),
    "choose": lambda progress: evgp.choose(
        {"one": evgp.mlp(1), "two": evgp.mlp(2)}, X, X[:, 0], folds=5, progress=progress
    ),
    "train": lambda progress: evgp.train(
        evgp.mlp(1, 8), X, X[:, 0], members=2, steps=5, progress=progress
    ),
    "recipe": lambda progress: evgp.training.Recipe(evgp.mlp(1, 8), {"steps": 5})(
        X, X[:, 0], progress=progress
    ),
}
STAGES = {
    "pick": {"picking", "certifying"},
    "audit": {"picking", "certifying", "test rows", "random sets"},
    "choose": {"architectures"},
    "train": {"training"},
    "recipe": {"training"},
}


@pytest.mark.filterwarnings("ignore::evgp.EvgpWarning")
@pytest.mark.parametrize("name", RUNS)
def test_true_reports_every_stage_and_false_none(name, capsys) -> None:
    for progress in (None, False):
        RUNS[name](progress)
        assert capsys.readouterr() == ("", "")
    RUNS[name](True)
    out, err = capsys.readouterr()
    assert not out
    assert {line.partition(" of ")[2].partition(" ")[2] for line in err.splitlines()} == STAGES[
        name
    ]
    steps: list[tuple[str, int, int]] = []
    RUNS[name](lambda *step: steps.append(step))
    assert {stage for stage, _, _ in steps} == STAGES[name]
    assert steps[-1][1] == steps[-1][2]


def test_progress_changes_no_pick() -> None:
    assert evgp.pick(X, 3, progress=True) == evgp.pick(X, 3)


@pytest.mark.parametrize("progress", ["yes", 1, 0, dict, object(), [print]])
def test_other_values_are_an_error(progress) -> None:
    with (
        refused(PoolError),
        reporting(progress),
    ):
        pass


def test_a_function_is_called_as_it_is() -> None:
    with reporting(print) as report:
        assert report is print
    for quiet in (None, False):
        with reporting(quiet) as report:
            assert report is silent


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize("fails", [False, True])
def test_a_terminal_has_a_bar_that_goes_when_the_run_ends(monkeypatch, fails) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "100")
    try:
        with bar() as report:
            report("picking", 1, 4)
            report("picking", 4, 4)
            report("certifying", 0, 1)
            if fails:
                raise KeyboardInterrupt
    except KeyboardInterrupt:
        pass
    written = terminal.getvalue()
    assert "certifying" in written and "0/1" in written
    assert written.count("\x1b[?25l") == written.count("\x1b[?25h") == 1  # the cursor is back
    assert written.endswith("\x1b[2K")  # and the line is empty


def test_where_there_is_no_stderr_nothing_happens(monkeypatch) -> None:
    monkeypatch.setattr(sys, "stderr", None)
    with bar() as report:
        report("picking", 1, 4)


class Notebook:
    """As much of IPython as a kernel shows: displays by number, and what each has shown."""

    def __init__(self, kernel: object = "kernel") -> None:
        self.shown: list[list[dict[str, str]]] = []
        self.kernel = kernel

    def display(self, data: dict[str, str], *, raw: bool, display_id: bool) -> Any:
        assert raw is True and display_id is True
        mine = [data]
        self.shown.append(mine)

        def update(data: dict[str, str], *, raw: bool) -> None:
            assert raw is True
            mine.append(data)

        return SimpleNamespace(update=update)


@pytest.fixture
def notebook(monkeypatch) -> Notebook:
    result = Notebook()
    ipython, display = ModuleType("IPython"), ModuleType("IPython.display")
    ipython.get_ipython = lambda: result  # type: ignore[attr-defined]
    display.display = result.display  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "IPython", ipython)
    monkeypatch.setitem(sys.modules, "IPython.display", display)
    return result


def test_a_notebook_has_one_bar_below_the_cell(notebook, capsys) -> None:
    with bar() as report:
        for done in range(1001):
            report("picking", done, 1000)
        report("certifying", 0, 1)
    (cell,) = notebook.shown
    assert cell[0]["text/plain"] == "picking: 0 of 1,000"
    assert '<progress value="0" max="1000">' in cell[0]["text/html"]
    texts = [item["text/plain"] for item in cell]
    assert texts[-3:] == ["picking: 1,000 of 1,000", "certifying: 0 of 1", ""]
    assert len(texts) < 100  # not a message for each step
    assert capsys.readouterr() == ("", "")


def test_the_bar_of_a_notebook_goes_when_the_run_fails(notebook) -> None:
    with refused(ValueError), bar() as report:
        report("picking", 1, 2)
        raise ValueError("stop")
    assert notebook.shown[0][-1]["text/plain"] == ""
    with bar():
        pass
    assert len(notebook.shown) == 1  # nothing to show, nothing shown


def test_ipython_in_a_terminal_is_a_terminal(notebook, capsys) -> None:
    notebook.kernel = None
    with bar() as report:
        report("picking", 1, 2)
    assert not notebook.shown and capsys.readouterr().err == "1 of 2 picking\n"
