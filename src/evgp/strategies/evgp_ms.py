"""EV-GP with model selection: labels select the network, the network selects the next points.

Hemachandra et al., Training-Free Neural Active Learning with Initialization-Robustness
Guarantees, ICML 2023, algorithm 1.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import torch
from torch import Generator

from evgp._checks import flag, integer, keep, noise_of, number, one_of, seed_of, shown
from evgp._defaults import NOISE
from evgp._linalg import standardised
from evgp.architectures import Choice, candidates, choose, named_networks
from evgp.criteria import Criterion, ExpectedVariance, criterion_named
from evgp.errors import PoolError
from evgp.kernels import NTK
from evgp.nets import Network
from evgp.pool import Pool, Selection
from evgp.search import Exact, Greedy, greedy_of
from evgp.strategies.evgp import EVGP
from evgp.strategies.strategy import labels, unlabelled


@dataclass(frozen=True)
class EVGPMS:
    """EV-GP with a network that is selected by the labels so far.

    With `one_error` the choices of earlier rounds are repeated, because they decide which network
    is the current one: rounds of as many labels as requested now, counted back from the last label.
    The selection's settings have the network and all scores; `choice(pool, k)` is the choice by all
    labels, `history(pool, k)` that after each round of k. Numbers in `y` are scaled to mean 0 and
    standard deviation 1; the points are used as they are. Costs as much as `EVGP` and `choose`.

    Parameters
    ----------
    networks : mapping
        Networks by name; those of the paper by default.
    first : str
        Name of the network for the first labels.
    criterion, greedy, noise
        As for `EVGP`.
    folds, kappa, seed
        As for `evgp.choose`.
    one_error : bool
        Stay unless another network is better by more than one standard error.
    least : int
        Labels from which on networks are selected.

    Examples
    --------
    >>> x = torch.randn(30, 2, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    >>> pool = Pool(x, labelled=torch.arange(12), y=x[:12, 0].abs())
    >>> selection = EVGPMS(folds=10)(pool, 3, generator=torch.Generator())
    >>> selection.settings["network"]
    'gelu-1'
    """

    networks: Mapping[str, Network] = field(default_factory=candidates)
    first: str = "relu-2"
    criterion: Criterion = ExpectedVariance()
    greedy: Greedy = Exact()
    noise: float = NOISE
    folds: int = 100
    kappa: float = 0.3
    one_error: bool = False
    least: int = 10
    seed: int = 0

    def __post_init__(self) -> None:
        object.__setattr__(self, "networks", named_networks(self.networks))
        one_of(self.first, "the first network", tuple(self.networks))
        criterion_named(self.criterion)
        if isinstance(greedy_of(self.greedy), str):
            raise PoolError(
                f"expected a search such as evgp.search.Exact(), got {shown(self.greedy)}"
            )
        keep(self, noise=noise_of(self.noise), folds=integer(self.folds, "folds", 2))
        why = "the share left out"
        keep(self, kappa=number(self.kappa, "kappa", 0, 1, above=True, below=True, why=why))
        flag(self.one_error, "one_error")
        keep(self, least=integer(self.least, "least", 0), seed=seed_of(self.seed))

    def __call__(self, pool: Pool, k: int, *, generator: Generator) -> Selection:
        """Return k picks by the network that the labels select."""
        unlabelled(pool, k, generator)
        choice = self.choice(pool, k)
        name = self.first if choice is None else choice.chosen.name
        strategy = EVGP(NTK(self.networks[name]), self.criterion, self.greedy, self.noise)
        selection = strategy(pool, k, generator=generator)
        scores = {} if choice is None else {entry.name: entry.score for entry in choice.ranked}
        settings = {**selection.settings, "network": name, "scores": scores}
        return replace(selection, settings=settings)

    def choice(self, pool: Pool, k: int) -> Choice | None:
        """The choice by the labels of a pool, after rounds of k; None with too few labels."""
        y = labels(pool, "EVGPMS")
        if y is None or len(y) < self.least:
            return None
        if self.one_error:
            return self.history(pool, k)[-1]
        return self._choose(pool.known(), y, self.first)

    def history(self, pool: Pool, k: int) -> tuple[Choice, ...]:
        """The choices after each round of k, in order; the last is the current one.

        Rounds with fewer than `least` labels are left out.
        """
        y = labels(pool, "EVGPMS")
        k = integer(k, "k", 1, why="the labels of a round")
        choices: list[Choice] = []
        if y is None:
            return ()
        x, current = pool.known(), self.first
        for end in reversed(range(len(y), 0, -k)):
            if end >= self.least:
                choices.append(self._choose(x[:end], y[:end], current))
                current = choices[-1].chosen.name
        return tuple(choices)

    def _choose(self, x: torch.Tensor, y: torch.Tensor, current: str) -> Choice:
        return choose(
            self.networks,
            x,
            standardised(y) if y.is_floating_point() else y,
            scale=None,
            folds=self.folds,
            kappa=self.kappa,
            current=current,
            one_error=self.one_error,
            seed=self.seed,
        )
