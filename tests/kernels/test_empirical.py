"""The empirical NTK against plain Jacobians, for every layer it knows and some it does not."""

import warnings

import pytest
import torch
from torch import nn
from torch.nn.utils.parametrizations import weight_norm

from evgp import EmpiricalNTK, mlp
from evgp.errors import NetworkError
from evgp.kernels.empirical import Tapped
from evgp.kernels.layerwise import Positions
from tests.messages import refused

EXACT = {"rtol": 1e-10, "atol": 1e-12}


class Residual(nn.Module):
    """Branches, groups, strides, a norm, an in-place activation and a parameter of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Conv2d(3, 4, 3, padding=1)
        self.second = nn.Conv2d(4, 4, 3, stride=2, padding=1, groups=2, bias=False)
        self.short = nn.Conv2d(4, 4, 1, stride=2)
        self.norm = nn.GroupNorm(2, 4)
        self.last = nn.Linear(64, 3)
        self.gate = nn.Parameter(torch.randn(4, 1, 1))
        self.relu = nn.ReLU(inplace=True)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h = self.relu(self.first(x))
        h = self.relu(self.norm(self.second(h)) + self.short(h) * self.gate)
        return self.last(h.flatten(1))


class Shared(nn.Module):
    """One layer twice."""

    def __init__(self) -> None:
        super().__init__()
        self.layer, self.last = nn.Linear(5, 5), nn.Linear(5, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.last(torch.tanh(self.layer(torch.tanh(self.layer(x)))))


class Sideways(nn.Module):
    """A weight used outside its layer, and one tied to another."""

    def __init__(self) -> None:
        super().__init__()
        self.layer, self.tied, self.last = nn.Linear(5, 5), nn.Linear(5, 5), nn.Linear(5, 2)
        self.tied.weight = self.layer.weight

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h = self.tied(torch.tanh(self.layer(x)))
        return self.last(torch.tanh(h)) + (x @ self.last.weight.T) ** 2


class Sequence(nn.Module):
    """Tokens, attention, norms."""

    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(7, 6, padding_idx=0)
        self.queries, self.values = nn.Linear(6, 6), nn.Linear(6, 6)
        self.norm, self.last = nn.LayerNorm(6), nn.Linear(6, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h = self.table(x)
        share = torch.softmax(self.queries(h) @ h.transpose(1, 2), dim=-1)
        return self.last(self.norm(h + share @ self.values(h)).mean(1))


def flat(*layers: nn.Module, into: int) -> nn.Module:
    return nn.Sequential(*layers, nn.Tanh(), nn.Flatten(), nn.Linear(into, 3))


def old_weight_norm(module: nn.Module) -> nn.Module:
    """Torch's former weight norm, which many models still use."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        return torch.nn.utils.weight_norm(module)


def scaled(module: nn.Module) -> nn.Module:
    """Lengths that are not those of the directions, so that both parts of the gradient count."""
    for name, param in module.named_parameters():
        if name.endswith(("original0", "weight_g")):
            with torch.no_grad():
                param.mul_(1.7)
    return module


