"""Was the prediction right? An audit beside networks that were really trained."""

from dataclasses import dataclass
from math import nan, sqrt

import numpy as np
from jaxtyping import Float, Shaped

from evgp._checks import instance
from evgp._errors import PoolError
from evgp._linalg import as_tensor
from evgp._typing import Array
from evgp.audits.findings import Audit
from evgp.metrics import pearson, spearman


@dataclass(frozen=True, eq=False, repr=False)
class Confirmation:
    """Predicted and observed variance of trained networks at each test row.

    The observed one is a mean over the outputs of the networks, of which there are `members`.
    """

    predicted: Float[np.ndarray, " m"]
    observed: Float[np.ndarray, " m"]
    members: int
    outputs: int = 1

    @property
    def deviation(self) -> Float[np.ndarray, " m"]:
        """Observed, as a deviation: to be compared with the audit's."""
        return np.sqrt(self.observed)

    @property
    def pearson(self) -> float:
        """Of predicted and observed variance, row by row; nan where one of them has no spread."""
        return pearson(self.predicted, self.observed) if self._spread() else nan

    @property
    def spearman(self) -> float:
        """The same for their ranks: are the rows at risk the right ones?"""
        return spearman(self.predicted, self.observed) if self._spread() else nan

    @property
    def ratio(self) -> float:
        """Mean observed variance over the mean predicted one: 1 where the size is right."""
        mean = float(self.predicted.mean())
        return float(self.observed.mean()) / mean if mean > 0 else nan

    @property
    def attainable(self) -> float:
        r"""Pearson's correlation if the prediction were exact, for the noise of few networks.

        A variance $v$ estimated from E members has variance $2 v^2 / (E - 1)$, so that
        $r^2 = \mathrm{var}(v) / (\mathrm{var}(v) + 2 \overline{v^2} / ((E - 1) o))$.
        """
        spread = float(self.predicted.var())
        freedom = (self.members - 1) * self.outputs
        noise = 2 * float((self.predicted**2).mean()) / freedom
        return sqrt(spread / (spread + noise)) if spread + noise > 0 else nan

    def _spread(self) -> bool:
        both = (self.predicted, self.observed)
        return len(self.observed) > 2 and all(np.ptp(one) > 0 for one in both)

    def __repr__(self) -> str:
        return (
            f"Confirmation({self.members} networks: observed variance {self.ratio:.2f} times the "
            f"predicted; Pearson {self.pearson:.2f}, Spearman {self.spearman:.2f})"
        )


def confirm(audit: Audit, outputs: Shaped[Array, "e m o"]) -> Confirmation:
    r"""What trained networks did at the test rows of an audit, beside what it predicted.

    $$ v_t = \frac1o \sum_o \frac{1}{E - 1} \sum_e (f_{eo}(t) - \bar f_o(t))^2 $$

    Networks in the NTK parametrisation, trained to a small loss on targets of any scale, should
    come close. O(e m o).

    >>> from evgp import audit, mlp, train
    >>> x = np.random.default_rng(0).normal(size=(24, 2))
    >>> nets = train(mlp(width=64), x[:8], x[:8, 0], members=20, optimiser="adam", steps=200)
    >>> confirm(audit(x[:8], x[8:], standardise=False), nets.predict(x[8:])).members
    20
    """
    instance(audit, "audit", Audit, "what evgp.audit(...) returns")
    made = as_tensor(outputs, "outputs").double()
    rows = len(audit.deviation)
    if made.ndim != 3 or made.shape[0] < 2 or made.shape[1] != rows or made.shape[2] == 0:
        raise PoolError(
            f"expected outputs of shape (members, {rows}, outputs) of two members at least, at the "
            f"test rows of the audit; got {tuple(made.shape)}"
        )
    observed = made.var(0, correction=1).mean(-1).numpy()
    if not np.isfinite(observed).all():
        raise PoolError("expected finite outputs, got NaN or inf; did a member diverge?")
    return Confirmation(audit.deviation**2, observed, made.shape[0], made.shape[2])
