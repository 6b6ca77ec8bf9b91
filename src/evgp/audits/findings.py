"""What an audit finds, as arrays."""

from dataclasses import dataclass, field
from math import nan

import numpy as np
from jaxtyping import Float, Int

from evgp._checks import integer
from evgp._repr import html_card
from evgp.pool import Selection

# A row is redundant if it does less than this part of an even share of the variance that is left.
REDUNDANT = 0.1


@dataclass(frozen=True, eq=False, repr=False)
class Audit:
    """What a training set leaves open at the test points.

    `deviation` is how much networks of infinite width, trained on the set from random
    initialisations, will differ at each test row; `ceiling` the NTKGP's deviation, which is never
    less, and `prior` the mean variance of both before any label. `influence` is how much the mean
    variance of the NTKGP would rise without each training row.

    With a pool, `further` are the labels that would help most, `after` the mean variance of trained
    networks once the first, the first two, ... of them are there, and `chance` the same for labels
    drawn at random, a row for each draw. `random` are the mean variances that random sets of the
    training set's size leave, drawn from training set and pool together.
    """

    deviation: Float[np.ndarray, " m"]
    ceiling: Float[np.ndarray, " m"]
    prior: tuple[float, float]
    influence: Float[np.ndarray, " n"]
    random: Float[np.ndarray, " r"] = field(default_factory=lambda: np.empty(0))
    further: Selection | None = None
    after: Float[np.ndarray, " k"] = field(default_factory=lambda: np.empty(0))
    chance: Float[np.ndarray, "s k"] = field(default_factory=lambda: np.empty((0, 0)))

    @property
    def variance(self) -> float:
        """Of trained networks, mean over the test points."""
        return float((self.deviation**2).mean())

    @property
    def share(self) -> float:
        """The part of the variance without labels that is left; nan if there was none."""
        return self.variance / self.prior[0] if self.prior[0] > 0 else nan

    @property
    def limit(self) -> float:
        """The influence below which a training row is redundant."""
        return REDUNDANT * float((self.ceiling**2).mean()) / len(self.influence)

    def at_risk(self, k: int = 10) -> Int[np.ndarray, " k"]:
        """The test rows on which networks will differ most, worst first."""
        return np.argsort(-self.deviation, kind="stable")[: integer(k, "k", 0)]

    def matter(self, k: int = 10) -> Int[np.ndarray, " k"]:
        """The training rows that would be missed most, first."""
        return np.argsort(-self.influence, kind="stable")[: integer(k, "k", 0)]

    def redundant(self) -> Int[np.ndarray, " r"]:
        r"""The training rows that would hardly be missed, each taken alone.

        Those whose influence is below $\frac{1}{10} \bar v / n$, with $\bar v$ the mean variance of
        the NTKGP: a tenth of an even share, so that large sets are not redundant by their size.
        """
        return np.flatnonzero(self.influence < self.limit)

    def _repr_html_(self) -> str:
        rows = self.at_risk(10)
        columns = {
            "test row": [str(row) for row in rows],
            "standard deviation of networks": self.deviation[rows].tolist(),
        }
        remarks = [
            f"The test rows on which networks will disagree most, {len(rows)} of "
            f"{len(self.deviation):,}.",
            f"{len(self.redundant()):,} training rows are redundant, each taken alone.",
        ]
        if self.further is not None:
            listed = ", ".join(str(row) for row in self.further.indices[:10])
            more = ", ..." if len(self.further) > 10 else ""
            remarks.append(f"Labels that would help most: rows {listed}{more} of the pool.")
        title = f"{len(self.influence):,} training rows remove {1 - self.share:.0%} of the variance"
        return html_card(title, columns, remarks)

    def __repr__(self) -> str:
        return (
            f"Audit({len(self.influence)} training rows remove {1 - self.share:.0%} of the spread "
            f"at {len(self.deviation)} test rows; {len(self.redundant())} are redundant)"
        )
