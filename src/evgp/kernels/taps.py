r"""From the calls of a layer to the factors of its tangent kernel.

A weight-normed layer, $W_c = l_c v_c / \|v_c\|$, has for the length $l_c$ the gradient
$d_c = G_c \cdot v_c / \|v_c\|$, with $G$ the gradient of $W$, and for the direction $v_c$ the one
$s_c (G_c - d_c v_c / \|v_c\|)$, with $s_c = l_c / \|v_c\|$. So its kernel is that of a plain layer
whose output gradients are scaled by $s$, plus $\sum_c (1 - s_c^2) d_c d'_c$.
"""

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional

from evgp.kernels.factors import Factor, Lookup, Positions, Product, Rows, Unfold
from evgp.nets import NTKConv2d, NTKLinear

Calls = list[tuple[Tensor, Tensor]]  # input and output gradient of each call of a module


def linear(module: nn.Linear | NTKLinear, calls: Calls, *, biased: bool = True) -> list[Factor]:
    """Dense layers, on vectors or at the positions of a sequence."""
    scale, bias = _scales(module, biased)
    if len(calls) == 1 and calls[0][0].ndim == 2:
        x, g = calls[0]
        x = _scaled(x, scale)
        ones = x.new_full((len(x), 1), bias)
        return [Product(torch.cat([x, ones], dim=1) if bias else x, g)]
    inputs = tuple(_scaled(_flat_positions(x).transpose(1, 2), scale) for x, _ in calls)
    grads = tuple(_flat_positions(g).transpose(1, 2) for _, g in calls)
    return [Positions(inputs, grads, Unfold()), *_biases(grads, bias)]


def convolution(
    module: nn.Conv1d | nn.Conv2d, calls: Calls, *, biased: bool = True
) -> list[Factor]:
    """Convolutions with any stride, padding, dilation and groups."""
    flat = isinstance(module, nn.Conv1d)
    kernel = _pair(module.kernel_size, flat, 1)
    dilation = _pair(module.dilation, flat, 1)
    sides = module._reversed_padding_repeated_twice
    padding = (*sides, 0, 0) if flat else tuple(sides)
    mode = "constant" if module.padding_mode == "zeros" else module.padding_mode
    scale, bias = _scales(module, biased)
    inputs = tuple(_scaled(x[:, :, None] if flat else x, scale) for x, _ in calls)
    grads = tuple(g.flatten(2) for _, g in calls)
    wide, high = module.in_channels // module.groups, module.out_channels // module.groups
    factors = _biases(grads, bias)
    for i in range(module.groups):
        group = None if module.groups == 1 else (i * wide, (i + 1) * wide)
        unfold = Unfold(kernel, _pair(module.stride, flat, 1), padding, dilation, mode, group)
        part = grads if group is None else tuple(g[:, i * high : (i + 1) * high] for g in grads)
        factors.append(Positions(inputs, part, unfold))
    return factors


def transposed(module: nn.ConvTranspose1d | nn.ConvTranspose2d, calls: Calls) -> list[Factor]:
    """Transposed convolutions: inputs and output gradients change places."""
    if module.groups != 1:
        raise RuntimeError("groups of a transposed convolution take the slow road")
    flat = isinstance(module, nn.ConvTranspose1d)
    kernel, stride = _pair(module.kernel_size, flat, 1), _pair(module.stride, flat, 1)
    down, right = _pair(tuple(map(int, module.padding)), flat, 0)
    unfold = Unfold(kernel, stride, (right, right, down, down), _pair(module.dilation, flat, 1))
    grads = tuple(g[:, :, None] if flat else g for _, g in calls)
    weights = Positions(grads, tuple(x.flatten(2) for x, _ in calls), unfold)
    bias = 0.0 if module.bias is None else 1.0
    return [weights, *_biases(tuple(g.flatten(2) for g in grads), bias)]