# module, shape of a sample, and how many parameters should need the slow path
CASES = {
    "mlp": (lambda: mlp(2, 8, outputs=3).build((5,), generator=torch.Generator()), (5,), 0),
    "dense at positions": (lambda: flat(nn.Linear(5, 4), into=12), (3, 5), 0),
    "conv1d": (lambda: flat(nn.Conv1d(2, 3, 3, dilation=2, padding="same"), into=30), (2, 10), 0),
    "conv2d": (
        lambda: flat(nn.Conv2d(2, 4, (3, 2), (2, 1), (1, 2), (1, 2), groups=2), into=96),
        (2, 6, 6),
        0,
    ),
    "circular": (
        lambda: flat(nn.Conv2d(2, 3, 3, padding=1, padding_mode="circular"), into=75),
        (2, 5, 5),
        0,
    ),
    "layer norm": (lambda: flat(nn.Linear(5, 4), nn.LayerNorm(4), into=4), (5,), 0),
    "layer norm of images": (lambda: flat(nn.LayerNorm((2, 3, 3)), into=18), (2, 3, 3), 0),
    "group norm": (lambda: flat(nn.GroupNorm(2, 4), into=36), (4, 3, 3), 0),
    "batch norm, eval": (
        lambda: flat(nn.Linear(5, 4), nn.BatchNorm1d(4), into=4).eval(),
        (5,),
        0,
    ),
    "no bias": (lambda: nn.Sequential(nn.Linear(5, 3, bias=False)), (5,), 0),
    "shared": (Shared, (5,), 0),
    "residual": (Residual, (3, 8, 8), 1),
    "weight norm": (lambda: flat(scaled(weight_norm(nn.Linear(5, 4))), into=4), (5,), 0),
    "weight norm at positions": (
        lambda: flat(scaled(weight_norm(nn.Linear(5, 4, bias=False))), into=12),
        (3, 5),
        0,
    ),
    "weight norm of convolutions": (
        lambda: flat(
            scaled(weight_norm(nn.Conv2d(2, 4, 3, 2, padding=1, groups=2))),
            scaled(weight_norm(nn.Conv2d(4, 3, 1))),
            into=27,
        ),
        (2, 6, 6),
        0,
    ),
    "weight norm, the old way": (
        lambda: flat(scaled(old_weight_norm(nn.Conv1d(2, 3, 3))), into=24),
        (2, 10),
        0,
    ),
    "weight norm of inputs": (lambda: flat(weight_norm(nn.Linear(5, 4), dim=1), into=4), (5,), 3),
    "transposed": (lambda: flat(nn.ConvTranspose2d(2, 3, 3), into=147), (2, 5, 5), 0),
    "transposed, 1-d": (
        lambda: flat(nn.ConvTranspose1d(2, 3, 3, 2, padding=1, bias=False), into=27),
        (2, 5),
        0,
    ),
    "transposed with all": (
        lambda: flat(
            nn.ConvTranspose2d(2, 3, (3, 2), (2, 3), (1, 0), (1, 2), dilation=(1, 2)), into=510
        ),
        (2, 5, 5),
        0,
    ),
    "transposed in groups": (
        lambda: flat(nn.ConvTranspose2d(2, 4, 3, groups=2), into=196),
        (2, 5, 5),
        2,
    ),
    "few positions": (lambda: flat(nn.Conv2d(20, 30, 2), into=30), (20, 2, 2), 0),
    "sideways": (Sideways, (5,), 5),
}


def module_and_points(name: str) -> tuple[nn.Module, torch.Tensor]:
    build, shape, _ = CASES[name]
    torch.manual_seed(0)
    return build().double(), torch.randn(9, *shape, dtype=torch.float64)


def jacobian(module: nn.Module, x: torch.Tensor) -> torch.Tensor:
    """n x outputs x parameters, by torch.func."""
    params = {n: p.detach() for n, p in module.named_parameters() if p.requires_grad}

    def output_of(weights: dict[str, torch.Tensor], sample: torch.Tensor) -> torch.Tensor:
        return torch.func.functional_call(module, weights, (sample[None],))[0]

    parts = torch.func.vmap(torch.func.jacrev(output_of), (None, 0))(params, x)
    return torch.cat([part.flatten(2) for part in parts.values()], dim=2)


@pytest.mark.filterwarnings("ignore:There is a performance drop")
@pytest.mark.parametrize("name", list(CASES))
def test_agrees_with_the_jacobian_to_ten_digits(name) -> None:
    module, x = module_and_points(name)
    j = jacobian(module, x)
    kernel = EmpiricalNTK(module, output=1)
    matrix = kernel(x)
    expected = j[:, 1] @ j[:, 1].T
    assert torch.allclose(matrix, expected, **EXACT)
    assert torch.equal(matrix, matrix.T)
    assert torch.allclose(matrix.diagonal(), kernel.diag(x), rtol=1e-12)
    assert torch.allclose(kernel(x[:4], x[4:]), expected[:4, 4:], **EXACT)
    # Little memory: blocks of one sample, slabs of one channel.
    assert torch.allclose(EmpiricalNTK(module, 1, memory=1000)(x), expected, **EXACT)
    assert torch.allclose(
        EmpiricalNTK(module, 1, memory=1000).diag(x), expected.diagonal(), **EXACT
    )
    trace = torch.einsum("iop,jop->ij", j, j)
    assert torch.allclose(EmpiricalNTK(module, "trace")(x), trace, **EXACT)
    tapped = kernel._instances(x)[0]
    assert len(tapped.rest) == CASES[name][2]


def test_both_ways_to_multiply_positions_agree() -> None:
    torch.manual_seed(0)
    module = flat(nn.Conv2d(6, 8, 3, padding=1), into=128).double()
    x = torch.randn(7, 6, 4, 4, dtype=torch.float64)
    layer = next(
        factor for factor in Tapped.of(module, x).factors(x, 0) if isinstance(factor, Positions)
    )
    whole, pairs, tight = (torch.zeros(7, 7, dtype=torch.float64) for _ in range(3))
    slab = layer.slab(0, 8)
    whole += slab @ slab.T
    layer._add_pairs(pairs, layer, 1 << 30)
    layer._add_pairs(tight, layer, 1)
    assert torch.allclose(pairs, whole, **EXACT)
    assert torch.allclose(tight.triu(), whole.triu(), **EXACT)


