"""Strategies by name, as on a command line."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from inspect import Parameter, signature
from types import FunctionType
from typing import NamedTuple

import torch
from jaxtyping import Shaped
from torch import Tensor

from evgp._checks import instance, integer, keep, seed_of, word
from evgp._defaults import NOISE
from evgp._plugins import plugin, plugin_names
from evgp.criteria import CRITERIA, Linearised
from evgp.errors import PoolError, Stopped, UnknownName
from evgp.kernels import NTK, EmpiricalNTK, Features, Inducing, Kernel, Source
from evgp.nets import Network, imported_object
from evgp.search import GREEDIES, Exact, Greedy
from evgp.selection.features import inducing_points
from evgp.strategies.badge import BADGE
from evgp.strategies.bait import BAIT
from evgp.strategies.batchbald import BatchBALD
from evgp.strategies.diversity import CoreSet, Embed, Gradients, KMeansPlusPlus, flat
from evgp.strategies.dropquery import DropQuery
from evgp.strategies.evgp import EVGP
from evgp.strategies.hybrid import Hybrid
from evgp.strategies.kmeans import KMeans
from evgp.strategies.lcmd import LCMD
from evgp.strategies.max_variance import MaxVariance
from evgp.strategies.maxherding import MaxHerding
from evgp.strategies.mlmoc import MLMOC
from evgp.strategies.probcover import ProbCover
from evgp.strategies.random import Random
from evgp.strategies.strategy import Strategy
from evgp.strategies.thinned import Thinned
from evgp.strategies.typiclust import TypiClust
from evgp.strategies.uncertainty import Entropy, Margin
from evgp.training import Recipe

# Pools with more test points than this are thinned to as many, as in the paper.
_LARGE, _THIN = 25_000, 10_000
# Inducing points of a sparse posterior, by k-means, as in the paper.
_INDUCING = 200
_WARM = re.compile(r"(kmeans\+\+(?:[-@][a-z-]+)?|[^+]+?)(?::(\d+))?\+([^+].*)")
_POSTERIORS = ("sparse", "linear")
_CRITERIA = [name for name in CRITERIA if name != "ev"]
_GREEDIES = [name for name in GREEDIES if "-" not in name]
_PARTS = (*_CRITERIA, "emp", *_POSTERIORS, *_GREEDIES)


@dataclass(frozen=True)
class Setting:
    """The setting that a strategy may depend on: pool, network, and its training.

    Parameters
    ----------
    x : tensor, shape (n, ...)
        The pool.
    kernel : Network, module or function
        The network whose NTK is used; that of an `mlp` is exact.
    recipe : Recipe
        Trains it.
    classes : int
        Number of classes; 0 for numbers.
    most, batch : int
        Total number of picks, and picks per round.
    seed : int
    search, noise
        Those of EV-GP, unless its name gives a search.
    """

    x: Shaped[Tensor, " n *d"]
    kernel: Source
    recipe: Recipe
    classes: int = 0
    most: int = 100
    batch: int = 20
    seed: int = 0
    search: Greedy = Exact()
    noise: float = NOISE

    def __post_init__(self) -> None:
        instance(self.x, "x", Tensor, "torch.as_tensor(x)")
        instance(self.recipe, "a recipe", Recipe, "evgp.training.Recipe(evgp.mlp())")
        keep(self, classes=integer(self.classes, "classes", 0), seed=seed_of(self.seed))
        keep(self, most=integer(self.most, "most", 1), batch=integer(self.batch, "batch", 1))

    def prior(self, *, empirical: bool = False) -> Kernel:
        """The exact NTK if there is one, else that of a finite network."""
        if isinstance(self.kernel, Network) and not empirical:
            return NTK(self.kernel)
        return EmpiricalNTK(self.recipe.network, seed=self.seed, anew=True)


_SIMPLE: dict[str, Callable[[Setting], Strategy]] = {
    "random": lambda setting: Random(),
    "max-variance": lambda setting: MaxVariance(setting.prior()),
    "badge": lambda setting: BADGE(setting.recipe, classes=setting.classes),
    "mlmoc": lambda setting: MLMOC(setting.recipe, classes=setting.classes),
    "mlmoc-seq": lambda setting: MLMOC(setting.recipe, classes=setting.classes, sequential=True),
    "batchbald": lambda setting: BatchBALD(
        setting.recipe, setting.classes, members=100, dropout=0.5
    ),
    "margin": lambda setting: Margin(setting.recipe, setting.classes),
    "entropy": lambda setting: Entropy(setting.recipe, setting.classes),
}
# By distances or products of points, as they are or embedded.
_EMBEDDED: dict[str, Callable[[Setting, Embed], Strategy]] = {
    "kmeans++": lambda setting, embed: KMeansPlusPlus(setting.most, setting.seed, embed),
    "kmeans": lambda setting, embed: KMeans(embed),
    "coreset": lambda setting, embed: CoreSet(embed),
    "farthest-first": lambda setting, embed: CoreSet(embed),
    "typiclust": lambda setting, embed: TypiClust(embed=embed),
    "probcover": lambda setting, embed: ProbCover(setting.classes, seed=setting.seed, embed=embed),
    # Rows of unit norm are the paper's; a scaling in the name is used as it is.
    "maxherding": lambda setting, embed: MaxHerding(normalise=embed is flat, embed=embed),
    "dropquery": lambda setting, embed: DropQuery(setting.classes, embed=embed),
    "lcmd": lambda setting, embed: LCMD(embed),
    "bait": lambda setting, embed: BAIT(embed=embed),
    "bait-fb": lambda setting, embed: BAIT(backward=True, embed=embed),
}
_EMBEDS = ("linear", "grad")
# Features of gradients, as many as bmdal-reg has.
_GRADIENTS = 512
NAMES = ("evgp", *_SIMPLE, *_EMBEDDED)


class WarmStart(NamedTuple):
    """The parts of a name such as "evgp:40+badge"; without a number, `after` is None."""

    first: str
    after: int | None
    then: str


def warm_start(name: str) -> WarmStart | None:
    """Split the name of a warm start; None if the name is not one.

    >>> warm_start("evgp@unit:40+badge"), warm_start("kmeans++")
    (WarmStart(first='evgp@unit', after=40, then='badge'), None)
    """
    parts = _WARM.fullmatch(name)
    if parts is None:
        return None
    first, after, then = parts.groups()
    return WarmStart(first, None if after is None else int(after), then)


def strategy_named(name: str, setting: Setting) -> Strategy:
    """Make the strategy with this name for a setting.

    "evgp" takes parts in any order: a criterion (median, p90, max, mi, cells), emp (the
    empirical kernel), sparse or linear (the posterior), and a search: "evgp-emp-p90".
    "evgp+badge" is a warm start with one batch, "evgp:40+badge" with 40 labels. Strategies by
    distances measure them in gradients of an untrained network ("kmeans-grad", the default of
    "bait") or in the inputs ("bait-linear"). "package.module:name" is your own: a strategy, or a
    function or class that makes one, called with the `Setting` if it takes an argument; an
    installed package can offer the same by name, through the entry points `evgp.strategies`.

    Parameters
    ----------
    name : str
    setting : Setting

    Returns
    -------
    Strategy
    """
    instance(setting, "a setting", Setting, "evgp.strategies.Setting(x, network, recipe)")
    word(name, "a strategy")
    if name in _SIMPLE:
        return _SIMPLE[name](setting)
    plain, _, part = name.rpartition("-")
    if name in _EMBEDDED:
        plain, part = name, "grad" if name.startswith("bait") else "linear"
    if plain in _EMBEDDED and part in _EMBEDS:
        return _EMBEDDED[plain](setting, _embed(part, setting))
    if (warm := warm_start(name)) is not None:
        first, then = (strategy_named(part, setting) for part in (warm.first, warm.then))
        return Hybrid(first, then, setting.batch if warm.after is None else warm.after)
    head, *parts = name.split("-")
    if head == "evgp":
        return _evgp(name, parts, setting)
    if ":" in name:
        package, _, attribute = name.partition(":")
        return _strategy_from(imported_object(package, attribute, "a strategy"), name, setting)
    if (offered := plugin("strategies", name)) is not None:
        return _strategy_from(offered, name, setting)
    known = (*NAMES, *plugin_names("strategies", NAMES))
    others = (
        "evgp-PART (such as evgp-p90, evgp-emp), NAME-grad and NAME-linear for those by distances, "
        "FIRST+THEN, or package.module:name"
    )
    raise UnknownName.of(PoolError)("strategies", name, known, others)


def _embed(part: str, setting: Setting) -> Embed:
    if part == "linear":
        return flat
    kernel = EmpiricalNTK(setting.recipe.network, seed=setting.seed, anew=True)
    return Gradients(kernel, _GRADIENTS, setting.seed)


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
            f"expected no {kinds[0][0]} with {kinds[1][0]}, which supports the mean variance only; "
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
    own = getattr(criterion, "own_search", None)
    search = setting.search if own is None else GREEDIES[own]()
    strategy = EVGP(
        kernel,
        criterion,
        GREEDIES[kinds[2][0]]() if kinds[2] else search,
        noise=setting.noise,
        storage=torch.float32 if len(setting.x) > _THIN else torch.float64,
    )
    thin = getattr(criterion, "test_points", None) or (_THIN if len(setting.x) > _LARGE else None)
    if thin is None or kinds[1] or thin >= len(setting.x):
        return strategy
    return Thinned(strategy, thin, setting.seed)


def _strategy_from(source: object, name: str, setting: Setting) -> Strategy:
    if isinstance(source, FunctionType | type) and not _is_strategy(source):
        try:
            source = _called(source, setting)
        except (Exception, SystemExit) as error:  # a user's function may raise anything
            raise Stopped.of(PoolError)(f"{name}()", f"{type(error).__name__}: {error}") from error
    if not isinstance(source, Strategy) or not _is_strategy(source):
        raise PoolError(
            f"expected a strategy at {name}, called as (pool, k, *, generator), or a function or "
            f"class that makes one, with a Setting or no argument; got {type(source).__name__}"
        )
    return source


def _is_strategy(thing: object) -> bool:
    """Whether an object can be called as a strategy; a class cannot, because it makes them."""
    if isinstance(thing, type) or not callable(thing):
        return False
    try:
        signature(thing).bind(None, 1, generator=None)
    except TypeError:
        return False
    except ValueError:  # compiled code may have no signature
        return True
    return True


def _called(maker: Callable[..., object], setting: Setting) -> object:
    """Call with the setting, if there is an argument of this name, or a first without default."""
    parameters = signature(maker).parameters
    if "setting" in parameters and parameters["setting"].kind is not Parameter.POSITIONAL_ONLY:
        return maker(setting=setting)
    first = next(iter(parameters.values()), None)
    if first is None or first.default is not Parameter.empty:
        return maker()
    named = first.kind in (Parameter.KEYWORD_ONLY, Parameter.VAR_KEYWORD)
    return maker() if named else maker(setting)
