"""Kernels, predictions, audits and the choice of a network, against direct solves in NumPy."""

import warnings

import numpy as np
import pytest
import torch

import evgp
from experiments.other_scores import evidence
from experiments.sparse import sntkgp
from tests.hostile import brute
from tests.hostile.brute_kernels import Net, dual, kernels, series
from tests.hostile.conftest import Tally
from tests.hostile.drawn import _net as drawn_net
from tests.hostile.drawn import _points as drawn_points
from tests.hostile.problems import network_of

Array = np.ndarray
SMOOTH = ("erf", "sin", "gelu", "identity")


def test_the_brute_force_has_the_right_kernels(rng, tally: Tally) -> None:
    """Closed forms against series that know the activation alone; ReLU by sampling."""
    tried = 0
    for activation in SMOOTH:
        net = Net(activation=activation)
        for _ in range(5):
            points = rng.normal(size=(6, 3)) * rng.uniform(0.3, 1.5)
            points /= np.maximum(
                1, np.linalg.norm(points, axis=1, keepdims=True) / 2
            )  # to converge
            cov = points @ points.T
            own = cov.diagonal()
            for got, want in zip(
                dual(net, cov, own[:, None], own), series(net, cov, own, own), strict=True
            ):
                np.testing.assert_allclose(got, want, rtol=1e-9, atol=1e-9)
                tried += got.size
    for slope in (0.0, 0.3, -0.2):
        cov = np.array([[1.3, 0.4], [0.4, 0.6]])
        u = rng.multivariate_normal([0, 0], cov, size=200_000)
        result = dual(Net(activation="leaky_relu", slope=slope), cov[0, 1], cov[0, 0], cov[1, 1])
        both = np.where(u > 0, u, slope * u).prod(1), np.where(u > 0, 1, slope).prod(1)
        for got, sample in zip(result, both, strict=True):
            assert abs(got - sample.mean()) < 6 * sample.std() / len(u) ** 0.5
            tried += 1
    tally("brute force", "the brute-force kernels, against series and samples", tried, tried)


def test_kernels(rng, tally: Tally) -> None:
    tried = exact = 0
    for _ in range(200):
        net, (x, more) = drawn_net(rng), drawn_points(rng, 20)
        y = more(rng, 7)
        flat = [item.reshape(len(item), -1) for item in (x, y)]
        result = kernels(net, *flat)
        sizes = [kernels(net, item, item) for item in flat]
        for i, kind in enumerate((evgp.NNGP, evgp.NTK)):
            kernel = kind(network_of(net))
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", evgp.EvgpWarning)
                got = [kernel(x, y), kernel(x), np.diag(kernel.diag(y))]
            want = [result[i], sizes[0][i], np.diag(sizes[1][i].diagonal())]
            size = [np.sqrt(np.maximum(size[i].diagonal(), 1e-300)) for size in sizes]
            scale = [np.outer(*size), np.outer(size[0], size[0]), np.outer(size[1], size[1])]
            off = max(np.max(np.abs(a - b) / c) for a, b, c in zip(got, want, scale, strict=True))
            # The angle between points in one direction has half the digits (docs/theory.md).
            assert off < 1e-7, (net, off)
            exact += off < 1e-11
            tried += 1
    assert exact > 0.9 * tried
    tally("brute force", "NTK and NNGP", tried, tried)


class Fitted:
    """Predictions at test points from labelled ones, by one inverse."""

    def __init__(self, net: Net, x: Array, test: Array, noise: float) -> None:
        self.k, self.t = zip(
            *[kernels(net, a, b) for a in (x, test) for b in (x, test)], strict=True
        )
        self.s = max(noise, brute.JITTER) * self.t[3].diagonal().mean()
        self.inverse = np.linalg.inv(self.t[0] + self.s * np.eye(len(x)))
        self.g = self.t[2] @ self.inverse
        # As in `brute`: what a relative error of the kernel is multiplied by.
        size = np.sqrt(max(self.t[0].diagonal().max(), self.t[3].diagonal().max()))
        self.off = 1e-12 * (size * (1 + np.abs(self.g).sum(1).max())) ** 2

    def process(self) -> Array:
        """Covariance of the NTKGP."""
        return self.t[3] - self.g @ self.t[1]

    def networks(self) -> Array:
        """Covariance of trained networks over their random starts."""
        mixed = self.g @ self.k[1]
        return self.k[3] + self.g @ self.k[0] @ self.g.T - mixed - mixed.T


