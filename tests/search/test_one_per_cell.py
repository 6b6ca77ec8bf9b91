"""One pick per cell, against a direct solve."""

import numpy as np
import pytest
import torch

import evgp
from evgp.criteria import CellMeans
from evgp.errors import DataWarning, PoolError
from evgp.kernels import NTK
from evgp.nets import mlp
from evgp.pool import Pool
from evgp.posterior import Start
from evgp.search import Budget, OnePerCell
from evgp.search.one_per_cell import Partition
from tests.messages import refused, warned


def blobs(each: int = 8, centres: int = 5, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    middle = rng.normal(size=(centres, 3)) * 6
    return np.repeat(middle, each, axis=0) + rng.normal(size=(each * centres, 3)) * 0.4


def value(kernel: np.ndarray, cell: np.ndarray, rows: list[int], noise: float) -> float:
    """The weighted mean variance of the means over cells, by a direct solve."""
    shares = np.eye(cell.max() + 1)[cell]
    sizes = shares.sum(0)
    shares = shares / sizes
    inverse = np.linalg.inv(kernel[np.ix_(rows, rows)] + noise * np.eye(len(rows)))
    left = kernel - kernel[:, rows] @ inverse @ kernel[rows]
    return float(sizes @ np.einsum("ic,ij,jc->c", shares, left, shares) / sizes.sum())


@pytest.fixture(scope="module")
def run():
    x = torch.from_numpy(blobs())
    kernel = NTK(mlp())
    start = Start(kernel, Pool(x), 1e-6)
    picks = OnePerCell()(
        start, CellMeans(), torch.arange(len(x)), Budget(5), generator=torch.Generator()
    )
    return x, kernel(x).numpy(), picks


def test_each_cell_gets_one_pick(run) -> None:
    _, _, picks = run
    assert sorted(picks.indices // 8) == [0, 1, 2, 3, 4]


def test_no_swap_within_a_cell_helps(run) -> None:
    x, kernel, picks = run
    cell = Partition.of(x, 5, generator=torch.Generator()).cell
    noise = 0.01 * np.diag(kernel).mean()
    rows = picks.indices.tolist()
    best = value(kernel, cell, rows, noise)
    for place, row in enumerate(rows):
        for other in np.flatnonzero(cell == cell[row]):
            swapped = [*rows[:place], int(other), *rows[place + 1 :]]
            assert value(kernel, cell, swapped, noise) >= best * (1 - 1e-5)


def test_gains_add_up_to_the_fall_in_the_variance_of_the_means(run) -> None:
    x, kernel, picks = run
    cell = Partition.of(x, 5, generator=torch.Generator()).cell
    noise = 0.01 * np.diag(kernel).mean()
    shares = np.eye(5)[cell] / 8
    before = float(np.einsum("ic,ij,jc->c", shares, kernel, shares).mean())
    after = value(kernel, cell, picks.indices.tolist(), noise)
    assert picks.gains.sum() == pytest.approx(before - after, rel=1e-8)


def test_the_pick_by_name_is_that_search_with_the_certificate_of_the_expected_variance() -> None:
    x = blobs()
    picks = evgp.pick(x, 5, criterion="cells")
    assert sorted(picks.indices // 8) == [0, 1, 2, 3, 4]
    assert picks.settings["greedy"] == "OnePerCell(noise=0.01, passes=20)"
    plain = evgp.pick(x, 5)
    assert picks.certificate is not None and plain.certificate is not None
    assert picks.variance_left[-1] >= plain.certificate.lowest[-1]
    again = evgp.pick(x, 5, labelled=plain.indices)
    assert picks.start_variance == pytest.approx(plain.start_variance)
    assert again.start_variance == pytest.approx(plain.variance_left[-1], rel=1e-6)


def test_cells_with_labelled_points_get_no_pick() -> None:
    x = blobs()
    for known in ({"labelled": [0, 9]}, {"x_labelled": x[[0, 9]] + 1e-3}):
        picks = evgp.pick(x, 3, criterion="cells", scale=None, **known)
        assert sorted(picks.indices // 8) == [2, 3, 4]
    picks = evgp.pick(x, 2, criterion="cells", candidates=range(16))
    assert sorted(picks.indices // 8) == [0, 1]


def test_copies_leave_fewer_cells_than_picks() -> None:
    x = np.repeat(blobs(each=1), 4, axis=0)
    with warned(DataWarning):
        picks = evgp.pick(x, 8, criterion="cells")
    assert len({*picks.indices.tolist()}) == 8
    assert sorted(picks.indices[:5] // 4) == [0, 1, 2, 3, 4]


def test_larger_pools_are_cut_by_a_sample(monkeypatch) -> None:
    monkeypatch.setattr("evgp.search.one_per_cell._WARD", 20)
    x = blobs()
    picks = evgp.pick(x, 5, criterion="cells")
    assert sorted(picks.indices // 8) == [0, 1, 2, 3, 4]
    assert evgp.pick(x, 5, criterion="cells") == picks


def test_a_network_with_an_empirical_kernel_is_cut_by_its_inputs() -> None:
    module = torch.nn.Sequential(torch.nn.Linear(3, 64), torch.nn.ReLU(), torch.nn.Linear(64, 1))
    picks = evgp.pick(blobs(), 5, criterion="cells", network=module)
    assert sorted(picks.indices // 8) == [0, 1, 2, 3, 4]


@pytest.mark.parametrize(
    "options",
    [
        {"costs": [1.0] * 40, "budget": 3.0},
        {"greedy": "lazy"},
        {"final": True},
        {"method": "features"},
        {"method": "sharded"},
        {"k": 41},
    ],
    ids=lambda options: next(iter(options)),
)
def test_what_cells_cannot_do_is_reported(options) -> None:
    with refused(PoolError):
        evgp.pick(blobs(), **{"k": 3, "criterion": "cells", **options})
