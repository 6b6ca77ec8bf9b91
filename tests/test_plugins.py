"""Strategies, networks and kernels of an installed package, by entry point and by place."""

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
import torch
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF
from typer.testing import CliRunner

import evgp
from evgp._plugins import plugin, plugin_names
from evgp.cli.main import app
from evgp.errors import NetworkError, PluginError, PoolError
from evgp.kernels import kernel_named
from evgp.nets import network_named
from evgp.strategies import Random, Setting, strategy_named
from evgp.testing import check_strategy
from evgp.training import Recipe
from tests.messages import refused

CODE = '''
"""A package of somebody else's."""
from dataclasses import dataclass

import numpy as np
import torch
from torch import nn

from evgp import Pool, Selection
from evgp.strategies import Random
from evgp.strategies.strategy import unlabelled

drawn = nn.Linear(2, 1)  # random, and the same each time


@dataclass(frozen=True)
class Last:
    """The last rows first."""

    def __call__(self, pool: Pool, k: int, *, generator: torch.Generator) -> Selection:
        free = unlabelled(pool, k)
        return Selection(free.flip(0)[:k].numpy(), np.zeros(k))


def last(setting):
    return Last()


def small():
    return nn.Sequential(nn.Linear(2, 8), nn.Tanh(), nn.Linear(8, 1))


@dataclass(frozen=True)
class Gauss:
    """exp(-|x - y|^2 / 2)"""

    length: float = 1.0

    def __call__(self, x1, x2=None):
        return torch.exp(-torch.cdist(x1, x1 if x2 is None else x2).square() / 2 / self.length**2)

    def diag(self, x):
        return x.new_ones(len(x))


def broken(*_):
    raise RuntimeError("not today")


def leaves():
    raise SystemExit(3)


random, wide, seven = last, Gauss(3.0), 7
'''
POINTS = """
[evgp.strategies]
last = somebody:last
random = somebody:last
broken = somebody:broken
seven = somebody:seven
gone = somebody:nowhere
lost = somebody_else.nowhere:thing

[evgp.networks]
small = somebody:small
drawn = somebody:drawn
broken = somebody:broken
seven = somebody:seven

[evgp.kernels]
gauss = somebody:Gauss
wide = somebody:wide
broken = somebody:broken
seven = somebody:seven
"""
X = np.random.default_rng(0).normal(size=(30, 2))
NET = evgp.mlp(1, 8)
SETTING = Setting(torch.from_numpy(X), NET, Recipe(NET, {"steps": 3, "lr": 0.1}), most=6, batch=3)


def install(folder: Path, name: str, points: str, code: str = "") -> None:
    """As after an installation: a module, and the metadata of the package."""
    folder.mkdir(exist_ok=True)
    (folder / f"{name}.py").write_text(code)
    about = folder / f"{name}-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text(points)


@contextmanager
def on_the_path(place: Path, monkeypatch, name: str, points: str, code: str) -> Iterator[Path]:
    """A folder on the path, with a package in it; forgotten afterwards."""
    install(place / "site", name, points, code)
    monkeypatch.syspath_prepend(place / "site")
    monkeypatch.chdir(place)
    yield place / "site"
    sys.modules.pop(name, None)


@pytest.fixture
def installed(tmp_path, monkeypatch):
    with on_the_path(tmp_path, monkeypatch, "somebody", POINTS, CODE) as folder:
        yield folder


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "pool.csv"
    rows = [f"{a:.6f},{b:.6f},{a + np.sin(3 * b):.6f}" for a, b in X]
    path.write_text("\n".join(["a,b,y", *rows]) + "\n")
    return path


def test_names_are_listed_and_nothing_is_loaded(installed) -> None:
    assert plugin_names("networks") == ["broken", "drawn", "seven", "small"]
    assert "somebody" not in sys.modules
    assert plugin("networks", "nobody") is None


def test_a_strategy_by_name_obeys_the_laws(installed) -> None:
    strategy = strategy_named("last", SETTING)
    check_strategy(strategy, evgp.Pool(torch.from_numpy(X)), 4)
    generator = torch.Generator()
    assert strategy(evgp.Pool(SETTING.x), 3, generator=generator).indices.tolist() == [29, 28, 27]
    assert strategy_named("somebody:last", SETTING) == strategy
    assert strategy_named("last:2+random", SETTING).first == strategy


def test_our_own_names_stay_ours(installed) -> None:
    assert strategy_named("random", SETTING) == Random()


def test_a_network_by_name(installed) -> None:
    result = evgp.pick(X, 4, network=network_named("small")).indices
    assert result.tolist() == evgp.pick(X, 4, network="small").indices.tolist()
    assert (
        result.tolist() == evgp.pick(X, 4, network=network_named("somebody:small")).indices.tolist()
    )
    assert isinstance(network_named("drawn"), torch.nn.Linear)


def test_loading_leaves_the_random_state_and_is_the_same_each_time(installed) -> None:
    weights = []
    for seed in (1, 2):
        sys.modules.pop("somebody", None)
        torch.manual_seed(seed)
        before = torch.get_rng_state()
        weights.append(network_named("drawn").weight.detach().clone())
        assert torch.equal(before, torch.get_rng_state())
    assert torch.equal(*weights)


