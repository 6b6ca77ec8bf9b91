"""Model selection without training: the architecture that would lose least on new labels.

Hemachandra et al., Training-Free Neural Active Learning with Initialization-Robustness
Guarantees, ICML 2023, section on model selection.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from evgp._errors import PoolError
from evgp._executor import Progress, silent
from evgp._linalg import as_tensor
from evgp._typing import Array
from evgp.architectures.folds import losses, split
from evgp.nets import Network

_LEAST = 4  # labels: fewer cannot be split into folds that differ


@dataclass(frozen=True)
class Scored:
    """One architecture: the expected squared error of a trained network, and where it comes from.

    `score` is `fit` (what no averaging over networks mends) plus `spread` (what differs between
    initialisations), a mean over folds; `error` its standard error over folds, which share points
    and so understate it. `lead` is the mean difference to the best and `doubt` the standard error
    of that difference, fold by fold.
    """

    name: str
    network: Network
    score: float
    error: float
    fit: float
    spread: float
    lead: float = 0.0
    doubt: float = 0.0


@dataclass(frozen=True)
class Choice:
    """Architectures in order, least expected loss first, and the one that was taken."""

    ranked: tuple[Scored, ...]
    chosen: Scored
    folds: int
    left_out: int

    @property
    def network(self) -> Network:
        """The architecture that was taken."""
        return self.chosen.network

    def __repr__(self) -> str:
        shown = ", ".join(f"{one.name} {one.score:.4g}" for one in self.ranked[:3])
        more = ", ..." if len(self.ranked) > 3 else ""
        return f"Choice({self.chosen.name}; {shown}{more})"


def choose(
    networks: Mapping[str, Any] | Sequence[Any],
    x: Array,
    y: Array,
    *,
    folds: int = 100,
    kappa: float = 0.3,
    noise: float = 1e-4,
    standardise: bool = True,
    current: Network | str | None = None,
    one_error: bool = False,
    seed: int = 0,
    progress: Progress = silent,
) -> Choice:
    r"""Rank architectures by the loss that networks, trained on some labels, expect on the others.

    $$ -\alpha_M(f) \propto \mathrm{E}_T \left[ (y_T - \mu_{NN})^2 + \sigma^2_{NN} \right] $$

    In each of `folds` random folds a share `kappa` of the labels is left out. `y` are numbers (n,
    or n x outputs), or whole numbers for classes, which become one-hot targets around their mean.
    With `standardise` columns of `x` and numbers in `y` are scaled to mean 0 and deviation 1, so
    that scores are in units of the labels' variance; without it networks see them as they are.
    With `one_error` the `current` architecture stays unless the best leads it by more than one
    standard error of their difference over folds. O(f n³) a candidate, all folds at once.

    >>> from evgp.architectures import candidates
    >>> x = torch.randn(30, 2, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    >>> choose(candidates(depths=(1, 2)), x, x[:, 0].abs(), folds=20)
    Choice(gelu-2; gelu-2 0.04487, gelu-1 0.08339, leaky_relu-1 0.08633, ...)
    """
    named = _named(networks)
    points, goals = _inputs(x, y, standardise)
    n = len(points)
    out = max(1, round(kappa * n))
    _check(n, out, folds, kappa)
    orders = split(n, folds, kappa, seed)
    made = []
    for done, network in enumerate(named.values()):
        progress("architectures", done, len(named))
        made.append(losses(network, points, goals, orders, out, noise=noise))
    progress("architectures", len(named), len(named))
    totals = torch.stack([one.total for one in made])
    best = int(totals.mean(1).argmin())
    gaps = totals - totals[best]
    scored = [
        Scored(
            name,
            network,
            float(one.total.mean()),
            _error(one.total),
            float(one.fit.mean()),
            float(one.spread.mean()),
            float(gap.mean()),
            _error(gap),
        )
        for (name, network), one, gap in zip(named.items(), made, gaps, strict=True)
    ]
    chosen = scored[best]
    if one_error and current is not None:
        kept = _current(scored, current)
        chosen = kept if kept.lead <= kept.doubt else chosen
    ranked = tuple(sorted(scored, key=lambda one: one.score))
    return Choice(ranked, chosen, folds, out)


def _named(networks: Mapping[str, Any] | Sequence[Any]) -> dict[str, Network]:
    named = (
        dict(networks)
        if isinstance(networks, Mapping)
        else {repr(network): network for network in networks}
    )
    if not named:
        raise PoolError("expected architectures to choose from, got none; try candidates()")
    for name, network in named.items():
        if not isinstance(network, Network):
            raise PoolError(
                "expected architectures with exact kernels, such as evgp.mlp(...), got "
                f"{type(network).__name__} for {name!r}"
            )
    return named


def _inputs(
    x: Array, y: Array, standardise: bool
) -> tuple[Float[Tensor, " n *d"], Float[Tensor, "n o"]]:
    points = as_tensor(x).double()
    given = y if isinstance(y, Tensor) else torch.from_numpy(np.asarray(y))
    classes = given.ndim == 1 and not given.is_floating_point() and not given.is_complex()
    if classes:
        codes = torch.unique(given.long(), return_inverse=True)[1]
        targets = torch.nn.functional.one_hot(codes).double()
        targets = targets - targets.mean(0)
    else:
        targets = given.double() if given.ndim > 1 else given.double()[:, None]
    if len(points) != len(targets):
        raise PoolError(
            f"expected as many labels as points, got {len(targets)} labels for {len(points)} points"
        )
    for name, part in (("x", points), ("y", targets)):
        if not bool(torch.isfinite(part).all()):
            raise PoolError(f"expected finite numbers in {name}, got NaN or inf; mend or drop them")
    if not standardise or len(points) < _LEAST:
        return points, targets
    if bool((targets == targets[0]).all()):
        raise PoolError("expected labels that differ, got one value only; label more points")
    return _scaled(points), targets if classes else _scaled(targets)


def _scaled(values: Float[Tensor, " n *d"]) -> Float[Tensor, " n *d"]:
    """Columns with mean 0 and deviation 1; those that are constant become zeros."""
    centred = values - values.mean(0)
    scale = centred.std(0, correction=0)
    return centred / torch.where(scale > 0, scale, 1.0)


def _check(n: int, out: int, folds: int, kappa: float) -> None:
    if n < _LEAST or out > n - 2:
        raise PoolError(
            f"expected at least {_LEAST} labels, and two that stay in each fold; got {n} labels of "
            f"which {out} are left out (kappa={kappa})"
        )
    if not 0 < kappa < 1:
        raise PoolError(f"expected kappa between 0 and 1, the share left out; got {kappa}")
    if folds < 2:
        raise PoolError(f"expected two folds at least, got {folds}")


def _current(scored: Sequence[Scored], current: Network | str) -> Scored:
    for one in scored:
        if current in (one.name, one.network):
            return one
    raise PoolError(
        f"expected the current architecture among {', '.join(one.name for one in scored)}; got "
        f"{current!r}"
    )


def _error(values: Float[Tensor, " f"]) -> float:
    return float(values.std() / len(values) ** 0.5)
