"""Model selection without training: the architecture that would lose least on new labels.

Hemachandra et al., Training-Free Neural Active Learning with Initialization-Robustness
Guarantees, ICML 2023, section on model selection.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import torch
from jaxtyping import Float
from torch import Tensor

from evgp._checks import flag, shown
from evgp._executor import Progress
from evgp._machine import available_memory, each_alone
from evgp._progress import reporting
from evgp._repr import html_card
from evgp.architectures.checks import check_folds, checked_inputs, named_networks
from evgp.architectures.cross_validation import Losses, losses, split
from evgp.datasets import ReadOptions
from evgp.datasets.scaling import scale_of
from evgp.errors import BadArgument, PoolError, UnknownName
from evgp.nets import Network

_SMALL = 1000  # labels up to which each thread works on candidates of its own


@dataclass(frozen=True)
class Scored:
    """One architecture: the expected squared error of a trained network, and its parts.

    `score` is `fit` (the error of the mean of many networks) plus `spread` (the variance between
    initialisations), averaged over folds; `error` is its standard error. `lead` is the mean
    difference to the best, fold by fold, and `doubt` the standard error of that. Folds share
    points, so their standard deviation over the root of their number would be too small; errors are
    corrected for that (Nadeau & Bengio 2003):

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
    """Architectures in order, least expected loss first, and the one that was chosen.

    Attributes
    ----------
    ranked : tuple of Scored
        All architectures, best first.
    chosen : Scored
    folds : int
    left_out : int
        Labels left out in each fold.
    """

    ranked: tuple[Scored, ...]
    chosen: Scored
    folds: int
    left_out: int

    @property
    def network(self) -> Network:
        """The architecture that was chosen."""
        return self.chosen.network

    def __repr__(self) -> str:
        shown = ", ".join(f"{scored.name} {scored.score:.4g}" for scored in self.ranked[:3])
        more = ", ..." if len(self.ranked) > 3 else ""
        return f"Choice({self.chosen.name}; {shown}{more})"

    def _repr_html_(self) -> str:
        shown = self.ranked[:10]
        columns: dict[str, list[object]] = {
            "architecture": [scored.name for scored in shown],
            "expected loss": [scored.score for scored in shown],
            "standard error": [scored.error for scored in shown],
            "misfit": [scored.fit for scored in shown],
            "spread": [scored.spread for scored in shown],
        }
        hidden = len(self.ranked) - len(shown)
        remarks = [f"… and {hidden:,} more."] if hidden else []
        remarks.append(
            f"Mean over {self.folds:,} folds, each with {self.left_out:,} labels held out."
        )
        return html_card(f"Chosen: {self.chosen.name}", columns, remarks)


def choose(
    networks: Mapping[str, Any] | Sequence[Any],
    x: Any,
    y: Any,
    *,
    folds: int = 100,
    kappa: float = 0.3,
    noise: float = 1e-4,
    scale: str | None = "columns",
    standardise: bool | None = None,
    column: str | None = None,
    text: str | Sequence[str] = (),
    embed: object = None,
    current: Network | str | None = None,
    one_error: bool = False,
    seed: int = 0,
    progress: Progress | bool | None = None,
) -> Choice:
    r"""Rank architectures by their expected loss on held-out labels, without training.

    $$ -\alpha_M(f) \propto \mathrm{E}_T \left[ (y_T - \mu_{NN})^2 + \sigma^2_{NN} \right] $$

    O(f n³) time per candidate for f folds. Up to 1,000 labels the result does not depend on the
    number of threads, to the last digit.

    Parameters
    ----------
    networks : mapping or sequence of Network
        The candidates, with or without names, such as `evgp.architectures.candidates()`.
    x : array or tensor, shape (n, d), frame, or list of texts
        Labelled points.
    y : array or tensor, shape (n,) or (n, outputs)
        Labels: numbers, or classes as words or integers, which become centred one-hot targets.
    folds : int
        Number of random folds.
    kappa : float
        Share of the labels that each fold leaves out.
    noise : float
        Variance of a label, as a fraction of the mean prior variance.
    scale : str, optional
        How columns of `x` are scaled, as in `evgp.pick`. The default is how networks are usually
        trained: each column to mean 0 and standard deviation 1, embeddings as in `evgp.pick`.
        Unless it is None, numbers in `y` are standardised too: then a score of 1 is that of
        predicting the mean (summed over several outputs).
    standardise : bool, optional
        The former name: True is scale="columns", False is scale=None.
    column, text, embed
        The only column to use, columns of text, and what embeds them, as for `evgp.read_pool`.
    current : Network or str, optional
        The architecture in use.
    one_error : bool
        Whether to keep `current` unless the best architecture is better by more than one standard
        error of their difference over folds.
    seed : int
        Seed of the folds.
    progress : callable or bool, optional
        True shows a bar; a function is called with (stage, done, total).

    Returns
    -------
    evgp.architectures.Choice

    Examples
    --------
    >>> from evgp.architectures import candidates
    >>> x = torch.randn(30, 2, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    >>> choose(candidates(depths=(1, 2)), x, x[:, 0].abs(), folds=20)
    Choice(gelu-2; gelu-2 0.04487, gelu-1 0.08339, leaky_relu-1 0.08633, ...)
    """
    named = named_networks(networks)
    scale = scale_of(scale, standardise, "columns")
    reading = ReadOptions(column=column, text=text, embed=embed, scale=scale)
    points, targets = checked_inputs(x, y, reading)
    n = len(points)
    check_folds(n, folds, kappa, noise, seed)
    folds, noise, seed = int(folds), float(noise), int(seed)
    flag(one_error, "one_error")
    if current is not None:
        _current(named, current)
    out = max(1, round(kappa * n))
    orders = split(n, folds, seed)
    results = []
    threads = torch.get_num_threads() if n <= _SMALL else 1
    work = partial(
        losses, x=points, y=targets, orders=orders, left_out=out, noise=noise,
        memory=available_memory() // 8 // threads,
    )  # fmt: skip
    # Threads that share small matrices mostly wait for each other, so each gets its own candidates.
    with reporting(progress) as report:
        report("architectures", 0, len(named))
        run = each_alone if n <= _SMALL else map
        for loss in run(work, named.values()):
            results.append(loss)
            report("architectures", len(results), len(named))
    scored = _scored(named, results, n, out)
    chosen = min(scored, key=lambda architecture: architecture.score)
    if one_error and current is not None:
        present = scored[list(named).index(_current(named, current))]
        chosen = present if present.lead <= present.doubt else chosen
    ranked = tuple(sorted(scored, key=lambda architecture: architecture.score))
    return Choice(ranked, chosen, folds, out)


