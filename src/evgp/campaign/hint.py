"""Is it worth going on? What the picks promise, and what the labels show."""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from evgp.architectures import losses
from evgp.architectures.folds import split
from evgp.campaign.campaign import Campaign
from evgp.campaign.state import State
from evgp.nets import Network

_LEAST = 12  # labels, before errors on some of them say anything
_FOLDS = 50
_LITTLE = 0.02  # of the prior variance, by a whole round
_FLAT = 0.05  # of the error, by the second half of the labels


@dataclass(frozen=True)
class Hint:
    """Shares of the variance before any label: what is left, and what the last round took away.

    `error` is the squared error that a network can expect on labels left out, in units of the
    labels' variance, and `half` the same with the first half of the labels alone.
    """

    left: float | None = None
    last: float | None = None
    error: float | None = None
    half: float | None = None

    @property
    def words(self) -> str:
        """In one or two sentences."""
        if self.left is None or self.last is None:
            return "No round yet: ask for the first picks."
        said = (
            f"Once all that waits is labelled, {100 * self.left:.0f} % of the variance is left; "
            f"the last round takes {100 * self.last:.1f} %."
        )
        if self.error is None or self.half is None:
            return said
        said += (
            f" On labels left out a network can expect {100 * self.error:.0f} % of their variance "
            f"as error; with the first half of the labels it was {100 * self.half:.0f} %."
        )
        flat = self.error > (1 - _FLAT) * self.half
        if self.last < _LITTLE and flat:
            return said + " Both have become flat: further labels will help little."
        if flat:
            return said + " The error has become flat, though the picks promise more."
        return said + " Labels still help."


def hint(campaign: Campaign, *, seed: int = 0) -> Hint:
    """What there is to say now. O(f l³) for l labels and f folds, at most 1,000 labels."""
    state = campaign.state
    if not state.rounds:
        return Hint()
    left, took = promised(state)
    rows, y = campaign.targets()
    if len(rows) < _LEAST or len(torch.unique(y)) < 2:
        return Hint(left, took)
    rows, y = rows[:1000], y[:1000]
    goals = y[:, None].double()
    if campaign.created.classes:
        hot = torch.nn.functional.one_hot(y, len(campaign.created.classes)).double()
        goals = hot - hot.mean(0)
    x = campaign.points(rows)
    _, network = campaign.network()
    found = [
        _error(network, x[:count], goals[:count], seed) for count in (len(rows), len(rows) // 2)
    ]
    return Hint(left, took, *found)


def promised(state: State) -> tuple[float, float]:
    """What is left once all that waits is labelled, and what the last round takes; O(picks)."""
    last, worth, passed = state.rounds[-1], state.worth, {*state.passed}
    took = sum(worth[row] for row in last.rows if row not in passed)
    return last.start / last.prior - took, took


def _error(network: Network, x: Float[Tensor, "l d"], y: Float[Tensor, "l o"], seed: int) -> float:
    out = max(1, round(0.2 * len(x)))
    made = losses(network, x, y, split(len(x), _FOLDS, seed), out)
    scale = float((y - y.mean(0)).square().sum(1).mean())
    return float(made.fit.mean()) / scale if scale > 0 else 0.0
