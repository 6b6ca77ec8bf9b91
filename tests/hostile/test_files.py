"""Bad files through every command that takes a file of their kind.

A run may succeed or be refused. Refused, it says so in one sentence, with exit code 1 or 2, prints
nothing else and leaves nothing behind; in either case it stays within `doors.MOST` bytes of memory
and `doors.SECONDS`, and never ends in a traceback.
"""

import os
import shutil
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.hostile import others, tables
from tests.hostile.conftest import Tally
from tests.hostile.doors import Crew, Run, crew
from tests.hostile.forked import Forked

PART = "files"
# What `--memory` allows one of the runs; reading gets half of it.
WITHIN = 900_000_000
TRAINING = (
    *("--strategies", "random", "--budget", 2, "--batch", 2, "--seeds", 1, "--members", 2),
    *("--width", 8, "--steps", 2, "--jobs", 1, "--out", "compared"),
)


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

    with crew(tmp_path_factory.mktemp("crew"), prepare) as made:
        yield made


@pytest.fixture
def hold(runs: Crew, tally: Tally) -> Callable[[str, Iterable[Run]], None]:
    """Try some runs, and count those that kept every promise."""

    def try_all(what: str, wanted: Iterable[Run]) -> None:
        tried, wrong = runs.failures(wanted)
        print(f"{what}: {tried} runs")
        assert not wrong, f"{len(wrong)} of {tried}:\n" + "\n".join(wrong[:20])
        tally(PART, what, tried, tried - len(wrong))

    return try_all


Hold = Callable[[str, Iterable[Run]], None]


def of_table(name: str, path: Path) -> Iterator[Run]:
    """A table in every place that takes one."""
    out = ("-o", "out.csv")
    both = (*out, "--report", "out.html")
    wrote = ("out.csv", "out.html")
    keeps = ("good.csv",)
    yield Run(name, ("pick", path, "-k", 2, *both), writes=wrote, keeps=keeps)
    yield Run(name, ("pick", path, "-k", 2, *out, "--memory", "900MB"), most=WITHIN, keeps=keeps)
    yield Run(name, ("plan", path, "-k", 2), keeps=keeps)
    yield Run(name, ("new", "fresh", path, "--number"), writes=("fresh.evgp",), keeps=keeps)
    for option in ("--labelled", "--test"):
        yield Run(name, ("pick", "good.csv", "-k", 2, *out, option, path), keeps=keeps)
    few = ("--folds", 2, "--depths", 1, "--activations", "relu")
    yield Run(name, ("choose", path, "--label", "b", *few), keeps=keeps)
    yield Run(name, ("audit", path, "good.csv", "--label", "b", *out), keeps=keeps)
    yield Run(name, ("audit", "good.csv", path, "--label", "b", *out), keeps=keeps)
    compare = ("compare", path, "--label", "b", *TRAINING)
    yield Run(name, compare, keeps=keeps, leaves="compared")
    yield Run(name, ("label", "camp", path), keeps=keeps)


@pytest.mark.parametrize("kind", tables.KINDS)
def test_bad_tables(kind: str, hold: Hold, rng: np.random.Generator, tmp_path: Path) -> None:
    cases = tables.KINDS[kind](tmp_path, rng)
    hold(kind, (run for name, path in cases.items() for run in of_table(name, path)))


def test_answers(hold: Hold, rng: np.random.Generator, tmp_path: Path) -> None:
    cases = others.json_lines(tmp_path, rng)
    hold("JSON lines", [Run(name, ("label", "camp", path)) for name, path in cases.items()])


def test_exports(hold: Hold, rng: np.random.Generator, tmp_path: Path) -> None:
    cases = others.exports(tmp_path, rng)
    hold("JSON", [Run(name, ("pull", "camp", "--file", path)) for name, path in cases.items()])


CHOOSE = ("choose", "good.csv", "--label", "b", "--id", "id", "--folds", 2)


def test_networks(hold: Hold, rng: np.random.Generator, tmp_path: Path) -> None:
    cases = others.networks(tmp_path, rng)
    hold("TOML", [Run(name, (*CHOOSE, "--networks", path)) for name, path in cases.items()])