def drawn(rng: np.random.Generator, rows: int) -> tuple[Net, Array, float]:
    """A network with biases and distinct points, where kernels have all their digits."""
    net = drawn_net(rng)
    net = Net(net.depth, net.activation, net.w_std, max(net.b_std, 0.05), net.slope)
    x = rng.normal(size=(rows, int(rng.integers(1, 5))))
    return net, x, float(10 ** rng.uniform(-5, 0))


def test_predictions(rng, tally: Tally) -> None:
    tried = 0
    for _ in range(60):
        net, x, noise = drawn(rng, int(rng.integers(5, 25)))
        x[rng.integers(len(x))] = x[rng.integers(len(x))]
        count = int(rng.integers(1, len(x) - 1))
        y = rng.normal(size=(count, int(rng.integers(1, 3))))
        fitted = Fitted(net, x[:count], x[count:], noise)
        network = network_of(net)
        ntk, nngp = evgp.NTK(network), evgp.NNGP(network)
        result = evgp.posterior.ntkgp(ntk, x[:count], y, x[count:], noise=noise, full=True)
        nets = evgp.posterior.trained(ntk, nngp, x[:count], y, x[count:], noise=noise, full=True)
        solved = np.abs(fitted.inverse @ y).sum()
        for item, want in ((result, fitted.process()), (nets, fitted.networks())):
            off = 100 * fitted.off
            np.testing.assert_allclose(item.mean, fitted.g @ y, rtol=1e-9, atol=off * (1 + solved))
            np.testing.assert_allclose(item.covariance, want, rtol=1e-9, atol=off)
            np.testing.assert_allclose(item.variance, want.diagonal(), rtol=1e-9, atol=off)
        assert (nets.variance <= result.variance + 1e-9).all()
        tried += 2
    tally("brute force", "predictions of the NTKGP and of trained networks", tried, tried)


def test_sparse_predictions(rng, tally: Tally) -> None:
    tried = 0
    for _ in range(40):
        net, x, noise = drawn(rng, int(rng.integers(8, 25)))
        count, inducing = int(rng.integers(1, len(x) - 4)), x[: int(rng.integers(1, 5))]
        y = rng.normal(size=count)
        every = np.concatenate([x, inducing])
        gram = kernels(net, every, every)[1]
        through, rest, times = brute.nystrom(gram, np.arange(len(x), len(every)))
        s = noise * gram.diagonal()[count : len(x)].mean()
        inner = through[:count, :count] + np.diag(rest[:count] + s)
        weights = np.linalg.solve(inner, through[:count])[:, count : len(x)]
        result = sntkgp(
            evgp.NTK(network_of(net)), x[:count], y, x[count:], inducing, noise=noise, full=True
        )
        at = slice(count, len(x))
        want = through[at, at] - through[at, :count] @ weights + np.diag(rest[at])
        off = 1e-8 * times * (1 + np.abs(weights).sum(0).max()) ** 2 * gram.diagonal().max()
        np.testing.assert_allclose(result.covariance, want, atol=off)
        np.testing.assert_allclose(
            result.mean[:, 0], weights.T @ y, atol=off * (1 + np.abs(y).sum() / s)
        )
        tried += 1
    tally("brute force", "predictions through inducing points", tried, tried)


def test_audits(rng, tally: Tally) -> None:
    tried = 0
    for _ in range(12):
        net, x, noise = drawn(rng, 24)
        if rng.random() < 0.5:
            x = np.concatenate([x, np.full((24, 1), 2.0)], axis=1)
        train, pool, test, k, seed = x[:6], x[6:15].copy(), x[15:], 3, int(rng.integers(50))
        pool[2] = train[1]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", evgp.EvgpWarning)
            got = evgp.audit(train, test, network_of(net), pool=pool, k=k, noise=noise, seed=seed)
        # Columns that are constant in the training rows are left out, and do not count as inputs.
        kept = np.ptp(train, axis=0) > 0
        train, pool, test = brute.standardised(*(item[:, kept] for item in (train, pool, test)))
        fitted = Fitted(net, train, test, noise)
        off = {"rtol": 1e-7, "atol": 1e3 * fitted.off}
        np.testing.assert_allclose(got.deviation**2, fitted.networks().diagonal(), **off)
        np.testing.assert_allclose(got.ceiling**2, fitted.process().diagonal(), **off)
        assert (got.deviation <= got.ceiling + 1e-9).all()
        means = [item[3].diagonal().mean() for item in (fitted.k, fitted.t)]
        np.testing.assert_allclose(got.prior, means, rtol=1e-9)
        now = fitted.process().diagonal().mean()
        for i, influence in enumerate(got.influence):
            without = Fitted(net, np.delete(train, i, 0), test, noise)
            np.testing.assert_allclose(influence, without.process().diagonal().mean() - now, **off)
        assert got.redundant().tolist() == [
            i for i, item in enumerate(got.influence) if item < 0.1 * now / len(train)
        ]

        def left(more: Array, train=train, test=test, net=net, noise=noise) -> float:
            return float(Fitted(net, more, test, noise).networks().diagonal().mean())

        both = torch.Generator().manual_seed(seed)
        sets = [
            got.further.indices,
            *(torch.randperm(9, generator=both)[:k].numpy() for _ in range(20)),
        ]
        for rows, after in zip(sets, [got.after, *got.chance], strict=True):
            want = [left(np.concatenate([train, pool[rows[:j]]])) for j in range(1, k + 1)]
            np.testing.assert_allclose(after, want, **off)
        whole = np.concatenate([train, np.delete(pool, 2, 0)])
        again = torch.Generator().manual_seed(seed)
        want = [
            left(whole[torch.randperm(len(whole), generator=again)[:6].numpy()]) for _ in range(20)
        ]
        np.testing.assert_allclose(got.random, want, **off)
        tried += 1
    tally("brute force", "audits", tried, tried)