def _scored(
    named: Mapping[str, Network], results: Sequence[Losses], n: int, out: int
) -> list[Scored]:
    """Each architecture with its losses, and how far it is behind the best."""
    totals = torch.stack([loss.total for loss in results])
    gaps = totals - totals[int(totals.mean(1).argmin())]
    return [
        Scored(
            name,
            network,
            float(loss.total.mean()),
            _error(loss.total, n, out),
            float(loss.fit.mean()),
            float(loss.spread.mean()),
            float(gap.mean()),
            _error(gap, n, out),
        )
        for (name, network), loss, gap in zip(named.items(), results, gaps, strict=True)
    ]


def _current(named: Mapping[str, Network], current: object) -> str:
    """The name of the current architecture."""
    for name, network in named.items():
        if (isinstance(current, str) and current == name) or network is current:
            return name
        if isinstance(current, Network) and current == network:
            return name
    if isinstance(current, str):
        raise UnknownName.of(PoolError)("the current architecture", current, tuple(named))
    known = f"among {', '.join(named)}"
    raise BadArgument.of(PoolError)("the current architecture", known, shown(current))


def _error(values: Float[Tensor, " f"], n: int, out: int) -> float:
    return float(values.std()) * (1 / len(values) + out / (n - out)) ** 0.5


if TYPE_CHECKING:
    from matplotlib.figure import Figure

FIT, SPREAD, INK = "#3d4fd1", "#b9bdc9", "#1c1e26"


def plot_choice(choice: Choice) -> "Figure":
    """Plot the expected squared error of each architecture as fit and spread, best on top.

    Error bars are one standard error over folds.
    """
    from matplotlib.figure import Figure

    ranked = choice.ranked[::-1]
    figure = Figure(figsize=(7, 1.2 + 0.28 * len(ranked)), dpi=160, layout="constrained")
    axes = figure.subplots()
    places = range(len(ranked))
    fits, spreads = [scored.fit for scored in ranked], [scored.spread for scored in ranked]
    axes.barh(places, fits, color=FIT, height=0.7, label="fit: error of the mean prediction")
    axes.barh(
        places, spreads, left=fits, color=SPREAD, height=0.7, label="spread between initialisations"
    )
    axes.errorbar(
        [scored.score for scored in ranked],
        places,
        xerr=[scored.error for scored in ranked],
        fmt="none",
        ecolor=INK,
        elinewidth=1,
        capsize=2,
    )
    axes.set_xlabel("expected squared error on held-out labels")
    axes.set_xlim(0, None)
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.tick_params(axis="y", length=0)
    # A name may contain a "$", which would be read as mathematics.
    axes.set_yticks(places, [scored.name for scored in ranked], parse_math=False)
    figure.legend(loc="outside upper right", frameon=False, ncols=2, fontsize="small")
    return figure
