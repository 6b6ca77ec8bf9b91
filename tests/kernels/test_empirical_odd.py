"""Unusual networks: each parameter is found, and what is impossible is reported."""

import warnings

import pytest
import torch
from torch import nn
from torch.nn.utils.parametrizations import weight_norm

from evgp import EmpiricalNTK, mlp
from evgp.errors import NetworkError
from tests.kernels.test_empirical import EXACT, jacobian
from tests.messages import refused


class Made(nn.Module):
    """A module whose forward is a function of it and x."""

    def __init__(self, run, **parts) -> None:
        super().__init__()
        self.run = run
        for name, part in parts.items():
            setattr(self, name, part)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.run(self, x)


def cat(*parts: torch.Tensor) -> torch.Tensor:
    return torch.cat(parts, dim=1)


def attention() -> nn.Module:
    return nn.MultiheadAttention(6, 2, batch_first=True)


ODD = {
    "tied autoencoder": lambda: Made(
        lambda m, x: cat(m.cls(h := torch.tanh(m.enc(x))), h @ m.enc.weight),
        enc=nn.Linear(6, 4),
        cls=nn.Linear(4, 2),
    ),
    "attention behind a later output": lambda: Made(
        lambda m, x: cat(
            m.h(x), m.g((t := x[:, None].repeat(1, 3, 1)).sin().mean(1) + m.a(t, t, t)[0].mean(1))
        ),
        h=nn.Linear(6, 1),
        g=nn.Linear(6, 1),
        a=attention(),
    ),
    "a weight used by a later output": lambda: Made(
        lambda m, x: torch.stack([m.o(m.a(x))[:, 0], m.o(m.a(x) @ m.a.weight)[:, 1]], 1),
        a=nn.Linear(6, 6),
        o=nn.Linear(6, 2),
    ),
    "a weight used for some samples": lambda: Made(
        lambda m, x: m.o(torch.where(x[:, :1] > 0, m.a(x), x @ m.a.weight)),
        a=nn.Linear(6, 6, bias=False),
        o=nn.Linear(6, 2),
    ),
    "temperature": lambda: Made(
        lambda m, x: m.a(x) * m.t, a=nn.Linear(6, 2), t=nn.Parameter(torch.tensor(2.0))
    ),
    "weight norm as one": lambda: nn.Sequential(weight_norm(nn.Linear(6, 2), dim=None)),
    "called by keyword": lambda: Made(lambda m, x: m.a(input=x), a=nn.Linear(6, 2)),
    "called row by row": lambda: Made(
        lambda m, x: torch.stack([m.a(row) for row in x]), a=nn.Linear(6, 2)
    ),
    "gru": lambda: Made(
        lambda m, x: m.o(m.g(x[:, :, None])[0][:, -1]),
        g=nn.GRU(1, 4, batch_first=True),
        o=nn.Linear(4, 2),
    ),
    "bilinear": lambda: Made(lambda m, x: m.b(x, x.sin()), b=nn.Bilinear(6, 6, 2)),
}


@pytest.mark.filterwarnings("ignore:There is a performance drop")
@pytest.mark.parametrize("first", ["as drawn", "zeros", "positive", "equal"])
@pytest.mark.parametrize("name", list(ODD))
def test_parameters_are_found_wherever_they_are_used(name, first) -> None:
    """For every output, and whatever the first samples are, which the taps are checked on."""
    torch.manual_seed(0)
    module = ODD[name]().double()
    x = torch.randn(7, 6, dtype=torch.float64)
    x[:2] = {"as drawn": x[:2], "zeros": x[:2] * 0, "positive": x[:2].abs(), "equal": x[:1]}[first]
    rows = [
        [
            torch.cat([g.flatten() for g in grads])
            for value in sample
            for grads in [
                torch.autograd.grad(
                    value, list(module.parameters()), retain_graph=True, materialize_grads=True
                )
            ]
        ]
        for sample in module(x)
    ]
    j = torch.stack([torch.stack(row) for row in rows])
    for output in range(j.shape[1]):
        expected = j[:, output] @ j[:, output].T
        assert torch.allclose(EmpiricalNTK(module, output)(x), expected, **EXACT)
    trace = torch.einsum("iop,jop->ij", j, j)
    assert torch.allclose(EmpiricalNTK(module, "trace")(x), trace, **EXACT)


