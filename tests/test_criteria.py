"""Criteria against values found by direct solves."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import evgp
from evgp import NTK, ExpectedVariance, MutualInformation, Percentile, Pool, mlp
from evgp._errors import PoolError
from evgp.criteria import Criterion, percentile
from tests.laws import criterion as law
from tests.laws.posterior import Truth

KERNEL = NTK(mlp(activation="gelu"))
X = torch.randn(14, 2, generator=torch.Generator().manual_seed(3), dtype=torch.float64)
TEST = torch.randn(7, 2, generator=torch.Generator().manual_seed(4), dtype=torch.float64)
WEIGHTS = torch.tensor([1.0, 2, 3, 1, 1, 2, 2], dtype=torch.float64) / 12
POOLS = {
    "own": Pool(X),
    "other": Pool(X, x_test=TEST),
    "thinned": Pool(X, test=torch.tensor([1, 4, 6, 8])),
    "labelled": Pool(X, labelled=torch.tensor([2, 5])),
    "labelled, other": Pool(X, x_test=TEST, labelled=torch.tensor([2]), x_labelled=TEST[:1] + 1),
}
WEIGHTED = {"weighted": Pool(X, x_test=TEST, weights=WEIGHTS)}


def expected_variance(truth: Truth, picks: list[int]) -> float:
    return -truth.mean_variance(picks)


def percentile_of(r: float):
    def value(truth: Truth, picks: list[int]) -> float:
        return -float(np.percentile(truth.test_variance(picks).numpy(), r))

    return value


def with_weights(values: np.ndarray, weights: np.ndarray, q: float) -> float:
    """Linear between values at the middle of each one's share of the weight, stretched to 0..1."""
    order = np.argsort(values)
    middles = np.cumsum(weights[order]) - weights[order] / 2
    places = (middles - middles[0]) / max(middles[-1] - middles[0], 1e-300)
    return float(np.interp(q / 100, places, values[order]))


def weighted_percentile_of(r: float):
    def value(truth: Truth, picks: list[int]) -> float:
        weights = truth.pool.test_weights().numpy()
        return -with_weights(truth.test_variance(picks).numpy(), weights, r)

    return value


def information(truth: Truth, picks: list[int]) -> float:
    """I[y_L; y_{T - L}] for noisy outputs, from log-determinants of the prior alone."""
    pool, s = truth.pool, truth.noise
    rows = pool.test_rows()
    taken = [*pool.labelled.tolist(), *picks]
    known = torch.cat([pool.known(), pool.x[picks]])
    if rows is None:
        rest = pool.test_points()
    else:
        rest = pool.x[[int(row) for row in rows if int(row) not in taken]]

    def entropy(points: torch.Tensor) -> float:
        noisy = truth.kernel(points) + s * torch.eye(len(points), dtype=torch.float64)
        return float(torch.logdet(noisy)) / 2

    if len(known) == 0:
        return 0.0
    return entropy(known) + entropy(rest) - entropy(torch.cat([known, rest]))


CASES = [
    *((ExpectedVariance(), expected_variance, name) for name in (*POOLS, *WEIGHTED)),
    *((Percentile(r), percentile_of(r), name) for r in (50, 90, 100) for name in POOLS),
    *((Percentile(r), weighted_percentile_of(r), "weighted") for r in (50, 90)),
    *((MutualInformation(), information, name) for name in POOLS),
]


@pytest.mark.parametrize("picks", [[], [0, 7, 3]], ids=["at the start", "after three"])
@pytest.mark.parametrize(
    ("criterion", "value", "name"),
    CASES,
    ids=lambda case: getattr(case, "__name__", str(case))[:32],
)
def test_gains_are_differences_of_the_value(criterion, value, name, picks) -> None:
    noise = 1e-2 if isinstance(criterion, MutualInformation) else 1e-4
    law.obeys(criterion, value, Truth(KERNEL, {**POOLS, **WEIGHTED}[name], noise), picks)


def test_every_public_criterion_is_under_the_law() -> None:
    every = [getattr(evgp, name) for name in evgp.__all__]
    public = {one for one in every if hasattr(one, "ceilings")}
    assert public == {type(case[0]) for case in CASES}
    assert all(isinstance(case[0], Criterion) for case in CASES)


@settings(deadline=None)
@given(
    values=st.lists(st.floats(0, 10), min_size=1, max_size=12),
    q=st.floats(0, 100),
)
def test_equal_weights_give_numpys_percentile(values, q) -> None:
    row = torch.tensor([values], dtype=torch.float64)
    m = len(values)
    found = percentile(row, torch.full((m,), 1 / m, dtype=torch.float64), q).item()
    assert found == pytest.approx(np.percentile(values, q), abs=1e-9)
    # Weights that differ in the last digit take the general road and must arrive at the same place.
    almost = torch.full((m,), 1 / m, dtype=torch.float64)
    almost[0] += 1e-14
    assert percentile(row, almost, q).item() == pytest.approx(found, abs=1e-6)


def test_weights_pull_the_percentile() -> None:
    row = torch.tensor([[3.0, 1.0, 2.0]], dtype=torch.float64)
    heavy = torch.tensor([0.98, 0.01, 0.01], dtype=torch.float64)
    # The middles of the shares are at 0.005, 0.015 and 0.51: half way is at 0.2575.
    halfway = 2 + (0.2575 - 0.015) / (0.51 - 0.015)
    assert percentile(row, heavy, 50).item() == pytest.approx(halfway, rel=1e-12)


@settings(deadline=None)
@given(
    values=st.lists(
        st.tuples(st.floats(0, 10), st.floats(0.01, 5)),
        min_size=2,
        max_size=12,
        unique_by=lambda pair: pair[0],
    ),
    q=st.floats(0, 100),
)
def test_any_weights_interpolate_between_the_middles_of_their_shares(values, q) -> None:
    row, weights = (np.array(part) for part in zip(*values, strict=True))
    given_weights = torch.from_numpy(weights / weights.sum())
    found = percentile(torch.from_numpy(row)[None], given_weights, q).item()
    assert found == pytest.approx(with_weights(row, weights / weights.sum(), q), abs=1e-9)


@settings(deadline=None)
@given(
    values=st.lists(st.tuples(st.floats(0, 10), st.booleans()), min_size=1, max_size=12),
    q=st.floats(0, 100) | st.sampled_from([0.0, 50.0, 100.0]),
)
def test_a_weight_of_zero_is_no_point_at_all(values, q) -> None:
    row, counts = (torch.tensor(part, dtype=torch.float64) for part in zip(*values, strict=True))
    counts[0] = 1
    found = percentile(row[None], counts / counts.sum(), q).item()
    assert found == pytest.approx(np.percentile(row[counts > 0].numpy(), q), abs=1e-9)


def test_a_percentile_beyond_100_is_refused() -> None:
    with pytest.raises(PoolError, match="0 to 100, got 120"):
        Percentile(120)
