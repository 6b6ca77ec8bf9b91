"""Criteria against values found by direct solves."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import evgp
from evgp import NTK, ExpectedVariance, MutualInformation, Percentile, Pool, mlp
from evgp.criteria import Criterion, percentile
from evgp.errors import PoolError
from evgp.testing import Truth, check_criterion
from tests.messages import refused

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
    """The mean of the quantile function over a window as wide as the smallest share."""
    order = np.argsort(values)
    ends = np.array([0, *np.cumsum(weights[order])]) / weights.sum()
    area = np.array([0, *np.cumsum(np.diff(ends) * values[order])])
    width = np.diff(ends).min()
    low = q / 100 * (1 - width)
    return float(np.diff(np.interp([low, low + width], ends, area))[0] / width)


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
    check_criterion(criterion, value, Truth(KERNEL, {**POOLS, **WEIGHTED}[name], noise), picks)


def test_every_public_criterion_is_under_the_law() -> None:
    every = [getattr(evgp, name) for name in evgp.__all__]
    public = {item for item in every if hasattr(item, "ceilings")}
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
    result = percentile(row, torch.full((m,), 1 / m, dtype=torch.float64), q).item()
    assert result == pytest.approx(np.percentile(values, q), abs=1e-9)
    # Weights that differ in the last digit take the general path and must give the same result.
    almost = torch.full((m,), 1 / m, dtype=torch.float64)
    almost[0] += 1e-14
    assert percentile(row, almost, q).item() == pytest.approx(result, abs=1e-6)


def test_weights_pull_the_percentile() -> None:
    row = torch.tensor([[3.0, 1.0, 2.0]], dtype=torch.float64)
    heavy = torch.tensor([0.98, 0.01, 0.01], dtype=torch.float64)
    # A hundred points, of which 98 are 3: the window from 0.0099 to 0.0199 is 1 % of it below 2.
    assert percentile(row, heavy, 1).item() == pytest.approx(1.99, rel=1e-12)
    assert percentile(row, heavy, 50).item() == pytest.approx(3, rel=1e-12)


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
def test_any_weights_give_the_mean_over_a_window_of_the_smallest(values, q) -> None:
    row, weights = (np.array(part) for part in zip(*values, strict=True))
    given_weights = torch.from_numpy(weights / weights.sum())
    result = percentile(torch.from_numpy(row)[None], given_weights, q).item()
    assert result == pytest.approx(with_weights(row, weights / weights.sum(), q), abs=1e-9)


@settings(deadline=None)
@given(
    values=st.lists(st.tuples(st.sampled_from([0.0, 1, 2]) | st.floats(0, 10), st.integers(1, 5)),
                    min_size=1, max_size=8),
    q=st.floats(0, 100),
)  # fmt: skip
def test_weights_are_points_repeated(values, q) -> None:
    row, counts = (np.array(part) for part in zip(*values, strict=True))
    counts[0] = 1
    weights = torch.from_numpy(counts / counts.sum())
    result = percentile(torch.from_numpy(row)[None].double(), weights, q).item()
    assert result == pytest.approx(np.percentile(np.repeat(row, counts), q), abs=1e-9)


@settings(deadline=None)
@given(
    values=st.lists(st.tuples(st.sampled_from([0.0, 1, 2]), st.floats(0.01, 5)),
                    min_size=2, max_size=8),
    q=st.floats(0, 100),
    order=st.randoms(use_true_random=False),
)  # fmt: skip
def test_rounding_and_the_order_of_points_do_not_move_a_percentile(values, q, order) -> None:
    row, weights = (torch.tensor(part, dtype=torch.float64) for part in zip(*values, strict=True))
    weights /= weights.sum()
    result = percentile(row[None], weights, q).item()
    other = list(range(len(row)))
    order.shuffle(other)
    nearly = row[other] * (1 + 1e-15 * torch.arange(len(row)))
    assert percentile(nearly[None], weights[other], q).item() == pytest.approx(result, abs=1e-9)


@pytest.mark.parametrize("q", [0, 37.5, 100])
def test_weights_of_any_size_have_a_percentile(q) -> None:
    row = torch.tensor([[3.0, 1.0, 2.0]], dtype=torch.float64)
    weights = torch.tensor([1e-300, 1.0, 1e-17], dtype=torch.float64)
    assert percentile(row, weights, q).item() == pytest.approx({0: 1, 37.5: 1, 100: 3}[q])


@pytest.mark.filterwarnings("ignore:after .* picks no variance is left")
def test_of_copies_the_first_is_picked_by_a_percentile_with_weights() -> None:
    """Rounding of equal variances once gave copies of a row gains of their own."""
    x = np.array([-1, 0, 1, 0, 1, -1, 2, 1, -2, -1, 0, -1, -1, -1, -1, 1, -1, -2, -1, -2,
                  -1, 1, 0, -2, -1, 1.0])[:, None]  # fmt: skip
    x_test = np.array([-2, -1, 0, 2, 0, 2, 0, 1, 0, 2, -2, 0, -1, -1, 1, 1, 0, 1, -2.0])[:, None]
    weights = np.random.default_rng(1).exponential(size=len(x_test)).round(2) + 0.01
    for r in (50, 70, 85):
        selection = evgp.pick(
            x, 3, x_test=x_test, test_weights=weights, labelled=[4], noise=1e-5,
            network=mlp(0), criterion=Percentile(r),
        )  # fmt: skip
        for j, row in enumerate(selection.indices):
            before = np.setdiff1d(np.arange(row), [4, *selection.indices[:j]])
            assert not (x[before] == x[row]).any(), (r, selection.indices)


@settings(deadline=None)
@given(
    values=st.lists(st.tuples(st.floats(0, 10), st.booleans()), min_size=1, max_size=12),
    q=st.floats(0, 100) | st.sampled_from([0.0, 50.0, 100.0]),
)
def test_a_weight_of_zero_is_no_point_at_all(values, q) -> None:
    row, counts = (torch.tensor(part, dtype=torch.float64) for part in zip(*values, strict=True))
    counts[0] = 1
    result = percentile(row[None], counts / counts.sum(), q).item()
    assert result == pytest.approx(np.percentile(row[counts > 0].numpy(), q), abs=1e-9)


def test_a_percentile_beyond_100_is_refused() -> None:
    with refused(PoolError):
        Percentile(120)
