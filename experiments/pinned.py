"""EV-GP as the recorded studies ran it, whatever the package's defaults become.

A recorded cell is never run again, so its settings must not follow a default: search and noise are
set here, and the studies' data is scaled by their own loaders (`experiments.data`).
"""

from typing import Any

from evgp.comparison import Protocol
from evgp.criteria import ExpectedVariance
from evgp.kernels import Kernel
from evgp.search import Exact, Greedy
from evgp.strategies import EVGP

NOISE = 1e-6  # of the mean prior variance over the test points
CHOICE_NOISE = 1e-4  # of `evgp.choose`
SEARCH: dict[str, Any] = {"search": Exact(), "noise": NOISE}  # of a `Setting`


def evgp(kernel: Kernel, search: Greedy = Exact()) -> EVGP:
    """The strategy with all its settings."""
    return EVGP(kernel, ExpectedVariance(), search, noise=NOISE)


def protocol(**settings: Any) -> Protocol:
    """The protocol of a contest with all settings of EV-GP."""
    return Protocol(**settings, search="exact", noise=NOISE, scale="columns")
