"""Odd arguments of public functions; the whole table is in `tests/hostile/arguments.py`. They run
in another process, because the type checks of the tests would refuse them first.
"""

import json

import numpy as np
import pytest
import torch

from evgp import _checks
from evgp.errors import NotNumbers, PoolError
from tests.forked import python

SCRIPT = """
import json, sys, warnings
import numpy as np, torch
import evgp
from evgp.integrations.modal import query_strategy
from evgp.integrations.sklearn import EVGPSelector
from evgp.strategies import CoreSet, Hybrid, KMeansPlusPlus, Random, Thinned

warnings.simplefilter("ignore")
x = np.random.default_rng(0).normal(size=(9, 2))
pool = evgp.Pool(torch.from_numpy(x))
calls = {
    "uint8": lambda: evgp.pick(x, np.uint8(3)).indices.tolist() == evgp.pick(x, 3).indices.tolist(),
    "int64": lambda: len(evgp.pick(x, np.int64(3), seed=np.int64(1), thin=np.int64(4))),
    "k 3.0": lambda: evgp.pick(x, 3.0),
    "k True": lambda: evgp.pick(x, True),
    "labelled ragged": lambda: evgp.pick(x, 2, labelled=[[1], [2, 3]]),
    "candidates set": lambda: evgp.pick(x, 2, candidates={1, 2}),
    "depth 1.5": lambda: evgp.mlp(depth=1.5),
    "width a": lambda: evgp.mlp(width="a"),
    "lr a": lambda: evgp.train(evgp.mlp(), x, x[:, 0], lr="a"),
    "members uint8": lambda: len(
        evgp.train(evgp.mlp(1, 4), x, x[:, 0], members=np.uint8(2), steps=1)
    ),
    "memory": lambda: evgp.pick(x, 2, memory="2 apples"),
    "cache": lambda: evgp.pick(x, 2, cache=3),
    "greedy": lambda: evgp.pick(x, 2, greedy=np.zeros(3)),
    "noise": lambda: evgp.pick(x, 2, noise=1e300),
    "folds": lambda: evgp.choose([evgp.mlp()], x, x[:, 0], folds="a"),
    "audit": lambda: evgp.audit(x, None),
    "run": lambda: list(evgp.run(None, Random(), len, 1, 1)),
    "hybrid": lambda: Hybrid(Random(), 3, 2),
    "seed": lambda: KMeansPlusPlus(seed=2.0),
    "protocol": lambda: evgp.comparison.Protocol(lr="a"),
    "learners": lambda: evgp.comparison.Protocol(learners=(3,)),
    "budgets": lambda: evgp.comparison.Protocol(budgets=10),
    "budgets a": lambda: evgp.comparison.Protocol(budgets="10"),
    "compare": lambda: evgp.compare(3, "random", out="nowhere"),
    "kernel": lambda: evgp.posterior.ntkgp(None, x, x[:, 0], x),
    "percentile": lambda: evgp.Percentile("a"),
    "w_std": lambda: evgp.mlp(w_std=1e-200),
    "shards uint8": lambda: evgp.pick(
        x, 2, features="raw", greedy=evgp.search.Sharded(np.uint8(3))
    ).gains,
    "seed 0-d": lambda: len(KMeansPlusPlus(seed=np.array(3))(pool, 2, generator=torch.Generator())),
    "embed": lambda: len(
        CoreSet(embed=torch.nn.Linear(2, 1))(pool, 2, generator=torch.Generator())
    ),
    "embed None": lambda: CoreSet(embed=lambda x: None)(pool, 2, generator=torch.Generator()),
    "strategy module": lambda: evgp.run(pool, torch.nn.Linear(2, 1), len, 1, 1),
    "strategy None": lambda: list(evgp.run(pool, lambda *a, **b: None, len, 1, 1)),
    "hybrid None": lambda: Hybrid(lambda *a, **b: None, Random(), 2)(
        pool, 2, generator=torch.Generator()
    ),
    "oracle class": lambda: evgp.run(pool, Random(), int, 1, 1),
    "storage None": lambda: evgp.EVGP(evgp.NTK(evgp.mlp()), storage=None),
    "lr large": lambda: evgp.train(evgp.mlp(), x, x[:, 0], lr=1e300),
    "steps large": lambda: evgp.train(evgp.mlp(), x, x[:, 0], steps=2**63),
    "momentum None": lambda: evgp.train(evgp.mlp(), x, x[:, 0], momentum=None),
    "memory large": lambda: evgp.train(evgp.mlp(), x, x[:, 0], memory=10**30),
    "settings": lambda: evgp.training.Recipe(evgp.mlp(), {"rate": 1}),
    "dataset": lambda: evgp.datasets.load([]),
    "selector": lambda: EVGPSelector(2).fit([[1], [2, 3]]),
    "selector complex": lambda: EVGPSelector(2).fit(x * 1j),
    "modal": lambda: query_strategy(None, [[1], [2, 3]]),
}
three, half, net = np.uint8(3), np.float32(0.5), evgp.mlp()
settings = {
    evgp.Percentile(half): "r",
    evgp.search.Stochastic(three): "sample",
    evgp.search.Exchange(three): "passes",
    evgp.search.Sharded(three): "shards",
    evgp.search.TwoRounds(three): "shards",
    evgp.EVGP(evgp.NTK(net), noise=half): "noise",
    evgp.nets.LeakyRelu(half): "slope",
    evgp.comparison.Protocol(np.uint8(40), depth=three, noise=half, steps=three):
        "budget depth noise steps",
    Thinned(Random(), three, three): "points seed",
    Hybrid(Random(), Random(), three): "after",
    evgp.cnn(three): "outputs",
}
# Else uint8 wraps around at 256, and float32 rounds what it is multiplied with.
calls["types"] = lambda: {
    type(getattr(one, name)).__name__ for one, names in settings.items() for name in names.split()
} == {"int", "float"}
calls["types of a kernel"] = lambda: evgp.EmpiricalNTK(net, output=three, draws=three, seed=three)
calls["types of a recipe"] = lambda: evgp.training.Recipe(net, epochs=three, gentler=three)
calls["plain types"] = lambda: evgp.Percentile(90)
found = {}
for name, call in calls.items():
    try:
        found[name] = repr(call())
    except evgp.EvgpError as error:
        found[name] = str(error)
    except Exception as error:
        found[name] = f"{type(error).__name__}: {error}"
print(json.dumps(found))
"""


