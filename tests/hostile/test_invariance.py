"""The same picks, whatever must not matter: threads, storage, shards, order, units, rounds."""

import warnings
from collections.abc import Iterator
from unittest import mock

import numpy as np
import pytest
import torch

import evgp
from evgp import EVGP, NTK, ExpectedVariance, Pool, mlp
from evgp.criteria import Linearised
from evgp.kernels import Inducing, Raw
from evgp.search import Exact, Sharded
from evgp.selection import request as rules
from tests.hostile.same import asked, check, picked, problems


@pytest.fixture(autouse=True)
def undisturbed() -> Iterator[None]:
    """Pools that have no more to give warn of it, rightly; threads are as they were afterwards."""
    threads = torch.get_num_threads()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", evgp.EvgpWarning)
        yield
    torch.set_num_threads(threads)


def test_threads_change_no_pick(tally, rng) -> None:
    pairs = []
    for x, _ in problems(rng, 24):
        options, actual = asked(rng), []
        for threads in (1, 2, 4):
            torch.set_num_threads(threads)
            actual.append(picked(x, 12, **options))
        pairs += [(actual[0], other) for other in actual[1:]]
    check(tally, "1, 2 and 4 threads", pairs)


def test_storage_changes_no_pick(tally, rng) -> None:
    pairs = []
    for x, _ in problems(rng, 48):
        options = asked(rng)
        both = [picked(x, 12, storage=storage, **options) for storage in ("float64", "float32")]
        pairs.append((both[0], both[1]))
    check(tally, "a float64 or float32 matrix", pairs)


def test_shards_change_no_pick(tally, rng) -> None:
    pairs = []
    for x, _ in problems(rng, 24):
        pool = Pool(torch.from_numpy(x))
        features = Raw() if rng.random() < 0.5 else Inducing(NTK(mlp()), pool.x[:9])
        storage = torch.float64 if rng.random() < 0.5 else torch.float32
        criterion = ExpectedVariance() if rng.random() < 0.6 else Linearised()
        noise = float(rng.choice([1e-10, 1e-6, 1e-2]))
        greedies = [Exact(), *(Sharded(count) for count in (1, 2, 3, 7))]
        actual = [
            EVGP(features, criterion, greedy, noise, storage)(pool, 9, generator=torch.Generator())
            for greedy in greedies
        ]
        pairs += [(actual[0].indices.tolist(), item.indices.tolist()) for item in actual[1:]]
    check(tally, "1, 2, 3 or 7 shards", pairs)


def test_shards_on_the_disk_change_no_pick(tally, rng, tmp_path) -> None:
    """Files of 7, 16 or all rows; the pool keeps its features in float32 in each."""
    pairs = []
    for number, (x, _) in enumerate(problems(rng, 9)):
        arguments = {"features": str(rng.choice(["raw", "nystrom-9"])), "method": "sharded"}
        results = []
        for rows in (7, 16, 1000):
            with mock.patch.object(rules, "SHARD", rows):
                results.append(picked(x, 9, cache=tmp_path / f"{number}-{rows}", **arguments))
        pairs += [(results[0], other) for other in results[1:]]
    check(tally, "files of 7, 16 or all rows", pairs)


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
    check(tally, "the kernel, or its features", pairs)


def test_the_order_of_rows_changes_no_point(tally, rng) -> None:
    """Of copies, exact or near, the first in the pool is picked: so it is another row."""
    pairs = []
    for x, origin in problems(rng, 24):
        k = min(8, len(set(origin.tolist())))
        noise = float(rng.choice([1e-6, 1e-2]))
        order = rng.permutation(len(x))
        first = origin[picked(x, k, greedy="exact", noise=noise)]
        other = origin[order][picked(x[order], k, greedy="exact", noise=noise)]
        pairs.append((first.tolist(), other.tolist()))
    check(tally, "the rows in another order", pairs)


def test_of_copies_the_first_is_picked(tally, rng) -> None:
    pairs = []
    for number, (x, origin) in enumerate(problems(rng, 30)):
        if number % 3 != 1:
            continue
        firsts = {int(np.flatnonzero(origin == item)[0]) for item in set(origin.tolist())}
        selection = picked(x, min(6, len(firsts)), greedy="exact")
        pairs.append((set(selection) <= firsts, True))
    check(tally, "the first of equal rows", pairs)


def test_the_units_of_columns_change_no_pick(tally, rng) -> None:
    pairs = []
    for x, _ in problems(rng, 24):
        arguments = {**asked(rng), "scale": str(rng.choice(["columns", "smooth"]))}
        factors = 2.0 ** rng.integers(-900, 900, size=x.shape[1])
        pairs.append((picked(x, 8, **arguments), picked(x * factors, 8, **arguments)))
    check(tally, "columns in other units, scaled", pairs)


def test_rounds_change_no_pick(tally, rng) -> None:
    pairs = []
    for x, _ in problems(rng, 24):
        arguments = {"greedy": "exact", "noise": float(rng.choice([1e-6, 1e-2]))}
        rows: list[int] = []
        for _ in range(3):
            rows += picked(x, 4, labelled=rows, **arguments)
        pairs.append((picked(x, 12, **arguments), rows))
    check(tally, "three rounds of 4, or 12 at once", pairs)
