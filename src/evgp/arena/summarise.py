"""From tidy rows to everything a comparison says."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import isfinite
from statistics import fmean, stdev

from scipy import stats

from evgp._checks import instance
from evgp._errors import DatasetError
from evgp.arena import words
from evgp.arena.paired import holm, interval, paired
from evgp.arena.row import MEASURES, Row
from evgp.arena.summary import (
    RANDOM,
    Comparison,
    Contest,
    Curve,
    Entrant,
    Lead,
    Saved,
    Score,
    Standing,
)
from evgp.arena.tidy import ComparisonRun, tidy
from evgp.metrics import area
from evgp.report.words import several

_ONE_ROUND = "one round only, and an area needs two"


def summarise(rows: Sequence[Row]) -> Comparison:
    """Curves, areas, ranks and paired tests for each dataset, and the standings over all of them.

    Strategies are paired by seed and compared by the area under their learning curves.

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
    such_as = "evgp.arena.read_rows(path)"
    for row in instance(rows, "rows of a comparison", Sequence, such_as, error=DatasetError):
        instance(row, "rows of a comparison", Row, such_as, error=DatasetError)
    if not rows:
        raise DatasetError("expected rows of a comparison, got none; run evgp compare first")
    names = dict.fromkeys(row.dataset for row in rows)
    contests = [_contest([row for row in rows if row.dataset == name]) for name in names]
    return Comparison(tuple(contests), _standings(contests))


def central(contest: Contest) -> tuple[str, ...]:
    """The metrics of a contest that are tested against random."""
    return tuple(metric for metric in contest.metrics if MEASURES[metric].central)


def _contest(rows: list[Row]) -> Contest:
    found = tidy(rows)
    kind, labels = rows[0].kind, found.labels
    metrics = [
        name
        for name, measure in MEASURES.items()
        if measure.kind == kind and any(run.values(name) for run in found.runs)
    ]
    grouped: dict[str, list[ComparisonRun]] = {}
    for run in found.runs:
        grouped.setdefault(run.strategy, []).append(run)
    tables = {metric: _scores(metric, grouped, labels) for metric in metrics}
    entrants = [
        _entrant(name, runs, [tables[metric][name] for metric in metrics])
        for name, runs in grouped.items()
    ]
    entrants.sort(key=lambda one: (one.rank is None, one.rank, one.strategy))
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
        notes=(*found.notes, *words.notes(entrants)),
    )
    return replace(contest, verdict=words.verdict(contest))


def _scores(
    metric: str, grouped: Mapping[str, list[ComparisonRun]], labels: tuple[int, ...]
) -> dict[str, Score]:
    made = {name: _score(metric, runs, labels) for name, runs in grouped.items()}
    ranked = [name for name, score in made.items() if score.mean is not None]
    sign = 1 if MEASURES[metric].lower else -1
    ranks = stats.rankdata([sign * (made[name].mean or 0.0) for name in ranked])
    for name, rank in zip(ranked, ranks, strict=True):
        made[name] = replace(made[name], rank=float(rank))
    return _against_random(metric, made, labels) if MEASURES[metric].central else made


def _score(metric: str, runs: Sequence[ComparisonRun], labels: tuple[int, ...]) -> Score:
    whole = {run.seed: values for run in runs if (values := run.values(metric)) is not None}
    if not whole:
        return Score(metric, reason="missing or infinite on each seed")
    curve = _curve(list(whole.values()))
    if len(labels) < 2:
        return Score(metric, curve, final=curve.mean[-1], reason=_ONE_ROUND)
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
    if len(runs) < words.FEW:  # an interval of so few would be wider than the figure
        low, high = tuple(map(min, points)), tuple(map(max, points))
        return Curve(mean, low, high, "range" if len(runs) > 1 else "none")
    bands = [interval(point) for point in points]
    return Curve(mean, tuple(a for a, _ in bands), tuple(b for _, b in bands), "interval")


def _against_random(
    metric: str, scores: dict[str, Score], labels: tuple[int, ...]
) -> dict[str, Score]:
    base = scores.get(RANDOM)
    made = {name: _tested(score, name, base, labels) for name, score in scores.items()}
    tested = {
        name: score.paired.p
        for name, score in made.items()
        if score.paired is not None and score.paired.p is not None
    }
    for name, adjusted in zip(tested, holm(list(tested.values())), strict=True):
        test = made[name].paired
        if test is not None:
            made[name] = replace(made[name], paired=replace(test, holm=adjusted))
    return made


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
    at, own = (_reach(labels, made.mean, target, lower) for made in (curve, random))
    end = float(labels[-1]) if own is None else own
    return Saved(at, at == labels[0], end, None if at is None else end - at)


def _reach(
    labels: Sequence[int], heights: Sequence[float], target: float, lower: bool
) -> float | None:
    """Where a broken line first is as good as the target."""
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
    return fmean(known) if known else float("nan")


def _lead(metric: str, entrants: Sequence[Entrant]) -> Lead | None:
    ranked = [one for one in entrants if one.score(metric).rank is not None]
    ranked.sort(key=lambda one: one.score(metric).rank or 0.0)
    if not ranked:
        return None
    if len(ranked) == 1:
        return Lead(metric, ranked[0].strategy, None, None)
    best, second = (dict(one.score(metric).areas) for one in ranked[:2])
    common = [seed for seed in best if seed in second]
    test = None
    if len(common) > 1:
        lower = MEASURES[metric].lower
        test = paired([best[s] for s in common], [second[s] for s in common], lower=lower)
    return Lead(metric, ranked[0].strategy, ranked[1].strategy, test)


def _standings(contests: Sequence[Contest]) -> tuple[Standing, ...]:
    parts: dict[str, list[Entrant]] = {}
    for contest in contests:
        for one in contest.entrants:
            parts.setdefault(one.strategy, []).append(one)
    made = []
    for name, ran in parts.items():
        ranks = [one.rank for one in ran if one.rank is not None]
        tests = [score.paired.verdict for one in ran for score in one.scores if score.paired]
        made.append(
            Standing(
                strategy=name,
                rank=fmean(ranks) if ranks else None,
                datasets=len(ran),
                better=tests.count("better"),
                worse=tests.count("worse"),
                tested=len(tests),
            )
        )
    return tuple(sorted(made, key=lambda one: (one.rank is None, one.rank, one.strategy)))
