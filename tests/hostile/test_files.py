"""Bad tables of text and Parquet through every command that takes a table."""

from pathlib import Path

import numpy as np
import pytest

from tests.hostile import tables
from tests.hostile.filed import Hold, hold, hold_tables, runs, template

__all__ = ["hold", "runs", "template"]  # fixtures, used by their names here
KINDS = [kind for kind in tables.KINDS if not kind.startswith(("Arrow", "np"))]


@pytest.mark.parametrize("kind", KINDS)
def test_bad_tables(kind: str, hold: Hold, rng: np.random.Generator, tmp_path: Path) -> None:
    hold_tables(kind, hold, rng, tmp_path)
