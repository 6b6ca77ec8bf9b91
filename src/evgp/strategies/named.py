"""Strategies by name, as they are asked for on a command line."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from difflib import get_close_matches
from inspect import Parameter, signature
from types import FunctionType

import torch
from jaxtyping import Shaped
from torch import Tensor

from evgp._checks import instance, integer, keep, seed_of, word
from evgp._errors import PoolError
from evgp._plugins import plugin, plugin_names
from evgp.criteria import Linearised
from evgp.kernels import NTK, EmpiricalNTK, Features, Inducing, Kernel, Source
from evgp.nets import Network, found_at
from evgp.search import Exact, Greedy
from evgp.selection.checks import CRITERIA, GREEDIES, thinned_to
from evgp.selection.features import inducing_points
from evgp.strategies.badge import BADGE
from evgp.strategies.batchbald import BatchBALD
from evgp.strategies.evgp import EVGP
from evgp.strategies.hybrid import Hybrid
from evgp.strategies.max_variance import MaxVariance
from evgp.strategies.mlmoc import MLMOC
from evgp.strategies.random import Random
from evgp.strategies.spread import CoreSet, KMeansPlusPlus
from evgp.strategies.strategy import Strategy
from evgp.strategies.thinned import Thinned
from evgp.training import Recipe

# The test points of larger pools are thinned to so many, as the paper does.
_LARGE, _THIN = 25_000, 10_000
# Inducing points of a sparse posterior, by k-means, as the paper has them.
_INDUCING = 200
_WARM = re.compile(r"(?P<first>kmeans\+\+|[^+]+?)(?::(?P<after>\d+))?\+(?P<then>.+)")
_POSTERIORS = ("sparse", "linear")
_CRITERIA = [name for name in CRITERIA if name != "ev"]
_GREEDIES = [name for name in GREEDIES if "-" not in name]
_PARTS = (*_CRITERIA, "emp", *_POSTERIORS, *_GREEDIES)


@dataclass(frozen=True)
class Setting:
    """What strategies are made for: a pool, the network that is meant, and how it is trained.

    `kernel` is the network whose NTK stands for it (an `mlp` has an exact one); `recipe` trains it.
    `most` is the whole budget, and `batch` how many are picked in one round. `search` and `noise`
    are those of EV-GP, unless its name gives a search.
    """

    x: Shaped[Tensor, " n *d"]
    kernel: Source
    recipe: Recipe
    classes: int = 0
    most: int = 100
    batch: int = 20
    seed: int = 0
    search: Greedy = Exact()
    noise: float = 1e-6

    def __post_init__(self) -> None:
        instance(self.x, "x", Tensor, "torch.as_tensor(x)")
        instance(self.recipe, "a recipe", Recipe, "evgp.Recipe(evgp.mlp())")
        keep(self, classes=integer(self.classes, "classes", 0), seed=seed_of(self.seed))
        keep(self, most=integer(self.most, "most", 1), batch=integer(self.batch, "batch", 1))

    def prior(self, *, empirical: bool = False) -> Kernel:
        """The exact NTK where there is one, else that of a finite network."""
        if isinstance(self.kernel, Network) and not empirical:
            return NTK(self.kernel)
        return EmpiricalNTK(self.recipe.network, seed=self.seed, anew=True)


_SIMPLE: dict[str, Callable[[Setting], Strategy]] = {
    "random": lambda setting: Random(),
    "kmeans++": lambda setting: KMeansPlusPlus(most=setting.most, seed=setting.seed),
    "coreset": lambda setting: CoreSet(),
    "max-variance": lambda setting: MaxVariance(setting.prior()),
    "badge": lambda setting: BADGE(setting.recipe, classes=setting.classes),
    "mlmoc": lambda setting: MLMOC(setting.recipe, classes=setting.classes),
    "mlmoc-seq": lambda setting: MLMOC(setting.recipe, classes=setting.classes, sequential=True),
    "batchbald": lambda setting: BatchBALD(
        setting.recipe, setting.classes, members=100, dropout=0.5
    ),
}
NAMES = ("evgp", *_SIMPLE)


def strategy_named(name: str, setting: Setting) -> Strategy:
    """The strategy of this name, made for a setting; what can be wrong with a name is told.

    "evgp" takes parts in any order: a criterion (median, p90, max, mi), emp (the empirical kernel),
    sparse or linear (the posterior), and a greedy: "evgp-emp-p90". "evgp+badge" is a warm start
    with one batch, "evgp:40+badge" with 40 labels. "package.module:name" is your own: a strategy,
    or a function or class that makes one, and is given the `Setting` where it asks for an argument;
    an installed package can offer the same by a name, in its entry points `evgp.strategies`.
    """
    instance(setting, "a setting", Setting, "evgp.strategies.Setting(x, network, recipe)")
    word(name, "a strategy")
    if name in _SIMPLE:
        return _SIMPLE[name](setting)
    if warm := _WARM.fullmatch(name):
        after = setting.batch if warm["after"] is None else int(warm["after"])
        first, then = (strategy_named(warm[part], setting) for part in ("first", "then"))
        return Hybrid(first, then, after)
    head, *parts = name.split("-")
    if head == "evgp":
        return _evgp(name, parts, setting)
    if ":" in name:
        package, _, attribute = name.partition(":")
        return _made(found_at(package, attribute, "a strategy"), name, setting)
    if (offered := plugin("strategies", name)) is not None:
        return _made(offered, name, setting)
    known = (*NAMES, *plugin_names("strategies", NAMES))
    near = get_close_matches(name.lower(), known, 1)
    raise PoolError(
        f"expected strategies among {', '.join(known)}, evgp-PART (such as evgp-p90, evgp-emp), "
        f"FIRST+THEN, or package.module:name; got {name!r}"
        + (f"; did you mean {near[0]}?" if near else "")
    )


def _evgp(name: str, parts: list[str], setting: Setting) -> Strategy:
    wrong = [part for part in parts if part not in _PARTS]
    kinds = [
        [part for part in parts if part in kind] for kind in (_CRITERIA, _POSTERIORS, _GREEDIES)
    ]
    if wrong or any(len(kind) > 1 for kind in kinds):
        raise PoolError(
            f"expected evgp with at most one of {', '.join(_CRITERIA)}, of sparse, linear, and of "
            f"{', '.join(_GREEDIES)}, and emp; got {name!r}"
        )
    if kinds[0] and kinds[1]:
        raise PoolError(
            f"expected no {kinds[0][0]} with {kinds[1][0]}, which knows the mean variance alone; "
            f"got {name!r}; leave out one of them"
        )
    criterion = CRITERIA[next(iter(kinds[0]), "ev")]()
    prior = setting.prior(empirical="emp" in parts)
    kernel: Kernel | Features = prior
    if kinds[1]:
        points = inducing_points(
            setting.x, min(_INDUCING, len(setting.x)), "kmeans", seed=setting.seed
        )
        kernel = Inducing(prior, points)
        criterion = Linearised() if kinds[1] == ["linear"] else criterion
    made = EVGP(
        kernel,
        criterion,
        GREEDIES[kinds[2][0]]() if kinds[2] else setting.search,
        noise=setting.noise,
        storage=torch.float32 if len(setting.x) > _THIN else torch.float64,
    )
    thin = thinned_to(None, criterion) or (_THIN if len(setting.x) > _LARGE else None)
    if thin is None or kinds[1] or thin >= len(setting.x):
        return made
    return Thinned(made, thin, setting.seed)


def _made(found: object, name: str, setting: Setting) -> Strategy:
    if isinstance(found, FunctionType | type) and not _is_strategy(found):
        try:
            found = _called(found, setting)
        except (Exception, SystemExit) as error:  # a user's function may raise anything
            raise PoolError(f"{name} stopped: {type(error).__name__}: {error}") from error
    if not isinstance(found, Strategy) or not _is_strategy(found):
        raise PoolError(
            f"expected a strategy at {name}, called as (pool, k, *, generator), or a function or "
            f"class that makes one, from a Setting or from nothing; got {type(found).__name__}"
        )
    return found


def _is_strategy(found: object) -> bool:
    """Can it be called as one? A class cannot: it makes them."""
    if isinstance(found, type) or not callable(found):
        return False
    try:
        signature(found).bind(None, 1, generator=None)
    except TypeError:
        return False
    except ValueError:  # compiled code may not tell
        return True
    return True


def _called(maker: Callable[..., object], setting: Setting) -> object:
    """With the setting, where it has an argument of this name or begins with one to be given."""
    wanted = signature(maker).parameters
    if "setting" in wanted and wanted["setting"].kind is not Parameter.POSITIONAL_ONLY:
        return maker(setting=setting)
    first = next(iter(wanted.values()), None)
    if first is None or first.default is not Parameter.empty:
        return maker()
    named = first.kind in (Parameter.KEYWORD_ONLY, Parameter.VAR_KEYWORD)
    return maker() if named else maker(setting)
