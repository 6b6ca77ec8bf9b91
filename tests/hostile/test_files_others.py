"""Bad files of other kinds: answers, networks, weights, campaigns, pictures, and pipes."""

import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from evgp.labelling.web.server import listen
from tests.hostile import others
from tests.hostile.doors import Run
from tests.hostile.filed import CHOOSE, Hold, hold, of_table, runs, template

__all__ = ["hold", "runs", "template"]  # fixtures, used by their names here


def test_answers(hold: Hold, rng: np.random.Generator, tmp_path: Path) -> None:
    cases = others.json_lines(tmp_path, rng)
    hold("JSON lines", [Run(name, ("label", "camp", path)) for name, path in cases.items()])


def test_exports(hold: Hold, rng: np.random.Generator, tmp_path: Path) -> None:
    cases = others.exports(tmp_path, rng)
    hold("JSON", [Run(name, ("pull", "camp", "--file", path)) for name, path in cases.items()])


def test_networks(hold: Hold, rng: np.random.Generator, tmp_path: Path) -> None:
    cases = others.networks(tmp_path, rng)
    hold("TOML", [Run(name, (*CHOOSE, "--networks", path)) for name, path in cases.items()])


WEIGHTS = ("pick", "pictures.npy", "-k", 2, "-o", "out.csv", "--network", "cnn", "--weights")


def test_weights(hold: Hold, rng: np.random.Generator, tmp_path: Path) -> None:
    cases = others.weights(tmp_path, rng)
    hold("weights", [Run(name, (*WEIGHTS, path)) for name, path in cases.items()])


NOBODY = {"LABEL_STUDIO_API_KEY": "a-token", "LABEL_STUDIO_URL": "http://127.0.0.1:9"}


def of_campaign(name: str, path: Path, taken: int) -> Iterator[Run]:
    """A campaign through every command that takes one.

    A server of a good one would run forever; it reads the campaign, and then finds that its port is
    `taken`.
    """
    yield Run(name, ("serve", path, "--port", taken), fails=True, same=_unless_hot(name, path))
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
        yield Run(name, arguments, env=NOBODY, same=_unless_hot(name, path))


def _unless_hot(name: str, path: Path) -> Path | None:
    """What must not change: SQLite undoes what a journal next to the file says."""
    return path if name != "a hot journal" else None


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
    with listen("127.0.0.1", 0) as listening:
        taken = listening.getsockname()[1]
        tried = [list(of_campaign(name, path, taken)) for name, path in cases.items()]
        hold(f"campaigns, {kind}", (run for subset in zip(*tried, strict=True) for run in subset))


def test_images(hold: Hold, rng: np.random.Generator, tmp_path: Path) -> None:
    cases = others.images(tmp_path, rng)

    def wanted() -> Iterator[Run]:
        for name, path in cases.items():
            yield Run(name, ("pick", path, "-k", 2, "-o", "out.csv", "--report", "out.html"))
            yield Run(name, ("pick", path, "-k", 2, "--network", "cnn", "--json"))
            yield Run(name, ("plan", path, "-k", 2))
            yield Run(name, ("new", "fresh", path, "--number"))
            yield Run(name, ("pick", "good.csv", "-k", 2, "--test", path))

    hold("image folders", wanted())


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
                here = tuple(path if argument == "FILE" else argument for argument in arguments)
                yield Run(name, here, fails=True)

    hold("pipes, devices, sockets, folders and link loops", wanted())