def weight_normed(module: nn.Linear | nn.Conv1d | nn.Conv2d, calls: Calls) -> list[Factor]:
    """Dense and convolutional layers with a length and a direction for every output."""
    length, direction = (part.detach() for part in norm_of(module))
    norms = direction.flatten(1).norm(dim=1)
    unit = direction / norms.view(-1, *[1] * (direction.ndim - 1))
    scale = length.flatten() / norms
    if isinstance(module, nn.Linear):
        plain = [(x, g * scale) for x, g in calls]
        factors = linear(module, plain, biased=False)
        seen = [_flat_positions(functional.linear(x, unit)) for x, _ in calls]
        grads = [_flat_positions(g) for _, g in calls]
    else:
        wide = scale.view(-1, *[1] * (direction.ndim - 2))
        factors = convolution(module, [(x, g * wide) for x, g in calls], biased=False)
        seen = [module._conv_forward(x, unit, None).flatten(2).transpose(1, 2) for x, _ in calls]
        grads = [g.flatten(2).transpose(1, 2) for _, g in calls]
    along = torch.stack([(g * h).sum(1) for g, h in zip(grads, seen, strict=True)]).sum(0)
    factors.append(Rows(along, 1 - scale.square()))
    if module.bias is not None:
        factors.append(Rows(torch.stack([g.sum(1) for g in grads]).sum(0)))
    return factors


def norm_of(module: nn.Module) -> tuple[Tensor, Tensor]:
    """Length and direction of a weight-normed layer, made by either of torch's functions."""
    named = dict(module.named_parameters())
    new = "parametrizations.weight.original"
    return (
        (named[f"{new}0"], named[f"{new}1"])
        if f"{new}0" in named
        else (named["weight_g"], named["weight_v"])
    )


def normalisation(
    module: nn.LayerNorm | nn.GroupNorm | nn.modules.batchnorm._BatchNorm, calls: Calls
) -> list[Factor]:
    """Scale and shift after a normalisation that looks at one sample only."""
    scale, shift = [], []
    for x, g in calls:
        product = g * _normalised(module, x)
        keep = module.normalized_shape if isinstance(module, nn.LayerNorm) else None
        scale.append(_sum_positions(product, keep))
        shift.append(_sum_positions(g, keep))
    parts = [torch.stack(scale).sum(0)]
    if module.bias is not None:
        parts.append(torch.stack(shift).sum(0))
    return [Rows(torch.cat(parts, dim=1))]


def embedding(module: nn.Embedding, calls: Calls) -> list[Factor]:
    """Lookup tables; a padding index has no gradient."""
    index = torch.cat([x.flatten(1) for x, _ in calls], dim=1)
    g = torch.cat([_flat_positions(g) if g.ndim > 2 else g[:, None] for _, g in calls], dim=1)
    if module.padding_idx is not None:
        g = g * (index != module.padding_idx)[..., None]
    return [Lookup(index, g, module.num_embeddings)]


def _biases(grads: tuple[Tensor, ...], bias: float) -> list[Factor]:
    """The share of a bias that sees this input at every position."""
    if bias == 0:
        return []
    total = grads[0].sum(2)
    for g in grads[1:]:
        total = total + g.sum(2)
    return [Rows(total * bias)]


def _scales(module: nn.Module, biased: bool) -> tuple[float, float]:
    """What inputs are multiplied by, and the input that the bias sees (0 without one)."""
    bias = 0.0 if module.bias is None or not biased else 1.0
    if isinstance(module, NTKLinear | NTKConv2d):
        weight = module.weight
        return module.w_std / weight[0].numel() ** 0.5, bias * module.b_std
    return 1.0, bias


def _scaled(x: Tensor, scale: float) -> Tensor:
    return x if scale == 1 else x * scale


def _flat_positions(x: Tensor) -> Float[Tensor, "b t k"]:
    return x[:, None] if x.ndim == 2 else x.flatten(1, -2)


def _pair(value: tuple[int, ...], flat: bool, fill: int) -> tuple[int, int]:
    return (fill, value[0]) if flat else (value[0], value[1])


def _normalised(module: nn.Module, x: Tensor) -> Tensor:
    if isinstance(module, nn.LayerNorm):
        return functional.layer_norm(x, module.normalized_shape, eps=module.eps)
    if isinstance(module, nn.GroupNorm):
        return functional.group_norm(x, module.num_groups, eps=module.eps)
    assert isinstance(module, nn.modules.batchnorm._BatchNorm)
    return functional.batch_norm(x, module.running_mean, module.running_var, eps=module.eps)


def _sum_positions(x: Tensor, keep: tuple[int, ...] | None) -> Float[Tensor, "b p"]:
    if keep is not None:
        inner = x.flatten(-len(keep)) if len(keep) > 1 else x
        return inner.flatten(1, -2).sum(1) if inner.ndim > 2 else inner
    return x.flatten(2).sum(2) if x.ndim > 2 else x
