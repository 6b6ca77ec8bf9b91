"""NNGP and NTK against references, quadrature and finite networks."""

from itertools import product

import mpmath as mp
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from evgp import NNGP, NTK, mlp
from evgp.errors import NumericalWarning, PoolError
from evgp.nets import ACTIVATIONS, LeakyRelu
from evgp.testing import check_kernel
from tests.messages import refused, warned

KERNELS = [
    *(kind(mlp(depth, 8, name, 1.5, 0.1))
      for kind, depth, name in product((NTK, NNGP), (0, 1, 3), ACTIVATIONS)),
]  # fmt: skip

PINNED = (
    np.array(
        [
            [
                1.764052345967664,
                0.4001572083672233,
                0.9787379841057392,
                2.240893199201458,
                1.8675579901499675,
            ]
        ]
    ),
    np.array(
        [
            [
                -0.672460447775951,
                -0.3595531615405413,
                -0.813146282044454,
                -1.7262826023316769,
                0.17742614225375283,
            ]
        ]
    ),
)
POINTS = np.array([[1.0, 2.0], [-0.5, 1.0], [0.0, -3.0]])


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_a_kernel_obeys_its_laws(kernel, x) -> None:
    check_kernel(kernel, x)
    matrix = kernel(x)  # ours to the bit, so that rounding decides no tie
    assert torch.equal(matrix, matrix.T) and torch.equal(matrix.diagonal(), kernel.diag(x))


@pytest.mark.parametrize("activation", ["relu", "leaky", "gelu", "erf", "sin"])
@pytest.mark.parametrize("kind", ["nngp", "ntk"])
def test_agrees_with_the_reference(activation, kind, reference) -> None:
    name = {"leaky": "leaky_relu"}.get(activation, activation)
    count = 0
    for key in reference.files:
        if key.startswith("input") or f"|{activation}|" not in key or not key.endswith(kind):
            continue
        where, _, depth, i, pair, _ = key.split("|")
        w_std, b_std = ((2**0.5, 0.0), (1.5, 0.1))[int(i)]
        network = mlp(int(depth), 8, name, w_std, b_std)
        points = {axis: reference[f"input|{where}_{axis}"] for axis in "xy"}
        result = (NTK if kind == "ntk" else NNGP)(network)(points[pair[0]], points[pair[1]])
        far = (points[pair[0]][:, None] != points[pair[1]][None]).any(2)
        close = np.abs(result - reference[key]) / np.abs(reference[key])
        # Processors round matrix products differently: up to 2e-12 was seen.
        assert close[far].max() < 5e-12
        if not far.all():
            # The reference loses half its digits at shared points; ours are exact there.
            assert close[~far].max() < (1e-7 if activation in ("relu", "leaky") else 1e-12)
        count += 1
    assert count >= 12


@pytest.mark.parametrize(
    ("name", "nngp", "ntk"),
    [
        ("relu", 1.4334127035705602, 1.1469081144191535),
        ("leaky_relu", 0.8070128321387409, -0.18947804808915114),
        ("gelu", 0.9199140776709689, 0.5795972866909185),
        ("erf", -0.7488788367768477, -2.613908870924694),
        ("sin", -0.209949033692012, -1.037691674562752),
    ],
)
def test_pinned_values(name, nngp, ntk) -> None:
    """From neural-tangents 0.6.5 in float64: two hidden layers, w_std 1.5, b_std 0.1."""
    network = mlp(2, 8, name, 1.5, 0.1)
    assert NNGP(network)(*PINNED).item() == pytest.approx(nngp, rel=1e-12)
    assert NTK(network)(*PINNED).item() == pytest.approx(ntk, rel=1e-12)


def _quadrature(activation, k) -> tuple[float, float]:
    """E[phi(u) phi(v)] and E[phi'(u) phi'(v)] on a grid over a normal pair that misses zero."""
    grid = torch.linspace(-8, 8, 600, dtype=torch.float64)
    density = torch.exp(-grid.square() / 2)
    density = density / density.sum()
    factor = torch.linalg.cholesky(torch.from_numpy(k))
    a = factor[0, 0] * grid[:, None] + torch.zeros_like(grid)
    b = factor[1, 0] * grid[:, None] + factor[1, 1] * grid
    weight = density[:, None] * density
    values, slopes = [], []
    for side in (a, b):
        z = side.clone().requires_grad_()
        out = activation.forward(z)
        values.append(out.detach())
        slopes.append(torch.autograd.grad(out.sum(), z)[0])
    return (
        float((weight * values[0] * values[1]).sum()),
        float((weight * slopes[0] * slopes[1]).sum()),
    )


