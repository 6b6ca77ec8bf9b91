"""Picks from a pool in files: read into memory where that fits, else over shards."""

import warnings
from dataclasses import dataclass
from pathlib import Path

from evgp._errors import DataWarning, PoolError
from evgp._typing import ArrayLike
from evgp.datasets import Samples, Streamed
from evgp.greedy import Progress
from evgp.pool import Selection
from evgp.strategies import checks
from evgp.strategies.evgp import most_picks
from evgp.strategies.held import Asked
from evgp.strategies.plan import Plan
from evgp.strategies.rules import Rules
from evgp.strategies.stream import Place, fit, opened, pick_sharded, whole


@dataclass(frozen=True, eq=False)
class Filed:
    """A pool in files, and what is asked of it."""

    pool: Streamed
    test: Streamed | None = None
    outside: Streamed | None = None
    labelled: ArrayLike | None = None
    candidates: ArrayLike | None = None
    costs: ArrayLike | None = None
    budget: float | None = None

    def pick(self, k: int | None, rules: Rules, progress: Progress) -> Selection:
        """Plan, read, pick."""
        n = len(self.pool)
        known = checks.rows_of(self.labelled, "labelled", n)
        some = None
        if self.candidates is not None:
            some = checks.free_rows(self.candidates, known, n)
        count = n - len(known) if some is None else len(some)
        prices, money = checks.money(self.costs, self.budget, n)
        rated = prices
        if prices is not None:
            rated = prices[checks.free_rows(None, known, n) if some is None else some]
        labelled = len(known) + (0 if self.outside is None else len(self.outside))

        def planned(shape: tuple[int, ...]) -> Plan:
            return rules.plan(
                n,
                shape,
                most_picks(k, count, rated, money),
                m=None if self.test is None else len(self.test),
                labelled=labelled,
                held=False,
            )

        # Once before anything is read, and once with the columns that words become.
        fitted = fit(self.pool, rules, planned(self.pool.shape), progress)
        plan = planned(fitted.shape)

        def picks() -> Selection:
            for note in fitted.notes:
                warnings.warn(note, DataWarning, stacklevel=2)
            test = None if self.test is None else fitted.like(self.test)
            outside = None if self.outside is None else fitted.like(self.outside)
            if plan.method == "sharded":
                return pick_sharded(
                    fitted,
                    k,
                    rules,
                    plan,
                    test=test,
                    outside=outside,
                    labelled=known,
                    candidates=some,
                    prices=prices,
                    budget=money,
                    progress=progress,
                )
            free = checks.free_rows(self.candidates, known, n)
            asked = Asked(
                whole(fitted),
                None if test is None else whole(test),
                None if outside is None else whole(outside),
                None,
                known,
                free,
                prices,
                money,
            )
            return asked.pick(k, rules, plan, progress)

        return rules.make(plan, picks, labelled=labelled, candidates=count)


def filed(one: ArrayLike | Samples | Place | None, name: str) -> Streamed | None:
    """Further points of a pool in files, which are in files as well."""
    if one is None:
        return None
    if isinstance(one, str | Path | Streamed):
        return opened(one)
    raise PoolError(f"expected {name} as a path, as x is one; got {type(one).__name__}")
