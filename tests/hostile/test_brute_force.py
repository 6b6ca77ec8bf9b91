"""Everything that evgp computes on small problems, against an independent brute force."""

import numpy as np
import pytest

from tests.hostile.compare import check
from tests.hostile.conftest import Tally
from tests.hostile.drawn import CRITERIA, ON_FEATURES, SEARCHES, problem

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
