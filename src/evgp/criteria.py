r"""How much each candidate would help.

Hemachandra et al., Training-Free Neural Active Learning with Initialization-Robustness
Guarantees, ICML 2023: the expected-variance criterion, variance percentiles, mutual information.
After observing $x$ the variance at a test point $t$ falls by $\mathrm{cov}(x, t)^2 /
(\mathrm{var}(x) + s)$; all criteria are read off that.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import ClassVar, Protocol, runtime_checkable

import torch
from jaxtyping import Float, Int
from torch import Tensor

from evgp._checks import keep, number, one_of
from evgp.posterior import Posterior

BLOCK = 1 << 22  # numbers in one block of candidates x test points
# Variances are accurate to about 1e-14 of the prior variance, and sums of them to this.
_ROUNDING = 1e-12
# Narrowest window that percentiles are a mean over: less would be lost in rounding.
_NARROWEST = 1e-12


@runtime_checkable
class Criterion(Protocol):
    """The gain of labelling each candidate.

    A criterion may have further attributes, which are used where present; a missing one counts as
    no:

    - `by_features`: it only needs the mean over the test points, so it works with features and
      shards;
    - `certifiable`: its gains add up to the fall in mean variance, which a certificate bounds;
    - `exchangeable`: swapping picks pays, so `final=True` does it;
    - `monotone`: its gains are never negative, so that all rows tie once no gain exceeds rounding;
    - `own_search`: the name of the search that it needs;
    - `pairwise`: gains of all candidates cost as much as all pairs of candidates and test points;
    - `ignores_weights`: it takes no account of weights of the test points;
    - `test_points`: the maximum number of test points, if there is one;
    - `extra_memory(n, m)`: bytes on top of the matrix of n candidates x m test points;
    - `degree`: its gains grow as this power of the kernel, so that kernels of any scale work;
    - `rounding(posterior)`: the rounding error of a gain; gains that differ by less are ties.
    """

    def gains(self, posterior: Posterior, rows: Int[Tensor, " r"]) -> Float[Tensor, " r"]:
        """Gains of these candidates, in float64."""
        ...

    def ceilings(self, posterior: Posterior) -> Float[Tensor, " c"]:
        """Upper bounds on the gains of all candidates at once, quick to compute."""
        ...


@dataclass(frozen=True)
class ExpectedVariance:
    r"""Mean fall in variance over the test points: the criterion of EV-GP.

    $$ g(x) = \sum_t w_t \frac{\mathrm{cov}(x, t)^2}{\mathrm{var}(x) + s} $$

    O(r m k) for r rows; O(c) for all candidates, from the sums that the posterior keeps.

    Examples
    --------
    >>> import evgp
    >>> x = torch.randn(20, 3, generator=torch.Generator().manual_seed(0))
    >>> evgp.pick(x, k=2, criterion=ExpectedVariance()) == evgp.pick(x, k=2, criterion="ev")
    True
    """

    by_features: ClassVar[bool] = True
    certifiable: ClassVar[bool] = True
    exchangeable: ClassVar[bool] = True
    monotone: ClassVar[bool] = True
    degree: ClassVar[int] = 1

    def gains(self, posterior: Posterior, rows: Int[Tensor, " r"]) -> Float[Tensor, " r"]:
        """Return the gains of these candidates, in float64."""
        return posterior.fall(rows) / (posterior.variance() + posterior.noise())[rows]

    def ceilings(self, posterior: Posterior) -> Float[Tensor, " c"]:
        """Gains from the running sums, plus what rounding may hide."""
        known = posterior.fall() + posterior.slack()
        return known / (posterior.variance() + posterior.noise())

    def rounding(self, posterior: Posterior) -> float:
        """How far a gain may be off by rounding alone."""
        return _ROUNDING * posterior.scale()


@dataclass(frozen=True)
class CellMeans:
    r"""Fall in the variance of the means over k cells of the pool, for very few labels.

    The gains are those of `ExpectedVariance` where the test points are the means over cells, each
    with the weight of its points; `evgp.search.OnePerCell` cuts the pool into cells and picks one
    row in each. With about one label per class these picks are better than those of the expected
    variance. They depend on k: `pick(x, 20)` does not begin with `pick(x, 10)`.

    Examples
    --------
    >>> import evgp
    >>> x = torch.tensor([[0.0], [0.1], [0.2], [5.0], [5.1], [5.2]])
    >>> sorted(evgp.pick(x, k=2, criterion="cells").indices.tolist())
    [1, 4]
    """

    certifiable: ClassVar[bool] = True
    monotone: ClassVar[bool] = True
    own_search: ClassVar[str] = "one-per-cell"
    degree: ClassVar[int] = 1

    def gains(self, posterior: Posterior, rows: Int[Tensor, " r"]) -> Float[Tensor, " r"]:
        """Return the gains of these candidates, in float64."""
        return ExpectedVariance().gains(posterior, rows)

    def ceilings(self, posterior: Posterior) -> Float[Tensor, " c"]:
        """Gains from the running sums, plus what rounding may hide."""
        return ExpectedVariance().ceilings(posterior)

    def rounding(self, posterior: Posterior) -> float:
        """How far a gain may be off by rounding alone."""
        return ExpectedVariance().rounding(posterior)


@dataclass(frozen=True)
class Linearised:
    r"""The paper's linear approximation of the fall in mean variance, for sparse posteriors.

    $$ g(x) = \sum_t w_t \frac{\mathrm{cov}(x, t)^2}{s_x} $$

    The point's own variance is missing in the denominator: to first order a label changes
    $\Sigma_U$ by $-\Sigma_U F_x \Sigma_U$. Never below the true gain, and far above it where the
    noise $s_x$ is small, so that picks may be worse; the variance left is measured exactly.
    """

    by_features: ClassVar[bool] = True
    monotone: ClassVar[bool] = True
    degree: ClassVar[int] = 1

    def gains(self, posterior: Posterior, rows: Int[Tensor, " r"]) -> Float[Tensor, " r"]:
        """Return the gains of these candidates, in float64."""
        return posterior.fall(rows) / posterior.noise()[rows]

    def ceilings(self, posterior: Posterior) -> Float[Tensor, " c"]:
        """Gains from the running sums, plus what rounding may hide."""
        return (posterior.fall() + posterior.slack()) / posterior.noise()

    def rounding(self, posterior: Posterior) -> float:
        """How far a gain may be off by rounding alone."""
        return _ROUNDING * posterior.scale()


@dataclass(frozen=True)
class Percentile:
    r"""Fall of a percentile of the variance over the test points.

    $$ g(x) = P_r\{v_t\} - P_r\{v_t - \mathrm{cov}(x, t)^2 / (\mathrm{var}(x) + s)\} $$

    With weights, percentiles are those of NumPy for points repeated in proportion to their weights:
    the mean over a window as wide as the smallest weight. So equal points may come in any order,
    and lower variances never raise a percentile. O(r m k) time, blocks of 32 MB. Not submodular.

    Parameters
    ----------
    r : float
        The percentile, from 0 to 100: 50 is the median, 100 the worst test point.

    Examples
    --------
    >>> import evgp
    >>> x = torch.randn(20, 3, generator=torch.Generator().manual_seed(0))
    >>> evgp.pick(x, k=2, criterion=Percentile(90)) == evgp.pick(x, k=2, criterion="p90")
    True
    """

    r: float = 90
    pairwise: ClassVar[bool] = True
    degree: ClassVar[int] = 1

    def __post_init__(self) -> None:
        keep(self, r=number(self.r, "a percentile", 0, 100))

    def gains(self, posterior: Posterior, rows: Int[Tensor, " r"]) -> Float[Tensor, " r"]:
        """Return the gains of these candidates, in float64."""
        before, weights = posterior.test_variance(), posterior.weights()
        scale = posterior.variance() + posterior.noise()
        now = percentile(before[None], weights, self.r)
        gains = []
        for part in torch.split(rows, max(1, BLOCK // len(before))):
            falls = posterior.covariance(part).square_().div_(scale[part, None])
            after = (before - falls).clamp_(min=0)
            gains.append(now - percentile(after, weights, self.r))
        return torch.cat(gains)

    def ceilings(self, posterior: Posterior) -> Float[Tensor, " c"]:
        """The gains themselves."""
        return self.gains(posterior, torch.arange(len(posterior.variance())))

    def rounding(self, posterior: Posterior) -> float:
        """How far a gain may be off by rounding alone."""
        return _ROUNDING * posterior.scale()

    def extra_memory(self, n: int, m: int) -> int:
        """Bytes of the blocks whose percentiles are taken."""
        return 12 * 8 * BLOCK


@dataclass(frozen=True)
class MutualInformation:
    r"""Information that a label gives about the (other) test outputs.

    $$ g(x) = \tfrac12 \log \frac{\mathrm{var}(x \mid L) + s}{\mathrm{var}(x \mid \cdot) + s} $$

    The denominator is conditioned on the test outputs; `evgp.posterior.dense` has the two cases,
    $x$ among the test points or not. Not monotone: late gains may be negative.

    Examples
    --------
    >>> import evgp
    >>> x = torch.randn(20, 3, generator=torch.Generator().manual_seed(0))
    >>> picks = evgp.pick(x, k=2, criterion=MutualInformation())
    >>> picks == evgp.pick(x, k=2, criterion="mi"), picks.certificate is None
    (True, True)
    """

    ignores_weights: ClassVar[bool] = True
    degree: ClassVar[int] = 0
    test_points: ClassVar[int] = 1000  # it factorises their covariance; the paper thins to as many

    def gains(self, posterior: Posterior, rows: Int[Tensor, " r"]) -> Float[Tensor, " r"]:
        """Return the gains of these candidates, in float64."""
        return self.ceilings(posterior)[rows]

    def ceilings(self, posterior: Posterior) -> Float[Tensor, " c"]:
        """The gains themselves."""
        noise = posterior.noise()
        informed = posterior.informed_variance() + noise
        return ((posterior.variance() + noise) / informed).log() / 2

    def rounding(self, posterior: Posterior) -> float:
        """How far a gain may be off by rounding alone: that of a variance, over the noise."""
        return _ROUNDING / 100 * posterior.scale() / float(posterior.noise().min())

    def extra_memory(self, n: int, m: int) -> int:
        """Bytes of the test points' covariance, its factor, and its products."""
        return 8 * (3 * m * m + 2 * m * n)


