"""Shared inputs, and the way to the real data."""

import os
from pathlib import Path

import numpy as np
import pytest
import torch

# Small products gain nothing from threads, and lose much on a busy machine.
torch.set_num_threads(1)


def data_folder() -> Path | None:
    """Where the real datasets lie, if they are here."""
    folder = os.environ.get("EVGP_DATA")
    if folder is None:
        beside = Path(__file__).parents[2] / "shared" / "data"
        return beside if beside.is_dir() else None
    return Path(folder)


def missing(what: str) -> None:
    """Skip, with the reason; in CI the data are there, so their absence is a failure."""
    reason = f"{what} is not here; set EVGP_DATA to the folder of datasets"
    if os.environ.get("CI"):
        pytest.fail(reason)
    pytest.skip(reason)


@pytest.fixture(scope="session")
def half():
    """A function from a dataset's name to the pool of the recorded figures."""

    def load(name: str, seed: int = 0) -> np.ndarray:
        folder = data_folder()
        if folder is None or not (folder / f"{name}.npz").exists():
            missing(f"{name}.npz")
        data = np.load(folder / f"{name}.npz")
        x = data["X"] if "X" in data else np.concatenate([data["X_train"], data["X_test"]])
        return x[np.random.RandomState(seed).permutation(len(x))[: len(x) // 2]].astype(float)

    return load


@pytest.fixture(scope="session")
def reference():
    """Reference kernels, if they are here."""
    folder = data_folder()
    path = None if folder is None else folder.parent / "oracles" / "ntk_reference.npz"
    if path is None or not path.exists():
        missing("ntk_reference.npz")
    return np.load(path)


@pytest.fixture
def x() -> torch.Tensor:
    """Forty points in three dimensions."""
    return torch.randn(40, 3, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