@pytest.mark.parametrize("activation", [*ACTIVATIONS.values(), LeakyRelu(0.5)], ids=str)
@settings(max_examples=6, deadline=None)
@given(v1=st.floats(0.05, 4), v2=st.floats(0.05, 4), rho=st.floats(-0.95, 0.95))
def test_duals_are_their_integrals(activation, v1, v2, rho) -> None:
    cov = rho * (v1 * v2) ** 0.5
    result = torch.tensor([[cov]], dtype=torch.float64)
    ends = [torch.tensor([v], dtype=torch.float64) for v in (v1, v2)]
    slope = activation.dual_(result, *ends)
    value, tangent = _quadrature(activation, np.array([[v1, cov], [cov, v2]]))
    assert result.item() == pytest.approx(value, rel=1e-3, abs=1e-3)
    assert slope.item() == pytest.approx(tangent, rel=1e-3, abs=6e-3)


@pytest.mark.parametrize("activation", [*ACTIVATIONS.values(), LeakyRelu(0.5)], ids=str)
@given(v=st.floats(1e-6, 100))
def test_the_diagonal_is_the_limit_of_coinciding_points(activation, v) -> None:
    var = torch.tensor([v], dtype=torch.float64)
    cov = var[:, None].clone()
    slope = activation.dual_(cov, var, var)
    exact = activation.dual_diagonal(var)
    assert cov.item() == pytest.approx(exact[0].item(), rel=1e-7)
    assert slope.item() == pytest.approx(exact[1].item(), rel=1e-7)


@pytest.mark.parametrize("name", list(ACTIVATIONS))
def test_wide_networks_tend_to_the_kernels(name) -> None:
    """Mean over random nets of f f' tends to the NNGP, of grad f . grad f' to the NTK."""
    network = mlp(2, 256, name, 1.3, 1.0, outputs=40)
    points = torch.from_numpy(POINTS).float()
    outputs, tangents = [], []
    for seed in range(60):
        module = network.build((2,), generator=torch.Generator().manual_seed(seed))
        out = module(points)
        rows = []
        for value in out[:, 0]:
            grads = torch.autograd.grad(value, list(module.parameters()), retain_graph=True)
            rows.append(torch.cat([grad.flatten() for grad in grads]))
        jacobian = torch.stack(rows)
        outputs.append(out.detach().T)
        tangents.append(jacobian @ jacobian.T)
    tangent = torch.stack(tangents).mean(0).numpy()
    scale = NTK(network)(POINTS).max()
    assert np.abs(tangent - NTK(network)(POINTS)).max() < 0.06 * scale
    # 40 outputs of 60 nets, nearly independent: to about 1/sqrt(1200) of the scale.
    drawn = torch.cat(outputs).numpy()
    spread = drawn.T @ drawn / len(drawn)
    expected = NNGP(network)(POINTS)
    assert np.abs(spread - expected).max() < 0.12 * expected.max()


def test_equal_points_get_the_exact_diagonal_wherever_they_are(x) -> None:
    for name in ACTIVATIONS:
        kernel = NTK(mlp(3, activation=name))
        doubled = torch.cat([x, x])
        matrix = kernel(doubled)
        assert torch.equal(matrix[:40, 40:].diagonal(), kernel.diag(x))
        assert torch.equal(kernel(x[5:9], x)[:, 5:9].diagonal(), kernel.diag(x[5:9]))
    zeros = torch.zeros(2, 3, dtype=torch.float64)
    assert torch.equal(NTK(mlp())(zeros, -zeros), NTK(mlp()).diag(zeros)[:, None].expand(2, 2))


def _exact(x, y, depth: int, b_std: float, slope: float) -> float:
    """The tangent kernel of a leaky ReLU network with sixty digits."""
    with mp.workdps(60):
        slope, bias, d = mp.mpf(slope), mp.mpf(b_std) ** 2, len(x)
        x, y = ([mp.mpf(float(value)) for value in point] for point in (x, y))
        k, v, u = (mp.fdot(*pair) / d for pair in ((x, y), (x, x), (y, y)))
        c, half, ntk = (1 - slope) ** 2 / (2 * mp.pi), (1 + slope**2) / 2, mp.mpf(0)
        for layer in range(depth + 1):
            if layer:
                size = mp.sqrt(v * u)
                theta = mp.acos(min(k / size, mp.mpf(1)))
                dot = c * (mp.pi - theta) + slope
                k, ntk = size * (c * mp.sin(theta) + mp.cos(theta) * dot), ntk * dot
                v, u = v * half, u * half
            k, v, u = k + bias, v + bias, u + bias
            ntk = k + ntk
        return float(ntk)


