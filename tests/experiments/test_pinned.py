"""Recorded studies give every setting of EV-GP, so that no later default changes a result."""

import ast
from pathlib import Path

import evgp
import experiments
from evgp import mlp
from evgp.comparison import Protocol
from evgp.search import Exact
from evgp.strategies import EVGP, strategy_named
from experiments import pinned
from experiments.sets import Ground

FOLDER = Path(experiments.__file__).parent
# Calls that take settings from defaults unless they are given.
GIVEN = {
    "pick": {"greedy", "noise", "scale"},
    "audit": {"noise", "scale"},
    "choose": {"noise", "scale"},
    "ntkgp": {"noise"},
    "sntkgp": {"noise"},
}


def calls(file: Path) -> list[tuple[str, ast.Call]]:
    text = [node for node in ast.walk(ast.parse(file.read_text())) if isinstance(node, ast.Call)]
    return [(node.func.id, node) for node in text if isinstance(node.func, ast.Name)]


def test_no_study_relies_on_a_default() -> None:
    seen = set()
    for file in sorted(FOLDER.glob("*.py")):
        for name, call in calls(file):
            where = f"{file.name}:{call.lineno}: {name}"
            if name in ("EVGP", "Protocol"):
                own = file.name in (
                    "pinned.py",
                    "text_and_images.py",
                    "worth.py",
                    "kernels.py",
                )  # the latter studies the defaults
                assert own, f"{where} outside pinned.py"
            if name == "Setting":
                shared = [ast.unparse(k.value) for k in call.keywords if k.arg is None]
                assert shared == ["pinned.SEARCH"], f"{where} without pinned.SEARCH"
            if name in GIVEN:
                missing = GIVEN[name] - {k.arg for k in call.keywords}
                assert not missing, f"{where} without {', '.join(sorted(missing))}"
            seen.add(name)
    assert {"EVGP", "Protocol", "Setting", *GIVEN} <= seen


def test_pinned_settings_are_those_of_the_records() -> None:
    result = pinned.evgp(evgp.NTK(mlp()))
    assert result == EVGP(evgp.NTK(mlp()), evgp.ExpectedVariance(), Exact(), noise=1e-6)
    assert repr(mlp()) == "Network(depth=2, width=512, activation=relu, w_std=1, b_std=0.1)"
    assert pinned.protocol(budget=40, batch=20) == Protocol(
        40, 20, search="exact", noise=1e-6, scale="columns"
    )


def test_a_protocol_decides_the_search_and_the_noise_of_evgp() -> None:
    ground = Ground("random-model", 0, 40, 20, 8, 2, 5)
    data = ground.data
    protocol = Protocol(40, 20, search="lazy", noise=0.1).strategy("evgp", data, 0)
    assert isinstance(protocol, EVGP)
    assert (repr(protocol.greedy), protocol.noise) == ("Lazy()", 0.1)
    named = Protocol(40, 20, search="lazy").setting(data, 0)
    assert repr(strategy_named("evgp-exchange", named).greedy) == "Exchange(passes=20)"
