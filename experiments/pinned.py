"""EV-GP as the recorded studies ran it, whatever the package's defaults become.

A recorded cell is never run again, so what it ran with must not follow a default: search and noise
are given here, and the studies' data is scaled by their own loaders (`experiments.data`).
"""

from typing import Any

from evgp.arena import Terms
from evgp.criteria import ExpectedVariance
from evgp.kernels import Kernel
from evgp.search import Exact, Greedy
from evgp.strategies import EVGP

NOISE = 1e-6  # of the mean prior variance over the test points
CHOICE_NOISE = 1e-4  # of `evgp.choose`
SEARCH: dict[str, Any] = {"search": Exact(), "noise": NOISE}  # of a `Setting`


def evgp(kernel: Kernel, search: Greedy = Exact()) -> EVGP:
    """The strategy with every setting given."""
    return EVGP(kernel, ExpectedVariance(), search, noise=NOISE)


def terms(**given: Any) -> Terms:
    """The terms of a contest with every setting of EV-GP given."""
    return Terms(**given, search="exact", noise=NOISE)
