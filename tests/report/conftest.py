"""A selection with correct numbers: plain greedy on a Gaussian kernel."""

from collections.abc import Callable

import numpy as np
import pytest

from evgp.pool import Certificate, Needed, Selection

Choose = Callable[..., Selection]


@pytest.fixture
def x() -> np.ndarray:
    return np.random.default_rng(3).normal(size=(60, 4))


@pytest.fixture
def choose() -> Choose:
    return _choose


@pytest.fixture
def selection(x: np.ndarray) -> Selection:
    return _choose(x, 8)


def _choose(x: np.ndarray, k: int, *, labelled: tuple[int, ...] = ()) -> Selection:
    n = len(x)
    kernel = np.exp(-((x[:, None] - x[None]) ** 2).sum(-1) / 4)
    prior = float(np.trace(kernel)) / n
    for row in labelled:
        kernel = _observe(kernel, row)
    before, values = np.diag(kernel).copy(), np.linalg.eigvalsh(kernel)[::-1]
    start = float(before.mean())
    indices: list[int] = []
    left = [start]
    for _ in range(k):
        gains = (kernel**2).sum(axis=1) / (np.diag(kernel) + 1e-6)
        gains[[*labelled, *indices]] = -1
        indices.append(int(gains.argmax()))
        kernel = _observe(kernel, indices[-1])
        left.append(float(np.trace(kernel)) / n)
    lowest = start - np.cumsum(values[:k]) / n
    share = (start - np.array(left[1:])) / (start - lowest)
    return Selection(
        indices=np.array(indices),
        gains=-np.diff(left),
        prior_variance=prior,
        start_variance=start,
        variance_left=np.array(left[1:]),
        test_before=before,
        test_after=np.diag(kernel).copy(),
        certificate=Certificate(lowest, share, {0.5: Needed(3, 5), 0.8: Needed(7, None)}),
        settings={"criterion": "expected variance", "noise": 1e-6, "seed": 0},
    )


def _observe(kernel: np.ndarray, row: int) -> np.ndarray:
    return kernel - np.outer(kernel[:, row], kernel[row]) / (kernel[row, row] + 1e-6)
