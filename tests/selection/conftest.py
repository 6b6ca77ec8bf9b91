"""Folders that large pools use."""

from pathlib import Path

import pytest


@pytest.fixture
def cache(tmp_path, monkeypatch) -> Path:
    """The cache of the user, empty."""
    monkeypatch.setenv("EVGP_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"
