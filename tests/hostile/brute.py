"""The same answers by brute force: plain NumPy, straight from the formulas, nothing of evgp.

Every variance is one direct solve of the whole system, every gain the difference of two, mutual
information a difference of determinants. Slow, and meant to be: it is for at most a hundred points.

With each number comes how far rounding may have moved it. A covariance matrix that is off by a
relative `eps` moves the variance at t by at most eps (1 + sum |G|)^2 to first order, where G are
the weights that t gives to the labels; that is computed here for every set of labels.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate

import numpy as np
from sklearn.cluster import kmeans_plusplus

Array = np.ndarray
# Gains this close, or closer than rounding may bring them, are a tie, which the lowest row wins
# (docs/theory.md, "Ties").
TIE = 1e-7
# Smallest noise, as a share of the mean prior variance (docs/theory.md, "Posterior").
JITTER = 1e-10


# -- points --------------------------------------------------------------------------------------


def standardised(pool: Array, *others: Array | None) -> list[Array | None]:
    """Mean 0 and standard deviation 1 over the pool, by column or channel.

    Columns that are constant there are left out, channels are 0.
    """
    axes = tuple(axis for axis in range(pool.ndim) if axis != 1)
    mean, std = pool.mean(axes, keepdims=True), pool.std(axes, keepdims=True)
    flat = np.ptp(pool, axis=axes, keepdims=True) == 0
    scale = np.where(flat, 0.0, 1 / np.where(flat, 1.0, std))
    result = [None if item is None else (item - mean) * scale for item in (pool, *others)]
    if pool.ndim > 2:
        return result
    return [None if item is None else item[:, ~flat[0]] for item in result]


def spread(x: Array, count: int, seed: int, weights: Array | None = None) -> Array | None:
    """The rows that k-means++ keeps, each once; None where rounding decides.

    It often does: of two points that are nearest to each other either brings the same.
    """
    flat = x.reshape(len(x), -1)
    random = np.random.default_rng(seed)
    moved = [flat * (1 + 1e-13 * random.normal(size=flat.shape)) for _ in range(30)]
    actual = [
        np.unique(kmeans_plusplus(item, count, random_state=seed, sample_weight=weights)[1])
        for item in (flat, *moved)
    ]
    same = all(np.array_equal(item, actual[0]) for item in actual)
    return actual[0] if same else None


def thinned(x: Array, weights: Array, points: int, seed: int) -> tuple[Array, Array] | None:
    """Rows that k-means++ keeps, each with the weight of those nearest; None if that is a tie.

    A tie, too, if all points that have weight are kept, and others as rounding has it.
    """
    flat = x.reshape(len(x), -1)
    rows = spread(x, points, seed, weights)
    if rows is None or len(np.unique(flat[weights > 0], axis=0)) <= points:
        return None
    distances = np.square(flat[:, None] - flat[rows][None]).sum(2)
    order = np.sort(distances, axis=1)
    if len(rows) > 1 and (order[:, 1] - order[:, 0] < 1e-9 * (1 + order[:, 1])).any():
        return None
    return rows, np.bincount(distances.argmin(1), weights, minlength=len(rows))


def nystrom(gram: Array, inducing: Array) -> tuple[Array, Array, float]:
    """A covariance through inducing rows, and what it misses of each point (FIC).

    The number is what a relative error of the kernel is multiplied by.
    """
    size = np.sqrt(np.maximum(gram.diagonal(), 1e-300))
    scaled = gram / np.outer(size, size)
    inner = scaled[np.ix_(inducing, inducing)] + JITTER * np.eye(len(inducing))
    weights = np.linalg.solve(inner, scaled[inducing])
    through = scaled[:, inducing] @ weights
    through = (through + through.T) / 2 * np.outer(size, size)
    rest = np.maximum(gram.diagonal() - through.diagonal(), 0)
    return through, rest, float((1 + np.abs(weights).sum(0)).max() ** 2)


# -- posterior -----------------------------------------------------------------------------------


class Model:
    """A covariance over all points: which are test points, which are labelled, and the noise.

    `rest` is what features miss of a point: noise of its own label, and variance that stays at a
    test point. `eps` is how far, relatively, a covariance may be off, and `eps_rest` the rest.
    Points are scaled to variance 1 inside, and labels with them, so that `eps` means the same
    everywhere.
    """

    def __init__(
        self,
        gram: Array,
        test: Array,
        weights: Array,
        known: Sequence[int],
        noise: float,
        *,
        rest: Array | None = None,
        eps: float = 0.0,
        eps_rest: float = 0.0,
        by_features: bool = False,
    ) -> None:
        size = np.sqrt(gram.diagonal())
        size = np.where(size > 0, size, 1.0)
        self.rest = np.zeros(len(gram)) if rest is None else rest
        self.test, self.weights = test, weights / weights.sum()
        self.prior = float(self.weights @ (gram.diagonal() + self.rest)[test])
        self.s = max(noise, JITTER) * self.prior
        self.noise = (self.s + self.rest) / size**2
        self.gram, self.size, self.known = gram / np.outer(size, size), size, list(known)
        first = eps + 4e-16 * len(gram)
        self.eps_rest, self.by_features = eps_rest + 1e-14, by_features
        least = max(float(self.noise.min()), 1e-300)
        self.eps = first + first**2 * len(gram) / least  # the second order, for eps > s
        self._information: dict[frozenset[int], tuple[float, float]] = {}

    def variances(self, sets: Array) -> tuple[Array, Array]:
        """Of the test points given the labels and each set of further ones; and how far off."""
        at = np.concatenate([np.tile(np.array(self.known, int), (len(sets), 1)), sets], axis=1)
        weights, cross = self._solved(at)
        own, scale = self.gram.diagonal()[self.test], self.size[self.test] ** 2
        left = (own - (cross * weights).sum(1)) * scale + self.rest[self.test]
        off = self.eps * (1 + np.abs(weights).sum(1)) ** 2 * scale
        return left, off + self.eps_rest * self.rest[self.test]

    def left(self, rows: Sequence[int]) -> tuple[Array, Array]:
        """Of the test points given these labels too; and how far off."""
        left, off = self.variances(np.array([list(rows)], int))
        return np.maximum(left[0], 0), off[0]

    def mean(self, rows: Sequence[int]) -> tuple[float, float]:
        """Weighted mean over the test points given these labels too; and how far off."""
        left, off = self.left(rows)
        return float(self.weights @ left), float(self.weights @ off)

    def covariances(self, rows: Sequence[int], asked: Array) -> tuple[Array, Array, Array]:
        """Between points asked about and test points, in units of the former; how far off.

        And the variance of the former.
        """
        at = np.array([[*self.known, *rows]], int)
        weights, _ = self._solved(at)
        own = np.linalg.solve(self._noisy(at)[0], self.gram[np.ix_(at[0], asked)])
        inner = self.gram[np.ix_(asked, self.test)]
        inner = inner - self.gram[np.ix_(asked, at[0])] @ weights[0]
        spread = np.outer(1 + np.abs(own).sum(0), 1 + np.abs(weights[0]).sum(0))
        left = self.gram.diagonal()[asked] - (self.gram[np.ix_(at[0], asked)] * own).sum(0)
        sizes = self.size[self.test]
        return inner * sizes, self.eps * spread * sizes, np.maximum(left, 0)

    def covariance(self) -> tuple[Array, float]:
        """Weighted, of the test points given the labels at the start; how far its trace is off."""
        weights, cross = self._solved(np.array([self.known], int))
        root = np.sqrt(self.weights) * self.size[self.test]
        inner = self.gram[np.ix_(self.test, self.test)] - cross[0].T @ weights[0]
        return inner * np.outer(root, root), self.mean([])[1]

    def information(self, rows: Sequence[int]) -> tuple[float, float]:
        """I[y_L; y_(T - L)] by determinants; and how far off."""
        labelled = {*self.known, *rows}
        others = [int(t) for t in self.test if t not in labelled]
        result = [self._entropy(part) for part in (labelled, others, [*labelled, *others])]
        (first, two, both), off = zip(*result, strict=True)
        return first + two - both, sum(off)

    def _entropy(self, rows: Sequence[int] | set[int]) -> tuple[float, float]:
        key = frozenset(rows)
        if key not in self._information:
            inner = self._noisy(np.array([sorted(key)], int))[0]
            off = self.eps * np.abs(np.linalg.inv(inner)).sum() / 2
            self._information[key] = float(np.linalg.slogdet(inner)[1]) / 2, float(off)
        return self._information[key]

    def _noisy(self, at: Array) -> Array:
        inner = self.gram[at[:, :, None], at[:, None, :]].copy()
        step = np.arange(at.shape[1])
        inner[:, step, step] += self.noise[at]
        return inner

    def _solved(self, at: Array) -> tuple[Array, Array]:
        cross = self.gram[at[:, :, None], self.test[None, None]]
        return np.linalg.solve(self._noisy(at), cross), cross


# -- criteria ------------------------------------------------------------------------------------


def rounding(model: Model, criterion: str) -> float:
    """The r of docs/theory.md, "Ties": what rounding alone may make of a gain."""
    return 1e-14 * model.prior / model.s if criterion == "mi" else 1e-12 * model.prior


def percentile(values: Array, weights: Array, q: float) -> Array:
    """Of each row: numpy's where weights are equal, and as if points were repeated where not.

    The mean of the quantile function over a window as wide as the smallest weight, which goes from
    the lowest value at 0 to the highest at 100.
    """
    values, weights = values[:, weights > 0], weights[weights > 0]
    if np.ptp(weights) == 0:
        return np.percentile(values, q, axis=1)
    width = weights.min() / weights.sum()
    low = q / 100 * (1 - width)
    out = []
    for row in values:
        order = np.argsort(row)
        ends = np.array([0.0, *np.cumsum(weights[order])]) / weights.sum()
        area = np.array([0.0, *np.cumsum(np.diff(ends) * row[order])])
        part = np.interp([low, low + width], ends, area)
        out.append((part[1] - part[0]) / width)
    return np.array(out)


def gains(model: Model, criterion: str, rows: Sequence[int], asked: Array) -> tuple[Array, Array]:
    """Of each point asked about, once `rows` are labelled; and how far off.

    `criterion` is "ev", "linearised", "mi", or "p" and a number.
    """
    asked = np.asarray(asked, int)
    if criterion == "mi":
        now, off = model.information(rows)
        result = [model.information([*rows, int(row)]) for row in asked]
        return np.array([item - now for item, _ in result]), np.array(
            [off + two for _, two in result]
        )
    lost_in = 0.0
    if model.by_features:  # sums of squares there are not squares of sums, and are rounded first
        left = 0.0 if criterion == "linearised" else model.covariances(rows, asked)[2]
        lost_in = (
            1e-15 * (model.weights @ model.size[model.test] ** 2) / (left + model.noise[asked])
        )
    if criterion == "linearised":
        inner, wrong, _ = model.covariances(rows, asked)
        total, w = np.square(inner) @ model.weights, model.weights
        lost = (2 * np.abs(inner) * wrong + wrong**2) @ w
        own = model.noise[asked]
        own_off = model.eps if model.rest.any() else 0.0
        return total / own, lost / own + total * own_off / own**2 + lost_in
    before, wrong = model.left(rows)
    sets = np.array([[*rows, int(row)] for row in asked], int)
    after, off = model.variances(sets)
    if criterion == "ev":
        w = model.weights
        return w @ before - after @ w, w @ wrong + off @ w + lost_in
    q, after = float(criterion[1:]), np.maximum(after, 0)
    result = percentile(before[None], model.weights, q) - percentile(after, model.weights, q)
    # A part of the area under the quantile function, by the difference of two areas.
    width = model.weights[model.weights > 0].min()
    return result, wrong.max() + off.max(1) + 1e-15 * before.max() / width


# -- searches ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Money:
    """Prices in whole units, so that sums are exact; None where nothing has a price."""

    prices: Array | None = None
    budget: float = np.inf
    by_rate: bool = False

    def allowed(self, free: Sequence[int], spent: int) -> Array:
        """Those that the rest of the money buys."""
        rows = np.array(sorted(free), int)
        return rows if self.prices is None else rows[self.prices[rows] <= self.budget - spent]

    def cost(self, rows: Sequence[int]) -> int:
        """Of these rows together."""
        return 0 if self.prices is None else int(self.prices[list(rows)].sum())

    def rates(self, rows: Array) -> Array:
        """What gains are divided by."""
        whole = self.by_rate and self.prices is not None
        return self.prices[rows] if whole else np.ones(len(rows))


@dataclass(frozen=True)
class Run:
    """Picks, their gains, how far these may be off, and whether no pick was a close call."""

    rows: list[int]
    gains: list[float]
    off: float
    clear: bool


def lowered(best: float) -> float:
    """The least score that is still a tie with the best."""
    return best - TIE * abs(best) if np.isfinite(best) else best


def is_clear(score: Array, limit: Array, at: int, near: Array | float = 0.0) -> bool:
    """Whether this is the lowest of the best, however rounding moves the scores.

    A score ties with the best if it is at most `near` below the least that does.
    """
    near = np.broadcast_to(near, score.shape)
    others = np.delete(score + limit, at)
    reached = not len(others) or score[at] - limit[at] + near[at] >= lowered(others.max())
    floor = lowered((score - limit).max())
    return bool(reached and (score + limit + near < floor)[:at].all())


def is_wrong(score: Array, limit: Array, at: int, near: Array | float = 0.0) -> str:
    """Why this cannot be the lowest of the best, however rounding moves the scores; "" if it can.

    Never wrong where `is_clear`, and a close call is neither.
    """
    near = np.broadcast_to(near, score.shape)
    most = int((score - limit).argmax())
    if lowered(score[most] - limit[most]) > score[at] + limit[at] + near[at]:
        return (
            f"its score {score[at]!r} is below {score[most]!r} of another (limit {limit[at]:.1e})"
        )
    ties = (score - limit + near)[:at] >= lowered((score + limit).max())
    return f"{int(ties.sum())} before it are as good" if ties.any() else ""


def greedy(
    model: Model,
    criterion: str,
    free: Sequence[int],
    k: int,
    money: Money,
    *,
    draw: Callable[[Array], Array] = lambda rows: rows,
    begun: Run = Run([], [], 0.0, True),
) -> Run:
    """The best candidate, then the best given that one, and so on, each by direct solves."""
    rows, result, total, clear = [*begun.rows], [*begun.gains], begun.off, begun.clear
    while len(rows) < k:
        allowed = money.allowed([row for row in free if row not in rows], money.cost(rows))
        allowed = np.sort(draw(allowed))
        if not len(allowed):
            break
        actual, off = gains(model, criterion, rows, allowed)
        per = money.rates(allowed)
        score, limit, near = actual / per, off / per, rounding(model, criterion) / per
        at = int(np.flatnonzero(score + near >= lowered(score.max()))[0])
        clear &= is_clear(score, limit, at, near)
        rows.append(int(allowed[at]))
        result.append(float(actual[at]))
        total += float(off[at])
    return Run(rows, result, total, clear)


def best_of(runs: Sequence[Run]) -> Run:
    """The run with the largest sum of gains, the first within a tie of it."""
    sums = np.array([sum(run.gains) for run in runs])
    off = np.array([run.off for run in runs])
    at = int(np.flatnonzero(sums >= lowered(sums.max()))[0])
    clear = all(run.clear for run in runs) and is_clear(sums, off, at)
    return Run(runs[at].rows, runs[at].gains, runs[at].off, clear)


# -- certificate ---------------------------------------------------------------------------------


def most(model: Model) -> tuple[Array, float]:
    """The sums of the j largest eigenvalues of the test covariance, j = 0, 1, ...; how far off."""
    inner, off = model.covariance()
    values = np.maximum(np.linalg.eigvalsh(inner)[::-1], 0)
    return np.array([0.0, *accumulate(values)]), off


def affordable(prices: Array, spent: int) -> int:
    """How many of the cheapest items that much money buys."""
    return int((np.cumsum(np.sort(prices)) <= spent).sum())
