"""Adapters are short."""

import re
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "src" / "evgp" / "integrations"


@pytest.mark.parametrize("name", ["sklearn", "skactiveml", "modal"])
def test_an_adapter_has_fewer_than_120_lines(name: str) -> None:
    """Blank lines, comments and docstrings aside."""
    text = (FOLDER / f"{name}.py").read_text(encoding="utf-8")
    lines = re.sub(r'r?""".*?"""', "", text, flags=re.DOTALL).splitlines()
    assert 20 < sum(not line.strip().startswith("#") for line in lines if line.strip()) < 120