def test_positions_of_their_own() -> None:
    """An embedding of positions, which has no row a sample, also where these are as many."""
    torch.manual_seed(0)
    for length in (2, 3, 5):
        module = Made(
            lambda m, x: m.o((m.e(x) + m.p(torch.arange(x.shape[1]))).tanh().mean(1)),
            e=nn.Embedding(9, 4),
            p=nn.Embedding(6, 4),
            o=nn.Linear(4, 2),
        ).double()
        x = torch.randint(0, 9, (6, length))
        j = jacobian(module, x)
        assert torch.allclose(EmpiricalNTK(module, 1)(x), j[:, 1] @ j[:, 1].T, **EXACT)


@pytest.mark.parametrize("length", [3, 40])
def test_long_texts_and_little_memory(length) -> None:
    """By pairs of positions, and by the table where texts are long."""
    torch.manual_seed(0)
    module = Made(
        lambda m, x: m.o(m.e(x).tanh().mean(1)), e=nn.Embedding(50, 4), o=nn.Linear(4, 2)
    ).double()
    x = torch.randint(0, 50, (6, length))
    j = jacobian(module, x)
    expected = j[:, 0] @ j[:, 0].T
    for memory in (None, 3000):
        kernel = EmpiricalNTK(module, 0, memory=memory)
        assert torch.allclose(kernel(x), expected, **EXACT)
        assert torch.allclose(kernel(x[:2], x[2:]), expected[:2, 2:], **EXACT)
        assert torch.allclose(kernel.diag(x), expected.diagonal(), **EXACT)


@pytest.mark.parametrize("scale", [1.0, 1e-6])
@pytest.mark.parametrize("equal", [True, False])
def test_mixing_is_noticed(scale, equal) -> None:
    torch.manual_seed(0)
    module = Made(lambda m, x: scale * m.o(x - x.mean(0)), o=nn.Linear(6, 2))
    x = torch.randn(5, 6)
    x[1] = x[0] if equal else x[1]
    with refused(NetworkError):
        EmpiricalNTK(module, 0)(x)


def test_a_fresh_kernel_of_a_module_is_another() -> None:
    module = nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 1))
    before = [param.clone() for param in module.parameters()]
    x = torch.randn(5, 6)
    kernel = EmpiricalNTK(module)
    first, two = kernel.fresh(1)(x), kernel.fresh(2)(x)
    assert not torch.allclose(first, kernel(x)) and not torch.allclose(first, two)
    assert torch.equal(kernel.fresh(1)(x), first)
    assert all(torch.equal(a, b) for a, b in zip(before, module.parameters(), strict=True))


def scripted(module: nn.Module) -> nn.Module:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return torch.jit.script(module)


def nan(module: nn.Module) -> nn.Module:
    with torch.no_grad():
        next(module.parameters()).fill_(float("nan"))
    return module


@pytest.mark.parametrize(
    "module",
    [
        Made(lambda m, x: nn.functional.dropout(m.o(x)), o=nn.Linear(6, 2)),
        Made(lambda m, x: m.o(x).detach(), o=nn.Linear(6, 2)),
        Made(lambda m, x: {}["a"], o=nn.Linear(6, 2)),
        Made(lambda m, x: (m.o(x), x), o=nn.Linear(6, 2)),
        nan(nn.Linear(6, 2)),
        nn.Linear(6, 2).half(),
        scripted(nn.Linear(6, 2)),
        nn.Embedding(3, 2),
    ],
)
@pytest.mark.filterwarnings("ignore")
def test_a_network_without_a_kernel_is_an_error(module) -> None:
    with refused(NetworkError):
        EmpiricalNTK(module, 0)(torch.randn(4, 6))


def test_wrong_arguments_are_reported() -> None:
    with refused(NetworkError):
        EmpiricalNTK(nn.Linear)(torch.randn(3, 2))
    with refused(NetworkError):
        EmpiricalNTK(mlp(), memory=-5)
    assert EmpiricalNTK(mlp())(torch.randn(0, 2)).shape == (0, 0)
    late = torch.tensor([[0], [1], [7]])
    module = Made(lambda m, x: m.e(x)[:, 0], e=nn.Embedding(3, 2))
    with refused(NetworkError):
        EmpiricalNTK(module, 0)(late)
