"""Inputs of any size that float64 holds: the same picks, or one sentence."""

import warnings
from collections.abc import Iterator

import numpy as np
import pytest

import evgp
from evgp import mlp
from evgp.datasets.scaling import SCALES
from tests.hostile.same import PART, asked, check, picked, problems


@pytest.fixture(autouse=True)
def undisturbed() -> Iterator[None]:
    """Pools that have no more to give warn of it, rightly."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", evgp.EvgpWarning)
        yield


def test_the_size_of_inputs_changes_no_pick_without_bias(tally, rng) -> None:
    pairs = []
    for x, _ in problems(rng, 24):
        arguments = {**asked(rng), "network": mlp(b_std=0.0), "scale": None}
        arguments["storage"] = str(rng.choice(["float64", "float32"]))
        grown = x * 2.0 ** int(rng.integers(-440, 440))
        pairs.append((picked(x, 8, **arguments), picked(grown, 8, **arguments)))
    check(tally, "inputs times a power of two, without bias", pairs)


def test_any_finite_pool_gives_k_picks_or_a_clear_error(tally, rng) -> None:
    """Rows and columns from 1e-308 to 1e308, with every kind of network, features and search."""
    held = count = 0
    for _ in range(150):
        rows, columns = int(rng.integers(4, 20)), int(rng.integers(1, 5))
        x = rng.normal(size=(rows, columns))
        with np.errstate(over="ignore", under="ignore"):
            if rng.random() < 0.8:
                x = x * 10.0 ** rng.uniform(-307, 307)
            if rng.random() < 0.4:
                x[:, 0] = np.clip(x[:, 0] * 10.0 ** rng.uniform(-300, 300), -1e308, 1e308)
            if rng.random() < 0.4:
                x[0] = np.clip(x[0] * 10.0 ** rng.uniform(-300, 300), -1e308, 1e308)
        arguments = {
            **asked(rng),
            "scale": [None, *SCALES][int(rng.integers(len(SCALES) + 1))],
            "network": mlp(
                int(rng.integers(0, 4)),
                activation=str(rng.choice(["relu", "leaky_relu", "gelu", "erf", "sin"])),
                b_std=float(rng.choice([0.0, 0.1])),
            ),
            "storage": str(rng.choice(["float64", "float32"])),
        }
        if arguments["criterion"] == "ev" and rng.random() < 0.4:
            arguments["features"] = str(rng.choice(["raw", "nystrom-4"]))
        count += 1
        try:
            selection = evgp.pick(x, min(3, rows), **arguments)
        except evgp.EvgpError as error:
            held += "\n" not in str(error)
            continue
        least = 0.0 if arguments["criterion"] == "ev" else -np.inf
        right = np.isfinite(selection.gains).all() and (selection.gains >= least).all()
        held += bool(right) and len(set(selection.indices.tolist())) == min(3, rows)
    tally(PART, "numbers of any size: all picks, or a one-line error", count, held)


@pytest.mark.parametrize("factor", [1e100, 1e80, 1e-90])
def test_very_large_and_small_inputs_unscaled(factor, tally, rng) -> None:
    """Not a power of two, so that digits change; at 1e100 a bias of 0.1 is as good as none."""
    pairs = []
    for x, _ in problems(rng, 9):
        arguments = {**asked(rng), "scale": None}
        arguments["storage"] = str(rng.choice(["float64", "float32"]))
        grown = {**arguments, "network": mlp(b_std=0.1 if factor == 1e100 else 0.0)}
        first = picked(x, 8, network=mlp(b_std=0.0), **arguments)
        pairs.append((first, picked(x * factor, 8, **grown)))
    check(tally, f"unscaled arguments near {factor:g}", pairs)
