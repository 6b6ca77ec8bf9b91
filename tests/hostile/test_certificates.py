"""What is certified, against every subset of small pools, and against points from anywhere."""

from itertools import combinations
from pathlib import Path

import numpy as np
import pytest

import evgp
from evgp import bounds
from tests.hostile import brute
from tests.hostile.compare import MARGIN
from tests.hostile.conftest import Tally
from tests.hostile.drawn import problem
from tests.hostile.problems import Problem, answered, modelled, points_of

Array = np.ndarray
SEARCHES = ("exact", "lazy", "stochastic", "exchange", "sharded", "two-rounds")


class Rivals:
    """The least mean variance that any subset of a size leaves, by a solve for every subset. With
    prices, also the least for subsets of a budget.
    """

    def __init__(self, model: brute.Model, free: list[int], prices: Array | None = None) -> None:
        self.best, self.off, self.tried = dict[int, float](), dict[int, float](), 0
        self.by_money: dict[int, float] = {}
        for j in range(len(free) + 1):
            sets = np.array([[*rows] for rows in combinations(free, j)], int)
            left, off = (part @ model.weights for part in model.variances(sets))
            self.best[j], self.off[j] = float(left.min()), MARGIN * float(off.max())
            self.tried += len(sets)
            if prices is not None:
                costs = prices[sets].sum(1)
                for cost in np.unique(costs):
                    least = min(self.by_money.get(int(cost), np.inf), left[costs == cost].min())
                    self.by_money[int(cost)] = float(least)

    def for_money(self, cost: int) -> float:
        """The least that any subset of at most this cost leaves."""
        return min(left for price, left in self.by_money.items() if price <= cost)


def promises(asked: Problem, model: brute.Model, made: evgp.Selection, rivals: Rivals) -> list[str]:
    """What the certificate says that is not so."""
    got, rows, wrong = made.certificate, made.indices.tolist(), []
    start, rounding = rivals.best[0], 1e-12 * model.prior
    left = [start, *(model.mean(rows[:j])[0] for j in range(1, len(rows) + 1))]
    for j in range(1, len(rows) + 1):
        best, off = rivals.best[j], rivals.off[j] + rounding
        if asked.prices is not None:
            best = rivals.for_money(asked.money().cost(rows[:j]))
            off = max(rivals.off.values()) + rounding
        if got.lowest[j - 1] > best + off:
            wrong.append(f"a floor of {got.lowest[j - 1]!r} for {j}, though {best!r} can be had")
        if got.share[j - 1] * (start - best) > start - left[j] + 2 * off:
            wrong.append(f"a share of {got.share[j - 1]!r} of {start - best!r} by {left[j]!r}")
    for part, (low, high) in got.needed.items():
        goal = (1 - part) * model.prior
        off = max(rivals.off[j] for j in range(len(rows) + 1)) + rounding
        able = [j for j, best in rivals.best.items() if best <= goal - rivals.off[j] - rounding]
        if able and low > able[0]:
            wrong.append(f"at least {low} for {part}, though {able[0]} can do it")
        if high is not None and left[high] > goal + off:
            wrong.append(f"at most {high} for {part}, which leave {left[high]!r} of {goal!r}")
        if high is not None and low > high:
            wrong.append(f"from {low} to {high} for {part}")
        if high is None and left[-1] <= goal - off:
            wrong.append(f"more than {len(rows)} for {part}, which leave {left[-1]!r} of {goal!r}")
    return wrong


def small(rng: np.random.Generator, search: str) -> tuple[Problem, brute.Model]:
    """A problem of six to eleven rows to pick from that has one answer."""
    while True:
        asked = problem(rng, "ev", search, most=11)
        fits = asked.door != "greedy" and len(asked.free()) > 5
        model = modelled(asked) if fits else None
        if model is not None and model.prior > 0:
            return asked, model


@pytest.mark.parametrize("search", SEARCHES)
def test_no_subset_beats_what_is_certified(search, rng, tally: Tally, tmp_path: Path) -> None:
    rng = np.random.default_rng([rng.integers(2**32), SEARCHES.index(search)])
    subsets = selections = priced = 0
    while subsets < 15_000:
        asked, model = small(rng, search)
        result = answered(asked, tmp_path).made
        rivals = Rivals(model, asked.free(), asked.prices)
        wrong = promises(asked, model, result, rivals)
        assert not wrong, "\n".join([*wrong, f"\n{asked!r}"])
        subsets, selections = subsets + rivals.tried, selections + 1
        priced += asked.prices is not None
    assert priced > 3
    tally("certificates", f"subsets of small pools, {search}", subsets, subsets)
    tally("certificates", "selections, against every subset of their pool", selections, selections)


