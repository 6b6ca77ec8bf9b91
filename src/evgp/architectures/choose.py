"""Model selection without training: the architecture that would lose least on new labels.

Hemachandra et al., Training-Free Neural Active Learning with Initialization-Robustness
Guarantees, ICML 2023, section on model selection.
"""

import tomllib
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from evgp._checks import finite, flag, integer, noise_of, number, numbers, seed_of, shown
from evgp._checks import points as checked_points
from evgp._defaults import CHOICE_NOISE, TRAINING_SCALE
from evgp._executor import Progress
from evgp._linalg import standardised
from evgp._machine import available_memory, each_alone
from evgp._progress import reporting
from evgp._reading import read_text
from evgp._repr import html_card
from evgp._typing import Array
from evgp.architectures.cross_validation import Losses, losses, split
from evgp.datasets import ReadOptions, from_array, read_columns
from evgp.datasets.scaling import scale_of
from evgp.errors import (
    BadArgument,
    DataWarning,
    EvgpError,
    MemoryPlanError,
    NetworkError,
    PoolError,
    UnknownName,
    UnreadableFile,
    WrongFormat,
    size,
)
from evgp.nets import Network, mlp

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
    noise: float = CHOICE_NOISE,
    scale: str | None = TRAINING_SCALE,
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
    scale = scale_of(scale, standardise, TRAINING_SCALE)
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


_MIN_LABELS = 4  # fewer cannot be split into different folds


def named_networks(networks: Mapping[str, Any] | Sequence[Any]) -> dict[str, Network]:
    """Networks by name; those of a list are called by their `repr`."""
    if isinstance(networks, Network) or not isinstance(networks, Mapping | Sequence):
        raise PoolError(
            "expected a list of networks, or networks by name, such as "
            f"evgp.architectures.candidates(); got {type(networks).__name__}"
        )
    named = (
        dict(networks)
        if isinstance(networks, Mapping)
        else {repr(network): network for network in networks}
    )
    if not named:
        raise PoolError("expected architectures to choose from, got none")
    for name, network in named.items():
        if not isinstance(network, Network):
            raise PoolError(
                "expected architectures with exact kernels, such as evgp.mlp(...), got "
                f"{type(network).__name__} for {name!r}"
            )
    return named


def check_folds(n: int, folds: int, kappa: float, noise: float, seed: int) -> None:
    """Raise if settings are invalid, or if there are more labels than fit in memory."""
    number(kappa, "kappa", 0, 1, above=True, below=True, why="the share held out")
    integer(folds, "folds", 2, 1_000_000)
    noise_of(noise)
    seed_of(seed)
    out = max(1, round(kappa * n))
    if n < _MIN_LABELS or out > n - 2:
        raise PoolError(
            f"expected at least {_MIN_LABELS} labels, and at least two to train on in each fold; "
            f"got {n} labels, of which {out} are held out (kappa={kappa})"
        )
    need, free = 8 * 8 * n**2, available_memory()
    if need > free:
        fits = int((free / 64) ** 0.5)
        raise MemoryPlanError(
            f"{n:,} labels do not fit in the {size(free)} of free memory, which is enough "
            f"for {fits:,}; rank networks on a random part of them"
        )


def checked_inputs(
    x: Any, y: Array | Sequence[str], reading: ReadOptions
) -> tuple[Float[Tensor, " n *d"], Float[Tensor, "n o"]]:
    """Points, and targets: numbers, or centred one-hot classes."""
    data, scale = read_columns(x, reading), reading.scale
    points = checked_points(x if data is None else data.in_memory, "x")
    codes = _classes(y)
    if codes is None:
        values = numbers(y, "y").double()
        if values.ndim not in (1, 2) or values.numel() == 0:
            raise BadArgument.of(PoolError)(
                "y", "of shape (n,) or (n, outputs)", str(tuple(values.shape))
            )
        targets = finite(values if values.ndim > 1 else values[:, None], "y")
    else:
        targets = torch.nn.functional.one_hot(codes).double()
        targets = targets - targets.mean(0)
    if len(points) != len(targets):
        raise PoolError(
            f"expected as many labels as points, got {len(targets)} labels for {len(points)} points"
        )
    if len(points) >= _MIN_LABELS and bool((targets == targets[0]).all()):
        raise PoolError("all labels are equal; label more points")
    if scale is None or len(points) < _MIN_LABELS:
        return points, targets
    if data is None:
        points = from_array(points, ReadOptions(scale=scale), "x").in_memory
    return points, targets if codes is not None else standardised(targets)


