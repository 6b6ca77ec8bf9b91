"""The pools of the benchmarks, standardised as `evgp` does it. `EVGP_DATA` names their folder."""

import os
from pathlib import Path

import numpy as np


def mnist(n: int) -> np.ndarray:
    """The first n training images, as rows."""
    images = _load("mnist.npz")["X_train"][:n]
    return standardised(images.reshape(n, -1) / 255)


def images(name: str, n: int) -> np.ndarray:
    """The first n training images, channels first, each channel standardised."""
    x = _load(f"{name}.npz")["X_train"][:n].astype(np.float64)
    return (x - x.mean((0, 2, 3), keepdims=True)) / x.std((0, 2, 3), keepdims=True)


def half(name: str) -> np.ndarray:
    """A random half of kin8nm or optdigits, the same everywhere."""
    file = _load(f"{name}.npz")
    x = file["X"] if "X" in file else np.concatenate([file["X_train"], file["X_test"]])
    kept = np.random.RandomState(0).permutation(len(x))[: len(x) // 2]
    return standardised(x[kept].astype(np.float64))


def whole(name: str) -> np.ndarray:
    """All inputs of a regression, as they are."""
    files = {"california": "california_housing"}
    return _load(f"{files.get(name, name)}.npz")["X"].astype(np.float64)


def gaussian(n: int, d: int) -> np.ndarray:
    """Rows of standard normal numbers."""
    return np.random.default_rng(0).normal(size=(n, d))


def standardised(x: np.ndarray) -> np.ndarray:
    """Columns with mean 0 and deviation 1; constant ones become 0."""
    centred, scale = x - x.mean(0), x.std(0)
    flat = scale <= 1e-12 * np.abs(x).max(0)
    return np.where(flat, 0.0, centred / np.where(flat, 1.0, scale))


def _load(name: str) -> np.lib.npyio.NpzFile:
    folder = Path(os.environ.get("EVGP_DATA", "data"))
    if not (folder / name).exists():
        raise SystemExit(f"expected {name} in the folder that EVGP_DATA names, got none there")
    return np.load(folder / name)
