"""Results of an audit, and their confirmation by trained networks."""

from dataclasses import dataclass, field
from math import nan, sqrt

import numpy as np
from jaxtyping import Float, Int, Shaped

from evgp._checks import instance, integer
from evgp._linalg import as_tensor
from evgp._repr import html_card
from evgp._typing import Array
from evgp.errors import PoolError
from evgp.metrics import pearson, spearman
from evgp.pool import Selection

# A row is redundant if its influence is below this part of an even share of the variance left.
REDUNDANT = 0.1


@dataclass(frozen=True, eq=False, repr=False)
class Audit:
    """How much networks trained on a set will disagree at the test points.

    Attributes
    ----------
    deviation : array, shape (m,)
        Standard deviation, at each test row, of infinitely wide networks trained on the set from
        random initialisations.
    ceiling : array, shape (m,)
        That of the NTKGP, an upper bound.
    prior : tuple of float
        Mean variance of both without labels.
    influence : array, shape (n,)
        Rise of the mean variance of the NTKGP without each training row.
    random : array
        Mean variances left by random sets of the same size, drawn from training set and pool.
    further : Selection, optional
        With a pool: the most helpful additional labels.
    after : array, shape (k,)
        Mean variance of trained networks after the first, the first two, ... of these.
    chance : array, shape (s, k)
        The same for random labels, one row for each draw.
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
        """Variance of trained networks, averaged over the test points."""
        return float((self.deviation**2).mean())

    @property
    def share(self) -> float:
        """The share of the variance without labels that is left; nan if there was none."""
        return self.variance / self.prior[0] if self.prior[0] > 0 else nan

    @property
    def limit(self) -> float:
        """The influence below which a training row is redundant."""
        return REDUNDANT * float((self.ceiling**2).mean()) / len(self.influence)

    def at_risk(self, k: int = 10) -> Int[np.ndarray, " k"]:
        """The test rows on which networks will disagree most, worst first."""
        return np.argsort(-self.deviation, kind="stable")[: integer(k, "k", 0)]

    def matter(self, k: int = 10) -> Int[np.ndarray, " k"]:
        """The most important training rows, largest influence first."""
        return np.argsort(-self.influence, kind="stable")[: integer(k, "k", 0)]

    def redundant(self) -> Int[np.ndarray, " r"]:
        r"""The training rows that could be left out, each alone.

        Those whose influence is below $\frac{1}{10} \bar v / n$, with $\bar v$ the mean variance of
        the NTKGP: a tenth of an even share, so that rows of a large set are not redundant by its
        size alone.
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
            f"{len(self.redundant()):,} training rows are redundant, each on its own.",
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


@dataclass(frozen=True, eq=False, repr=False)
class Confirmation:
    """Predicted and observed variance of trained networks at each test row.

    Attributes
    ----------
    predicted, observed : array, shape (m,)
        Variances; the observed one is averaged over outputs.
    members, outputs : int
        Number of networks, and of their outputs.
    """

    predicted: Float[np.ndarray, " m"]
    observed: Float[np.ndarray, " m"]
    members: int
    outputs: int = 1

    @property
    def deviation(self) -> Float[np.ndarray, " m"]:
        """Observed standard deviation, to compare with that of the audit."""
        return np.sqrt(self.observed)

    @property
    def pearson(self) -> float:
        """Correlation of predicted and observed variance over rows; nan if either is constant."""
        return pearson(self.predicted, self.observed) if self._spread() else nan

    @property
    def spearman(self) -> float:
        """Rank correlation of predicted and observed variance; nan if either is constant."""
        return spearman(self.predicted, self.observed) if self._spread() else nan

    @property
    def ratio(self) -> float:
        """Mean observed variance divided by the mean predicted one."""
        mean = float(self.predicted.mean())
        return float(self.observed.mean()) / mean if mean > 0 else nan

    @property
    def attainable(self) -> float:
        r"""The Pearson correlation of an exact prediction, given the noise of few networks.

        A variance $v$ estimated from E members has variance $2 v^2 / (E - 1)$, so that
        $r^2 = \mathrm{var}(v) / (\mathrm{var}(v) + 2 \overline{v^2} / ((E - 1) o))$.
        """
        spread = float(self.predicted.var())
        freedom = (self.members - 1) * self.outputs
        noise = 2 * float((self.predicted**2).mean()) / freedom
        return sqrt(spread / (spread + noise)) if spread + noise > 0 else nan

    def _spread(self) -> bool:
        both = (self.predicted, self.observed)
        return len(self.observed) > 2 and all(np.ptp(values) > 0 for values in both)

    def __repr__(self) -> str:
        return (
            f"Confirmation({self.members} networks: observed variance {self.ratio:.2f} times the "
            f"predicted; Pearson {self.pearson:.2f}, Spearman {self.spearman:.2f})"
        )


def confirm(audit: Audit, outputs: Shaped[Array, "e m o"]) -> Confirmation:
    r"""Compare the prediction of an audit with networks that were trained.

    $$ v_t = \frac1o \sum_o \frac{1}{E - 1} \sum_e (f_{eo}(t) - \bar f_o(t))^2 $$

    Networks in the NTK parametrisation, trained to a small loss on targets of any scale, should be
    close to it. O(e m o).

    Parameters
    ----------
    audit : Audit
    outputs : array, shape (e, m, o)
        Outputs of e trained networks at the test rows.

    Returns
    -------
    Confirmation

    Examples
    --------
    >>> from evgp import audit, mlp, train
    >>> x = np.random.default_rng(0).normal(size=(24, 2))
    >>> nets = train(mlp(width=64), x[:8], x[:8, 0], members=20, optimiser="adam", steps=200)
    >>> confirm(audit(x[:8], x[8:], scale=None), nets.predict(x[8:])).members
    20
    """
    instance(audit, "audit", Audit, "what evgp.audit(...) returns")
    values = as_tensor(outputs, "outputs").double()
    rows = len(audit.deviation)
    if values.ndim != 3 or values.shape[0] < 2 or values.shape[1] != rows or values.shape[2] == 0:
        raise PoolError(
            f"expected outputs of shape (members, {rows}, outputs) with at least two members, at "
            f"the test rows of the audit; got {tuple(values.shape)}"
        )
    observed = values.var(0, correction=1).mean(-1).numpy()
    if not np.isfinite(observed).all():
        raise PoolError("expected finite outputs, got NaN or inf; did a member diverge?")
    return Confirmation(audit.deviation**2, observed, values.shape[0], values.shape[2])
