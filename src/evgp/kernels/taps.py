r"""Tangent kernels layer by layer, without the Jacobian.

A layer that multiplies inputs $a_t$ by a weight $W$ at positions $t$ (one for a dense layer on
vectors, one a pixel for a convolution) has the per-sample gradient $\sum_t g_t a_t^\top$, with $g$
the gradient at its output. Two samples share

$$ \sum_{t, t'} (a_t \cdot a'_{t'}) (g_t \cdot g'_{t'}) $$

which for one position is the elementwise product of two Gram matrices. With many positions it is
cheaper to form the gradients of some output channels at a time and multiply those.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from math import prod
from typing import Any, Protocol, runtime_checkable

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional

from evgp.nets import NTKConv2d, NTKLinear

Calls = list[tuple[Tensor, Tensor]]  # input and output gradient of each call of a module


@runtime_checkable
class Factor(Protocol):
    """What one layer keeps of a block of samples, to be multiplied with another block."""

    def add_(self, out: Float[Tensor, "b1 b2"], other: Any, room: int) -> None:
        """Add the kernel with another block of the same layer, in about `room` bytes of scratch.

        With itself only what stands above the diagonal (in blocks) has to be right.
        """
        ...

    def diag(self, room: int) -> Float[Tensor, " b"]:
        """Each sample with itself."""
        ...


@dataclass(frozen=True)
class Product:
    """A dense layer on vectors: inputs (with a one for the bias) and output gradients."""

    a: Float[Tensor, "b k"]
    g: Float[Tensor, "b c"]

    def add_(self, out: Float[Tensor, "b1 b2"], other: "Product", room: int) -> None:
        for rows, columns in _upper(len(self.a), self is other):
            left = self.a[rows] @ other.a[columns].T
            out[rows, columns] += left.mul_(self.g[rows] @ other.g[columns].T)

    def diag(self, room: int) -> Float[Tensor, " b"]:
        return self.a.square().sum(1) * self.g.square().sum(1)


@dataclass(frozen=True)
class Positions:
    """A layer applied at many positions; `unfold` gives b x k x t inputs for a slice of samples."""

    x: tuple[Tensor, ...]
    g: tuple[Tensor, ...]  # b x c x t each, one a call
    unfold: "Unfold"

    def add_(self, out: Float[Tensor, "b1 b2"], other: "Positions", room: int) -> None:
        channels = self.g[0].shape[1]
        k = self.unfold.width(self.x[0])
        count = len(self.x[0]) + (0 if other is self else len(other.x[0]))
        step = max(1, min(channels, room // max(1, self.g[0].element_size() * k * count)))
        for low in range(0, channels, step):
            left = self.slab(low, low + step)
            right = left if other is self else other.slab(low, low + step)
            for rows, columns in _upper(len(left), other is self):
                out[rows, columns] += left[rows] @ right[columns].T

    def diag(self, room: int) -> Float[Tensor, " b"]:
        channels = self.g[0].shape[1]
        k = self.unfold.width(self.x[0])
        step = max(1, min(channels, room // max(1, self.g[0].element_size() * k * len(self.x[0]))))
        out = self.g[0].new_zeros(len(self.x[0]))
        for low in range(0, channels, step):
            out += self.slab(low, low + step).square().sum(1)
        return out

    def slab(self, low: int, high: int) -> Float[Tensor, "b q"]:
        """Per-sample gradients of some output channels, a few samples at a time."""
        first = self.g[0][:, low:high]
        out = first.new_empty(len(first), first.shape[1], self.unfold.width(self.x[0]))
        for start in range(0, len(out), 16):
            rows = slice(start, start + 16)
            for call, (x, g) in enumerate(zip(self.x, self.g, strict=True)):
                a = self.unfold(x[rows]).transpose(1, 2)
                if call == 0:
                    torch.bmm(g[rows, low:high], a, out=out[rows])
                else:
                    out[rows] += torch.bmm(g[rows, low:high], a)
        return out.flatten(1)


@dataclass(frozen=True)
class Rows:
    """A layer with few parameters: its per-sample gradients as they are."""

    j: Float[Tensor, "b p"]

    def add_(self, out: Float[Tensor, "b1 b2"], other: "Rows", room: int) -> None:
        out += self.j @ other.j.T

    def diag(self, room: int) -> Float[Tensor, " b"]:
        return self.j.square().sum(1)


@dataclass(frozen=True)
class Lookup:
    """An embedding: positions share where they hold the same index."""

    index: Tensor  # b x t
    g: Float[Tensor, "b t c"]

    def add_(self, out: Float[Tensor, "b1 b2"], other: "Lookup", room: int) -> None:
        t, u = self.index.shape[1], other.index.shape[1]
        step = max(1, room // max(1, 12 * t * u * len(other.index)))
        right = other.g.flatten(0, 1)
        for low in range(0, len(self.index), step):
            index, g = self.index[low : low + step], self.g[low : low + step]
            same = index.flatten()[:, None] == other.index.flatten()
            shared = (g.flatten(0, 1) @ right.T).mul_(same)
            out[low : low + step] += shared.view(len(index), t, len(other.index), u).sum((1, 3))

    def diag(self, room: int) -> Float[Tensor, " b"]:
        same = self.index[:, :, None] == self.index[:, None]
        return (torch.bmm(self.g, self.g.transpose(1, 2)) * same).sum((1, 2))


@dataclass(frozen=True)
class Unfold:
    """Inputs of a layer as b x k x t: what each output position multiplies with its weights."""

    kernel: tuple[int, int] = (1, 1)
    stride: tuple[int, int] = (1, 1)
    padding: tuple[int, ...] = (0, 0, 0, 0)  # left, right, top, bottom
    dilation: tuple[int, int] = (1, 1)
    mode: str = "constant"
    group: tuple[int, int] | None = None  # channels of one group, from and to

    def __call__(self, x: Tensor) -> Float[Tensor, "b k t"]:
        if self.kernel == (1, 1) and x.ndim == 3:
            return x
        if self.group is not None:
            x = x[:, self.group[0] : self.group[1]]
        if any(self.padding):
            x = functional.pad(x, self.padding, mode=self.mode)
        # A view with the window's axes of their own: its copy is several times faster than im2col.
        size, stride = x.shape[2:], x.stride()
        reach = [d * (k - 1) + 1 for d, k in zip(self.dilation, self.kernel, strict=True)]
        count = [(n - r) // s + 1 for n, r, s in zip(size, reach, self.stride, strict=True)]
        shape = (*x.shape[:2], *self.kernel, *count)
        steps = (
            *stride[:2],
            *(d * t for d, t in zip(self.dilation, stride[2:], strict=True)),
            *(s * t for s, t in zip(self.stride, stride[2:], strict=True)),
        )
        return x.as_strided(shape, steps).reshape(len(x), -1, count[0] * count[1])

    def width(self, x: Tensor) -> int:
        """k: inputs that one output sees."""
        channels = x.shape[1] if self.group is None else self.group[1] - self.group[0]
        return channels * prod(self.kernel)


def _upper(n: int, same: bool, step: int = 1024) -> Iterator[tuple[slice, slice]]:
    """Rows in blocks, each with all columns, or with those from the diagonal on."""
    for start in range(0, n, step):
        yield slice(start, start + step), slice(start if same else 0, None)


def linear(module: nn.Linear | NTKLinear, calls: Calls) -> list[Factor]:
    """Dense layers, on vectors or at the positions of a sequence."""
    scale, bias = _scales(module)
    if len(calls) == 1 and calls[0][0].ndim == 2:
        x, g = calls[0]
        x = x * scale if scale != 1 else x
        ones = x.new_full((len(x), 1), bias)
        return [Product(torch.cat([x, ones], dim=1) if bias else x, g)]
    inputs = tuple(_flat_positions(x).transpose(1, 2) * scale for x, _ in calls)
    grads = tuple(_flat_positions(g).transpose(1, 2) for _, g in calls)
    return [Positions(inputs, grads, Unfold()), *_biases(grads, bias)]


def convolution(module: nn.Conv1d | nn.Conv2d, calls: Calls) -> list[Factor]:
    """Convolutions with any stride, padding, dilation and groups."""
    flat = isinstance(module, nn.Conv1d)
    kernel = _pair(module.kernel_size, flat, 1)
    dilation = _pair(module.dilation, flat, 1)
    sides = module._reversed_padding_repeated_twice
    padding = (*sides, 0, 0) if flat else tuple(sides)
    mode = "constant" if module.padding_mode == "zeros" else module.padding_mode
    scale, bias = _scales(module)
    inputs = tuple((x[:, :, None] if flat else x) * scale for x, _ in calls)
    grads = tuple(g.flatten(2) for _, g in calls)
    wide, high = module.in_channels // module.groups, module.out_channels // module.groups
    factors = _biases(grads, bias)
    for i in range(module.groups):
        group = None if module.groups == 1 else (i * wide, (i + 1) * wide)
        unfold = Unfold(kernel, _pair(module.stride, flat, 1), padding, dilation, mode, group)
        part = grads if group is None else tuple(g[:, i * high : (i + 1) * high] for g in grads)
        factors.append(Positions(inputs, part, unfold))
    return factors


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
    return [Lookup(index, g)]


def _biases(grads: tuple[Tensor, ...], bias: float) -> list[Factor]:
    """The share of a bias that sees this input at every position."""
    if bias == 0:
        return []
    total = grads[0].sum(2)
    for g in grads[1:]:
        total = total + g.sum(2)
    return [Rows(total * bias)]


def _scales(module: nn.Module) -> tuple[float, float]:
    """What inputs are multiplied by, and the input that the bias sees (0 without one)."""
    bias = 0.0 if module.bias is None else 1.0
    if isinstance(module, NTKLinear | NTKConv2d):
        weight = module.weight
        return module.w_std / weight[0].numel() ** 0.5, bias * module.b_std
    return 1.0, bias


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
