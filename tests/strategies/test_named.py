"""Strategies by name: each obeys the laws, and wrong names are told."""

import pytest
import torch

from evgp import EVGP, NTK, EmpiricalNTK, Pool, mlp
from evgp._errors import PoolError
from evgp.criteria import Linearised, MutualInformation, Percentile
from evgp.kernels import Inducing
from evgp.search import Exchange, Stochastic
from evgp.strategies import BADGE, NAMES, Hybrid, KMeansPlusPlus, Random, Setting, strategy_named
from evgp.strategies.thinned import Thinned
from evgp.testing import check_strategy
from evgp.training import Recipe

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
]


@pytest.mark.parametrize("name", EVERY)
def test_every_name_obeys_the_laws(name) -> None:
    pool = Pool(X, labelled=torch.tensor([3, 11]), y=torch.tensor([0, 1]))
    check_strategy(strategy_named(name, SETTING), pool, 5)


def test_parts_of_evgp_are_what_they_say() -> None:
    made = strategy_named("evgp-emp-p90-exchange", SETTING)
    assert isinstance(made, EVGP) and isinstance(made.kernel, EmpiricalNTK)
    assert made.criterion == Percentile(90) and made.greedy == Exchange()
    assert strategy_named("evgp-stochastic-emp", SETTING).greedy == Stochastic()
    assert strategy_named("evgp", SETTING).kernel == NTK(NET)
    assert strategy_named("evgp-linear", SETTING).criterion == Linearised()
    assert isinstance(strategy_named("evgp-sparse", SETTING).kernel, Inducing)


def test_mutual_information_thins_large_test_sets() -> None:
    large = Setting(torch.zeros(1200, 2, dtype=torch.float64), NET, RECIPE)
    made = strategy_named("evgp-mi", large)
    assert isinstance(made, Thinned) and made.points == 1000
    assert made.inner.criterion == MutualInformation()


def test_warm_starts_split_at_the_plus() -> None:
    made = strategy_named("evgp:40+badge", SETTING)
    assert isinstance(made, Hybrid) and made.after == 40
    assert isinstance(made.first, EVGP) and isinstance(made.then, BADGE)
    assert strategy_named("evgp+badge", SETTING).after == 5
    made = strategy_named("kmeans++:7+random", SETTING)
    assert isinstance(made.first, KMeansPlusPlus) and isinstance(made.then, Random)
    assert made.after == 7


@pytest.mark.parametrize(
    ("name", "match"),
    [
        ("bagde", "did you mean badge"),
        ("evgp-p95", "at most one of .*got 'evgp-p95'"),
        ("evgp-p90-max", "at most one of"),
        ("evgp-sparse-linear", "at most one of"),
        ("evgp-two-rounds", "at most one of"),
        ("evgp-linear-mi", "no mi with linear"),
        ("evgp-p90-sparse", "no p90 with sparse"),
        ("evgp:0+badge", "after as an integer from 1, a number of labels; got 0"),
        ("", "strategies among"),
        ("evgp+", "strategies among"),
        ("nowhere.module:thing", "a strategy at nowhere.module:thing, got none"),
        ("math:pi", "a strategy at math:pi.*got float"),
    ],
)
def test_wrong_names_are_told(name, match) -> None:
    with pytest.raises((PoolError, ValueError), match=match):
        strategy_named(name, SETTING)


def test_a_strategy_of_ones_own(tmp_path, monkeypatch) -> None:
    (tmp_path / "own_strategy.py").write_text(
        "from evgp.strategies import Random\n\n\ndef make(setting):\n    return Random()\n\n\n"
        "ready = Random()\n\n\ndef broken(setting):\n    raise KeyError('x')\n\n\n"
        "def leaves(setting):\n    raise SystemExit(3)\n"
    )
    monkeypatch.chdir(tmp_path)
    for name in ("own_strategy:make", "own_strategy:ready", "own_strategy:Random"):
        assert strategy_named(name, SETTING) == Random()
    with pytest.raises(PoolError, match="own_strategy:broken stopped: KeyError"):
        strategy_named("own_strategy:broken", SETTING)
    with pytest.raises(PoolError, match="own_strategy:leaves stopped: SystemExit: 3"):
        strategy_named("own_strategy:leaves", SETTING)
