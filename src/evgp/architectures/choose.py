"""Model selection without training: the architecture that would lose least on new labels.

Hemachandra et al., Training-Free Neural Active Learning with Initialization-Robustness
Guarantees, ICML 2023, section on model selection.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from evgp._checks import flag, shown
from evgp._errors import PoolError
from evgp._executor import Progress
from evgp._machine import available_memory, each_alone
from evgp._progress import reporting
from evgp._repr import html_card
from evgp._typing import Array
from evgp.architectures.checks import check_folds, checked_inputs, named_networks
from evgp.architectures.folds import losses, split
from evgp.nets import Network

_SMALL = 1000  # labels; five matrices of that size for each thread


@dataclass(frozen=True)
class Scored:
    """One architecture: the expected squared error of a trained network, and where it comes from.

    `score` is `fit` (what no averaging over networks fixes) plus `spread` (what differs between
    initialisations), a mean over folds; `error` its standard error. `lead` is the mean difference
    to the best, fold by fold, and `doubt` the standard error of that. Folds share points, so their
    deviation over the root of their number would say how many folds there are, not how uncertain
    the score is; errors are corrected for that (Nadeau & Bengio 2003):

    $$ \\sqrt{\\left( \\frac{1}{f} + \\frac{\\kappa}{1 - \\kappa} \\right) s^2} $$
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

    def _repr_html_(self) -> str:
        shown = self.ranked[:10]
        columns: dict[str, list[object]] = {
            "architecture": [one.name for one in shown],
            "expected loss": [one.score for one in shown],
            "standard error": [one.error for one in shown],
            "misfit": [one.fit for one in shown],
            "spread": [one.spread for one in shown],
        }
        hidden = len(self.ranked) - len(shown)
        remarks = [f"… and {hidden:,} more."] if hidden else []
        remarks.append(
            f"Mean over {self.folds:,} folds, each with {self.left_out:,} labels left out."
        )
        return html_card(f"Chosen: {self.chosen.name}", columns, remarks)


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
    progress: Progress | bool | None = None,
) -> Choice:
    r"""Rank architectures by the loss that networks, trained on some labels, expect on the others.

    $$ -\alpha_M(f) \propto \mathrm{E}_T \left[ (y_T - \mu_{NN})^2 + \sigma^2_{NN} \right] $$

    In each of `folds` random folds a share `kappa` of the labels is left out. `y` are numbers (n,
    or n x outputs), or classes: words or whole numbers, which become one-hot targets around their
    mean. With `standardise` columns of `x` and numbers in `y` are scaled to mean 0 and deviation 1,
    so that a score of 1 is that of the mean of the labels (of several outputs a sum, of classes in
    units of the targets); without it networks see them as they are.
    With `one_error` the `current` architecture stays unless the best leads it by more than one
    standard error of their difference over folds. O(f n³) a candidate, all folds at once; up to
    1,000 labels the answer is the same, to the last digit, for any number of threads.

    >>> from evgp.architectures import candidates
    >>> x = torch.randn(30, 2, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    >>> choose(candidates(depths=(1, 2)), x, x[:, 0].abs(), folds=20)
    Choice(gelu-2; gelu-2 0.04487, gelu-1 0.08339, leaky_relu-1 0.08633, ...)
    """
    named = named_networks(networks)
    points, goals = checked_inputs(x, y, standardise)
    n = len(points)
    check_folds(n, folds, kappa, noise, seed)
    folds, noise, seed = int(folds), float(noise), int(seed)
    flag(one_error, "one_error")
    if current is not None:
        _current(named, current)
    out = max(1, round(kappa * n))
    orders = split(n, folds, seed)
    made = []
    aside = torch.get_num_threads() if n <= _SMALL else 1
    work = partial(
        losses, x=points, y=goals, orders=orders, left_out=out, noise=noise,
        memory=available_memory() // 8 // aside,
    )  # fmt: skip
    # Threads that share small matrices wait for each other more than they work, so that each has
    # candidates of its own.
    with reporting(progress) as report:
        report("architectures", 0, len(named))
        for one in each_alone(work, named.values()) if n <= _SMALL else map(work, named.values()):
            made.append(one)
            report("architectures", len(made), len(named))
    totals = torch.stack([one.total for one in made])
    best = int(totals.mean(1).argmin())
    gaps = totals - totals[best]
    scored = [
        Scored(
            name,
            network,
            float(one.total.mean()),
            _error(one.total, n, out),
            float(one.fit.mean()),
            float(one.spread.mean()),
            float(gap.mean()),
            _error(gap, n, out),
        )
        for (name, network), one, gap in zip(named.items(), made, gaps, strict=True)
    ]
    chosen = scored[best]
    if one_error and current is not None:
        kept = scored[list(named).index(_current(named, current))]
        chosen = kept if kept.lead <= kept.doubt else chosen
    ranked = tuple(sorted(scored, key=lambda one: one.score))
    return Choice(ranked, chosen, folds, out)


def _current(named: Mapping[str, Network], current: object) -> str:
    """The name of the current architecture."""
    for name, network in named.items():
        if (isinstance(current, str) and current == name) or network is current:
            return name
        if isinstance(current, Network) and current == network:
            return name
    raise PoolError(
        f"expected the current architecture among {', '.join(named)}; got {shown(current)}"
    )


def _error(values: Float[Tensor, " f"], n: int, out: int) -> float:
    return float(values.std()) * (1 / len(values) + out / (n - out)) ** 0.5
