r"""A plane to look at the pool from: its two main components."""

import numpy as np
from jaxtyping import Float, Int
from sklearn.utils.extmath import randomized_svd

FITTED = 20_000
DRAWN = 4_000


def project(
    x: Float[np.ndarray, "n d"], rows: Int[np.ndarray, " r"], *, seed: int
) -> tuple[Float[np.ndarray, "r 2"], tuple[float, float]]:
    r"""Place rows on the plane of the two main components, and say how much each holds.

    The components are the leading right singular vectors of $x - \bar x$, by a seeded randomised
    SVD over at most 20,000 rows; the largest loading of each is positive, so the map never flips.
    Costs $O(\min(n, 20000)\, d)$.

    >>> at, explained = project(np.array([[0.0, 1.0], [2.0, 1.0]]), np.array([0, 1]), seed=0)
    >>> at.round(6).tolist(), np.round(explained, 6).tolist()
    ([[-1.0, 0.0], [1.0, 0.0]], [1.0, 0.0])
    """
    sample = _draw(len(x), FITTED, seed)
    mean = x[sample].mean(axis=0)
    centred = x[sample] - mean
    total = float((centred**2).sum())
    at, explained = np.zeros((len(rows), 2)), [0.0, 0.0]
    if total > 0:
        found = min(2, *centred.shape)
        _, scales, vectors = randomized_svd(centred, found, random_state=seed)
        loadings = vectors[np.arange(found), np.abs(vectors).argmax(axis=1)]
        vectors *= np.where(loadings < 0, -1.0, 1.0)[:, None]
        at[:, :found] = (x[rows] - mean) @ vectors.T
        explained[:found] = np.minimum(scales**2 / total, 1.0).tolist()
    return at, (explained[0], explained[1])


def backdrop(n: int, picked: Int[np.ndarray, " k"], *, seed: int) -> Int[np.ndarray, " r"]:
    """Rows to draw behind the picks: all the others, or 4,000 of the pool drawn at random."""
    return np.setdiff1d(_draw(n, DRAWN, seed), picked)


def _draw(n: int, most: int, seed: int) -> Int[np.ndarray, " r"]:
    if n <= most:
        return np.arange(n)
    return np.sort(np.random.default_rng(seed).choice(n, most, replace=False))
