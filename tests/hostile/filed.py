"""Bad files through every command that takes a file of their kind: code that the tests share.

A run may succeed or be refused. Refused, it says so in one sentence, with exit code 1 or 2, prints
nothing else and leaves nothing behind; in either case it stays within `doors.MOST` bytes of memory
and `doors.SECONDS`, and never ends in a traceback.
"""

import os
import shutil
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import numpy as np
import pytest

from tests.hostile import others, tables
from tests.hostile.conftest import Tally
from tests.hostile.doors import Crew, Run, crew
from tests.hostile.forked import Forked

# What `--memory` allows one of the runs; reading gets half of it.
WITHIN = 900_000_000
TRAINING = (
    *("--strategies", "random", "--budget", 2, "--batch", 2, "--seeds", 1, "--members", 2),
    *("--width", 8, "--steps", 2, "--jobs", 1, "--out", "compared"),
)


CHOOSE = ("choose", "good.csv", "--label", "b", "--id", "id", "--folds", 2)
Hold = Callable[[str, Iterable[Run]], None]


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a good pool, a campaign on it, and pictures as an array."""
    folder = tmp_path_factory.mktemp("template")
    (folder / "good.csv").write_text(tables.good_text())
    np.save(folder / "pictures.npy", np.random.default_rng(0).normal(size=(6, *others.SHAPE)))
    with Forked(folder) as run:
        assert run("new", "camp", "good.csv", "--id", "id", "--drop", "b", "--number").code == 0
        assert run("next", "camp", "-k", 3).code == 0
    return folder


@pytest.fixture(scope="module")
def runs(template: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Crew]:
    def prepare(folder: Path) -> None:
        shutil.copytree(template, folder, dirs_exist_ok=True)
        os.link(folder / "good.csv", folder / "hard.csv")
        (folder / "soft.csv").symlink_to("good.csv")
        (folder / "full.csv").symlink_to("/dev/full")
        os.mkfifo(folder / "pipe.csv")
        (folder / "folder.csv").mkdir()

    with crew(tmp_path_factory.mktemp("crew"), prepare) as result:
        yield result


@pytest.fixture
def hold(runs: Crew, tally: Tally, request: pytest.FixtureRequest) -> Hold:
    """Try some runs, and count those that kept every promise; a module may name its `PART`."""
    part = getattr(request.module, "PART", "files")

    def try_all(what: str, wanted: Iterable[Run]) -> None:
        tried, wrong = runs.failures(wanted)
        print(f"{what}: {tried} runs")
        assert not wrong, f"{len(wrong)} of {tried}:\n" + "\n".join(wrong[:20])
        tally(part, what, tried, tried - len(wrong))

    return try_all


def of_table(name: str, path: Path, number: int | None = None) -> Iterator[Run]:
    """A table through every command that takes one.

    Commands that take tables in further places get it in one of these, by its number, as each of
    them reads a table as the commands do; or in all of them, without a number.
    """
    out = ("-o", "out.csv")
    both = (*out, "--report", "out.html")
    wrote = ("out.csv", "out.html")
    keeps = ("good.csv",)
    few = ("--folds", 2, "--depths", 1, "--activations", "relu")
    compare = ("compare", path, "--label", "b", *TRAINING)
    yield Run(name, ("pick", path, "-k", 2, *both), writes=wrote, keeps=keeps)
    yield Run(name, ("plan", path, "-k", 2), keeps=keeps)
    yield Run(name, ("new", "fresh", path, "--number"), writes=("fresh.evgp",), keeps=keeps)
    yield Run(name, ("choose", path, "--label", "b", *few), keeps=keeps)
    yield Run(name, ("audit", path, "good.csv", "--label", "b", *out), keeps=keeps)
    yield Run(name, compare, keeps=keeps, leaves="compared")
    yield Run(name, ("label", "camp", path), keeps=keeps)
    further = (
        Run(name, ("pick", path, "-k", 2, *out, "--memory", "900MB"), most=WITHIN, keeps=keeps),
        Run(name, ("pick", "good.csv", "-k", 2, *out, "--labelled", path), keeps=keeps),
        Run(name, ("pick", "good.csv", "-k", 2, *out, "--test", path), keeps=keeps),
        Run(name, ("audit", "good.csv", path, "--label", "b", *out), keeps=keeps),
    )
    yield from further if number is None else further[number % 4 : number % 4 + 1]


def hold_tables(kind: str, hold: Hold, rng: np.random.Generator, folder: Path) -> None:
    """Try the bad tables of a kind."""
    bombs = "bomb" in kind  # which every place that reads a file must bear
    cases = tables.KINDS[kind](folder, rng)
    hold(
        kind,
        (
            run
            for number, (name, path) in enumerate(cases.items())
            for run in of_table(name, path, None if bombs else number)
        ),
    )
