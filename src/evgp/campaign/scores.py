"""What each row is worth: the share of the variance that its label takes away."""

from collections.abc import Sequence

import numpy as np
import torch

from evgp.campaign.campaign import Campaign
from evgp.campaign.source import scale_of
from evgp.criteria import ExpectedVariance
from evgp.kernels import NTK
from evgp.pool import Pool
from evgp.posterior import condition

_MOST_TESTED = 2_000  # rows over which the variance of what was not picked is measured
_MOST_KNOWN = 1_000
_NOISE = 1e-6  # of the mean prior variance, as in `pick`


def scores(campaign: Campaign, rows: Sequence[int]) -> list[float]:
    r"""The gain of each row over the mean prior variance, from 0 to 1.

    For a picked row it is the gain with which it was picked, given all picks before it; for another
    the gain that its label would have now, $\frac1m\sum_t \mathrm{cov}(x,t)^2/(\mathrm{var}(x)+s)$,
    given the rows that are labelled or wait. Pools of more than 2,000 rows are measured on 2,000 of
    them, given the last 1,000 rows. Costs nothing for picked rows, else O(1,000² 2,000).
    """
    state = campaign.state
    known = {
        row: max(0.0, gain) / one.prior
        for one in state.rounds
        for row, gain in zip(one.rows, one.gains, strict=True)
    }
    other = sorted({row for row in rows if row not in known})
    if other:
        aside = {*other, *state.passed}
        given = [row for row in {**known, **state.verdicts} if row not in aside]
        known |= zip(other, _gains(campaign, other, given[-_MOST_KNOWN:]), strict=True)
    return [min(1.0, known[row]) for row in rows]


def _gains(campaign: Campaign, rows: Sequence[int], given: Sequence[int]) -> list[float]:
    x = campaign.x()
    tested = np.random.default_rng(0).permutation(len(x))[:_MOST_TESTED]
    used = np.unique(np.concatenate([tested, np.array([*given, *rows], dtype=np.int64)]))
    some = np.array(x[used], dtype=np.float64)
    if campaign.source.images is not None:
        some, _ = scale_of(some).encode(some, 0, str(campaign.source.path))
    points = torch.from_numpy(some)
    _, network = campaign.network()
    kernel = NTK(network)
    at = [torch.from_numpy(np.searchsorted(used, one)) for one in (np.sort(tested), given, rows)]
    pool = Pool(points, test=at[0], labelled=at[1])
    prior = float(kernel.diag(points[at[0]]).mean())
    made = condition(kernel, pool, at[2], noise=_NOISE * prior)
    gains = ExpectedVariance().gains(made, torch.arange(len(rows)))
    return [max(0.0, float(gain)) / prior for gain in gains]
