r"""Which strategy needs fewer labels, over many pools: savings, ranks and tests.

Pools are the unit of every test and interval, with seeds within them: a strategy that wins on
thirty splits of one pool has won once. A pool's score is in points of accuracy, or in percent of
the RMSE on a logarithmic scale, so that a gain and an equal loss cancel; higher is better. With
several learners, it is the mean over them.

Labels saved are read off the two mean curves of a pool. With $\log l_a(y)$ the labels at which the
curve of a strategy first reaches the score $y$, interpolated between budgets, the saving is $\exp
\mathrm{mean}_y [\log l_a(y) - \log l_b(y)]$ over the scores that both curves reach, so nothing is
extrapolated beyond the numbers of labels that were tried. A ratio of 0.6 means 60 % of the labels.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations
from math import exp, inf, isnan, log, nan
from statistics import fmean

import numpy as np
from jaxtyping import Float
from scipy import stats

from evgp.comparison.rows import Row
from evgp.comparison.statistics import holm, paired
from evgp.comparison.summary import LEVEL, RANDOM
from evgp.errors import DatasetError

DRAWS = 2_000  # of the bootstrap
_LEVELS = 25  # scores at which two curves are compared
_FEWEST_POOLS = 6  # with fewer pools, Wilcoxon's test can never reject at 5 %
_FEWEST_SEEDS = 3


@dataclass(frozen=True, eq=False)
class PoolScores:
    """The scores of all strategies on one pool: seeds x budgets, NaN where a run is missing."""

    name: str
    kind: str
    labels: tuple[int, ...]
    seeds: tuple[int, ...]
    scores: Mapping[str, Float[np.ndarray, "s b"]]

    def curve(self, strategy: str) -> Float[np.ndarray, " b"]:
        """The mean over seeds at each number of labels."""
        return np.nanmean(self.scores[strategy], axis=0)

    @cached_property
    def finished(self) -> Mapping[str, int]:
        """How many seeds each strategy has finished."""
        return {name: int((~np.isnan(own).any(1)).sum()) for name, own in self.scores.items()}

    @property
    def strategies(self) -> set[str]:
        """The strategies that have finished at least half as many seeds as any other."""
        most = max(self.finished.values())
        return {name for name, count in self.finished.items() if 2 * count >= most > 0}

    def pair(
        self, first: str, second: str
    ) -> tuple[Float[np.ndarray, "t b"], Float[np.ndarray, "t b"]]:
        """The scores of two strategies on the seeds that both have finished."""
        a, b = self.scores[first], self.scores[second]
        both = ~(np.isnan(a).any(1) | np.isnan(b).any(1))
        return a[both], b[both]


@dataclass(frozen=True)
class Savings:
    """The labels that one strategy needs, as a share of another's, over all pools.

    `ratio` is the geometric mean over pools, `low` to `high` its 95 % interval by bootstrap over
    pools and seeds. `p` is that of Wilcoxon's signed-rank test over pools, and `holm` is the same
    adjusted for all compared strategies; NaN with too few pools.
    """

    strategy: str
    base: str
    ratio: float
    low: float
    high: float
    p: float
    holm: float
    pools: Mapping[str, float]

    @property
    def verdict(self) -> str:
        """Fewer, more, or unclear, by the adjusted p."""
        if not self.holm < LEVEL:
            return "unclear"
        return "fewer" if self.ratio < 1 else "more"

    def sentence(self) -> str:
        """The result as a headline.

        >>> Savings("evgp", "random", 0.62, 0.55, 0.7, 0.01, 0.02, {"a": 0.62}).sentence()
        'evgp needs 62 % of the labels of random (95 % interval 55 to 70)'
        >>> Savings("evgp", "random", 0.9, 0.7, 1.1, 0.4, 0.8, {"a": 0.9}).sentence()
        'no clear difference between evgp and random (90 % of the labels; 95 % interval 70 to 110)'
        """
        share = f"{100 * self.ratio:.0f} %"
        interval = f"{100 * self.low:.0f} to {100 * self.high:.0f}"
        if isnan(self.p):
            return (
                f"{len(self.pools)} pools are too few for a test; on these {self.strategy} needs "
                f"{share} of the labels of {self.base} (95 % interval {interval})"
            )
        if self.verdict == "unclear":
            return (
                f"no clear difference between {self.strategy} and {self.base} ({share} of the "
                f"labels; 95 % interval {interval})"
            )
        return (
            f"{self.strategy} needs {share} of the labels of {self.base} (95 % interval {interval})"
        )


@dataclass(frozen=True)
class Duel:
    """Two strategies, pool by pool: paired t-tests over seeds of the mean score, each at 5 %."""

    first: str
    second: str
    wins: int
    ties: int
    losses: int


@dataclass(frozen=True)
class LostPlace:
    """A pool and a number of labels at which one strategy is below another, with 5 % error."""

    pool: str
    labels: int
    difference: float
    low: float
    high: float
    p: float
    holm: float
    kind: str


@dataclass(frozen=True, eq=False)
class Judgement:
    """Verdict of a suite on its strategies, best mean rank first."""

    pools: tuple[PoolScores, ...]
    strategies: tuple[str, ...]
    ranks: Mapping[str, float]
    friedman: float
    savings: Mapping[str, Savings]
    duels: tuple[Duel, ...]
    cliques: tuple[tuple[str, ...], ...]

    @cached_property
    def seeds(self) -> tuple[int, int]:
        """The smallest and the largest number of seeds that a strategy has on a pool."""
        counts = [
            count
            for pool in self.pools
            for name, count in pool.finished.items()
            if name in self.strategies
        ]
        return min(counts), max(counts)

    def duel(self, first: str, second: str) -> Duel:
        """The duel of two strategies, from the side of the first."""
        for known in self.duels:
            if (known.first, known.second) == (first, second):
                return known
            if (known.first, known.second) == (second, first):
                return Duel(first, second, known.losses, known.ties, known.wins)
        raise DatasetError(f"expected two of {', '.join(self.strategies)}, got {first}, {second}")

    def losses(self, strategy: str, base: str = RANDOM) -> tuple[tuple[LostPlace, ...], int]:
        """Where a strategy is below another, largest loss first, and how many places there are."""
        tested = []
        for pool in self.pools:
            if strategy not in pool.scores or base not in pool.scores:
                continue
            first, second = pool.pair(strategy, base)
            for at, labels in enumerate(pool.labels):
                if len(first) >= _FEWEST_SEEDS:
                    test = paired(first[:, at].tolist(), second[:, at].tolist(), lower=False)
                    tested.append((pool, labels, test))
        adjusted = holm([1.0 if test.p is None else test.p for _, _, test in tested])
        lost = [
            LostPlace(pool.name, labels, test.difference, test.low, test.high, test.p, q, pool.kind)
            for (pool, labels, test), q in zip(tested, adjusted, strict=True)
            if test.p is not None and test.p < LEVEL and not test.better
            and test.low is not None and test.high is not None
        ]  # fmt: skip
        return tuple(sorted(lost, key=lambda loss: loss.difference)), len(tested)


def pool_scores(rows: Sequence[Row], learner: str | None = None) -> tuple[PoolScores, ...]:
    """Sort the rows of many pools; without `learner` the mean over all learners counts."""
    by_pool: dict[str, list[Row]] = {}
    for row in rows:
        by_pool.setdefault(row.dataset, []).append(row)
    scores_of_pools = []
    for name, own in sorted(by_pool.items()):
        scores = _means([row for row in own if learner in (None, row.learner)])
        if not scores:
            continue
        seeds = tuple(sorted({seed for _, seed, _ in scores}))
        labels = tuple(sorted({count for _, _, count in scores}))
        tables = {
            strategy: np.array(
                [[scores.get((strategy, seed, n), nan) for n in labels] for seed in seeds]
            )
            for strategy in sorted({strategy for strategy, _, _ in scores})
        }
        scores_of_pools.append(PoolScores(name, own[0].kind, labels, seeds, tables))
    return tuple(scores_of_pools)


def _means(rows: Sequence[Row]) -> dict[tuple[str, int, int], float]:
    """The mean score over learners, of each run and number of labels that all learners have."""
    learners = len({row.learner for row in rows})
    groups: dict[tuple[str, int, int], dict[str, float]] = {}
    for row in rows:
        groups.setdefault((row.strategy, row.seed, row.labels), {})[row.learner] = score_of(row)
    return {key: fmean(own.values()) for key, own in groups.items() if len(own) == learners}


def score_of(row: Row) -> float:
    """Points of accuracy, or percent of the RMSE on a logarithmic scale; higher is better."""
    return 100 * row.accuracy if row.kind == "classification" else -50 * log(row.mse)


def log_ratio(
    labels: Sequence[int], ours: Float[np.ndarray, "r b"], base: Float[np.ndarray, "r b"]
) -> Float[np.ndarray, " r"]:
    """The mean logarithm of the ratio of labels that two curves need, for r pairs of curves.

    >>> curve = np.array([[0.0, 1.0, 2.0, 3.0]])
    >>> round(exp(log_ratio((10, 20, 40, 80), curve + 1, curve)[0]), 6)
    0.5
    >>> round(exp(log_ratio((10, 20, 40, 80), curve, curve + 1)[0]), 6)
    2.0
    """
    x = np.log(np.asarray(labels, dtype=np.float64))
    a, b = (np.maximum.accumulate(curve, axis=1) for curve in (ours, base))
    low, high = np.maximum(a[:, 0], b[:, 0]), np.minimum(a[:, -1], b[:, -1])
    steps = (np.arange(_LEVELS) + 0.5) / _LEVELS
    levels = low[:, None] + (high - low)[:, None] * steps
    gaps = (_reached(x, a, levels) - _reached(x, b, levels)).mean(1)
    # The curves share no level, so it is only known which one is higher.
    apart = np.where(a[:, 0] > b[:, 0], x[0] - x[-1], np.where(a[:, 0] < b[:, 0], x[-1] - x[0], 0))
    return np.where(high > low, gaps, apart)


def _reached(
    x: Float[np.ndarray, " b"], curves: Float[np.ndarray, "r b"], levels: Float[np.ndarray, "r l"]
) -> Float[np.ndarray, "r l"]:
    """Where each curve, which never falls, first reaches each of its levels."""
    after = (curves[:, None, :] < levels[:, :, None]).sum(2).clip(1, len(x) - 1)
    top = np.take_along_axis(curves, after, 1)
    bottom = np.take_along_axis(curves, after - 1, 1)
    share = np.divide(levels - bottom, top - bottom, out=np.ones_like(levels), where=top > bottom)
    return x[after - 1] + share.clip(0, 1) * (x[after] - x[after - 1])


def savings(
    pools: Sequence[PoolScores], strategies: Sequence[str], base: str = RANDOM, *, seed: int = 0
) -> dict[str, Savings]:
    """How many labels each strategy needs, as a share of those of `base`.

    The bootstrap draws pools with replacement, and for each of them, as often as it is drawn, seeds
    with replacement; all strategies see the same draws. P-values are adjusted for all strategies.
    Costs O(draws x pools x (seeds x budgets + levels x budgets)) for each strategy.
    """
    return _adjusted(
        {
            name: saving
            for name in strategies
            if (saving := _saving(pools, name, base, seed)) is not None
        }
    )


def rivals(
    pools: Sequence[PoolScores], strategy: str, others: Sequence[str], *, seed: int = 0
) -> dict[str, Savings]:
    """How many labels a strategy needs, as a share of those of each other one.

    P-values are adjusted for all of the others.
    """
    every = {name: _saving(pools, strategy, name, seed) for name in others if name != strategy}
    return _adjusted({name: saving for name, saving in every.items() if saving is not None})


def _saving(pools: Sequence[PoolScores], strategy: str, base: str, seed: int) -> Savings | None:
    """Labels needed by one strategy; None if no pool has it together with its base."""
    generator = np.random.default_rng(seed)
    names, exact, drawn = [], [], []
    for pool in pools:
        gap = _gap(pool, strategy, base)
        if gap is None:
            continue
        ours, theirs = pool.pair(strategy, base)
        names.append(pool.name)
        exact.append(gap)
        weights = generator.multinomial(len(ours), np.full(len(ours), 1 / len(ours)), DRAWS)
        shares = weights / len(ours)
        drawn.append(log_ratio(pool.labels, shares @ ours, shares @ theirs))
    if not names:
        return None
    size = (DRAWS, len(names))
    chosen, draws = generator.integers(len(names), size=size), generator.integers(DRAWS, size=size)
    low, high = np.exp(np.quantile(np.array(drawn)[chosen, draws].mean(1), (0.025, 0.975)))
    p = _wilcoxon(exact)
    ratios = {name: exp(value) for name, value in zip(names, exact, strict=True)}
    return Savings(strategy, base, exp(fmean(exact)), float(low), float(high), p, p, ratios)


def _gap(pool: PoolScores, strategy: str, base: str) -> float | None:
    """The logarithm of the share of labels on one pool; None if too few seeds have both."""
    if not {strategy, base} <= set(pool.scores) or len(pool.labels) < 2:
        return None
    ours, theirs = pool.pair(strategy, base)
    if len(ours) < _FEWEST_SEEDS:
        return None
    means = (part.mean(0, keepdims=True) for part in (ours, theirs))
    return float(log_ratio(pool.labels, *means)[0])


def _adjusted(every: Mapping[str, Savings]) -> dict[str, Savings]:
    """The same with p-values adjusted by Holm, of those that have one."""
    known = [name for name, saving in every.items() if not isnan(saving.p)]
    values = dict(zip(known, holm([every[name].p for name in known]), strict=True))
    return {
        name: replace(saving, holm=values.get(name, saving.p)) for name, saving in every.items()
    }


def _wilcoxon(values: Sequence[float]) -> float:
    """The p-value of the signed-rank test that the median is zero; NaN if the pools are too few."""
    if len(values) < _FEWEST_POOLS:
        return nan
    return float(stats.wilcoxon(values).pvalue) if np.any(values) else 1.0


def judge(
    rows: Sequence[Row], strategies: Sequence[str] | None = None, *, learner: str | None = None
) -> Judgement:
    """Compare strategies over all pools of some rows.

    Ranks are means over the pools that have all ranked strategies, on the seeds that all of them
    have finished; ranked are those that more than half of the pools have. Strategies that no pool
    has together with random picks are left out.
    """
    pools = pool_scores(rows, learner)
    if not pools:
        raise DatasetError("expected rows of a suite, got none; run a suite first")
    every = sorted({name for pool in pools for name in pool.scores})
    names = [name for name in every if strategies is None or name in strategies]
    ranks, friedman = _ranks(pools, names)
    names.sort(key=lambda name: ranks.get(name, inf))
    others = [name for name in names if name != RANDOM]
    saved = savings(pools, others)
    duels = tuple(_duel(pools, a, b) for a, b in combinations(names, 2))
    return Judgement(
        pools,
        tuple(names),
        ranks,
        friedman,
        saved,
        duels,
        _cliques([name for name in names if name in ranks], pools),
    )


def _ranks(pools: Sequence[PoolScores], names: Sequence[str]) -> tuple[dict[str, float], float]:
    """Mean ranks, and the p-value of Friedman's test; see `judge`."""
    there = [pool.strategies for pool in pools]
    ranked = [name for name in names if 2 * sum(name in own for own in there) > len(pools)]
    whole = [pool for pool, own in zip(pools, there, strict=True) if set(ranked) <= own]
    means = [mean for pool in whole if (mean := _means_together(pool, ranked)) is not None]
    if not means or not ranked:
        return {}, nan
    table = np.array(means)
    places = stats.rankdata(-table, axis=1).mean(0)
    friedman = nan
    if len(table) > 1 and len(ranked) > 2:
        friedman = float(stats.friedmanchisquare(*table.T).pvalue)
    return {name: float(place) for name, place in zip(ranked, places, strict=True)}, friedman