@pytest.mark.parametrize("apart", [1e-3, 1e-5, 1e-7, 1e-9, 1e-12, 1e-15])
@pytest.mark.parametrize("b_std", [0.0, 0.1, 3.0])
def test_points_that_nearly_coincide_keep_their_digits(b_std, apart) -> None:
    rng = np.random.default_rng(0)
    for depth, slope, size in product((1, 2, 5), (0.0, 0.3, -1.0), (1.0, 1e-6)):
        x = rng.normal(size=(1, 4)) * size
        y = x + apart * size * rng.normal(size=(1, 4))
        result = NTK(mlp(depth, activation=LeakyRelu(slope), b_std=b_std))(x, y)[0, 0]
        assert result == pytest.approx(_exact(x[0], y[0], depth, b_std, slope), rel=3e-13)


@pytest.mark.parametrize("apart", [1e-4, 1e-6, 1e-8, 1e-10])
def test_a_value_does_not_depend_on_what_else_is_requested(apart, x) -> None:
    near = torch.cat([x + apart * torch.randn_like(x) for _ in range(4)])
    kernel = NTK(mlp())
    whole = kernel(near)
    for rows in (slice(0, 1), slice(50, 53), slice(30, 160)):
        assert torch.allclose(kernel(near[rows], near), whole[rows], rtol=1e-12, atol=1e-12)
    turned = torch.randperm(160, generator=torch.Generator().manual_seed(1))
    assert torch.allclose(kernel(near[turned]), whole[turned][:, turned], rtol=1e-12, atol=1e-12)


def test_antipodal_and_zero_points() -> None:
    x = torch.tensor([[1.0, 2.0], [-1.0, -2.0], [0.0, 0.0]], dtype=torch.float64)
    relu = NTK(mlp(1, b_std=0.0))(x)
    # arccos(-1) = pi: ReLU nets without bias are independent at antipodal points.
    assert relu[0, 1] == pytest.approx(0.0, abs=1e-15)
    assert float(relu[2].abs().max()) == 0.0
    assert bool(torch.isfinite(NTK(mlp(4, b_std=0.0))(x)).all())
    odd = NTK(mlp(2, activation="erf", b_std=0.0))(x)
    assert odd[0, 1] == pytest.approx(-odd[0, 0].item(), rel=1e-7)


@pytest.mark.parametrize("scale", [1e-8, 1e-3, 1e3, 1e6])
def test_relu_without_bias_is_homogeneous(scale, x) -> None:
    kernel = NTK(mlp(3, b_std=0.0))
    assert torch.allclose(kernel(x * scale), kernel(x) * scale**2, rtol=1e-9)


@pytest.mark.parametrize("name", list(ACTIVATIONS))
def test_norms_to_a_million_stay_finite_and_positive(name, x) -> None:
    kernel = NTK(mlp(2, activation=name))
    big = x * 1e6 / 2
    if name in ("erf", "sin"):
        with warned(NumericalWarning):
            matrix = kernel(big)
    else:
        matrix = kernel(big)
    assert bool(torch.isfinite(matrix).all())
    assert float(torch.linalg.eigvalsh(matrix)[0]) > -1e-6 * float(matrix.diagonal().max())


def test_float32_storage_is_the_rounded_float64(x) -> None:
    wide, narrow = NTK(mlp())(x), NTK(mlp(), torch.float32)(x)
    assert torch.equal(narrow, wide.float())


def test_tiles_cover_more_than_one_block() -> None:
    x = torch.randn(1100, 2, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    matrix = NTK(mlp(1))(x)
    assert torch.equal(matrix, matrix.T)
    subset = torch.tensor([0, 511, 512, 1023, 1024, 1099])
    assert torch.allclose(matrix[subset][:, subset], NTK(mlp(1))(x[subset]), rtol=1e-9)


def test_changed_inputs_are_noticed(x) -> None:
    kernel, points = NTK(mlp()), x.clone()
    kernel(points)
    points *= 2
    assert torch.equal(kernel(points), kernel(points.clone()))


def test_bad_inputs_are_refused_clearly(x) -> None:
    with refused(PoolError):
        NTK(mlp())(x, x[:, :2])
    with refused(PoolError):
        NTK(mlp())(x[:, 0])
    with refused(PoolError):
        NTK(mlp()).diag(x.index_fill(0, torch.tensor([3]), float("nan")))
