"""The same picks, whatever must not matter: threads, storage, shards, order, scale, rounds."""

import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch

import evgp
from evgp import EVGP, NTK, Exact, ExpectedVariance, Pool, Sharded, Stochastic, mlp
from evgp.criteria import Linearised
from evgp.kernels import Inducing, Raw
from tests.hostile.conftest import Tally

PART = "same picks"
KINDS = ("distinct rows", "copies", "near copies")


@pytest.fixture(autouse=True)
def undisturbed() -> Iterator[None]:
    """Pools that have no more to give warn of it, rightly; threads are as they were afterwards."""
    threads = torch.get_num_threads()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", evgp.EvgpWarning)
        yield
    torch.set_num_threads(threads)


def problems(rng: np.random.Generator, count: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Pools in turn of distinct rows, of copies, and of copies that differ in some digit.

    Each with the number of the row that a row is a copy of.
    """
    for number in range(count):
        rows, columns = int(rng.integers(20, 50)), int(rng.integers(1, 8))
        x, origin = rng.normal(size=(rows, columns)), np.arange(rows)
        if number % 3:
            origin = np.repeat(origin[: rows // 3], 5)
            x = x[origin]
        if number % 3 == 2:
            x = x + 10.0 ** rng.integers(-13, -4) * rng.normal(size=x.shape)
        order = rng.permutation(len(x))
        yield x[order], origin[order]


def asked(rng: np.random.Generator) -> dict[str, Any]:
    """A criterion, a search and a noise; half of the time the expected variance."""
    criterion = rng.choice(["ev", "ev", "ev", "ev", "linearised", "median", "p90", "max", "mi"])
    search = rng.choice(["exact", "lazy", "exchange", "stochastic"])
    return {
        "criterion": Linearised() if criterion == "linearised" else str(criterion),
        "greedy": Stochastic(9) if search == "stochastic" else str(search),
        "noise": float(rng.choice([1e-8, 1e-6, 1e-2])),
    }


def picked(x: np.ndarray, k: int, **given: Any) -> list[int]:
    return evgp.pick(x, k, **given).indices.tolist()


def check(tally: Tally, what: str, pairs: list[tuple[object, object]]) -> None:
    differ = [f"{one} and {other}" for one, other in pairs if one != other]
    assert not differ, f"{what}: {len(differ)} of {len(pairs)} differ, first {differ[0]}"
    tally(PART, what, len(pairs), len(pairs))


def test_threads_change_no_pick(tally, rng) -> None:
    pairs = []
    for x, _ in problems(rng, 24):
        given, found = asked(rng), []
        for threads in (1, 2, 4):
            torch.set_num_threads(threads)
            found.append(picked(x, 12, **given))
        pairs += [(found[0], other) for other in found[1:]]
    check(tally, "1, 2 and 4 threads", pairs)


def test_storage_changes_no_pick(tally, rng) -> None:
    pairs = []
    for x, _ in problems(rng, 48):
        given = asked(rng)
        both = [picked(x, 12, storage=storage, **given) for storage in ("float64", "float32")]
        pairs.append((both[0], both[1]))
    check(tally, "a matrix of float64 or of float32", pairs)


def test_shards_change_no_pick(tally, rng) -> None:
    pairs = []
    for x, _ in problems(rng, 24):
        pool = Pool(torch.from_numpy(x))
        features = Raw() if rng.random() < 0.5 else Inducing(NTK(mlp()), pool.x[:9])
        storage = torch.float64 if rng.random() < 0.5 else torch.float32
        criterion = ExpectedVariance() if rng.random() < 0.6 else Linearised()
        noise = float(rng.choice([1e-10, 1e-6, 1e-2]))
        greedies = [Exact(), *(Sharded(count) for count in (1, 2, 3, 7))]
        found = [
            EVGP(features, criterion, greedy, noise, storage)(pool, 9, generator=torch.Generator())
            for greedy in greedies
        ]
        pairs += [(found[0].indices.tolist(), one.indices.tolist()) for one in found[1:]]
    check(tally, "1, 2, 3 or 7 shards", pairs)


class Linear:
    """A kernel that is the inner product, as raw features are."""

    def __call__(self, x1: torch.Tensor, x2: torch.Tensor | None = None) -> torch.Tensor:
        return x1 @ (x1 if x2 is None else x2).T

    def diag(self, x: torch.Tensor) -> torch.Tensor:
        return x.square().sum(1)


def test_features_that_are_exact_pick_as_the_kernel_does(tally, rng) -> None:
    pairs = []
    for x, _ in problems(rng, 24):
        pool = Pool(torch.from_numpy(x))
        both = [
            EVGP(prior, noise=1e-2)(pool, x.shape[1] + 2, generator=torch.Generator())
            for prior in (Linear(), Raw())
        ]
        pairs.append((both[0].indices.tolist(), both[1].indices.tolist()))
    check(tally, "the kernel, or features that are it", pairs)


def test_the_order_of_rows_changes_no_point(tally, rng) -> None:
    """Of copies, exact or near, the first in the pool is picked: so it is another row."""
    pairs = []
    for x, origin in problems(rng, 24):
        k = min(8, len(set(origin.tolist())))
        noise = float(rng.choice([1e-6, 1e-2]))
        order = rng.permutation(len(x))
        one = origin[picked(x, k, greedy="exact", noise=noise)]
        other = origin[order][picked(x[order], k, greedy="exact", noise=noise)]
        pairs.append((one.tolist(), other.tolist()))
    check(tally, "the rows in another order", pairs)


def test_of_copies_the_first_is_picked(tally, rng) -> None:
    pairs = []
    for number, (x, origin) in enumerate(problems(rng, 30)):
        if number % 3 != 1:
            continue
        firsts = {int(np.flatnonzero(origin == one)[0]) for one in set(origin.tolist())}
        found = picked(x, min(6, len(firsts)), greedy="exact")
        pairs.append((set(found) <= firsts, True))
    check(tally, "the first of equal rows", pairs)


def test_the_units_of_columns_change_no_pick(tally, rng) -> None:
    pairs = []
    for x, _ in problems(rng, 24):
        given = asked(rng)
        factors = 2.0 ** rng.integers(-900, 900, size=x.shape[1])
        pairs.append((picked(x, 8, **given), picked(x * factors, 8, **given)))
    check(tally, "columns in other units, scaled", pairs)


def test_rounds_change_no_pick(tally, rng) -> None:
    pairs = []
    for x, _ in problems(rng, 24):
        given = {"greedy": "exact", "noise": float(rng.choice([1e-6, 1e-2]))}
        rows: list[int] = []
        for _ in range(3):
            rows += picked(x, 4, labelled=rows, **given)
        pairs.append((picked(x, 12, **given), rows))
    check(tally, "three rounds of 4, or 12 at once", pairs)


def test_the_size_of_inputs_changes_no_pick_without_bias(tally, rng) -> None:
    pairs = []
    for x, _ in problems(rng, 24):
        given = {**asked(rng), "network": mlp(b_std=0.0), "standardise": False}
        given["storage"] = str(rng.choice(["float64", "float32"]))
        grown = x * 2.0 ** int(rng.integers(-440, 440))
        pairs.append((picked(x, 8, **given), picked(grown, 8, **given)))
    check(tally, "inputs times a power of two, without bias", pairs)


def test_any_finite_pool_gives_k_picks_or_a_sentence(tally, rng) -> None:
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
        given = {
            **asked(rng),
            "standardise": bool(rng.random() < 0.3),
            "network": mlp(
                int(rng.integers(0, 4)),
                activation=str(rng.choice(["relu", "leaky_relu", "gelu", "erf", "sin"])),
                b_std=float(rng.choice([0.0, 0.1])),
            ),
            "storage": str(rng.choice(["float64", "float32"])),
        }
        if given["criterion"] == "ev" and rng.random() < 0.4:
            given["features"] = str(rng.choice(["raw", "nystrom-4"]))
        count += 1
        try:
            made = evgp.pick(x, min(3, rows), **given)
        except evgp.EvgpError as error:
            held += "\n" not in str(error)
            continue
        least = 0.0 if given["criterion"] == "ev" else -np.inf
        right = np.isfinite(made.gains).all() and (made.gains >= least).all()
        held += bool(right) and len(set(made.indices.tolist())) == min(3, rows)
    tally(PART, "numbers of any size: as many picks as asked for, or a sentence", count, held)
