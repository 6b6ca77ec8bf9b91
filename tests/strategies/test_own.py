"""Strategies of one's own: functions and classes, by place and by entry point."""

import doctest
import json
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from typer.testing import CliRunner

import evgp
from evgp._plugins import plugin_names
from evgp.cli.main import app
from evgp.errors import PluginError, PoolError, UnknownName
from evgp.kernels import kernel_named
from evgp.strategies import NAMES, Setting, strategy_named
from evgp.testing import check_strategy
from evgp.training import Recipe
from tests.messages import refused
from tests.test_plugins import on_the_path

CODE = '''
from dataclasses import dataclass

import numpy as np

from evgp import Selection
from evgp.strategies import Setting
from evgp.strategies.strategy import unlabelled


class Bare:
    """From the last row down."""

    def __call__(self, pool, k, *, generator):
        return Selection(unlabelled(pool, k).flip(0)[:k].numpy(), np.zeros(k))


@dataclass(frozen=True)
class Tuned(Bare):
    power: float = 2.0


@dataclass(frozen=True)
class Told(Bare):
    what: Setting


class Named(Bare):
    def __init__(self, power=1.0, *, setting=None):
        self.power, self.setting = power, setting


class Kept(Bare):
    def __init__(self, setting, /):
        self.setting = setting


class Options(Bare):
    def __init__(self, **options):
        self.options = options


def itself(pool, k, *, generator):
    return Bare()(pool, k, generator=generator)


def nothing():
    return Bare()


def of(setting):
    return Told(setting)


class Silent:
    """Not a strategy."""


class Covariance:
    """Not a strategy either, though it can be called."""

    def __call__(self, x1, x2=None):
        return x1 @ x1.T


class Breaks(Bare):
    def __init__(self):
        raise RuntimeError("not today")
'''
POINTS = """
[evgp.strategies]
bare = own_picks:Bare
told = own_picks:Told
random = own_picks:Bare
evgp = own_picks:Bare
evgp-x = own_picks:Bare
a+b = own_picks:Bare

[evgp.kernels]
ntk = own_picks:Covariance
"""
X = np.random.default_rng(0).normal(size=(30, 2))
NET = evgp.mlp(1, 8)
SETTING = Setting(torch.from_numpy(X), NET, Recipe(NET, {"steps": 3, "lr": 0.1}), most=6, batch=3)
ALL = ("Bare", "Tuned", "Told", "Named", "Kept", "Options", "itself", "nothing", "of")


@pytest.fixture
def installed(tmp_path, monkeypatch):
    with on_the_path(tmp_path, monkeypatch, "own_picks", POINTS, CODE) as folder:
        yield folder


@pytest.mark.parametrize("name", [*(f"own_picks:{item}" for item in ALL), "bare", "told"])
def test_a_class_or_function_makes_a_strategy(installed, name) -> None:
    strategy = strategy_named(name, SETTING)
    check_strategy(strategy, evgp.Pool(SETTING.x), 4)
    picks = strategy(evgp.Pool(SETTING.x), 3, generator=torch.Generator()).indices
    assert picks.tolist() == [29, 28, 27]


def test_the_setting_goes_to_who_asks_for_it(installed) -> None:
    def strategy_of(name):
        return strategy_named(f"own_picks:{name}", SETTING)

    assert (
        strategy_of("Told").what is strategy_of("of").what is strategy_of("Kept").setting is SETTING
    )
    assert strategy_of("Named").setting is SETTING and strategy_of("Named").power == 1.0
    assert strategy_of("Tuned").power == 2.0 and strategy_of("Options").options == {}
    assert strategy_of("Bare:2+random").first.__class__.__name__ == "Bare"


@pytest.mark.parametrize(
    "name",
    [
        "own_picks:Silent",
        "own_picks:Covariance",
        "own_picks:Breaks",
    ],
)
def test_what_makes_no_strategy_is_an_error(installed, name) -> None:
    with refused(PoolError):
        strategy_named(name, SETTING)


def test_only_names_that_can_be_used_are_offered_and_each_once(installed) -> None:
    with pytest.raises(UnknownName) as caught:
        strategy_named("rnadom", SETTING)
    assert isinstance(caught.value, PoolError) and caught.value.suggestion == "random"
    assert caught.value.choices == (*NAMES, "bare", "told")
    for name in caught.value.choices:
        if name not in ("batchbald", "margin", "entropy", "dropquery"):  # for classes
            assert callable(strategy_named(name, SETTING))
    assert plugin_names("kernels") == ["ntk"]
    with refused(PluginError):
        kernel_named("ntkk", NET)


def test_the_class_of_the_page_competes_on_the_command_line(tmp_path, monkeypatch) -> None:
    page = (Path(__file__).parents[2] / "docs" / "adapters.md").read_text(encoding="utf-8")
    shown = [example.source for example in doctest.DocTestParser().get_examples(page)]
    (source,) = (item for item in shown if "class Farthest" in item)
    package = tmp_path / "my_package"
    package.mkdir()
    (package / "picking.py").write_text(
        f"from dataclasses import dataclass\nfrom evgp import Pool, Selection\n\n\n{source}"
    )
    rows = [f"{a:.6f},{b:.6f},{a + np.sin(3 * b):.6f}" for a, b in X]
    (tmp_path / "prices.csv").write_text("\n".join(["a,b,y", *rows]) + "\n")
    name, out = "my_package.picking:Farthest", tmp_path / "out"
    asked = ("compare", "prices.csv", "--label", "y", "--strategies", f"random,{name}", "--budget",
             4, "--batch", 2, "--seeds", 1, "--members", 2, "--steps", 3, "--width", 8, "-q",
             "--jobs", 1, "--out", out, "--json")  # fmt: skip
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    ran = CliRunner().invoke(app, [*map(str, asked)])
    for module in ("my_package", "my_package.picking"):
        sys.modules.pop(module, None)
    assert ran.exit_code == 0, ran.stderr
    cells = [json.loads(cell.read_text()) for cell in (out / "cells").glob("*.json")]
    assert {cell["rows"][0]["strategy"] for cell in cells} == {"random", name}
