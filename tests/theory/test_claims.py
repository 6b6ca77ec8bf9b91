"""What `docs/theory.md` claims, shown: what holds, and where the paper slips."""

from dataclasses import dataclass
from math import e, log, pi

import numpy as np
import pytest
import torch
from sklearn.datasets import load_diabetes, load_digits
from torch import Tensor

import evgp
from evgp.posterior import condition
from experiments.sparse import SparseNTKGP

EV = evgp.ExpectedVariance()
MI = evgp.MutualInformation()
RELU = evgp.NTK(evgp.mlp())
# Theta = x.x' / d: with it any Gaussian can be written down by hand.
LINEAR = evgp.NTK(evgp.mlp(depth=0, b_std=0.0))
ACTIVATIONS = ["relu", "leaky_relu", "gelu", "erf", "sin", "identity"]
X = torch.randn(9, 2, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
TEST = torch.randn(6, 2, generator=torch.Generator().manual_seed(2), dtype=torch.float64)
WEIGHTS = torch.tensor([1.0, 4, 2, 1, 1, 1], dtype=torch.float64) / 10
POOLS = {
    "the pool itself": evgp.Pool(X),
    "other test points": evgp.Pool(X, x_test=TEST),
    "some of the pool": evgp.Pool(X, test=torch.tensor([0, 3, 4, 8])),
    "weights": evgp.Pool(X, x_test=TEST, weights=WEIGHTS),
    "labelled": evgp.Pool(X, labelled=torch.tensor([2, 5])),
    "everything": evgp.Pool(
        X, x_test=TEST, weights=WEIGHTS, labelled=torch.tensor([2]), x_labelled=TEST[:1] + 0.3
    ),
}


def table(*rows: tuple[float, ...]) -> Tensor:
    return torch.tensor(rows, dtype=torch.float64)


def standard(x: np.ndarray) -> Tensor:
    """Mean 0 and deviation 1; a constant column becomes 0."""
    centred = torch.from_numpy(x - x.mean(0))
    scale = centred.square().mean(0).sqrt()
    return centred / torch.where(scale > 0, scale, 1.0)


def opened(kernel, pool: evgp.Pool, noise: float = 1e-9):
    return condition(kernel, pool, pool.unlabelled(), noise=noise)


def gain(now, row: int) -> float:
    return float(EV.gains(now, torch.tensor([row])))


# -- the mean variance is monotone, but not submodular ---------------------------------------------


def test_a_label_never_raises_the_variance(x) -> None:
    now = opened(RELU, evgp.Pool(x), 1e-6)
    before = now.test_variance().clone()
    for row in (3, 17, 4, 30):
        assert bool((EV.gains(now, torch.arange(len(x))) >= 0).all())
        now.observe_(row)
        after = now.test_variance().clone()
        assert bool((after <= before + 1e-12).all())
        before = after


def test_a_gain_may_rise_after_another_pick() -> None:
    """t is the target; t + n and n can be observed: n alone says nothing, with t + n everything."""
    now = opened(LINEAR, evgp.Pool(table((1, 1), (0, 1)), x_test=table((1, 0))))
    assert gain(now, 1) == pytest.approx(0, abs=1e-8)
    now.observe_(0)
    assert gain(now, 1) == pytest.approx(1 / 4, abs=1e-8)  # all that is left of 1/2


def test_a_gain_may_rise_with_two_hidden_relu_layers() -> None:
    now = opened(RELU, evgp.Pool(table((0, 1), (0, 2)), x_test=table((0, 0))))
    before = gain(now, 1)
    now.observe_(0)
    assert gain(now, 1) > 1.15 * before


@pytest.mark.parametrize("load", [load_digits, load_diabetes], ids=["digits", "diabetes"])
def test_an_eighth_of_all_gains_rise_on_real_pools(load) -> None:
    x = standard(load().data[:300])
    rows, now = torch.arange(len(x)), opened(RELU, evgp.Pool(x), 1e-6)
    free = torch.ones(len(x), dtype=torch.bool)
    before, rises = EV.gains(now, rows), []
    for _ in range(40):
        best = int(torch.where(free, before, -1.0).argmax())
        now.observe_(best)
        free[best] = False
        after = EV.gains(now, rows)
        rises.append((after / before - 1)[free])
        before = after
    every = torch.cat(rises)
    assert 0.11 < float((every > 1e-9).double().mean()) < 0.13
    assert 0.025 < float(every.max()) < 0.04


@pytest.mark.parametrize("greedy", ["exact", "exchange"])
def test_greedy_may_fall_far_below_63_percent(greedy) -> None:
    """Rows 0 and 1 are worth little apart and everything together; 2 and 3 are decoys."""
    pool = table((1, 10, 0, 0), (0, 1, 0, 0), (1, 0, 7, 0), (1, 0, 0, 7))
    selection = evgp.pick(
        pool,
        2,
        x_test=table((1, 0, 0, 0)),
        kernel=LINEAR,
        greedy=greedy,
        noise=1e-9,
        scale=None,
    )
    assert sorted(selection.indices) == [2, 3]
    reached = 1 - selection.variance_left[-1] / selection.prior_variance
    assert reached < 0.04 < 1 - 1 / e  # rows 0 and 1 leave nothing
    assert selection.certificate.share[-1] <= reached + 1e-9  # and the certificate knows it


def test_lazy_equals_exact_where_gains_only_shrink() -> None:
    """Noisy copies of orthogonal rows: a label helps its own group only, each time less."""
    axes = torch.eye(12, dtype=torch.float64) * torch.linspace(1, 2, 12, dtype=torch.float64)
    pool = evgp.Pool(axes.repeat(5, 1))
    selections = [
        evgp.EVGP(LINEAR, EV, greedy, noise=0.1)(pool, 20, generator=torch.Generator())
        for greedy in (evgp.search.Exact(), evgp.search.Lazy())
    ]
    assert selections[0].indices.tolist() == selections[1].indices.tolist()


def test_what_may_be_skipped_is_the_point_with_the_stale_gain() -> None:
    """A stale gain below a fresh one is beaten. The paper's sentence skips the fresh one."""
    axes = torch.eye(6, dtype=torch.float64) * torch.linspace(1, 2, 6, dtype=torch.float64)
    rows, now = torch.arange(6), opened(LINEAR, evgp.Pool(axes), 0.1)
    stale = EV.gains(now, rows)
    first = int(stale.argmax())
    now.observe_(first)
    fresh = EV.gains(now, rows)
    checked = int(stale.argsort()[-2])  # the x' of the sentence: looked at in this round
    beaten = [x for x in range(6) if x not in (first, checked) and stale[x] <= fresh[checked]]
    assert len(beaten) == 4 and int(fresh.argmax()) not in beaten
    assert int(fresh.argmax()) == checked  # "no point in checking x'" would lose the best


# -- the kernels -----------------------------------------------------------------------------------


def relu(cov: float, v1: float, v2: float) -> tuple[float, float]:
    """E[phi phi] and E[phi' phi'] of the plain ReLU."""
    angle = np.arccos(np.clip(cov / np.sqrt(v1 * v2), -1, 1))
    size = np.sqrt(v1 * v2) / (2 * pi)
    return size * (np.sin(angle) + (pi - angle) * np.cos(angle)), (pi - angle) / (2 * pi)


def ours(x: np.ndarray, y: np.ndarray, layers: int, bias: float = 0.01) -> float:
    """The recursion of docs/theory.md, for w_std = 1."""
    k = [a @ b / len(x) + bias for a, b in ((x, y), (x, x), (y, y))]
    theta = k[0]
    for _ in range(layers):
        dual = [relu(k[0], k[1], k[2]), relu(k[1], k[1], k[1]), relu(k[2], k[2], k[2])]
        k = [value + bias for value, _ in dual]
        theta = k[0] + theta * dual[0][1]
    return theta


def paper(
    x: np.ndarray, y: np.ndarray, layers: int, *, divide: bool, scale: float, bias: float = 0.01
) -> float:
    """The recursion as printed: Theta(0) = 0, L + 1 activations."""
    k = [a @ b / (len(x) if divide else 1) + bias for a, b in ((x, y), (x, x), (y, y))]
    theta = 0.0
    for _ in range(layers + 1):
        dual = [relu(k[0], k[1], k[2]), relu(k[1], k[1], k[1]), relu(k[2], k[2], k[2])]
        k = [scale * value + bias for value, _ in dual]
        theta = k[0] + theta * scale * dual[0][1]
    return theta


@pytest.mark.parametrize("load", [load_diabetes, load_digits], ids=["diabetes", "digits"])
def test_the_prior_is_07775_on_standardised_columns(load) -> None:
    x = standard(load().data)
    x = x[:, x.square().sum(0) > 0]  # a constant column carries no variance
    assert float(RELU.diag(x).mean()) == pytest.approx(0.7775, abs=1e-12)


@pytest.mark.parametrize("layers", [1, 2, 4])
def test_the_kernel_follows_our_recursion(layers) -> None:
    x = standard(load_diabetes().data[:6]).numpy()
    matrix = evgp.NTK(evgp.mlp(depth=layers))(x)
    expected = [[ours(a, b, layers) for b in x] for a in x]
    assert np.allclose(matrix, expected, rtol=1e-6)


@pytest.mark.parametrize("divide", [True, False], ids=["divided by d", "as printed"])
@pytest.mark.parametrize("scale", [1, 2], ids=["plain ReLU", "ReLU times sqrt 2"])
def test_the_printed_recursion_is_another_kernel(divide, scale) -> None:
    x = standard(load_diabetes().data[:40]).numpy()
    mean = np.mean([paper(row, row, 2, divide=divide, scale=scale) for row in x])
    assert abs(mean - 0.7775) > 0.3


def test_the_network_itself_decides_between_the_two() -> None:
    """The squared gradient of wide finite networks, averaged, is the NTK of a point with itself."""
    row = standard(load_diabetes().data)[0].float()
    squares = []
    for seed in range(8):
        net = evgp.mlp(width=1024).build((10,), generator=torch.Generator().manual_seed(seed))
        grads = torch.autograd.grad(net(row[None]).sum(), list(net.parameters()))
        # In NTK parametrisation a step in the bias b moves the output by b_std: already in forward.
        squares.append(sum(float(grad.square().sum()) for grad in grads))
    measured, x = float(np.mean(squares)), row.double().numpy()
    assert measured == pytest.approx(ours(x, x, 2), rel=0.05)
    assert measured != pytest.approx(paper(x, x, 2, divide=True, scale=1), rel=0.2)


# -- trained networks ------------------------------------------------------------------------------


@dataclass(frozen=True)
class Times:
    """A kernel, times a number."""

    kernel: evgp.NTK
    factor: float

    def __call__(self, x1, x2=None):
        return self.factor * self.kernel(x1, x2)

    def diag(self, x):
        return self.factor * self.kernel.diag(x)


def lowest(matrix: Tensor) -> float:
    return float(torch.linalg.eigvalsh((matrix + matrix.T) / 2)[0])


@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize("noise", [1e-6, 0.1])
def test_trained_networks_vary_less_than_the_gaussian_process(activation, noise, x) -> None:
    network = evgp.mlp(activation=activation)
    ntk, nngp = evgp.NTK(network), evgp.NNGP(network)
    assert lowest(ntk(x) - nngp(x)) > -1e-12, "the reason: Theta - K is positive semidefinite"
    labels = torch.zeros(12, dtype=torch.float64)
    process = evgp.posterior.ntkgp(ntk, x[:12], labels, x[12:], noise=noise, full=True)
    nets = evgp.posterior.trained(ntk, nngp, x[:12], labels, x[12:], noise=noise, full=True)
    assert lowest(process.covariance - nets.covariance) > -1e-9
    # With noise s the gap is at least s G G^T.
    s = noise * float(ntk.diag(x[12:]).mean())
    g = torch.linalg.solve(
        ntk(x[:12]) + s * torch.eye(12, dtype=torch.float64), ntk(x[:12], x[12:])
    ).T
    assert lowest(process.covariance - s * g @ g.T - nets.covariance) > -1e-9


@pytest.mark.parametrize("noise", [1e-9, 0.1])
def test_both_agree_up_to_alpha_where_the_kernels_do(noise, x) -> None:
    labels = torch.zeros(12, dtype=torch.float64)
    process = evgp.posterior.ntkgp(RELU, x[:12], labels, x[12:], noise=noise, full=True)
    nets = evgp.posterior.trained(
        RELU, Times(RELU, 0.3), x[:12], labels, x[12:], noise=noise, full=True
    )
    s = noise * float(RELU.diag(x[12:]).mean())
    gram = RELU(x[:12]) + s * torch.eye(12, dtype=torch.float64)
    g = torch.linalg.solve(gram, RELU(x[:12], x[12:])).T
    expected = 0.3 * (process.covariance - s * g @ g.T)
    assert torch.allclose(nets.covariance, expected, atol=1e-8)
    assert torch.allclose(nets.mean, process.mean)
    if noise < 1e-6:
        assert torch.allclose(nets.covariance, 0.3 * process.covariance, atol=1e-6)


def test_the_spread_of_trained_networks_may_rise_with_a_label() -> None:
    """Its ceiling, the NTKGP, never does; the paper calls the fall of Sigma_NN >= 0."""
    points, test = table((-2, 0), (0, 1), (-2, 1)), table((-1, 0))
    nngp = evgp.NNGP(evgp.mlp())
    two, three = (
        float(evgp.posterior.trained(RELU, nngp, points[:k], torch.zeros(k), test).variance)
        for k in (2, 3)
    )
    assert three > 1.03 * two
    two, three = (
        float(evgp.posterior.ntkgp(RELU, points[:k], torch.zeros(k), test).variance) for k in (2, 3)
    )
    assert three < two
    shallow = evgp.mlp(depth=1)
    points, test = table((-1, -1), (0, -2), (-1, 0)), table((2, 2))
    after = evgp.posterior.trained(
        evgp.NTK(shallow), evgp.NNGP(shallow), points, torch.zeros(3), test
    )
    assert float(after.variance) > 1.03 * float(evgp.NNGP(shallow).diag(test))


# -- mutual information ----------------------------------------------------------------------------


def information(pool: evgp.Pool, picks: list[int], s: float) -> float:
    """I[y_L; y_{T - L}] of noisy outputs, by log-determinants of prior covariances."""
    rows = pool.test_rows()
    taken = {*pool.labelled.tolist(), *picks}
    rest = pool.test_points()
    if rows is not None:
        rest = pool.x[[row for row in rows.tolist() if row not in taken]]
    known = torch.cat([pool.known(), pool.x[picks]])

    def entropy(points: Tensor) -> float:
        noisy = RELU(points) + s * torch.eye(len(points), dtype=torch.float64)
        return float(torch.linalg.slogdet(noisy).logabsdet) / 2

    if len(known) == 0:
        return 0.0
    return entropy(known) + entropy(rest) - entropy(torch.cat([known, rest]))


@pytest.mark.parametrize("name", [name for name in POOLS if name not in ("weights", "everything")])
@pytest.mark.parametrize("noise", [1e-3, 0.3])
def test_information_gains_are_differences_of_information(name, noise) -> None:
    pool = POOLS[name]
    free = pool.unlabelled().tolist()
    now, picks = opened(RELU, pool, noise), []
    for place in (1, 0, 4):
        before = information(pool, picks, noise)
        for row, candidate in enumerate(free):
            if candidate in picks:
                continue
            after = information(pool, [*picks, candidate], noise)
            result = float(MI.gains(now, torch.tensor([row])))
            assert result == pytest.approx(after - before, abs=1e-9)
        now.observe_(place)
        picks.append(free[place])


def test_information_may_fall() -> None:
    """Once most test points are labelled, the next one says less than it takes away."""
    pool = evgp.Pool(X)
    now = opened(RELU, pool, 0.1)
    for row in range(8):
        now.observe_(row)
    result = information(pool, list(range(8)), 0.1)  # of the ninth, which is all that is left
    assert result > 0.01
    assert float(MI.gains(now, torch.tensor([8]))) == pytest.approx(-result, abs=1e-9)


def test_noise_belongs_in_both_determinants() -> None:
    """The paper adds it to the conditional one only: then nothing learnt is not zero."""
    s, prior = 0.1, RELU(X)
    eye = torch.eye(len(X), dtype=torch.float64)
    one_sided = float(torch.logdet(prior) - torch.logdet(prior + s * eye)) / 2
    assert one_sided < -1
    # Both sides: a label that is all noise says nothing, and our criterion agrees.
    deaf = opened(RELU, evgp.Pool(X), 1e9)
    assert float(MI.gains(deaf, torch.arange(len(X))).abs().max()) < 1e-8
    twins = RELU(torch.cat([X, X[:1]]))  # and a repeated test point makes it infinite
    assert float(torch.linalg.slogdet(twins).logabsdet) < -30 + log(s)


def test_sparse_posterior_is_the_root_of_the_corrected_gradients() -> None:
    """With noise in Gamma, F a matrix, and a half before the gradient in Sigma_U."""
    generator = torch.Generator().manual_seed(0)
    x, u = (torch.randn(n, 3, generator=generator, dtype=torch.float64) for n in (9, 5))
    y = x[:, 0]
    kernel, noise = evgp.NTK(evgp.mlp()), 0.1
    result = SparseNTKGP.start(kernel, u, noise=noise).add(x, y)
    inverse = torch.linalg.inv(kernel(u))
    a = inverse @ kernel(u, x)
    rest = kernel.diag(x) - (kernel(u, x) * a).sum(0)

    def gradients(gamma: torch.Tensor) -> tuple[float, float]:
        f = (a / gamma) @ a.T
        sigma = (torch.linalg.inv(result.sigma()) - inverse - f) / 2
        mean = (a / gamma) @ y - f @ result.mu()[:, 0] - inverse @ result.mu()[:, 0]
        return float(sigma.abs().max()), float(mean.abs().max())

    assert max(gradients(rest + noise)) < 1e-6
    assert min(gradients(rest)) > 0.1  # as printed, without the noise
