"""Picks from a pool in memory."""

import warnings
from dataclasses import dataclass, replace
from math import inf

import torch
from jaxtyping import Float, Int, Shaped
from torch import Tensor

from evgp._errors import DataWarning, PoolError
from evgp.greedy import Progress
from evgp.kernels import Features, Kernel
from evgp.pool import Pool, Selection
from evgp.strategies import checks
from evgp.strategies.evgp import EVGP
from evgp.strategies.names import choose_greedy
from evgp.strategies.plan import Plan
from evgp.strategies.reduce import features_named
from evgp.strategies.rules import Rules
from evgp.strategies.shards import Held
from evgp.strategies.stream import pick_sharded

_STORAGE = {"float32": torch.float32, "float64": torch.float64}


@dataclass(frozen=True, eq=False)
class Asked:
    """Points to choose from and points that matter, checked."""

    x: Shaped[Tensor, " n *d"]
    x_test: Shaped[Tensor, " m *d"] | None
    x_labelled: Shaped[Tensor, " a *d"] | None
    weights: Float[Tensor, " m"] | None
    labelled: Int[Tensor, " l"]
    free: Int[Tensor, " c"]
    prices: Float[Tensor, " n"] | None = None
    money: float = inf

    def scaled(self) -> "Asked":
        """All points on the scale of the pool."""
        scale = checks.scale_of(self.x)
        if not bool(scale.factor.any()):
            warnings.warn(
                "every column is constant, so all rows are alike and any pick is as good",
                DataWarning,
                stacklevel=2,
            )
        return replace(
            self,
            x=scale(self.x),
            x_test=None if self.x_test is None else scale(self.x_test),
            x_labelled=None if self.x_labelled is None else scale(self.x_labelled),
        )

    def pick(self, k: int | None, rules: Rules, plan: Plan, progress: Progress) -> Selection:
        """As planned."""
        if plan.method == "sharded":
            return self._pick_sharded(k, rules, plan, progress)
        pool = Pool(self.x, self.x_test, None, self.weights, self.labelled, self.x_labelled)
        pool = pool if rules.thin is None else checks.thinned(pool, rules.thin, rules.seed)
        prior: Kernel | Features = rules.kernel
        if plan.method == "features":
            progress("features", 0, 1)
            chosen = plan.kind if rules.features is None else rules.features
            prior = features_named(chosen, rules.kernel, pool.x, rules.seed)
            progress("features", 1, 1)
        greedy = choose_greedy(rules.greedy, len(self.free), plan.k, rules.criterion)
        strategy = EVGP(prior, rules.criterion, greedy, rules.noise, _STORAGE[plan.storage])
        return strategy(
            pool,
            k,
            costs=self.prices,
            budget=self.money,
            candidates=self.free,
            generator=torch.Generator().manual_seed(rules.seed),
            progress=progress,
        )

    def _pick_sharded(
        self, k: int | None, rules: Rules, plan: Plan, progress: Progress
    ) -> Selection:
        if self.weights is not None:
            raise PoolError("expected no test_weights in a sharded run; repeat test points instead")
        return pick_sharded(
            Held(self.x),
            k,
            rules,
            plan,
            test=None if self.x_test is None else Held(self.x_test),
            outside=None if self.x_labelled is None else Held(self.x_labelled),
            labelled=self.labelled,
            candidates=self.free,
            prices=self.prices,
            budget=self.money,
            progress=progress,
        )
