"""Strategies by name: each obeys the laws, and wrong names are errors."""

import pytest
import torch

from evgp import EVGP, NTK, EmpiricalNTK, Pool, mlp
from evgp.criteria import Linearised, MutualInformation, Percentile
from evgp.errors import PoolError
from evgp.kernels import Inducing
from evgp.search import Exchange, Stochastic
from evgp.strategies import BADGE, NAMES, Hybrid, KMeansPlusPlus, Random, Setting, strategy_named
from evgp.strategies.thinned import Thinned
from evgp.testing import check_strategy
from evgp.training import Recipe
from tests.messages import refused

X = torch.randn(20, 3, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
NET = mlp(1, 8, outputs=2)
RECIPE = Recipe(NET.standard("xavier"), {"steps": 3, "lr": 0.1})
SETTING = Setting(X, NET, RECIPE, classes=2, most=10, batch=5)
EVERY = [
    *NAMES,
    "evgp-p90",
    "evgp-emp",
    "evgp-sparse",
    "evgp-linear",
    "evgp-stochastic",
    "evgp-emp-max-lazy",
    "evgp+badge",
    "kmeans+++evgp",
    "random:3+kmeans++",
    "typiclust-grad",
    "kmeans++-linear",
    "dropquery-grad",
    "lcmd-grad",
    "bait-fb-linear",
    "typiclust-grad:3+margin",
]


@pytest.mark.parametrize("name", EVERY)
def test_every_name_obeys_the_laws(name) -> None:
    pool = Pool(X, labelled=torch.tensor([3, 11]), y=torch.tensor([0, 1]))
    check_strategy(strategy_named(name, SETTING), pool, 5)


def test_parts_of_evgp_are_what_they_say() -> None:
    strategy = strategy_named("evgp-emp-p90-exchange", SETTING)
    assert isinstance(strategy, EVGP) and isinstance(strategy.kernel, EmpiricalNTK)
    assert strategy.criterion == Percentile(90) and strategy.greedy == Exchange()
    assert strategy_named("evgp-stochastic-emp", SETTING).greedy == Stochastic()
    assert strategy_named("evgp", SETTING).kernel == NTK(NET)
    assert strategy_named("evgp-linear", SETTING).criterion == Linearised()
    assert isinstance(strategy_named("evgp-sparse", SETTING).kernel, Inducing)


def test_mutual_information_thins_large_test_sets() -> None:
    large = Setting(torch.zeros(1200, 2, dtype=torch.float64), NET, RECIPE)
    strategy = strategy_named("evgp-mi", large)
    assert isinstance(strategy, Thinned) and strategy.points == 1000
    assert strategy.inner.criterion == MutualInformation()


def test_warm_starts_split_at_the_plus() -> None:
    strategy = strategy_named("evgp:40+badge", SETTING)
    assert isinstance(strategy, Hybrid) and strategy.after == 40
    assert isinstance(strategy.first, EVGP) and isinstance(strategy.then, BADGE)
    assert strategy_named("evgp+badge", SETTING).after == 5
    strategy = strategy_named("kmeans++:7+random", SETTING)
    assert isinstance(strategy.first, KMeansPlusPlus) and isinstance(strategy.then, Random)
    assert strategy.after == 7


@pytest.mark.parametrize(
    "name",
    [
        "bagde",
        "evgp-p95",
        "evgp-p90-max",
        "evgp-sparse-linear",
        "evgp-two-rounds",
        "evgp-linear-mi",
        "evgp-p90-sparse",
        "evgp:0+badge",
        "",
        "evgp+",
        "nowhere.module:thing",
        "math:pi",
    ],
)
def test_wrong_names_are_errors(name) -> None:
    with refused((PoolError, ValueError)):
        strategy_named(name, SETTING)


def test_your_own_strategy(tmp_path, monkeypatch) -> None:
    (tmp_path / "own_strategy.py").write_text(
        "from evgp.strategies import Random\n\n\ndef make(setting):\n    return Random()\n\n\n"
        "ready = Random()\n\n\ndef broken(setting):\n    raise KeyError('x')\n\n\n"
        "def leaves(setting):\n    raise SystemExit(3)\n"
    )
    monkeypatch.chdir(tmp_path)
    for name in ("own_strategy:make", "own_strategy:ready", "own_strategy:Random"):
        assert strategy_named(name, SETTING) == Random()
    with refused(PoolError):
        strategy_named("own_strategy:broken", SETTING)
    with refused(PoolError):
        strategy_named("own_strategy:leaves", SETTING)
