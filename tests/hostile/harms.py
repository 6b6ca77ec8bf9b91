"""What happens to files on a disk, and what must hold of what is read from them afterwards."""

import os
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np

from evgp.errors import DamageWarning, EvgpError

Rng = np.random.Generator
Harm = Callable[[Path, Rng], object]


def flip(path: Path, rng: Rng) -> None:
    """One bit."""
    content = bytearray(path.read_bytes())
    content[rng.integers(len(content))] ^= 1 << int(rng.integers(8))
    path.write_bytes(content)


def scramble(path: Path, rng: Rng) -> None:
    """Some neighbouring bytes."""
    content = bytearray(path.read_bytes())
    at = int(rng.integers(len(content)))
    content[at : at + 64] = rng.bytes(len(content[at : at + 64]))
    path.write_bytes(content)


def cut(path: Path, rng: Rng) -> None:
    """The end is missing."""
    os.truncate(path, int(rng.integers(1, path.stat().st_size)))


def empty(path: Path, rng: Rng) -> None:
    """Nothing is left."""
    os.truncate(path, 0)


def grow(path: Path, rng: Rng) -> None:
    """Something follows the end."""
    with path.open("ab") as stream:
        stream.write(rng.bytes(int(rng.integers(1, 99))))


def zeros(path: Path, rng: Rng) -> None:
    """A page that a disk lost."""
    content = bytearray(path.read_bytes())
    at = int(rng.integers(len(content)))
    content[at : at + 4096] = bytes(len(content[at : at + 4096]))
    path.write_bytes(content)


def multiply(path: Path, rng: Rng) -> None:
    """Some rows are larger than they were."""
    x = np.load(path, mmap_mode="r+").reshape(-1)
    at = int(rng.integers(len(x)))
    x[at : at + 300] = x[at : at + 300] * 50 + 1


def unknown(path: Path, rng: Rng) -> None:
    """A row of NaN."""
    np.load(path, mmap_mode="r+")[rng.integers(2)] = np.nan


GENERAL: tuple[Harm, ...] = (flip, flip, flip, scramble, zeros, cut, empty, grow)


def news(work: Callable[[], object]) -> tuple[object, list[str]]:
    """The result of some work, and its warnings about damage; other warnings do not matter here."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        outcome = work()
    return outcome, [
        str(warning.message) for warning in caught if issubclass(warning.category, DamageWarning)
    ]


def holds(path: Path, whole: object, work: Callable[[], object]) -> bool:
    """The same result, whatever else; or a refusal in a sentence that names the file."""
    try:
        outcome, reported = news(work)
    except EvgpError as error:
        return path.name in str(error) and "\n" not in str(error)
    assert all("\n" not in item for item in reported)
    return outcome == whole
