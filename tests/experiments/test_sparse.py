"""The sparse NTKGP: FIC by direct formulas, incremental, linearised."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import evgp
from evgp import EVGP, NTK, Pool, mlp
from evgp.criteria import Linearised
from evgp.errors import PoolError
from evgp.kernels import Inducing
from evgp.posterior import FeatureStart
from evgp.search import Exact
from experiments.sparse import SparseNTKGP, sntkgp
from tests.conftest import examples
from tests.messages import refused

KERNEL = NTK(mlp())
NOISE = 1e-3


def points(n: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(n, 3, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


X, TEST, U = points(14), points(9, 1), points(6, 2)
Y = torch.stack([X[:, 0], X[:, 1].sin()], dim=1)


def direct(x, y, u):
    """Sigma_U and mu_U by the equations of the paper, slips corrected."""
    inverse = torch.linalg.inv(KERNEL(u))
    cross = KERNEL(u, x)
    gamma = KERNEL.diag(x) - (cross * (inverse @ cross)).sum(0) + NOISE
    a = inverse @ cross
    sigma = torch.linalg.inv(inverse + (a / gamma) @ a.T)
    return sigma, sigma @ (a / gamma) @ y


def fitted(x=X, y=Y, u=U) -> SparseNTKGP:
    return SparseNTKGP.start(KERNEL, u, noise=NOISE, outputs=y.shape[1]).add(x, y)


def test_one_point_at_a_time_is_the_closed_form() -> None:
    sigma, mu = direct(X, Y, U)
    whole = fitted()
    assert torch.allclose(whole.sigma(), sigma, rtol=1e-6, atol=1e-9)
    assert torch.allclose(whole.mu(), mu, rtol=1e-6, atol=1e-8)
    parts = fitted(X[:5], Y[:5]).add(X[5:], Y[5:])
    assert torch.allclose(parts.cov, whole.cov, atol=1e-12)
    assert torch.allclose(parts.shift, whole.shift, atol=1e-11)


def test_predictions_are_those_of_the_equations() -> None:
    sigma, mu = direct(X, Y, U)
    inverse = torch.linalg.inv(KERNEL(U))
    b = KERNEL(TEST, U) @ inverse
    prior = KERNEL.diag(TEST) - (b * KERNEL(TEST, U)).sum(1)
    expected = prior + ((b @ sigma) * b).sum(1)
    prediction = fitted().predict(TEST, full=True)
    assert torch.allclose(prediction.variance, expected, rtol=1e-6)
    assert torch.allclose(prediction.mean, b @ mu, rtol=1e-6, atol=1e-8)
    assert torch.allclose(prediction.covariance.diagonal(), prediction.variance)
    assert bool((torch.linalg.eigvalsh(prediction.covariance) > -1e-10).all())


def test_inducing_at_every_point_is_the_exact_process() -> None:
    every = torch.cat([X, TEST])
    sparse = sntkgp(KERNEL, X, Y, TEST, every, noise=1e-3)
    exact = evgp.posterior.ntkgp(KERNEL, X, Y, TEST, noise=1e-3)
    assert torch.allclose(sparse.mean, exact.mean, rtol=1e-4, atol=1e-6)
    assert torch.allclose(sparse.variance, exact.variance, rtol=1e-4, atol=1e-7)


@settings(max_examples=examples(30), deadline=None)
@given(seed=st.integers(0, 999), n=st.integers(1, 12), u=st.integers(1, 8))
def test_variance_is_never_negative_and_never_rises(seed, n, u) -> None:
    x, inducing = points(n, seed), points(u, seed + 1)
    now = SparseNTKGP.start(KERNEL, inducing, noise=1e-6)
    before = now.predict(TEST).variance
    for row in range(n):
        now = now.add(x[row : row + 1], torch.zeros(1))
        after = now.predict(TEST).variance
        assert bool((after >= 0).all()) and bool((after <= before + 1e-10).all())
        before = after


def test_the_linear_change_is_the_first_order_in_both_parametrisations() -> None:
    now, new = fitted(X[:5], Y[:5]), X[7:8]
    change = now.linear_change(new)[0]
    phi = now.features.phi(new)[0]
    own = float(now.features.residual(new, now.features.phi(new))) + NOISE
    f = torch.outer(phi, phi) / own
    # In Sigma: the derivative of the inverse of (Sigma^-1 + t F) at t = 0, by a small step.
    t = 1e-6
    precision = torch.linalg.inv(now.cov)
    step = (torch.linalg.inv(precision + t * f) - now.cov) / t
    assert torch.allclose(change, step, rtol=1e-3, atol=1e-4 * float(change.abs().max()))
    # By the influence function: minus the Hessian's inverse times the gradient, with
    # L(Sigma) = (log det Sigma - <Sigma, precision>) / 2 and dL = -<Sigma, F> / 2.
    u = len(phi)
    hessian = -torch.einsum("ij,kl->ikjl", precision, precision).reshape(u * u, u * u) / 2
    gradient = -f.flatten() / 2
    influence = -torch.linalg.solve(hessian, gradient).reshape(u, u)
    assert torch.allclose(change, influence, rtol=1e-6, atol=1e-10)
    # The natural parameters change by F, exactly; to first order Sigma changes by -Sigma F Sigma.
    assert torch.allclose(change, -now.cov @ f @ now.cov, rtol=1e-9)


def test_the_linear_criterion_is_the_inner_product_and_never_below_the_truth() -> None:
    pool = Pool(X, TEST)
    features = Inducing(KERNEL, U)
    start = FeatureStart.of(features, pool, 1e-3, torch.float64)
    posterior = start(torch.arange(14))
    posterior.observe_(3)
    now = SparseNTKGP.start(KERNEL, U, noise=start.noise).add(X[3:4], torch.zeros(1))
    changes = now.linear_change(X)
    expected = -(changes * start.moment).sum((1, 2))
    rows = torch.arange(14)
    gains = Linearised().gains(posterior, rows)
    assert torch.allclose(gains, expected, rtol=1e-6)
    assert bool((gains >= evgp.ExpectedVariance().gains(posterior, rows) - 1e-12).all())
    assert torch.allclose(Linearised().ceilings(posterior), gains, rtol=1e-6)


def test_the_feature_posterior_of_inducing_points_is_this_one() -> None:
    pool = Pool(X, TEST)
    start = FeatureStart.of(Inducing(KERNEL, U), pool, 1e-3, torch.float64)
    posterior = start(torch.arange(14))
    sparse = SparseNTKGP.start(KERNEL, U, noise=start.noise)
    for row in (2, 9, 4):
        posterior.observe_(row)
        sparse = sparse.add(X[row : row + 1], torch.zeros(1))
        mean = float(sparse.predict(TEST).variance.mean())
        assert posterior.mean_variance() == pytest.approx(mean, rel=1e-9)


def test_linearised_picks_are_measured_exactly() -> None:
    pool = Pool(X, TEST)
    features = Inducing(KERNEL, U)
    exact, linear = (
        EVGP(features, rule, Exact(), noise=1e-3)(pool, 4, generator=torch.Generator())
        for rule in (evgp.ExpectedVariance(), Linearised())
    )
    assert linear.variance_left[-1] >= exact.variance_left[-1] - 1e-12
    assert len(set(linear.indices.tolist())) == 4


def test_wrong_numbers_are_refused() -> None:
    with refused(PoolError):
        SparseNTKGP.start(KERNEL, U, noise=-1)
    with refused(PoolError):
        fitted().add(X[:3], Y[:2])
