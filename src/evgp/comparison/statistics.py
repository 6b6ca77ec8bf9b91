"""Statistics of a comparison: areas under curves, ranks, and paired tests over seeds."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import isfinite, nan, prod
from statistics import fmean, stdev
from typing import Any

import numpy as np
from jaxtyping import Float
from scipy import stats

from evgp._checks import instance
from evgp._repr import several
from evgp.comparison import summary as words
from evgp.comparison.rows import LEARNERS, MEASURES, NETWORK, Records, Row, column, distinct, where
from evgp.comparison.summary import (
    MEAN,
    RANDOM,
    Comparison,
    Contest,
    Curve,
    Entrant,
    Lead,
    Paired,
    Saved,
    Score,
    Standing,
)
from evgp.errors import DatasetError
from evgp.metrics import area

_DUST = 1e-12  # differences below this share of the values are rounding


def mean_and_error(values: Iterable[float]) -> tuple[float, float]:
    """The mean over seeds, and its standard error; NaN if it has none.

    >>> mean_and_error([1.0, 3.0]), mean_and_error([1.0])
    ((2.0, 1.0), (1.0, nan))
    """
    known = np.array(list(values), dtype=np.float64)
    if not len(known):
        return nan, nan
    return float(known.mean()), float(stats.sem(known)) if len(known) > 1 else nan


def mean_by(records: Records, by: str, name: str) -> tuple[list[Any], Float[np.ndarray, "k 2"]]:
    """The mean of a column and its standard error, for each value of `by` in order.

    Missing and infinite values are left out; the error of a single value is 0 here.

    >>> mean_by([{"n": 1, "mse": 2.0}, {"n": 1, "mse": 4.0}], "n", "mse")
    ([1], array([[3., 1.]]))
    """
    keys = sorted(distinct(records, by))
    pairs = []
    for key in keys:
        values = column(where(records, **{by: key}), name)
        mean, error = mean_and_error(values[np.isfinite(values)])
        pairs.append((mean, 0.0 if np.isnan(error) else error))
    return keys, np.array(pairs, dtype=np.float64).reshape(-1, 2)


def areas(
    records: Records, metric: str, strategy: str, scale: Callable[[Any], Any] = np.asarray
) -> dict[int, float]:
    """The mean height of the learning curve of a strategy on a dataset, for each seed.

    `scale` is applied to the metric first, such as a logarithm. Seeds with values that are missing
    or infinite are left out.

    >>> rows = [{"strategy": "evgp", "seed": 0, "labels": n, "mse": 1 / n} for n in (1, 2)]
    >>> areas(rows, "mse", "evgp")
    {0: 0.75}
    """
    heights: dict[int, float] = {}
    own = where(records, strategy=strategy)
    for seed in distinct(own, "seed"):
        curve = sorted(where(own, seed=seed), key=lambda row: int(row["labels"]))
        values = scale(column(curve, metric))
        if np.isfinite(values).all():
            heights[seed] = area(column(curve, "labels"), values)
    return heights


def interval(values: Sequence[float]) -> tuple[float, float]:
    """The 95 % confidence interval of a mean, by Student's t.

    >>> low, high = interval([1.0, 2.0, 3.0])
    >>> round(low, 3), round(high, 3)
    (-0.484, 4.484)
    """
    if np.ptp(values) <= _DUST * np.abs(values).max():  # of which t is infinite
        return (float(np.mean(values)),) * 2
    low, high = stats.ttest_1samp(values, 0.0).confidence_interval()
    return float(low), float(high)


def paired(first: Sequence[float], second: Sequence[float], *, lower: bool) -> Paired:
    """Paired t-test of at least two pairs of values.

    If the difference does not vary, no test is possible: p is 1 if the difference is zero, and None
    otherwise.

    >>> test = paired([1.0, 2.0, 3.0], [2.0, 4.0, 4.0], lower=True)
    >>> test.wins, round(test.difference, 3), round(test.p, 3)
    (3, -1.333, 0.057)
    """
    a, b = np.asarray(first, dtype=np.float64), np.asarray(second, dtype=np.float64)
    gaps = a - b
    mean = float(gaps.mean())
    wins = int((gaps < 0).sum() if lower else (gaps > 0).sum())
    better = mean < 0 if lower else mean > 0
    dust = _DUST * float(max(np.abs(a).max(), np.abs(b).max()))
    if gaps.std() > dust:
        test = stats.ttest_rel(a, b)
        low, high = map(float, test.confidence_interval())
        return Paired(len(gaps), wins, mean, low, high, float(test.pvalue), better)
    if abs(mean) <= dust:
        return Paired(len(gaps), 0, 0.0, 0.0, 0.0, 1.0, better=False)
    return Paired(len(gaps), wins, mean, None, None, None, better)


def holm(values: Sequence[float]) -> list[float]:
    r"""P-values adjusted by Holm: the i-th smallest of m becomes $\max_{j \le i} (m - j + 1) p_j$.

    If those below a level are rejected, the chance of any false rejection is below that level.

    >>> [round(p, 3) for p in holm([0.01, 0.04, 0.03, 0.005])]
    [0.03, 0.06, 0.06, 0.02]
    """
    adjusted, most = [0.0] * len(values), 0.0
    for place, i in enumerate(sorted(range(len(values)), key=values.__getitem__)):
        most = max(most, min(1.0, (len(values) - place) * values[i]))
        adjusted[i] = most
    return adjusted


@dataclass(frozen=True)
class ComparisonRun:
    """One strategy with one seed: its rows, in the order of labels."""

    strategy: str
    seed: int
    rows: tuple[Row, ...]

    def values(self, metric: str) -> tuple[float, ...] | None:
        """One metric after each round, or None if a value is missing or infinite."""
        values = tuple(float(getattr(row, metric)) for row in self.rows)
        return values if all(map(isfinite, values)) else None


@dataclass(frozen=True)
class Tidy:
    """The runs of one dataset that share its label axis, and what was left out."""

    labels: tuple[int, ...]
    runs: tuple[ComparisonRun, ...]
    notes: tuple[str, ...]


def tidy(rows: Sequence[Row]) -> Tidy:
    """The runs of one dataset; of a run with several numbers of members, the largest.

    The label axis is the one that most runs have (the longest, if several), so that an unfinished
    run neither shortens the others nor counts for too much.
    """
    for name in ("kind", "batch"):
        values = sorted({getattr(row, name) for row in rows})
        if len(values) > 1:
            raise DatasetError(
                f"expected one {name} for the dataset {rows[0].dataset!r}, got {values[0]} and "
                f"{values[1]}; keep them in separate tables"
            )
    grouped: dict[tuple[str, int], dict[int, dict[int, Row]]] = {}
    for row in rows:
        run = grouped.setdefault((row.strategy, row.seed), {})
        run.setdefault(row.members, {})[row.labels] = row
    kept = {key: run[max(run)] for key, run in grouped.items()}
    axes = Counter(tuple(sorted(run)) for run in kept.values())
    labels = max(axes, key=lambda axis: (axes[axis], len(axis)))
    runs = [
        ComparisonRun(strategy, seed, tuple(run[at] for at in labels))
        for (strategy, seed), run in kept.items()
        if set(labels) <= set(run)
    ]
    runs.sort(key=lambda run: run.seed)
    return Tidy(labels, tuple(runs), tuple(_notes(kept, labels)))


def _notes(kept: dict[tuple[str, int], dict[int, Row]], labels: tuple[int, ...]) -> list[str]:
    notes = []
    for (strategy, seed), run in kept.items():
        absent = len(set(labels) - set(run))
        if absent:
            notes.append(
                f"Seed {seed} of {strategy} is left out: it lacks {several(absent, 'round')} of "
                f"{len(labels)}."
            )
    if any(set(run) - set(labels) for run in kept.values()):
        notes.append(
            f"Some runs have rounds that others lack; all are compared from {labels[0]:,} to "
            f"{labels[-1]:,} labels."
        )
    return notes


def summarise(rows: Sequence[Row]) -> Comparison:
    """Curves, areas, ranks and paired tests for each dataset, and the standings over all of them.

    Strategies are paired by seed and compared by the area under their learning curves.

    Parameters
    ----------
    rows : sequence of Row

    Returns
    -------
    Comparison

    Examples
    --------
    >>> rows = [
    ...     Row("yacht", "regression", name, seed, i, 10 + 10 * i, 10, 5, 0, 0, 0, mse=mse - i)
    ...     for name, start in (("evgp", 2.0), ("random", 3.0))
    ...     for seed, mse in enumerate((start, start + 0.5))
    ...     for i in range(2)
    ... ]
    >>> comparison = summarise(rows)
    >>> comparison.strategies, comparison.contests[0].entrants[0].score("mse").mean
    (('evgp', 'random'), 1.75)
    """
    such_as = "evgp.comparison.read_rows(path)"
    for row in instance(rows, "rows of a comparison", Sequence, such_as, error=DatasetError):
        instance(row, "rows of a comparison", Row, such_as, error=DatasetError)
    if not rows:
        raise DatasetError("expected rows of a comparison, got none; run evgp compare first")
    by_dataset: dict[str, list[Row]] = {}
    for row in rows:
        by_dataset.setdefault(row.dataset, []).append(row)
    only_networks = all(row.learner == NETWORK for row in rows)
    contests = [
        contest for own in by_dataset.values() for contest in _contests(own, not only_networks)
    ]
    comparison = Comparison(tuple(contests), ())
    groups: dict[str, list[Contest]] = {}
    for result in contests:
        groups.setdefault(result.learner, []).append(result)
    by_learner = tuple((name, _standings(group)) for name, group in groups.items() if name != MEAN)
    several_learners = by_learner if len(by_learner) > 1 else ()
    return replace(comparison, standings=_standings(comparison.main), by_learner=several_learners)


def _contests(rows: list[Row], named: bool) -> list[Contest]:
    """Return the contest of the mean over learners, if there are several, then that of each."""
    order = [*LEARNERS, *sorted({row.learner for row in rows} - set(LEARNERS))]
    learners = [name for name in order if any(row.learner == name for row in rows)]
    contests = []
    for name in learners:
        shown = LEARNERS.get(name, name) if named else ""
        contests.append(_contest([row for row in rows if row.learner == name], shown))
    if len(learners) < 2:
        return contests
    every = averaged(rows)
    return [_contest(every, f"mean of {len(learners)} learners"), *contests] if every else contests


def averaged(rows: Sequence[Row]) -> list[Row]:
    """Means over the learners of one dataset, for metrics and rounds that all of them have.

    Means of errors are geometric, so that no learner outweighs the others: the ratio of two means
    is the mean ratio. Those of accuracies are plain.

    >>> row = Row("yacht", "regression", "evgp", 0, 0, 10, 10, 5, 0.1, 0.2, 3.0, mse=0.5)
    >>> averaged([row, replace(row, learner="1nn", mse=2.0)])[0].mse
    1.0
    """
    groups: dict[tuple[str, int, int], dict[str, Row]] = {}
    for row in rows:
        group = groups.setdefault((row.strategy, row.seed, row.labels), {})
        if row.learner not in group or row.members > group[row.learner].members:
            group[row.learner] = row
    learners = {row.learner for row in rows}
    means = []
    for group in groups.values():
        if set(group) != learners:
            continue
        own = list(group.values())
        values: dict[str, Any] = {
            name: _over_learners([getattr(row, name) for row in own], measure.lower)
            for name, measure in MEASURES.items()
        }
        values["train_seconds"] = sum(row.train_seconds for row in own)
        means.append(replace(own[0], learner=MEAN, members=1, train_loss=nan, lr=nan, **values))
    return means


def _over_learners(values: Sequence[float], lower: bool) -> float:
    if not all(map(isfinite, values)):
        return nan
    return prod(values) ** (1 / len(values)) if lower else fmean(values)


def central(contest: Contest) -> tuple[str, ...]:
    """The metrics of a contest that are tested against random."""
    return tuple(metric for metric in contest.metrics if MEASURES[metric].central)


def _contest(rows: list[Row], shown: str = "") -> Contest:
    kept = tidy(rows)
    kind, labels = rows[0].kind, kept.labels
    metrics = [
        name
        for name, measure in MEASURES.items()
        if measure.kind == kind and any(run.values(name) for run in kept.runs)
    ]
    grouped: dict[str, list[ComparisonRun]] = {}
    for run in kept.runs:
        grouped.setdefault(run.strategy, []).append(run)
    tables = {metric: _scores(metric, grouped, labels) for metric in metrics}
    entrants = [
        _entrant(name, runs, [tables[metric][name] for metric in metrics])
        for name, runs in grouped.items()
    ]
    entrants.sort(key=lambda entrant: (entrant.rank is None, entrant.rank, entrant.strategy))
    contest = Contest(
        dataset=rows[0].dataset,
        kind=kind,
        batch=rows[0].batch,
        labels=labels,
        metrics=tuple(metrics),
        entrants=tuple(entrants),
        leads=tuple(
            lead
            for metric in metrics
            if MEASURES[metric].central and (lead := _lead(metric, entrants)) is not None
        ),
        notes=(*kept.notes, *words.notes(entrants)),
        learner=rows[0].learner,
        shown=shown,
    )
    return replace(contest, verdict=words.verdict(contest))


def _scores(
    metric: str, grouped: Mapping[str, list[ComparisonRun]], labels: tuple[int, ...]
) -> dict[str, Score]:
    scores = {name: _score(metric, runs, labels) for name, runs in grouped.items()}
    ranked = [name for name, score in scores.items() if score.mean is not None]
    sign = 1 if MEASURES[metric].lower else -1
    ranks = stats.rankdata([sign * (scores[name].mean or 0.0) for name in ranked])
    for name, rank in zip(ranked, ranks, strict=True):
        scores[name] = replace(scores[name], rank=float(rank))
    return _against_random(metric, scores, labels) if MEASURES[metric].central else scores


def _score(metric: str, runs: Sequence[ComparisonRun], labels: tuple[int, ...]) -> Score:
    whole = {run.seed: values for run in runs if (values := run.values(metric)) is not None}
    if not whole:
        return Score(metric, reason="missing or infinite on each seed")
    curve = _curve(list(whole.values()))
    areas = tuple((seed, area(labels, values)) for seed, values in whole.items())
    heights = [height for _, height in areas]
    return Score(
        metric,
        curve,
        areas,
        mean=fmean(heights),
        deviation=stdev(heights) if len(heights) > 1 else None,
        final=curve.mean[-1],
    )


def _curve(runs: Sequence[Sequence[float]]) -> Curve:
    points = list(zip(*runs, strict=True))
    mean = tuple(fmean(point) for point in points)
    if len(runs) < words.FEW:  # an interval of so few seeds would be wider than the figure
        low, high = tuple(map(min, points)), tuple(map(max, points))
        return Curve(mean, low, high, "range" if len(runs) > 1 else "none")
    bands = [interval(point) for point in points]
    return Curve(mean, tuple(a for a, _ in bands), tuple(b for _, b in bands), "interval")


def _against_random(
    metric: str, scores: dict[str, Score], labels: tuple[int, ...]
) -> dict[str, Score]:
    base = scores.get(RANDOM)
    tested_scores = {name: _tested(score, name, base, labels) for name, score in scores.items()}
    tested = {
        name: score.paired.p
        for name, score in tested_scores.items()
        if score.paired is not None and score.paired.p is not None
    }
    for name, adjusted in zip(tested, holm(list(tested.values())), strict=True):
        test = tested_scores[name].paired
        if test is not None:
            tested_scores[name] = replace(tested_scores[name], paired=replace(test, holm=adjusted))
    return tested_scores


def _tested(score: Score, name: str, base: Score | None, labels: tuple[int, ...]) -> Score:
    if score.reason:
        return score
    if base is None or base.curve is None or score.curve is None:
        return replace(score, reason="there is no random to test against")
    lower = MEASURES[score.metric].lower
    saved = _saved(score.curve, base.curve, labels, lower)
    if name == RANDOM:
        return replace(score, saved=saved, reason="the others are tested against it")
    mine, theirs = dict(score.areas), dict(base.areas)
    common = [seed for seed in mine if seed in theirs]
    if len(common) < 2:
        why = f"{several(len(common), 'seed')} in common with random, and a test needs two"
        return replace(score, saved=saved, reason=why)
    test = paired([mine[s] for s in common], [theirs[s] for s in common], lower=lower)
    why = "" if test.p is not None else "the difference is the same on each seed"
    return replace(score, saved=saved, paired=test, reason=why)


def _saved(curve: Curve, random: Curve, labels: tuple[int, ...], lower: bool) -> Saved:
    target = random.mean[-1]
    at, own = (_reach(labels, line.mean, target, lower) for line in (curve, random))
    end = float(labels[-1]) if own is None else own
    return Saved(at, at == labels[0], end, None if at is None else end - at)


def _reach(
    labels: Sequence[int], heights: Sequence[float], target: float, lower: bool
) -> float | None:
    """Return where a piecewise linear curve first reaches the target."""
    short = [height - target if lower else target - height for height in heights]
    for i, gap in enumerate(short):
        if gap <= 0:
            if i == 0:
                return float(labels[0])
            share = short[i - 1] / (short[i - 1] - gap)
            return labels[i - 1] + share * (labels[i] - labels[i - 1])
    return None


def _entrant(name: str, runs: Sequence[ComparisonRun], scores: Sequence[Score]) -> Entrant:
    every = [row for run in runs for row in run.rows]
    ranks = [s.rank for s in scores if s.rank is not None and MEASURES[s.metric].central]
    return Entrant(
        strategy=name,
        seeds=tuple(run.seed for run in runs),
        members=tuple(run.rows[-1].members for run in runs),
        pick_seconds=_mean([row.pick_seconds for row in every]),
        train_seconds=_mean([row.train_seconds for row in every]),
        train_loss=_mean([run.rows[-1].train_loss for run in runs]),
        scores=tuple(scores),
        rank=fmean(ranks) if ranks else None,
    )


def _mean(values: Sequence[float]) -> float:
    known = [value for value in values if isfinite(value)]
    return fmean(known) if known else nan


def _lead(metric: str, entrants: Sequence[Entrant]) -> Lead | None:
    ranked = [entrant for entrant in entrants if entrant.score(metric).rank is not None]
    ranked.sort(key=lambda entrant: entrant.score(metric).rank or 0.0)
    if not ranked:
        return None
    if len(ranked) == 1:
        return Lead(metric, ranked[0].strategy, None, None)
    best, second = (dict(entrant.score(metric).areas) for entrant in ranked[:2])
    common = [seed for seed in best if seed in second]
    test = None
    if len(common) > 1:
        lower = MEASURES[metric].lower
        test = paired([best[s] for s in common], [second[s] for s in common], lower=lower)
    return Lead(metric, ranked[0].strategy, ranked[1].strategy, test)


def _standings(contests: Sequence[Contest]) -> tuple[Standing, ...]:
    parts: dict[str, list[Entrant]] = {}
    for contest in contests:
        for entrant in contest.entrants:
            parts.setdefault(entrant.strategy, []).append(entrant)
    standings = []
    for name, entrants in parts.items():
        ranks = [entrant.rank for entrant in entrants if entrant.rank is not None]
        tests = [
            score.paired.verdict for entrant in entrants for score in entrant.scores if score.paired
        ]
        standings.append(
            Standing(
                strategy=name,
                rank=fmean(ranks) if ranks else None,
                datasets=len(entrants),
                better=tests.count("better"),
                worse=tests.count("worse"),
                tested=len(tests),
            )
        )
    return tuple(
        sorted(
            standings, key=lambda entrant: (entrant.rank is None, entrant.rank, entrant.strategy)
        )
    )