def test_a_kernel_by_name_leaves_the_variance_of_another_gaussian_process(installed) -> None:
    x = (X - X.mean(0)) / X.std(0)
    selection = evgp.pick(X, 5, kernel="gauss")
    other = GaussianProcessRegressor(RBF(1.0), alpha=1e-6, optimizer=None)
    other.fit(x[selection.indices], np.zeros(5))
    left = other.predict(x, return_std=True)[1] ** 2
    assert selection.variance_left[-1] == pytest.approx(left.mean(), rel=1e-6)


def test_a_kernel_by_name_is_that_of_its_place(installed) -> None:
    kernel = kernel_named("gauss", NET)
    names = ("gauss", "somebody:Gauss", "wide")
    gauss, same, wide = (evgp.pick(X, 4, kernel=name) for name in names)
    assert gauss.indices.tolist() == same.indices.tolist()
    assert gauss.variance_left.tolist() == evgp.pick(X, 4, kernel=kernel).variance_left.tolist()
    assert wide.variance_left[-1] < gauss.variance_left[-1]
    assert gauss.settings["network"] == "Gauss(length=1.0)"
    assert evgp.plan((30, 2), 4, kernel="gauss").fits


def test_nngp_is_a_kernel_by_name() -> None:
    first, other = evgp.pick(X, 4, kernel="nngp"), evgp.pick(X, 4, kernel=evgp.NNGP(evgp.mlp()))
    assert first.variance_left.tolist() == other.variance_left.tolist()
    with refused(NetworkError):
        evgp.pick(X, 4, kernel="nngp", network=torch.nn.Linear(2, 1))


@pytest.mark.parametrize(
    "call",
    [
        lambda: strategy_named("lats", SETTING),
        lambda: strategy_named("broken", SETTING),
        lambda: strategy_named("seven", SETTING),
        lambda: strategy_named("gone", SETTING),
        lambda: strategy_named("lost", SETTING),
        lambda: network_named("smal"),
        lambda: network_named("broken"),
        lambda: network_named("seven"),
        lambda: kernel_named("guass", NET),
        lambda: kernel_named("broken", NET),
        lambda: kernel_named("somebody:leaves", NET),
        lambda: kernel_named("seven", NET),
        lambda: kernel_named("somebody:Last", NET),
        lambda: kernel_named(":", NET),
        lambda: kernel_named("nowhere.to:be", NET),
    ],
)  # fmt: skip
def test_the_error_says_what_is_wrong(installed, call) -> None:
    with refused((PoolError, NetworkError, PluginError)):
        call()


def test_two_packages_with_one_name(installed) -> None:
    install(installed, "rival", "[evgp.kernels]\ngauss = rival:Gauss\n")
    with refused(PluginError):
        kernel_named("gauss", NET)
    assert kernel_named("somebody:Gauss", NET).length == 1.0


def test_the_command_takes_a_kernel(installed, table) -> None:
    asked = ("pick", str(table), "-k", "4", "--drop", "y", "--kernel", "gauss", "--json", "-q")
    ran = CliRunner().invoke(app, asked)
    assert ran.exit_code == 0, ran.stderr
    data = json.loads(ran.stdout)
    selection = evgp.pick(np.round(X, 6), 4, kernel="gauss")
    assert [pick["index"] for pick in data["picks"]] == selection.indices.tolist()
    assert data["settings"]["network"] == "kernel gauss"


@pytest.mark.parametrize("option", [("--network", "small"), ("--kernel", "somebody:Gauss")])
def test_the_command_plans_and_picks_by_name(installed, table, option) -> None:
    for asked in ("plan", "pick"):
        ran = CliRunner().invoke(app, [asked, str(table), "-k", "4", "--drop", "y", *option])
        assert ran.exit_code == 0, ran.stderr


def test_the_command_compares_strategies_in_processes(installed, table, tmp_path) -> None:
    out = tmp_path / "out"
    asked = ("compare", table, "--label", "y", "--strategies", "last,random", "--budget", 4, "-q",
             "--batch", 2, "--seeds", 2, "--members", 2, "--steps", 3, "--width", 8, "--jobs", 2,
             "--network", "small", "--out", out, "--json")  # fmt: skip
    ran = CliRunner().invoke(app, [*map(str, asked)])
    assert ran.exit_code == 0, ran.stderr
    assert {json.loads(cell.read_text())["rows"][0]["strategy"] for cell in
            (out / "cells").glob("*.json")} == {"last", "random"}  # fmt: skip


@pytest.mark.parametrize(
    ("options", "match"),
    [
        (("--kernel", "guass"), "expected a kernel among ntk, nngp, broken, gauss"),
        (("--kernel", "gauss", "--depth", 3), "takes the place of the network"),
        (("--kernel", "nngp", "--network", "small"), "expected an mlp for the kernel 'nngp'"),
        (("--network", "broken"), "not today"),
    ],
)
def test_the_command_says_what_is_wrong(installed, table, options, match) -> None:
    ran = CliRunner().invoke(app, ["pick", str(table), "-k", "3", *map(str, options)])
    assert isinstance(ran.exception, SystemExit) and ran.exit_code == 1
    assert match in " ".join(ran.stderr.split())


def test_importing_evgp_looks_for_no_plugins(installed) -> None:
    code = (
        "import sys, evgp; sys.exit('importlib.metadata' in sys.modules or 'torch' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
