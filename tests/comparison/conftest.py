"""A small labelled table, and terms on which networks are trained in no time."""

from pathlib import Path

import numpy as np
import pytest

from evgp.comparison import DatasetSource, Protocol

QUICK = Protocol(budget=6, batch=3, members=2, depth=1, width=8, steps=5)


@pytest.fixture(scope="session")
def prices(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Forty rows with numbers as labels, and two classes."""
    random = np.random.default_rng(0)
    x = random.normal(size=(40, 3))
    path = tmp_path_factory.mktemp("arena") / "prices.csv"
    lines = ["a,b,c,price,kind"]
    for row in x:
        kind = "dear" if row[0] > 0 else "cheap"
        lines.append(",".join(f"{value:.6f}" for value in (*row, row.sum())) + f",{kind}")
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.fixture
def numbers(prices: Path) -> DatasetSource:
    """The table as a regression."""
    return DatasetSource(str(prices), label="price", drop=("kind",))


@pytest.fixture
def kinds(prices: Path) -> DatasetSource:
    """The table as a classification."""
    return DatasetSource(str(prices), label="kind", drop=("price",))