def test_choices(rng, tally: Tally) -> None:
    tried = 0
    for _ in range(12):
        nets = [drawn(rng, 1)[0] for _ in range(3)]
        _, x, noise = drawn(rng, int(rng.integers(8, 20)))
        y = np.sin(2 * x[:, 0]) + 0.1 * rng.normal(size=len(x))
        seed, folds, kappa = int(rng.integers(50)), 5, float(rng.uniform(0.1, 0.6))
        named = {str(i): network_of(net) for i, net in enumerate(nets)}
        result = evgp.choose(named, x, y, folds=folds, kappa=kappa, noise=noise, seed=seed)
        points, goals = brute.standardised(x)[0], (y - y.mean()) / y.std()
        out = max(1, round(kappa * len(x)))
        assert result.left_out == out
        random = np.random.default_rng(seed)
        orders = [random.permutation(len(x)) for _ in range(folds)]
        scores = {}
        for i, net in enumerate(nets):
            # The noise is one share of the prior variance over all points, in every fold.
            own = kernels(net, points, points)[1].diagonal().mean()
            fits, spreads, limit = [], [], 0.0
            for order in orders:
                inside, outside = order[:-out], order[-out:]
                of_test = kernels(net, points[outside], points[outside])[1].diagonal().mean()
                fitted = Fitted(net, points[inside], points[outside], noise * own / of_test)
                fits.append(np.square(fitted.g @ goals[inside] - goals[outside]).mean())
                spreads.append(fitted.networks().diagonal().mean())
                limit = max(limit, fitted.off * (1 + np.abs(fitted.inverse @ goals[inside]).sum()))
            scored = next(entry for entry in result.ranked if entry.name == str(i))
            np.testing.assert_allclose(scored.fit, np.mean(fits), rtol=1e-6, atol=100 * limit)
            np.testing.assert_allclose(scored.spread, np.mean(spreads), rtol=1e-6, atol=100 * limit)
            scores[str(i)] = np.add(fits, spreads)
        best = result.ranked[0]
        for entry in result.ranked:
            gap = scores[entry.name] - scores[best.name]
            share = (1 / folds + out / (len(x) - out)) ** 0.5
            np.testing.assert_allclose(entry.lead, gap.mean(), rtol=1e-5, atol=1e-7)
            np.testing.assert_allclose(entry.doubt, gap.std(ddof=1) * share, rtol=1e-5, atol=1e-7)
            assert entry.score >= best.score
        tried += 1
    tally("brute force", "choices of a network", tried, tried)


def test_evidence(rng, tally: Tally) -> None:
    tried = 0
    for _ in range(40):
        net, x, noise = drawn(rng, int(rng.integers(3, 20)))
        y = rng.normal(size=len(x))
        theta = kernels(net, x, x)[1]
        inner = theta + noise * theta.diagonal().mean() * np.eye(len(x))
        scale = y @ np.linalg.solve(inner, y) / len(x)
        sign, size = np.linalg.slogdet(2 * np.pi * scale * inner)
        want = -size / 2 - len(x) / 2
        assert sign > 0
        assert evidence(network_of(net), x, y, noise=noise) == pytest.approx(
            want, rel=1e-6, abs=1e-4
        )
        tried += 1
    tally("brute force", "evidence", tried, tried)
