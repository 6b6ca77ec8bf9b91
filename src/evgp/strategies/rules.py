"""How picks are to be made, checked once, whatever the pool is; and what is said of them."""

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

import torch

from evgp._errors import DataWarning, EvgpWarning, PoolError
from evgp._executor import Executor, Here
from evgp._linalg import JITTER
from evgp.criteria import Criterion
from evgp.greedy import Greedy
from evgp.kernels import Features, Kernel
from evgp.nets import sized
from evgp.pool import Selection
from evgp.strategies.names import features_of, noise_of, whole
from evgp.strategies.plan import Plan, plan, refuse
from evgp.strategies.reduce import P
from evgp.strategies.shards import SHARD


@dataclass(frozen=True)
class Rules:
    """The kernel and all that steers the picks; `executor` is None for this process."""

    kernel: Kernel
    network: str
    criterion: Criterion
    greedy: str | Greedy
    features: str | Features | None = None
    noise: float = 1e-6
    seed: int = 0
    storage: str = "auto"
    thin: int | None = None
    method: str = "auto"
    memory: int | str | None = None
    executor: Executor | None = None
    cache: Path | None = None
    shard: int = field(default_factory=lambda: SHARD)
    told: Mapping[str, object] = field(default_factory=dict)  # what more to say of the picks

    def __post_init__(self) -> None:
        whole(self.seed, "seed", 0, 2**32 - 1)
        noise_of(self.noise)
        features_of(self.features)
        if self.executor is not None and self.method not in ("auto", "sharded"):
            raise PoolError(
                f"expected method='sharded' with an executor, got {self.method!r}; leave it out"
            )

    def place(self) -> Executor:
        """Where large runs work."""
        return Here() if self.executor is None else self.executor

    def plan(
        self,
        n: int,
        shape: tuple[int, ...],
        k: int,
        *,
        m: int | None,
        labelled: int,
        held: bool = True,
    ) -> Plan:
        """What a run would take; one that does not fit is refused."""
        named = self.features
        made = plan(
            n,
            shape,
            k,
            m=m,
            labelled=labelled,
            kernel=self.kernel,
            criterion=self.criterion,
            greedy=self.greedy,
            storage=self.storage,
            thin=self.thin,
            features=named if named is None or isinstance(named, str) else _named(named),
            method=self.method if self.executor is None else "sharded",
            memory=self.memory,
            held=held,
        )
        refuse(made)
        return made

    def make(self, plan: Plan, picks: Callable[[], Selection], **told: object) -> Selection:
        """Picks with their settings and the warnings of their making, which are raised too."""
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", EvgpWarning)
            itself = self.features is None and self.method == "auto" and self.executor is None
            if plan.method != "dense" and itself:
                warnings.warn(
                    f"the {plan.rows:,} x {plan.test_points:,} matrix of the exact kernel would "
                    f"not fit in memory, so the picks are those of {plan.kind} features",
                    DataWarning,
                    stacklevel=2,
                )
            made = picks()
            _remark(made, self.noise)
        for one in caught:
            warnings.warn(one.message, stacklevel=3)
        objects = self.features is not None and not isinstance(self.features, str)
        settings = {
            "rows": plan.rows,
            "features": plan.features,
            "test_points": plan.test_points,
            **told,
            "network": self.network,
            "criterion": repr(self.criterion),
            "greedy": plan.greedy,
            "noise": self.noise,
            "noise_variance": max(self.noise, JITTER) * made.prior_variance,
            "jitter": JITTER if self.noise < JITTER else 0.0,
            "storage": plan.storage,
            "method": plan.method,
            "kernel_features": repr(self.features) if objects else plan.kind or None,
            "thin": self.thin,
            "seed": self.seed,
            **self.told,
        }
        texts = (str(one.message) for one in caught if issubclass(one.category, EvgpWarning))
        return replace(made, settings=settings, warnings=tuple(texts))


def described(network: object) -> str:
    """Short, also for a torch module of many lines."""
    if isinstance(network, torch.nn.Module):
        sized(network)
        count = sum(param.numel() for param in network.parameters())
        return f"{type(network).__name__} with {count:,} parameters"
    return repr(network)


def _named(features: Features) -> str:
    """A name with as many features, for the plan."""
    width = getattr(features, "p", None) or len(getattr(features, "points", ())) or P
    return f"nystrom-{width}"


def _remark(made: Selection, noise: float) -> None:
    """Say what a reader of the picks should know."""
    worse = int((made.gains < 0).sum())
    if worse:
        warnings.warn(
            f"{worse} of {len(made)} picks have a negative gain: the criterion is not monotone, "
            "and fewer labels would serve it better",
            DataWarning,
            stacklevel=2,
        )
    nothing = min(max(1e-9, 3 * noise), 1e-5) * made.prior_variance
    enough = int((made.variance_left > nothing).sum()) + 1
    if made.prior_variance > 0 and enough < len(made):
        warnings.warn(
            f"the first {enough} of {len(made)} picks leave no variance beyond the noise (the pool "
            "has no more distinct points, or the network is linear), so the others add nothing",
            DataWarning,
            stacklevel=2,
        )