def test_the_brute_force_of_many_subsets_is_that_of_one(rng, tally: Tally) -> None:
    tried = 0
    for _ in range(20):
        asked, model = small(rng, "exact")
        free = asked.free()
        for j in range(len(free) + 1):
            rows = rng.permutation(free)[:j].tolist()
            at = [*model.known, *rows]
            inner = model.gram[np.ix_(at, at)] + np.diag(model.noise[at])
            cross = model.gram[np.ix_(at, model.test)]
            weights = np.linalg.lstsq(inner, cross, rcond=None)[0]
            own = model.gram.diagonal()[model.test] - (cross * weights).sum(0)
            want = model.weights @ (own * model.size[model.test] ** 2 + model.rest[model.test])
            got, off = model.mean(rows)
            assert got == pytest.approx(want, abs=MARGIN * off + 1e-9 * model.prior)
            tried += 1
    tally("certificates", "sets, each by a direct solve", tried, tried)


def elsewhere(rng: np.random.Generator, asked: Problem) -> Array:
    """Points from anywhere: like the pool, far away, and the very test points."""
    pool, _, test = points_of(asked)
    like = pool[rng.integers(len(pool), size=8)]
    subset = rng.normal(size=like.shape)
    matter = (test if len(test) else pool)[rng.integers(len(test) or len(pool), size=6)]
    return np.concatenate([like + subset, 30 * subset, matter])


def test_no_points_from_anywhere_beat_what_is_certified(rng, tally: Tally, tmp_path) -> None:
    tried = 0
    while tried < 15_000:
        asked, plain = small(rng, str(rng.choice(("exact", "exchange"))))
        extra = elsewhere(rng, asked)
        model = modelled(asked, extra)
        if model is None or asked.prices is not None:
            continue
        result = answered(asked, tmp_path).made
        rows = np.arange(len(model.gram) - len(extra), len(model.gram))
        for j in range(1, len(result) + 1):
            sets = np.array([rng.permutation(rows)[:j] for _ in range(100)])
            left, off = model.variances(sets)
            most = (left + MARGIN * off + 1e-12 * model.prior) @ plain.weights
            assert (result.certificate.lowest[j - 1] <= most).all(), repr(asked)
            tried += len(sets)
    tally("certificates", "labels at arbitrary points", tried, tried)


def test_nor_where_eigenvalues_are_bounded_and_not_computed(
    rng, tally: Tally, tmp_path, monkeypatch
) -> None:
    """Beyond 3,072 test points, here beyond none: a few of 150 directions are looked at."""
    monkeypatch.setattr(bounds, "DENSE", 0)
    tried = 0
    for _ in range(15):
        asked, _ = small(rng, "exact")
        d = asked.x.reshape(len(asked.x), -1).shape[1]
        test = rng.normal(size=(150, d)).reshape(150, *asked.x.shape[1:])
        weights = None if asked.weights is None else rng.exponential(size=150)
        changed = {"x_test": test, "test": None, "weights": weights, "thin": None, "features": None,
                   "method": "auto"}  # fmt: skip
        asked = Problem(**{**asked.__dict__, **changed})
        model = modelled(asked)
        result = answered(asked, tmp_path).made
        rivals = Rivals(model, asked.free(), asked.prices)
        wrong = promises(asked, model, result, rivals)
        assert not wrong, "\n".join([*wrong, f"\n{asked!r}"])
        tried += rivals.tried
    tally("certificates", "subsets, with bounded eigenvalues", tried, tried)


def test_no_subset_beats_what_an_audit_certifies(rng, tally: Tally) -> None:
    """The labels that an audit proposes come with a certificate for its own test rows."""
    tried = 0
    for _ in range(10):
        x = rng.normal(size=(int(rng.integers(14, 20)), int(rng.integers(1, 4))))
        train, pool, test = x[:4], x[4:12], x[12:]
        result = evgp.audit(train, test, pool=pool, k=3, noise=float(10 ** rng.uniform(-6, -1)))
        outcome = result.further
        scaled = brute.standardised(train, pool, test)
        asked = Problem(
            x=scaled[1], x_test=scaled[2], x_labelled=scaled[0], k=3, standardise=False,
            noise=outcome.settings["noise"],
        )  # fmt: skip
        model = modelled(asked)
        rivals = Rivals(model, asked.free())
        wrong = promises(asked, model, outcome, rivals)
        assert not wrong, "\n".join([*wrong, f"\n{asked!r}"])
        tried += rivals.tried
    tally("certificates", "subsets of the pools of audits", tried, tried)
