"""Estimates from the labels so far: the value of each row's label, and whether more will help."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from evgp._defaults import NOISE
from evgp.architectures import losses
from evgp.architectures.cross_validation import split
from evgp.criteria import ExpectedVariance
from evgp.kernels import Kernel
from evgp.labelling.campaign.campaign import Campaign
from evgp.labelling.campaign.state import State
from evgp.pool import Pool
from evgp.posterior import condition

_MAX_TEST_ROWS = 2_000  # rows over which the variance is averaged
_MAX_KNOWN_ROWS = 1_000


def scores(campaign: Campaign, rows: Sequence[int]) -> list[float]:
    r"""The gain of each row over the mean prior variance, from 0 to 1.

    For a picked row it is the gain with which it was picked, given all picks before it. For another
    it is the gain that its label would have now, given all labelled and waiting rows,
    $\frac1m\sum_t \mathrm{cov}(x,t)^2/(\mathrm{var}(x)+s)$. Pools of more than 2,000 rows are
    measured on 2,000 of them, given the last 1,000 rows. Free for picked rows, else
    O(1,000² 2,000).
    """
    state = campaign.state
    known = {
        row: max(0.0, gain) / batch.prior
        for batch in state.rounds
        for row, gain in zip(batch.rows, batch.gains, strict=True)
    }
    others = sorted({row for row in rows if row not in known})
    if others:
        excluded = {*others, *state.passed}
        observed = [row for row in {**known, **state.verdicts} if row not in excluded]
        gains = _gains(campaign, others, observed[-_MAX_KNOWN_ROWS:])
        known |= zip(others, gains, strict=True)
    return [min(1.0, known[row]) for row in rows]


def _gains(campaign: Campaign, rows: Sequence[int], observed: Sequence[int]) -> list[float]:
    tested = np.random.default_rng(0).permutation(campaign.created.rows)[:_MAX_TEST_ROWS]
    used = np.unique(np.concatenate([tested, np.array([*observed, *rows], dtype=np.int64)]))
    points, kernel = campaign.points(used.tolist()), campaign.kernel()
    test, labelled, candidates = (
        torch.from_numpy(np.searchsorted(used, part)) for part in (np.sort(tested), observed, rows)
    )
    pool = Pool(points, test=test, labelled=labelled)
    prior = float(kernel.diag(points[test]).mean())
    posterior = condition(kernel, pool, candidates, noise=NOISE * prior)
    gains = ExpectedVariance().gains(posterior, torch.arange(len(rows)))
    return [max(0.0, float(gain)) / prior for gain in gains]


_MIN_LABELS = 12  # with fewer labels, cross-validation is meaningless
_FOLDS = 50
_SMALL_GAIN = 0.02  # share of the prior variance, by a whole round
_SMALL_IMPROVEMENT = 0.05  # share of the error, by the second half of the labels


@dataclass(frozen=True)
class Hint:
    """Whether more labels will help.

    `left` is the share of the prior variance that is left once all picks are labelled, and `last`
    the share that the last round removes. `error` is the cross-validated squared error as a share
    of the label variance, and `half` the same with only the first half of the labels.
    """

    left: float | None = None
    last: float | None = None
    error: float | None = None
    half: float | None = None

    @property
    def words(self) -> str:
        """The hint in a few sentences."""
        if self.left is None or self.last is None:
            return "No rows have been picked yet."
        variance = (
            f"When all picked rows are labelled, {100 * self.left:.0f} % of the prior variance is "
            f"left; the last round removes {100 * self.last:.1f} %."
        )
        if self.error is None or self.half is None:
            return variance
        worse = ", worse than predicting the mean" if self.error > 1 else ""
        error = (
            f"Cross-validated error: {100 * self.error:.0f} % of the label variance{worse} "
            f"({100 * self.half:.0f} % with the first half of the labels)."
        )
        return f"{variance} {error} {self._advice(self.last, self.error, self.half)}"

    @staticmethod
    def _advice(last: float, error: float, half: float) -> str:
        if error <= (1 - _SMALL_IMPROVEMENT) * half:
            return "More labels still help."
        if last < _SMALL_GAIN:
            return "More labels will probably help little."
        return "More labels have not helped so far."


def hint(campaign: Campaign) -> Hint:
    """The hint for the labels so far; O(f l³) for l labels (at most 1,000) and f folds."""
    state = campaign.state
    if not state.rounds:
        return Hint()
    left, last = variance_left(state)
    rows, y = campaign.targets()
    if len(rows) < _MIN_LABELS or len(torch.unique(y)) < 2:
        return Hint(left, last)
    rows, y = rows[:1000], y[:1000]
    targets = y[:, None].double()
    if campaign.created.classes:
        hot = torch.nn.functional.one_hot(y, len(campaign.created.classes)).double()
        targets = hot - hot.mean(0)
    x, kernel = campaign.points(rows), campaign.kernel()
    errors = [_error(kernel, x[:count], targets[:count]) for count in (len(rows), len(rows) // 2)]
    return Hint(left, last, *errors)


def variance_left(state: State) -> tuple[float, float]:
    """The shares of the prior variance left after all picks and removed by the last round."""
    last, worth, passed = state.rounds[-1], state.worth, {*state.passed}
    removed = sum(worth[row] for row in last.rows if row not in passed)
    return last.start / last.prior - removed, removed


def _error(kernel: Kernel, x: Float[Tensor, " l *d"], y: Float[Tensor, "l o"]) -> float:
    held_out = max(1, round(0.2 * len(x)))
    loss = losses(kernel, x, y, split(len(x), _FOLDS, 0), held_out)
    scale = float((y - y.mean(0)).square().sum(1).mean())
    return float(loss.fit.mean()) / scale if scale > 0 else 0.0
