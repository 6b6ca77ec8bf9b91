"""EV-GP with model selection: the labels so far choose the network, the network the next labels.

Hemachandra et al., Training-Free Neural Active Learning with Initialization-Robustness
Guarantees, ICML 2023, algorithm 1.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import torch
from torch import Generator

from evgp._checks import flag, integer, keep, noise_of, number, one_of, seed_of, shown
from evgp._errors import PoolError
from evgp._linalg import standardised
from evgp.architectures import Choice, candidates, choose, named_networks
from evgp.criteria import Criterion, ExpectedVariance
from evgp.kernels import NTK
from evgp.nets import Network
from evgp.pool import Pool, Selection
from evgp.search import Exact, Greedy
from evgp.selection.checks import criterion_named, greedy_of
from evgp.strategies.evgp import EVGP
from evgp.strategies.strategy import labels, unlabelled


@dataclass(frozen=True)
class EVGPMS:
    """Data by the expected variance of the current network, then the network by the labels.

    Before there are labels (or fewer than `least`) the network is `first`. With `one_error` it
    stays unless another is better by more than one standard error; then the choices of earlier
    rounds are made again, since they decide which one is the current: rounds of as many labels as
    are asked for now, counted back from the last label. The network and all scores come back in the
    settings of the selection; `choice(pool, k)` says what all labels choose, `history(pool, k)`
    what they chose after each round of k. Numbers are scaled to mean 0 and deviation 1 by the
    labels there are; the points are taken as they are. The cost of `EVGP` and of `choose`.

    >>> x = torch.randn(30, 2, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    >>> pool = Pool(x, labelled=torch.arange(12), y=x[:12, 0].abs())
    >>> made = EVGPMS(folds=10)(pool, 3, generator=torch.Generator())
    >>> made.settings["network"]
    'gelu-1'
    """

    networks: Mapping[str, Network] = field(default_factory=candidates)
    first: str = "relu-2"
    criterion: Criterion = ExpectedVariance()
    greedy: Greedy = Exact()
    noise: float = 1e-6
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
            raise PoolError(f"expected a greedy such as evgp.Exact(), got {shown(self.greedy)}")
        keep(self, noise=noise_of(self.noise), folds=integer(self.folds, "folds", 2))
        why = "the share left out"
        keep(self, kappa=number(self.kappa, "kappa", 0, 1, above=True, below=True, why=why))
        flag(self.one_error, "one_error")
        keep(self, least=integer(self.least, "least", 0), seed=seed_of(self.seed))

    def __call__(self, pool: Pool, k: int, *, generator: Generator) -> Selection:
        """k picks by the network that the labels choose."""
        unlabelled(pool, k, generator)
        choice = self.choice(pool, k)
        name = self.first if choice is None else choice.chosen.name
        strategy = EVGP(NTK(self.networks[name]), self.criterion, self.greedy, self.noise)
        made = strategy(pool, k, generator=generator)
        scores = {} if choice is None else {one.name: one.score for one in choice.ranked}
        return replace(made, settings={**made.settings, "network": name, "scores": scores})

    def choice(self, pool: Pool, k: int) -> Choice | None:
        """What the labels of a pool choose, after rounds of k; None where they are too few."""
        y = labels(pool, "EVGPMS")
        if y is None or len(y) < self.least:
            return None
        if self.one_error:
            return self.history(pool, k)[-1]
        return self._choose(pool.known(), y, self.first)

    def history(self, pool: Pool, k: int) -> tuple[Choice, ...]:
        """What the labels chose after each round of k, in order; the last is what they choose now.

        Rounds with fewer than `least` labels chose nothing and are left out.
        """
        y = labels(pool, "EVGPMS")
        k = integer(k, "k", 1, why="the labels of a round")
        made: list[Choice] = []
        if y is None:
            return ()
        x, current = pool.known(), self.first
        for end in reversed(range(len(y), 0, -k)):
            if end >= self.least:
                made.append(self._choose(x[:end], y[:end], current))
                current = made[-1].chosen.name
        return tuple(made)

    def _choose(self, x: torch.Tensor, y: torch.Tensor, current: str) -> Choice:
        return choose(
            self.networks,
            x,
            standardised(y) if y.is_floating_point() else y,
            standardise=False,
            folds=self.folds,
            kappa=self.kappa,
            current=current,
            one_error=self.one_error,
            seed=self.seed,
        )
