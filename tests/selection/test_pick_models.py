"""Picking for networks other than infinite ones."""

from inspect import unwrap

import numpy as np
import pytest
import torch
from torch import nn

import evgp
from evgp import EmpiricalNTK, cnn, mlp
from evgp.errors import NetworkError
from evgp.selection.request import kernel_of
from tests.messages import refused


def images(n: int = 24) -> torch.Tensor:
    return torch.randn(n, 2, 8, 8, generator=torch.Generator().manual_seed(0))


def net() -> nn.Module:
    torch.manual_seed(1)
    return nn.Sequential(nn.Conv2d(2, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(144, 3))


def test_the_picks_are_those_of_the_kernel_matrix() -> None:
    """Greedy by hand on the module's own Jacobian."""
    module, x = net().double(), images().double()
    scaled = (x - x.mean((0, 2, 3), keepdim=True)) / x.std((0, 2, 3), keepdim=True, correction=0)
    rows = []
    for out in module(scaled)[:, 1]:
        grads = torch.autograd.grad(out, list(module.parameters()), retain_graph=True)
        rows.append(torch.cat([grad.flatten() for grad in grads]))
    theta = torch.stack(rows) @ torch.stack(rows).T
    noise = 1e-6 * float(theta.diagonal().mean())
    picks: list[int] = []
    for _ in range(5):
        left = {}
        for i in set(range(24)) - set(picks):
            subset = [*picks, i]
            gram = theta[subset][:, subset] + noise * torch.eye(len(subset), dtype=torch.float64)
            fall = theta[:, subset] @ torch.linalg.solve(gram, theta[subset])
            left[i] = float((theta - fall).diagonal().mean())
        picks.append(min(left, key=left.__getitem__))
    selection = evgp.pick(x, 5, kernel=EmpiricalNTK(module, output=1), greedy="exact")
    assert selection.indices.tolist() == picks
    assert selection.variance_left[-1] == pytest.approx(min(left.values()), rel=1e-6)


def test_modules_factories_and_the_zoo_come_in() -> None:
    x = images()
    for network in (net(), net, cnn(3), mlp(1, 32)):
        selection = evgp.pick(x, 4, network=network)
        assert len(set(selection.indices.tolist())) == 4
        assert selection.certificate.share[-1] > 0.3
    assert "parameters" in evgp.pick(x, 2, network=net()).settings["network"]
    selection = [evgp.pick(x, 4, network=cnn(3), seed=seed) for seed in (0, 0, 1)]
    assert selection[0].indices.tolist() == selection[1].indices.tolist()
    assert selection[0].gains.tolist() == selection[1].gains.tolist()
    assert selection[2].prior_variance != pytest.approx(selection[0].prior_variance, rel=1e-3)


def test_test_points_labels_and_thinning_with_a_module() -> None:
    x = images(30)
    kernel = EmpiricalNTK(net(), output=0)
    reported = {"x_test": x[:6] + 0.1, "x_labelled": x[6:8], "labelled": [9], "kernel": kernel}
    selection = evgp.pick(x, 4, **reported)
    assert selection.test_before.shape == (6,) and 9 not in selection.indices
    assert selection.start_variance < selection.prior_variance
    assert evgp.pick(x, 4, kernel=kernel, thin=10).test_before.shape == (10,)
    rounds = evgp.pick(x, 2, kernel=kernel, greedy="exact").indices.tolist()
    rounds += evgp.pick(x, 2, kernel=kernel, greedy="exact", labelled=rounds).indices.tolist()
    assert rounds == evgp.pick(x, 4, kernel=kernel, greedy="exact").indices.tolist()


def test_tokens_stay_whole_numbers() -> None:
    class Bag(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.table, self.last = nn.Embedding(9, 5), nn.Linear(5, 2)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.last(self.table(x).mean(1))

    tokens = np.random.default_rng(0).integers(0, 9, size=(20, 6))
    expected = evgp.pick(tokens, 4, network=Bag).indices.tolist()
    for kind in ("u1", "u2", "i2", "i4", ">i4"):
        assert evgp.pick(tokens.astype(kind), 4, network=Bag).indices.tolist() == expected


def test_a_network_without_a_kernel_is_refused() -> None:
    with refused(NetworkError):
        evgp.pick(images(), 2, network=nn.Sequential(nn.BatchNorm2d(2), nn.Flatten()))


def lazy() -> nn.Module:
    return nn.Sequential(nn.Flatten(), nn.LazyLinear(8), nn.ReLU(), nn.Linear(8, 1))


def test_layers_that_are_sized_by_their_first_batch_are_refused() -> None:
    """No seed decides their weights, so that picks would differ from run to run."""
    for network in (lazy(), lazy):
        with refused(NetworkError):
            evgp.pick(images(), 3, network=network)
    for kernel in (EmpiricalNTK(lazy()), EmpiricalNTK(lazy, draws=2)):
        with refused(NetworkError):
            evgp.pick(images(), 3, kernel=kernel)
    known = lazy()
    known(images())
    assert len(evgp.pick(images(), 3, network=known)) == 3


def test_networks_by_name() -> None:
    x = images()
    for name, network in (
        ("mlp", mlp()),
        ("cnn", cnn()),
        ("wrn-10-1", evgp.nets.wide_resnet(10, 1)),
    ):
        named, inputs = (evgp.pick(x, 4, network=item) for item in (name, network))
        assert named.indices.tolist() == inputs.indices.tolist()
        assert named.settings["network"] == inputs.settings["network"]
        assert evgp.plan((24, 2, 8, 8), 4, network=name).memory > 0
    with refused(NetworkError):
        evgp.pick(x, 4, network="lenet")
    with refused(NetworkError):
        unwrap(kernel_of)(3)
