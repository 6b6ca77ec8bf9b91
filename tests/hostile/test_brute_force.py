"""Everything that evgp computes on small problems, against an independent brute force."""

import warnings

import numpy as np
import pytest

import evgp
from evgp.selection.plan import stepwise
from tests.hostile import brute
from tests.hostile.compare import MARGIN, Faults, check
from tests.hostile.conftest import Tally
from tests.hostile.drawn import CRITERIA, ON_FEATURES, SEARCHES, problem
from tests.hostile.problems import arguments, modelled

GROUPS = [
    (criterion, search)
    for criterion in CRITERIA
    for search in (*SEARCHES, *ON_FEATURES)
    if search in SEARCHES or criterion in ("ev", "linearised")
]
EACH = 36


@pytest.mark.parametrize(("criterion", "search"), GROUPS)
def test_picks_gains_variances_and_bounds(criterion, search, rng, tally: Tally, tmp_path) -> None:
    rng = np.random.default_rng([rng.integers(2**32), GROUPS.index((criterion, search))])
    limits: list[float] = []
    while len(limits) < EACH:
        asked = problem(rng, criterion, search)
        faults = check(asked, tmp_path)
        if faults is None:
            continue
        lines = "\n".join(faults)
        assert not faults, f"{lines}\n\ncheck({asked!r}, tmp_path)"
        limits.append(faults.limit)
    # Some are all but singular and say little; most are looked at closely.
    assert np.mean(np.array(limits) < 1e-5) > 0.25
    tried = len(limits)
    tally("brute force", f"{criterion}, {search}", tried, tried)


@pytest.mark.parametrize("criterion", CRITERIA)
def test_gains_of_all_rows_one_pick_at_a_time(criterion, rng, tally: Tally, tmp_path) -> None:
    rng = np.random.default_rng([rng.integers(2**32), CRITERIA.index(criterion)])
    tried = 0
    while tried < 15:
        asked = problem(rng, criterion, "exact")
        fits = asked.door == "pick" and asked.features is None and asked.prices is None
        model = modelled(asked) if fits else None
        if model is None or not model.prior > 0:
            continue
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", evgp.EvgpWarning)
            plan = evgp.plan(asked.x, asked.k, **arguments(asked, tmp_path))
            picks, gains = stepwise(plan)
        faults, free = Faults(), np.array(asked.free())
        for j, row in enumerate(picks.tolist()):
            left = ~np.isin(free, picks[:j])
            want, off = brute.gains(model, asked.criterion, picks[:j].tolist(), free[left])
            faults.near(f"gains before pick {j}", gains[j, left], want, off)
            near = brute.rounding(model, asked.criterion)
            at = int(np.flatnonzero(free[left] == row)[0])
            wrong = brute.is_wrong(want, MARGIN * off, at, near)
            faults.right(f"pick {j}, row {row}: {wrong}", not wrong)
            faults.right("gains of rows that are picked", bool(np.isnan(gains[j, ~left]).all()))
        lines = "\n".join(faults)
        assert not faults, f"{lines}\n\n{asked!r}"
        tried += 1
    tally("brute force", f"{criterion}, gains of all rows at every pick", tried, tried)