def test_tokens_and_attention() -> None:
    torch.manual_seed(0)
    module = Sequence().double()
    x = torch.randint(0, 7, (8, 5))
    j = jacobian(module, x)
    kernel = EmpiricalNTK(module, output=0)
    assert torch.allclose(kernel(x), j[:, 0] @ j[:, 0].T, **EXACT)
    assert torch.allclose(kernel.diag(x), j[:, 0].square().sum(1), **EXACT)
    assert kernel._instances(x)[0].rest == []
    assert torch.allclose(EmpiricalNTK(module, 0, memory=10)(x), kernel(x), **EXACT)


def test_frozen_parameters_have_no_share() -> None:
    module, x = module_and_points("dense at positions")
    module[0].weight.requires_grad_(False)
    j = jacobian(module, x)
    assert torch.allclose(EmpiricalNTK(module, output=2)(x), j[:, 2] @ j[:, 2].T, **EXACT)


def test_draws_average_and_seeds_repeat() -> None:
    x = torch.randn(6, 5, generator=torch.Generator().manual_seed(0))

    def factory() -> nn.Module:
        return nn.Sequential(nn.Linear(5, 7), nn.Tanh(), nn.Linear(7, 4))

    for source in (factory, factory(), mlp(1, 8, outputs=4)):
        several = EmpiricalNTK(source, output=1, draws=3, seed=5)
        assert torch.equal(several(x), several(x))
        singles = [EmpiricalNTK(source, output=1, seed=5 + draw)(x) for draw in range(3)]
        if not isinstance(source, nn.Module):
            assert torch.allclose(several(x), torch.stack(singles).mean(0), rtol=1e-5)
            assert not torch.allclose(singles[0], singles[1], rtol=1e-2)
        assert not torch.allclose(several.fresh(9)(x), several(x), rtol=1e-3)


def test_the_global_generator_is_left_alone() -> None:
    x, module = torch.zeros(3, 5), nn.Linear(5, 2)
    before = torch.random.get_rng_state()
    for source in (mlp(1, 8), module, lambda: nn.Linear(5, 2)):
        EmpiricalNTK(source, draws=2)(x)
        EmpiricalNTK(source, draws=2).diag(x)
        assert torch.equal(torch.random.get_rng_state(), before)


def test_points_of_an_embedding_made_without_gradients_come_in() -> None:
    x = torch.randn(4, 5, generator=torch.Generator().manual_seed(0))
    with torch.inference_mode():
        result = x * 1
    kernel = EmpiricalNTK(mlp(1, 8))
    assert torch.equal(kernel(result), kernel(x)) and torch.equal(
        kernel.diag(result), kernel.diag(x)
    )


def test_wide_networks_tend_to_the_analytic_kernel() -> None:
    from evgp import NTK

    x = torch.randn(12, 4, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    exact = NTK(mlp())(x)
    errors = []
    for width in (64, 256, 1024):
        result = EmpiricalNTK(mlp(width=width), draws=4)(x).double()
        errors.append(float((result - exact).norm() / exact.norm()))
    assert errors[2] < errors[1] < errors[0] and errors[2] < 0.05


def test_in_place_functions_are_noticed() -> None:
    class Hasty(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.a, self.b = nn.Linear(4, 4), nn.Linear(4, 2)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            h = self.a(x)
            torch.relu_(h)
            return self.b(h)

    torch.manual_seed(0)
    module, x = Hasty().double(), torch.randn(7, 4, dtype=torch.float64)
    j = jacobian(module, x)
    assert torch.allclose(EmpiricalNTK(module, output=0)(x), j[:, 0] @ j[:, 0].T, **EXACT)


@pytest.mark.parametrize(
    "module",
    [
        nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4)),
        nn.Sequential(nn.Dropout(0.5), nn.Linear(3, 2)),
        nn.Sequential(nn.Unflatten(1, (3, 1)), nn.Linear(1, 2)),
        nn.Sequential(nn.Identity()),
    ],
    ids=["batch norm", "dropout", "shape", "nothing to train"],
)
def test_what_has_no_kernel_is_refused_with_a_remedy(module) -> None:
    with refused(NetworkError):
        EmpiricalNTK(module)(torch.randn(4, 3))


def test_wrong_options_are_refused() -> None:
    with refused(NetworkError):
        EmpiricalNTK(mlp(1, 4), output=3)(torch.zeros(2, 3))
    with refused(NetworkError):
        EmpiricalNTK(mlp(1, 4), output="all")
    with refused(NetworkError):
        EmpiricalNTK(mlp(1, 4), draws=0)
    with refused(NetworkError):
        EmpiricalNTK(lambda: 3)(torch.zeros(2, 3))
