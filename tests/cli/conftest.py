"""Run the command in this process, on a small pool."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from evgp.cli.main import _CAMPAIGN, app


@dataclass(frozen=True)
class Ran:
    code: int
    out: str
    err: str


Run = Callable[..., Ran]


def as_now(words: list[str]) -> list[str]:
    """A call of a campaign, whose commands are short here: `new` for `campaign new`."""
    return ["campaign", *words] if words and words[0] in _CAMPAIGN else words


@pytest.fixture
def run() -> Run:
    def call(*arguments: object) -> Ran:
        words = as_now([str(argument) for argument in arguments])
        result = CliRunner().invoke(app, words, prog_name="evgp")
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        return Ran(result.exit_code, result.stdout, result.stderr)

    return call


@pytest.fixture
def rows() -> list[str]:
    """Lines of a pool of 40 rows: a name, two numbers, a word and a price."""
    random = np.random.default_rng(0)
    lines = ["name,a,b,kind,price"]
    for j, (a, b) in enumerate(random.normal(size=(40, 2))):
        lines.append(f"row-{j:02d},{a:.6f},{1000 * b:.4f},{'xyz'[j % 3]},{1 + j % 4}")
    return lines


@pytest.fixture
def pool(tmp_path: Path, rows: list[str]) -> Path:
    path = tmp_path / "pool.csv"
    path.write_text("\n".join(rows) + "\n")
    return path