def _classes(y: Array | Sequence[str]) -> Int[Tensor, " n"] | None:
    """The codes of classes, or None if labels are numbers."""
    try:
        plain = y.detach().cpu().numpy() if isinstance(y, Tensor) else np.asarray(y)
    except Exception as error:  # a user's object may raise anything
        raise BadArgument.of(PoolError)("y", "as a list of labels", shown(y)) from error
    if plain.dtype.kind == "O" and not all(isinstance(label, str | int) for label in plain.flat):
        raise BadArgument.of(PoolError)(
            "y", "as numbers, or as classes given by strings or integers", "other objects"
        )
    if plain.ndim != 1 or plain.dtype.kind in "fc" or not len(plain):
        return None
    words = plain if plain.dtype.kind in "iub" else np.array([str(label) for label in plain])
    names, codes = np.unique(words, return_inverse=True)
    if plain.dtype.kind in "iu" and len(names) > max(20, len(plain) // 4):
        warnings.warn(
            f"{len(names)} different integers in y were read as classes; pass floats if they are "
            "numbers to predict",
            DataWarning,
            stacklevel=3,
        )
    return torch.from_numpy(codes.reshape(-1).astype(np.int64))


def candidates(
    depths: tuple[int, ...] = (1, 2, 3, 4),
    activations: tuple[str, ...] = ("relu", "gelu", "leaky_relu", "erf"),
    *,
    width: int = 512,
    outputs: int = 1,
) -> dict[str, Network]:
    """The 16 architectures of the paper by name; with "sin" its 20 for sinusoidal data.

    Parameters
    ----------
    depths : tuple of int
        Numbers of hidden layers.
    activations : tuple of str
    width, outputs : int
        Sizes of the layers.

    Returns
    -------
    dict of str to Network

    Examples
    --------
    >>> list(candidates(depths=(1, 2), activations=("relu", "erf")))
    ['relu-1', 'relu-2', 'erf-1', 'erf-2']
    """
    for name, values in (("depths", depths), ("activations", activations)):
        if not isinstance(values, Sequence) or isinstance(values, str) or not values:
            raise BadArgument.of(NetworkError)(name, "as a list", shown(values))
    return {
        f"{activation}-{depth}": mlp(depth, width, activation, outputs=outputs)
        for activation in activations
        for depth in depths
    }


_MAX_BYTES = 100_000  # more than anyone writes by hand, and quick to parse
# The time and memory that tomllib needs for a dotted key grow with the square of its parts.
_MAX_DOTS = 100
_KEYS = ("name", "depth", "width", "activation", "w_std", "b_std")


def read_networks(path: str | Path, *, outputs: int = 1) -> dict[str, Network]:
    """The networks in a TOML file, by name; each `[[network]]` lists what differs from `mlp()`.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder, "nets.toml")
    ...     _ = file.write_text('[[network]]\\nname = "deep"\\ndepth = 4\\nactivation = "gelu"\\n')
    ...     read_networks(file)
    {'deep': Network(depth=4, width=512, activation=gelu, w_std=1, b_std=0.1)}
    """
    text = read_text(path, NetworkError, most=_MAX_BYTES)
    if max((line.count(".") for line in text.splitlines()), default=0) > _MAX_DOTS:
        raise WrongFormat.of(NetworkError)(
            str(path), "a TOML file of networks", f"a key with more than {_MAX_DOTS} parts"
        )
    try:
        content = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError, ValueError) as error:
        raise UnreadableFile.of(NetworkError)(
            str(path), f"not a valid TOML file ({error})"
        ) from error
    entries = content.get("network")
    if not isinstance(entries, list) or not entries or set(content) != {"network"}:
        raise WrongFormat.of(NetworkError)(
            str(path), "a [[network]] for each architecture", ", ".join(content) or "none"
        )
    networks: dict[str, Network] = {}
    for place, entry in enumerate(entries, 1):
        if not isinstance(entry, dict):
            raise WrongFormat.of(NetworkError)(
                str(path), "a [[network]] for each architecture", repr(entry)
            )
        unknown = [key for key in entry if key not in _KEYS]
        if unknown:
            raise WrongFormat.of(NetworkError)(
                str(path), f"{', '.join(_KEYS)} in network {place}", repr(unknown[0])
            )
        settings = {key: value for key, value in entry.items() if key != "name"}
        try:
            network = mlp(**settings, outputs=outputs)
        except (TypeError, EvgpError) as error:
            listed = ", ".join(f"{key} = {value!r}" for key, value in settings.items())
            raise UnreadableFile.of(NetworkError)(
                str(path), f"invalid arguments of evgp.mlp in network {place} ({listed}): {error}"
            ) from error
        name = str(entry.get("name", network))
        if name in networks:
            raise UnreadableFile.of(NetworkError)(
                str(path), f"two networks are called {name!r}", "give each its own name"
            )
        networks[name] = network
    return networks
