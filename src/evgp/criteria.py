r"""How much each candidate would help.

Hemachandra et al., Training-Free Neural Active Learning with Initialization-Robustness
Guarantees, ICML 2023: the expected-variance criterion, variance percentiles, mutual information.
After observing $x$ the variance at a test point $t$ falls by $\mathrm{cov}(x, t)^2 /
(\mathrm{var}(x) + s)$; all criteria are read off that.
"""

from dataclasses import dataclass
from typing import ClassVar, Protocol, runtime_checkable

import torch
from jaxtyping import Float, Int
from torch import Tensor

from evgp._checks import keep, number
from evgp.posterior import Posterior

BLOCK = 1 << 22  # numbers in one block of candidates x test points
# Variances are computed to some 1e-14 of the prior variance; with what sums of them add, to this.
_ROUNDING = 1e-12
# A window that percentiles are a mean over: narrower ones would be lost in rounding.
_NARROWEST = 1e-12


@runtime_checkable
class Criterion(Protocol):
    """The gain of labelling each candidate.

    A criterion may say more about itself, and has it used; what it does not say is taken as no:

    - `by_features`: it needs the mean over the test points alone, so it works with features and
      shards;
    - `certifiable`: its gains add up to the fall of the mean variance, which a certificate bounds;
    - `exchangeable`: swapping picks for others pays, so `greedy="auto"` does it where affordable;
    - `pairwise`: each look at the candidates costs all pairs with the test points;
    - `ignores_weights`: weights of the test points have no place in it;
    - `test_points`: how many test points it can take, if not all of them;
    - `extra_memory(n, m)`: bytes that it takes next to the matrix of n candidates x m test points;
    - `degree`: its gains grow as this power of the kernel, so that kernels of any size will do;
    - `rounding(posterior)`: how far a gain may be off by rounding alone, so that gains which are no
      further apart are a tie.
    """

    def gains(self, posterior: Posterior, rows: Int[Tensor, " r"]) -> Float[Tensor, " r"]:
        """Of these candidates, in float64."""
        ...

    def ceilings(self, posterior: Posterior) -> Float[Tensor, " c"]:
        """Bounds that no gain exceeds, for every candidate at once, quickly."""
        ...


@dataclass(frozen=True)
class ExpectedVariance:
    r"""Mean fall in variance over the test points.

    $$ g(x) = \sum_t w_t \frac{\mathrm{cov}(x, t)^2}{\mathrm{var}(x) + s} $$

    O(r m k) for given rows; O(c) for all, from the sums that the posterior keeps.
    """

    by_features: ClassVar[bool] = True
    certifiable: ClassVar[bool] = True
    exchangeable: ClassVar[bool] = True
    degree: ClassVar[int] = 1

    def gains(self, posterior: Posterior, rows: Int[Tensor, " r"]) -> Float[Tensor, " r"]:
        """Of these candidates, in float64."""
        return posterior.fall(rows) / (posterior.variance() + posterior.noise())[rows]

    def ceilings(self, posterior: Posterior) -> Float[Tensor, " c"]:
        """Gains from the running sums, plus what rounding may hide."""
        known = posterior.fall() + posterior.slack()
        return known / (posterior.variance() + posterior.noise())

    def rounding(self, posterior: Posterior) -> float:
        """How far a gain may be off by rounding alone."""
        return _ROUNDING * posterior.scale()


@dataclass(frozen=True)
class Linearised:
    r"""The paper's linear approximation of the fall in mean variance, for sparse posteriors.

    $$ g(x) = \sum_t w_t \frac{\mathrm{cov}(x, t)^2}{s_x} $$

    It leaves the point's own variance out of the denominator: to first order a label changes
    $\Sigma_U$ by $-\Sigma_U F_x \Sigma_U$. Never below the true gain, and far above it where the
    noise $s_x$ is small, so it may choose worse; the variance left is measured without it.
    """

    by_features: ClassVar[bool] = True
    degree: ClassVar[int] = 1

    def gains(self, posterior: Posterior, rows: Int[Tensor, " r"]) -> Float[Tensor, " r"]:
        """Of these candidates, in float64."""
        return posterior.fall(rows) / posterior.noise()[rows]

    def ceilings(self, posterior: Posterior) -> Float[Tensor, " c"]:
        """Gains from the running sums, plus what rounding may hide."""
        return (posterior.fall() + posterior.slack()) / posterior.noise()

    def rounding(self, posterior: Posterior) -> float:
        """How far a gain may be off by rounding alone."""
        return _ROUNDING * posterior.scale()


@dataclass(frozen=True)
class Percentile:
    r"""Fall of a percentile of the variance over the test points: 50 the median, 100 the worst.

    $$ g(x) = P_r\{v_t\} - P_r\{v_t - \mathrm{cov}(x, t)^2 / (\mathrm{var}(x) + s)\} $$

    With weights, percentiles are NumPy's of the points repeated as often as their weights say: the
    mean over a window as wide as the smallest weight. So points that are equal may come in any
    order, and lower variances never raise a percentile. O(r m k) time, blocks of 32 MB. Not
    submodular.
    """

    r: float = 90
    pairwise: ClassVar[bool] = True
    degree: ClassVar[int] = 1

    def __post_init__(self) -> None:
        keep(self, r=number(self.r, "a percentile", 0, 100))

    def gains(self, posterior: Posterior, rows: Int[Tensor, " r"]) -> Float[Tensor, " r"]:
        """Of these candidates, in float64."""
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

    The denominator is informed by the test outputs; the two cases, $x$ among the test points or
    not, are in `evgp.posterior.informed`. Not monotone: late gains may be negative.
    """

    ignores_weights: ClassVar[bool] = True
    degree: ClassVar[int] = 0
    test_points: ClassVar[int] = 1000  # it factorises their covariance; the paper thins to as many

    def gains(self, posterior: Posterior, rows: Int[Tensor, " r"]) -> Float[Tensor, " r"]:
        """Of these candidates, in float64."""
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
        """Bytes of the test points' covariance, its factor, and what it is multiplied with."""
        return 8 * (3 * m * m + 2 * m * n)


def percentile(
    values: Float[Tensor, "r m"], weights: Float[Tensor, " m"], q: float
) -> Float[Tensor, " r"]:
    """Of each row, with weights for the columns.

    >>> percentile(torch.tensor([[3.0, 1.0, 2.0]]), torch.full((3,), 1 / 3), 75).tolist()
    [2.5]
    """
    counts = weights > 0  # a point without weight is none
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
    # A window as wide as the smallest weight, over the values laid side by side.
    ordered, order = values.sort(dim=1)
    ends = torch.cumsum(weights.to(values.dtype)[order] / weights.sum(), dim=1)
    starts = torch.cat([torch.zeros_like(ends[:, :1]), ends[:, :-1]], dim=1)
    width = max(float(weights.min() / weights.sum()), _NARROWEST)
    start = q / 100 * (1 - width)
    inside = (ends.clamp(max=start + width) - starts.clamp(min=start)).clamp_(min=0)
    return (inside * ordered).sum(1) / inside.sum(1)