WEIGHTS = ("pick", "pictures.npy", "-k", 2, "-o", "out.csv", "--network", "cnn", "--weights")


def test_weights(hold: Hold, rng: np.random.Generator, tmp_path: Path) -> None:
    cases = others.weights(tmp_path, rng)
    hold("weights", [Run(name, (*WEIGHTS, path)) for name, path in cases.items()])


NOBODY = {"LABEL_STUDIO_API_KEY": "a-token", "LABEL_STUDIO_URL": "http://127.0.0.1:9"}


def of_campaign(name: str, path: Path) -> Iterator[Run]:
    """A campaign in every place that takes one, but `serve`, which would go on."""
    for arguments in (
        ("status", path),
        ("next", path, "-k", 4),
        ("next", path, "-k", 5, "--json"),
        ("undo", path),
        ("label", path, "good.csv", "--label", "b"),
        ("export", path, "-o", "out.csv"),
        ("export", path, "--label-studio", "-o", "out.json"),
        ("report", path, "-o", "out.html"),
        ("push", path),
    ):
        yield Run(name, arguments, env=NOBODY, same=path if name != "a hot journal" else None)


@pytest.mark.parametrize("kind", ["damaged", "forged"])
def test_campaigns(
    kind: str, hold: Hold, rng: np.random.Generator, tmp_path: Path, template: Path
) -> None:
    shutil.copytree(template, tmp_path, dirs_exist_ok=True)
    make = others.campaigns if kind == "damaged" else others.forged_campaigns
    cases = make(tmp_path, rng)
    for path in cases.values():
        arrays = path.with_name(f"{path.name}-arrays")
        if not arrays.is_symlink():
            arrays.symlink_to("camp.evgp-arrays")
    # One at a time for each campaign: two commands on one file may wait for each other.
    tried = [list(of_campaign(name, path)) for name, path in cases.items()]
    hold(f"campaigns, {kind}", (run for some in zip(*tried, strict=True) for run in some))


def test_images(hold: Hold, rng: np.random.Generator, tmp_path: Path) -> None:
    cases = others.images(tmp_path, rng)

    def wanted() -> Iterator[Run]:
        for name, path in cases.items():
            yield Run(name, ("pick", path, "-k", 2, "-o", "out.csv", "--report", "out.html"))
            yield Run(name, ("pick", path, "-k", 2, "--network", "cnn", "--json"))
            yield Run(name, ("plan", path, "-k", 2))
            yield Run(name, ("new", "fresh", path, "--number"))
            yield Run(name, ("pick", "good.csv", "-k", 2, "--test", path))

    hold("folders of pictures", wanted())


PLACES: dict[str, tuple[tuple[object, ...], ...]] = {
    ".json": (("pull", "camp", "--file", "FILE"),),
    ".jsonl": (("label", "camp", "FILE"),),
    ".toml": ((*CHOOSE, "--networks", "FILE"),),
    ".pt": ((*WEIGHTS, "FILE"),),
    ".safetensors": ((*WEIGHTS, "FILE"),),
    ".evgp": (("status", "FILE"), ("next", "FILE"), ("serve", "FILE", "--port", 0)),
    ".txt": (("pick", "good.csv", "-k", 2, "--labelled", "FILE"),),
}


@pytest.mark.parametrize(
    "suffix", [".csv", ".tsv", ".csv.gz", ".parquet", ".arrow", ".npy", ".npz", *PLACES]
)
def test_not_files(suffix: str, hold: Hold, tmp_path: Path) -> None:
    cases = others.not_files(tmp_path, suffix)

    def wanted() -> Iterator[Run]:
        for name, path in cases.items():
            if suffix not in PLACES:
                yield from (replace(run, fails=True) for run in of_table(name, path))
            for arguments in PLACES.get(suffix, ()):
                here = tuple(path if one == "FILE" else one for one in arguments)
                yield Run(name, here, fails=True)

    hold("pipes, devices, sockets, folders and loops", wanted())