@pytest.fixture(scope="module")
def outcomes() -> dict[str, str]:
    result = python(SCRIPT)
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout.splitlines()[-1])


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("uint8", "True"),
        ("int64", "3"),
        ("k 3.0", "expected k as an integer from 1 to 9, the rows that may be picked; got 3.0"),
        ("k True", "expected k as an integer from 1 to 9, the rows that may be picked; got True"),
        ("labelled ragged", "expected labelled as a list of row numbers, got "),
        ("candidates set", "expected candidates as a list of row numbers, got {1, 2}"),
        ("depth 1.5", "expected depth as an integer from 0 to 10000, got 1.5"),
        ("width a", "expected width as an integer from 1 to 10000000, got 'a'"),
        ("lr a", "expected lr > 0 and <= 1e+30, got 'a'"),
        ("members uint8", "2"),
        ("memory", "expected memory such as 2GB or 500MB, got '2 apples'"),
        ("cache", "expected cache as a path, got 3"),
        ("greedy", "got ndarray of shape (3,)"),
        (
            "noise",
            "expected noise >= 0 and <= 1e+06, a fraction of the prior variance; got 1e+300",
        ),
        ("folds", "expected folds as an integer from 2 to 1000000, got 'a'"),
        ("audit", "expected numbers in x_test, got None; encode words and dates first"),
        ("run", "expected a Pool, got NoneType"),
        ("hybrid", "expected then as a strategy, such as evgp.strategies.Random(); got 3"),
        ("seed", "expected seed as an integer from 0 to 4294967295, got 2.0"),
        ("protocol", "expected lr > 0 and finite, got 'a'"),
        ("learners", "expected learners as a list of texts, got (3,)"),
        ("budgets", "expected budgets such as a list of numbers of labels, got 10"),
        ("budgets a", "expected each of budgets as an integer from 1, got '1'"),
        ("compare", "expected data such as a name, a DatasetSource, or a list of them; got 3"),
        ("kernel", "expected a kernel as an object with __call__"),
        ("percentile", "expected a percentile >= 0 and <= 100, got 'a'"),
        ("w_std", "expected w_std >= 1e-06 and <= 1e+06, got 1e-200"),
        ("shards uint8", "array("),
        ("seed 0-d", "2"),
        ("embed", "2"),
        ("embed None", "expected an embedding of shape (rows, features), got None"),
        ("strategy module", "expected a strategy, such as evgp.strategies.Random(), got Linear("),
        ("strategy None", "expected a Selection from the strategy, got None"),
        ("hybrid None", "expected a Selection from first, got None"),
        (
            "oracle class",
            "expected an oracle, a function that takes rows and returns their labels; got type",
        ),
        ("storage None", "expected storage torch.float32 or torch.float64, got None"),
        ("lr large", "expected lr > 0 and <= 1e+30, got 1e+300"),
        ("steps large", "expected steps as an integer from 0 to 1000000000000, got 922337"),
        ("momentum None", "expected momentum >= 0 and <= 1e+30, got None"),
        ("memory large", "expected memory as an integer from 1 to 1000000000000000000, in bytes"),
        ("settings", "expected settings of evgp.train, got 'rate'"),
        ("dataset", "expected the name of a dataset as text, got []"),
        ("selector", "expected rows of numbers as X; setting an array"),
        ("selector complex", "expected rows of numbers as X; Complex data not"),
        ("modal", "expected X as rows of equal length"),
        ("types", "True"),
        ("types of a kernel", "output=3, draws=3, seed=3, "),
        ("types of a recipe", "epochs=3, gentler=3)"),
        ("plain types", "Percentile(r=90)"),
    ],
)
def test_odd_arguments_work_or_are_refused_clearly(outcomes, name, words) -> None:
    assert words in outcomes[name]


def test_numbers_of_any_kind_become_tensors_that_torch_knows() -> None:
    large = np.array([[2**63 + 5], [1]], dtype=np.uint64)
    assert _checks.numbers(large, "x").tolist() == [[float(2**63)], [1.0]]
    assert _checks.numbers(np.array([1, 2], dtype=">i4"), "x").tolist() == [1, 2]
    assert _checks.numbers(np.broadcast_to(np.float16(0.5), 2), "x").dtype == torch.float64
    for wrong in ("a", [["a"]], [[1], [2, 3]], np.array([1j]), object(), [None]):
        with pytest.raises((PoolError, NotNumbers)):
            _checks.numbers(wrong, "x")


def test_what_is_shown_of_a_value_is_one_short_line() -> None:
    class Loud:
        def __repr__(self) -> str:
            raise RuntimeError

    for value in (np.zeros((3, 3)), "a\nb" * 100, {1: np.zeros(9)}, Loud(), int, torch.zeros(2, 2)):
        text = _checks.shown(value)
        assert "\n" not in text and 0 < len(text) < 120