def percentile(
    values: Float[Tensor, "r m"], weights: Float[Tensor, " m"], q: float
) -> Float[Tensor, " r"]:
    """A percentile of each row, with weights for the columns.

    >>> percentile(torch.tensor([[3.0, 1.0, 2.0]]), torch.full((3,), 1 / 3), 75).tolist()
    [2.5]
    """
    counts = weights > 0  # points without weight are left out
    if not bool(counts.all()):
        values, weights = values[:, counts], weights[counts]
    m = values.shape[1]
    if q in (0, 100) or bool((weights == weights[0]).all()):
        place = q / 100 * (m - 1)
        low = int(place)
        high = min(low + 1, m - 1)
        below = values.kthvalue(low + 1, dim=1).values
        above = below if high == low else values.kthvalue(high + 1, dim=1).values
        return torch.lerp(below, above, place - low)
    # A window as wide as the smallest weight, over the values in order.
    ordered, order = values.sort(dim=1)
    ends = torch.cumsum(weights.to(values.dtype)[order] / weights.sum(), dim=1)
    starts = torch.cat([torch.zeros_like(ends[:, :1]), ends[:, :-1]], dim=1)
    width = max(float(weights.min() / weights.sum()), _NARROWEST)
    start = q / 100 * (1 - width)
    inside = (ends.clamp(max=start + width) - starts.clamp(min=start)).clamp_(min=0)
    return (inside * ordered).sum(1) / inside.sum(1)


CRITERIA: dict[str, Callable[[], Criterion]] = {
    "ev": ExpectedVariance,
    "median": partial(Percentile, 50),
    "p90": partial(Percentile, 90),
    "max": partial(Percentile, 100),
    "mi": MutualInformation,
    "cells": CellMeans,
}


def criterion_named(criterion: str | Criterion) -> Criterion:
    """Return the criterion of this name; a criterion object is returned unchanged.

    >>> criterion_named("p90")
    Percentile(r=90)
    """
    if isinstance(criterion, Criterion) and not isinstance(criterion, type):
        return criterion
    return CRITERIA[one_of(criterion, "a criterion", tuple(CRITERIA))]()
