"""Adapters are short."""

from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "src" / "evgp" / "integrations"


@pytest.mark.parametrize("name", ["sklearn", "skactiveml", "modal"])
def test_an_adapter_has_fewer_than_120_lines(name: str) -> None:
    """Blank lines and comments aside."""
    lines = (FOLDER / f"{name}.py").read_text(encoding="utf-8").splitlines()
    assert sum(not line.strip().startswith("#") for line in lines if line.strip()) < 120
