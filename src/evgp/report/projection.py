"""The pool in two dimensions, for maps: its two main components."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int
from sklearn.utils.extmath import randomized_svd

FITTED = 20_000  # rows that the components are computed from
DRAWN = 4_000  # rows that a map shows


@dataclass(frozen=True, eq=False)
class Plane:
    """The two main directions of a pool, and the share of its variance that each explains."""

    mean: Float[np.ndarray, " d"]
    vectors: Float[np.ndarray, "q d"]
    explained: tuple[float, float]

    def place(self, x: Float[np.ndarray, "r d"]) -> Float[np.ndarray, "r 2"]:
        """The positions of rows on the plane."""
        at = np.zeros((len(x), 2))
        at[:, : len(self.vectors)] = (x - self.mean) @ self.vectors.T
        return at


def main_plane(x: Float[np.ndarray, "n d"], *, seed: int) -> Plane:
    r"""The plane of the two main components.

    They are the leading right singular vectors of $x - \bar x$, by a seeded randomised SVD over at
    most 20,000 rows; the largest loading of each is positive, so the map never flips. Costs
    $O(\min(n, 20000)\, d)$.
    """
    sample = _draw(len(x), FITTED, seed)
    mean = x[sample].mean(axis=0)
    centred = x[sample] - mean
    total = float((centred**2).sum())
    if not total > 0:
        return Plane(mean, np.zeros((0, x.shape[1])), (0.0, 0.0))
    count = min(2, *centred.shape)
    _, scales, vectors = randomized_svd(centred, count, random_state=seed)
    loadings = vectors[np.arange(count), np.abs(vectors).argmax(axis=1)]
    vectors *= np.where(loadings < 0, -1.0, 1.0)[:, None]
    first, second = [*np.minimum(scales**2 / total, 1.0).tolist(), 0.0][:2]
    return Plane(mean, vectors, (first, second))


def project(
    x: Float[np.ndarray, "n d"], rows: Int[np.ndarray, " r"], *, seed: int
) -> tuple[Float[np.ndarray, "r 2"], tuple[float, float]]:
    """Positions of rows on the two main components, and the share of variance of each.

    >>> at, explained = project(np.array([[0.0, 1.0], [2.0, 1.0]]), np.array([0, 1]), seed=0)
    >>> at.round(6).tolist(), np.round(explained, 6).tolist()
    ([[-1.0, 0.0], [1.0, 0.0]], [1.0, 0.0])
    """
    plane = main_plane(x, seed=seed)
    return plane.place(x[rows]), plane.explained


def backdrop(n: int, picked: Int[np.ndarray, " k"], *, seed: int) -> Int[np.ndarray, " r"]:
    """Rows to draw behind the picks: all others, or a random 4,000 of the pool."""
    return np.setdiff1d(_draw(n, DRAWN, seed), picked)


def _draw(n: int, most: int, seed: int) -> Int[np.ndarray, " r"]:
    if n <= most:
        return np.arange(n)
    return np.sort(np.random.default_rng(seed).choice(n, most, replace=False))