def _means_together(pool: PoolScores, names: Sequence[str]) -> list[float] | None:
    """Mean scores over the seeds that all of these strategies have finished; None without any."""
    scores = np.array([pool.scores[name] for name in names])
    both = ~np.isnan(scores).any(axis=(0, 2))
    return [float(mean) for mean in scores[:, both].mean((1, 2))] if both.any() else None


def _duel(pools: Sequence[PoolScores], first: str, second: str) -> Duel:
    counts = {"win": 0, "tie": 0, "loss": 0}
    for pool in pools:
        if first not in pool.scores or second not in pool.scores:
            continue
        a, b = pool.pair(first, second)
        if len(a) < _FEWEST_SEEDS:
            continue
        test = paired(a.mean(1).tolist(), b.mean(1).tolist(), lower=False)
        clear = test.p is not None and test.p < LEVEL
        counts["tie" if not clear else "win" if test.better else "loss"] += 1
    return Duel(first, second, counts["win"], counts["tie"], counts["loss"])


def _cliques(names: Sequence[str], pools: Sequence[PoolScores]) -> tuple[tuple[str, ...], ...]:
    """Groups of strategies, consecutive in rank, of which no two are clearly different. Two
    strategies differ if Wilcoxon's test of their labels, pool by pool, is significant after Holm's
    correction for all pairs.
    """
    pairs = list(combinations(names, 2))
    gaps = [[_gap(pool, first, second) for pool in pools] for first, second in pairs]
    chances = [_wilcoxon([gap for gap in gaps_of_pair if gap is not None]) for gaps_of_pair in gaps]
    adjusted = holm([1.0 if isnan(p) else p for p in chances])
    apart = {frozenset(pair) for pair, q in zip(pairs, adjusted, strict=True) if q < LEVEL}
    runs: list[tuple[str, ...]] = []
    for start in range(len(names)):
        stop = start + 1
        while stop < len(names) and not any(
            frozenset((names[stop], name)) in apart for name in names[start:stop]
        ):
            stop += 1
        if stop - start > 1 and not any(set(names[start:stop]) <= set(run) for run in runs):
            runs.append(tuple(names[start:stop]))
    return tuple(runs)


def standing(against: Mapping[str, Savings]) -> str:
    """Which rivals need fewer labels than a strategy by the adjusted test, and which need more.

    >>> few = Savings("evgp", "kmeans", 1.2, 1.1, 1.3, 0.01, 0.02, {})
    >>> standing({"kmeans": few, "lcmd": replace(few, ratio=0.7), "bait": replace(few, holm=0.4)})
    'Fewer labels than evgp: kmeans. More: lcmd. No clear difference: bait.'
    """
    known = {name: saving for name, saving in against.items() if not isnan(saving.holm)}
    if not known:
        return ""
    mine = next(iter(known.values())).strategy
    words = {"more": f"Fewer labels than {mine}", "fewer": "More", "unclear": "No clear difference"}
    groups = {
        words[verdict]: ", ".join(
            name for name, saving in known.items() if saving.verdict == verdict
        )
        or "none"
        for verdict in words
    }
    return " ".join(f"{title}: {names}." for title, names in groups.items())


def unit(kind: str) -> str:
    """The unit of scores: points of accuracy, or percent of the RMSE on a logarithmic scale."""
    return "points" if kind == "classification" else "log-% of RMSE"
