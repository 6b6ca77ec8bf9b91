"""The incremental posterior against a direct solve, scikit-learn and itself."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import Kernel as SklearnKernel

from evgp import EVGP, NTK, ExpectedVariance, MutualInformation, Pool, mlp
from evgp.errors import PoolError
from evgp.kernels import Inducing, Tabulated
from evgp.posterior import Start, condition, ntkgp
from evgp.testing import Truth
from tests.laws.posterior import agrees
from tests.messages import refused

KERNEL = NTK(mlp(activation="erf"))
NOISE = 1e-4


def points(n: int, seed: int = 0) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(n, 3, generator=generator, dtype=torch.float64)


def weights(m: int) -> torch.Tensor:
    raw = torch.rand(m, generator=torch.Generator().manual_seed(5), dtype=torch.float64)
    return raw / raw.sum()


POOLS = {
    "pool is test": Pool(points(30)),
    "test of its own": Pool(points(30), x_test=points(12, 1)),
    "weights": Pool(points(30), x_test=points(12, 1), weights=weights(12)),
    "thinned": Pool(points(30), test=torch.arange(0, 30, 3)),
    "labelled": Pool(points(30), labelled=torch.tensor([3, 17])),
    "labelled outside": Pool(points(30), weights=weights(30), x_labelled=points(4, 2)),
}


@pytest.mark.parametrize("storage", [torch.float64, torch.float32], ids=str)
@pytest.mark.parametrize("name", list(POOLS))
def test_observing_and_forgetting_agree_with_a_direct_solve(name, storage) -> None:
    pool = POOLS[name]
    candidates = pool.unlabelled()
    truth = Truth(KERNEL, pool, NOISE)
    posterior = Start(KERNEL, pool, NOISE, storage)(candidates)
    tol = 1e-9 if storage == torch.float64 else 1e-6
    agrees(posterior, truth, candidates, [], tol)
    rows: list[int] = []

    def step(row: int, *, forget: bool = False) -> None:
        (posterior.forget_ if forget else posterior.observe_)(row)
        (rows.remove if forget else rows.append)(row)
        agrees(posterior, truth, candidates, candidates[rows].tolist(), tol)

    for row in (4, 9, 0, 21):
        step(row)
    step(9, forget=True)
    step(9)  # put back: as if nothing had happened
    step(4, forget=True)
    step(13)  # another one: the gap is closed
    step(21, forget=True)
    step(13, forget=True)  # two in a row
    step(2)
    step(21)


@settings(max_examples=25, deadline=None)
@given(data=st.data())
def test_any_history_agrees_with_a_direct_solve(data) -> None:
    pool = POOLS[data.draw(st.sampled_from(sorted(POOLS)))]
    candidates = pool.unlabelled()
    posterior = condition(KERNEL, pool, candidates, noise=NOISE)
    rows: list[int] = []
    for _ in range(data.draw(st.integers(1, 12))):
        if rows and data.draw(st.booleans()):
            row = data.draw(st.sampled_from(rows))
            posterior.forget_(row)
            rows.remove(row)
        else:
            row = data.draw(st.sampled_from([r for r in range(len(candidates)) if r not in rows]))
            posterior.observe_(row)
            rows.append(row)
        if data.draw(st.booleans()):
            posterior.fall()
    picks = candidates[rows].tolist()
    agrees(posterior, Truth(KERNEL, pool, NOISE), candidates, picks, 1e-9)
    assert sorted(posterior.observed()) == sorted(rows)


def test_order_does_not_matter_and_variances_never_rise() -> None:
    pool = POOLS["test of its own"]
    first, two = (condition(KERNEL, pool, pool.unlabelled(), noise=NOISE) for _ in range(2))
    before = first.test_variance()
    for row in (1, 2, 3):
        first.observe_(row)
        assert bool((first.test_variance() <= before + 1e-12).all())
        before = first.test_variance()
    for row in (3, 1, 2):
        two.observe_(row)
    assert torch.allclose(first.test_variance(), two.test_variance(), rtol=1e-9)
    assert torch.allclose(first.fall(), two.fall(), rtol=1e-8)


def test_observing_equals_being_labelled_before() -> None:
    pool = Pool(points(30), x_test=points(12, 1))
    late = condition(KERNEL, pool, pool.unlabelled(), noise=NOISE)
    for row in (5, 6):
        late.observe_(row)
    early = Pool(pool.x, pool.x_test, labelled=torch.tensor([5, 6]))
    posterior = condition(KERNEL, early, early.unlabelled(), noise=NOISE)
    assert torch.allclose(posterior.test_variance(), late.test_variance(), rtol=1e-9)
    assert torch.allclose(posterior.fall(), late.fall()[early.unlabelled()], rtol=1e-8)


class _Given(SklearnKernel):
    """Our kernel for scikit-learn."""

    def __init__(self) -> None:
        pass

    def __call__(self, X, Y=None, eval_gradient=False):
        return KERNEL(X) if Y is None else KERNEL(X, np.ascontiguousarray(Y))

    def diag(self, X):
        return KERNEL.diag(X)

    def is_stationary(self) -> bool:
        return False


def test_agrees_with_scikit_learn() -> None:
    x, test = points(10).numpy(), points(6, 1).numpy()
    gp = GaussianProcessRegressor(_Given(), alpha=NOISE, optimizer=None).fit(x, np.zeros(10))
    expected = gp.predict(test, return_std=True)[1] ** 2
    pool = Pool(points(1, 9), x_test=points(6, 1), x_labelled=points(10))
    posterior = condition(KERNEL, pool, pool.unlabelled(), noise=NOISE)
    assert posterior.test_variance().numpy() == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("criterion", [ExpectedVariance(), MutualInformation()], ids=repr)
@pytest.mark.parametrize("labelled", [0, 3])
def test_a_kernel_that_lends_its_matrix_finds_it_unchanged(criterion, labelled) -> None:
    lent = KERNEL(points(20))
    rows = torch.arange(20.0, dtype=torch.float64)[:, None]
    pools = [Pool(item, labelled=torch.arange(labelled)) for item in (rows, points(20))]
    actual, expected = (
        EVGP(kernel, criterion, noise=0.1)(pool, 5, generator=torch.Generator())
        for kernel, pool in zip((Tabulated(lent), KERNEL), pools, strict=True)
    )
    assert torch.equal(lent, KERNEL(points(20)))
    assert actual.indices.tolist() == expected.indices.tolist()
    assert actual.variance_left == pytest.approx(expected.variance_left)
    ntkgp(Tabulated(lent), rows, torch.zeros(20), rows)
    Inducing(Tabulated(lent), rows).factor()
    assert torch.equal(lent, KERNEL(points(20)))


def test_a_kernel_may_store_float32_for_itself() -> None:
    for pool in POOLS.values():
        actual, expected = (
            EVGP(kernel)(pool, 5, generator=torch.Generator())
            for kernel in (NTK(KERNEL.network, torch.float32), KERNEL)
        )
        assert actual.indices.tolist() == expected.indices.tolist()
        assert actual.variance_left == pytest.approx(expected.variance_left, rel=1e-9)


def test_without_noise_a_twin_of_a_pick_gains_nothing() -> None:
    x = torch.cat([points(5), points(5)])
    posterior = condition(KERNEL, Pool(x), torch.arange(10), noise=0.0)
    posterior.observe_(2)
    assert float(posterior.fall()[7] / (posterior.variance() + posterior.noise())[7]) < 1e-9
    assert bool(torch.isfinite(posterior.fall()).all())


@pytest.mark.parametrize("storage", [torch.float64, torch.float32], ids=str)
@pytest.mark.parametrize("copies", [20, 200, pytest.param(400, marks=pytest.mark.slow)])
def test_no_gain_exceeds_its_ceiling_among_copies(copies, storage) -> None:
    """Where terms of a sum are alike, their rounding adds up."""
    kernel, rule = NTK(mlp()), ExpectedVariance()
    pool = Pool(points(8).repeat_interleave(copies, 0))
    every = torch.arange(len(pool))
    for noise in (1e-2, 1e-6):
        posterior = Start(kernel, pool, noise, storage)(every)
        for row in range(0, len(pool), copies):
            posterior.observe_(row)
            ceilings = rule.ceilings(posterior)
            gains = posterior.covariance(every).square() @ pool.test_weights()
            gains = gains / (posterior.variance() + posterior.noise())
            assert bool((ceilings >= gains * (1 - 1e-9)).all())


def test_misuse_is_refused_clearly() -> None:
    posterior = condition(KERNEL, Pool(points(4)), torch.arange(4), noise=NOISE)
    posterior.observe_(1)
    with refused(PoolError):
        posterior.observe_(1)
    with refused(PoolError):
        posterior.forget_(2)
