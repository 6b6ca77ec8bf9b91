"""The zoo: shapes, initialisations, and kernels against plain Jacobians."""

import pytest
import torch
from torch import nn

import evgp
from evgp import EmpiricalNTK, cnn, mlp, resnet18
from evgp.errors import NetworkError
from evgp.nets import Buildable, NTKConv2d, wide_resnet, without_batchnorm
from tests.messages import refused


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


CASES = [
    (cnn(), (1, 28, 28), 1_663_370),
    (cnn(47, parametrisation="ntk"), (3, 13, 10), None),
    (wide_resnet(10, 1), (3, 32, 32), 77_706),
    (wide_resnet(16, 1, 100), (3, 32, 32), None),
    (wide_resnet(10, 2, parametrisation="ntk"), (3, 16, 16), None),
    (mlp(2, 16, "erf", outputs=3).standard("xavier"), (7,), 16 * 8 + 16 * 17 + 3 * 17),
    (mlp(1, 16, outputs=3).standard("normal"), (2, 3, 4), None),
]


@pytest.mark.parametrize(("network", "shape", "count"), CASES, ids=repr)
def test_a_network_builds_and_repeats_itself(network, shape, count) -> None:
    assert isinstance(network, Buildable)
    first, two = (network.build(shape, generator=seeded(3)) for _ in range(2))
    assert first(torch.zeros(2, *shape)).shape == (2, network.outputs)
    pairs = list(zip(first.parameters(), two.parameters(), strict=True))
    assert all(torch.equal(a, b) for a, b in pairs)
    assert not any(isinstance(part, nn.modules.batchnorm._BatchNorm) for part in first.modules())
    if count is not None:
        assert sum(param.numel() for param in first.parameters()) == count


@pytest.mark.parametrize(("network", "shape", "count"), CASES, ids=repr)
def test_kernels_agree_with_the_jacobian(network, shape, count) -> None:
    module = network.build(shape, generator=seeded()).double()
    x = torch.randn(4, *shape, generator=seeded(1), dtype=torch.float64)
    params = {name: param.detach() for name, param in module.named_parameters()}

    def output_of(weights: dict[str, torch.Tensor], sample: torch.Tensor) -> torch.Tensor:
        return torch.func.functional_call(module, weights, (sample[None],))[0, 2]

    grads = torch.func.vmap(torch.func.grad(output_of), (None, 0))(params, x)
    j = torch.cat([part.flatten(1) for part in grads.values()], dim=1)
    kernel = EmpiricalNTK(module, output=2)
    assert torch.allclose(kernel(x), j @ j.T, rtol=1e-10)
    assert kernel._instances(x)[0].rest == []


@pytest.mark.slow
def test_resnet18_agrees_with_the_jacobian() -> None:
    test_kernels_agree_with_the_jacobian(resnet18(), (3, 16, 16), None)


def test_initialisations_have_the_standard_deviation_they_say() -> None:
    shape = (3, 8, 8)
    for init, expected in (
        ("kaiming", (2 / 75) ** 0.5),
        ("xavier", (2 / 875) ** 0.5),
        ("normal", 0.05),
    ):
        weight = cnn(init=init).build(shape, generator=seeded())[0].weight
        assert weight.std().item() == pytest.approx(expected, rel=0.05)
    first = cnn(parametrisation="ntk").build(shape, generator=seeded())[0]
    assert isinstance(first, NTKConv2d) and first.weight.std().item() == pytest.approx(1, rel=0.05)


def test_the_ntk_parametrisation_keeps_its_scale_with_width() -> None:
    x = torch.randn(3, 3, 8, 8, generator=seeded(1))
    sizes = [
        float(EmpiricalNTK(wide_resnet(10, width, parametrisation="ntk"), draws=3).diag(x).mean())
        for width in (1, 4)
    ]
    assert 0.4 < sizes[1] / sizes[0] < 2.5


def test_building_leaves_the_global_generator_alone() -> None:
    before = torch.random.get_rng_state()
    cnn().build((1, 8, 8), generator=seeded())
    resnet18().build((1, 8, 8), generator=seeded())
    assert torch.equal(before, torch.random.get_rng_state())


def test_batch_norm_is_taken_out_of_a_copy() -> None:
    module = nn.Sequential(nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2), nn.Sequential(nn.BatchNorm2d(2)))
    clean = without_batchnorm(module)
    assert isinstance(module[1], nn.BatchNorm2d)
    assert isinstance(clean[1], nn.Identity) and isinstance(clean[2][0], nn.Identity)
    assert isinstance(without_batchnorm(nn.BatchNorm1d(3)), nn.Identity)


@pytest.mark.parametrize(
    "make",
    [
        lambda: wide_resnet(12),
        lambda: wide_resnet(10, 0),
        lambda: cnn(init="lecun"),
        lambda: cnn(parametrisation="mup"),
        lambda: cnn(0),
        lambda: cnn().build((28,), generator=seeded()),
    ],
)
def test_wrong_descriptions_are_refused(make) -> None:
    with refused(NetworkError):
        make()


def test_a_batch_norm_with_two_names_is_taken_out_twice() -> None:
    class Twice(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.a = self.b = nn.BatchNorm1d(3)

    result = evgp.nets.without_batchnorm(Twice())
    assert not any(isinstance(part, nn.BatchNorm1d) for part in result.modules())
    with refused(NetworkError):
        evgp.nets.without_batchnorm(nn.Sequential(nn.LazyBatchNorm1d()))


def test_an_init_that_would_be_ignored_is_refused() -> None:
    with refused(NetworkError):
        evgp.cnn(init="xavier", parametrisation="ntk")
