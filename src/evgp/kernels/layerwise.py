r"""Factors of each layer for a block of samples; two blocks give a block of the empirical NTK.

A layer that multiplies inputs $a_t$ by a weight $W$ at positions $t$ (one for a dense layer on
vectors, each pixel for a convolution) has the per-sample gradient $\sum_t g_t a_t^\top$, with $g$
the gradient at its output. Two samples share

$$ \sum_{t, t'} (a_t \cdot a'_{t'}) (g_t \cdot g'_{t'}) $$

which for one position is the elementwise product of two Gram matrices. With many positions it is
cheaper to form the gradients of some output channels at a time and multiply those.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from math import prod
from typing import Any, Protocol, runtime_checkable

import torch
from jaxtyping import Float, Int, Shaped
from torch import Tensor, nn
from torch.nn import functional

from evgp.errors import NetworkError
from evgp.nets import NTKConv2d, NTKLinear


@dataclass(frozen=True)
class Projection:
    """A random projection to p features, for one layer in one pass through a network.

    `count` says whether gradients are formed and counted into bins, or never formed.
    """

    p: int
    count: bool
    seeds: tuple[int, ...]
    _drawn: dict[str, tuple[Tensor, ...]] = field(default_factory=dict, repr=False, compare=False)

    def signs(self, role: str, size: int, like: Tensor) -> Float[Tensor, "s p"]:
        """Random signs, one column for each feature."""
        if role not in self._drawn:
            drawn = torch.randint(0, 2, (size, self.p), generator=self._generator(role))
            self._drawn[role] = ((2 * drawn - 1).to(like),)
        return self._drawn[role][0]

    def project(self, role: str, x: Float[Tensor, " *b s"]) -> Float[Tensor, " *b p"]:
        """Inner products with the signs; their products over all roles are unbiased."""
        return x @ self.signs(role, x.shape[-1], x)

    def scale(self) -> float:
        """The factor of a product of projections."""
        return float(self.p**-0.5)

    def bins(self, size: int) -> tuple[Int[Tensor, " s"], Int[Tensor, " s"]]:
        """Bin and sign of each entry of a gradient of this size."""
        if "bins" not in self._drawn:
            generator = self._generator("bins")
            at = torch.randint(0, self.p, (size,), generator=generator)
            signs = 2 * torch.randint(0, 2, (size,), generator=generator) - 1
            self._drawn["bins"] = (at, signs)
        at, signs = self._drawn["bins"]
        return at, signs

    def add_(
        self, out: Float[Tensor, "b p"], slab: Shaped[Tensor, "b q"], low: int, size: int
    ) -> None:
        """Add the entries from `low` on, of gradients of this size, to their bins."""
        at, signs = (part[low : low + slab.shape[1]] for part in self.bins(size))
        out.index_add_(1, at.to(out.device), slab * signs.to(slab))

    def _generator(self, role: str) -> torch.Generator:
        text = ":".join(map(str, (*self.seeds, role)))
        # A stable hash: Python's own differs from process to process.
        seed = 0
        for letter in text.encode():
            seed = (seed * 1_000_003 + letter) % (2**63 - 25)
        return torch.Generator().manual_seed(seed)


_CACHE = 1 << 22  # bytes of unfolded inputs that are soon read again
_WARM = 1 << 24  # bytes of gradients formed at a time for a product
_SLAB = 1 << 24  # numbers of gradients formed at a time for a sketch


@runtime_checkable
class Factor(Protocol):
    """The factors of one layer for a block of samples, to be multiplied with another block."""

    def add_(self, out: Float[Tensor, "b1 b2"], other: Any, room: int) -> None:
        """Add the kernel with another block of the same layer, in about `room` bytes of scratch.

        With itself, only the blocks on and above the diagonal need to be right.
        """
        ...

    def diag(self, room: int) -> Float[Tensor, " b"]:
        """Each sample with itself."""
        ...

    def work(self) -> int:
        """Approximate number of multiplications for a pair of samples."""
        ...

    def sketch(self, projection: Projection) -> Float[Tensor, "b p"]:
        """The gradients of each sample as random features."""
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

    def work(self) -> int:
        return self.a.shape[1] + self.g.shape[1]

    def sketch(self, projection: Projection) -> Float[Tensor, "b p"]:
        if not projection.count:
            return (
                projection.project("a", self.a)
                * projection.project("g", self.g)
                * projection.scale()
            )
        c, k = self.g.shape[1], self.a.shape[1]
        out = self.a.new_zeros(len(self.a), projection.p)
        step = max(1, _SLAB // max(1, k * len(self.a)))
        for low in range(0, c, step):
            slab = (self.g[:, low : low + step, None] * self.a[:, None]).flatten(1)
            projection.add_(out, slab, low * k, c * k)
        return out


@dataclass(frozen=True)
class Positions:
    """A layer applied at many positions; `unfold` gives b x k x t inputs for a slice of samples."""

    x: tuple[Tensor, ...]
    g: tuple[Tensor, ...]  # b x c x t, one for each call
    unfold: "Unfold"

    def add_(self, out: Float[Tensor, "b1 b2"], other: "Positions", room: int) -> None:
        if self._pairs_are_cheaper(other):
            return self._add_pairs(out, other, room)
        channels = self.g[0].shape[1]
        k = self.unfold.width(self.x[0])
        count = len(self.x[0]) + (0 if other is self else len(other.x[0]))
        # Small slabs reuse the same memory, which stays in the cache.
        most = min(room, _WARM) // max(1, self.g[0].element_size() * k * count)
        step = max(1, min(channels, most))
        for low in range(0, channels, step):
            left = self.slab(low, low + step)
            right = left if other is self else other.slab(low, low + step)
            for rows, columns in _upper(len(left), other is self):
                out[rows, columns] += left[rows] @ right[columns].T

    def _pairs_are_cheaper(self, other: "Positions") -> bool:
        """Whether pairs of positions take fewer multiplications than gradients formed first."""
        t, c, k = sum(g.shape[2] for g in self.g), self.g[0].shape[1], self.unfold.width(self.x[0])
        forming = t / len(self.g[0]) + t / len(other.g[0])
        return t * t * (k + c) < c * k * (1 + forming)

    def _add_pairs(self, out: Float[Tensor, "b1 b2"], other: "Positions", room: int) -> None:
        """The sum over pairs of positions, for layers with few positions and many weights."""
        a, g = self._listed()
        a2, g2 = (a, g) if other is self else other._listed()
        t, m = a.shape[1], len(a2)
        step = max(1, min(1024, room // max(1, 2 * a.element_size() * t * t * m)))
        for rows, columns in _upper(len(a), other is self, step):
            shared = a[rows].flatten(0, 1) @ a2[columns].flatten(0, 1).T
            shared *= g[rows].flatten(0, 1) @ g2[columns].flatten(0, 1).T
            total = shared.view(-1, t, shared.shape[1]).sum(1)
            out[rows, columns] += total.view(len(total), -1, t).sum(2)

    def _listed(self) -> tuple[Float[Tensor, "b t k"], Float[Tensor, "b t c"]]:
        """Inputs and gradients, position by position, over all calls."""
        a = torch.cat([self.unfold(x).transpose(1, 2) for x in self.x], dim=1)
        return a.contiguous(), torch.cat([g.transpose(1, 2) for g in self.g], dim=1).contiguous()

    def diag(self, room: int) -> Float[Tensor, " b"]:
        channels = self.g[0].shape[1]
        k = self.unfold.width(self.x[0])
        step = max(1, min(channels, room // max(1, self.g[0].element_size() * k * len(self.x[0]))))
        out = self.g[0].new_zeros(len(self.x[0]))
        for low in range(0, channels, step):
            out += self.slab(low, low + step).square().sum(1)
        return out

    def work(self) -> int:
        t, c, k = sum(g.shape[2] for g in self.g), self.g[0].shape[1], self.unfold.width(self.x[0])
        return min(c * k, t * t * (c + k))

    def sketch(self, projection: Projection) -> Float[Tensor, "b p"]:
        c, k = self.g[0].shape[1], self.unfold.width(self.x[0])
        out = self.g[0].new_zeros(len(self.g[0]), projection.p)
        if projection.count:
            step = max(1, _SLAB // max(1, k * len(out)))
            for low in range(0, c, step):
                projection.add_(out, self.slab(low, low + step), low * k, c * k)
            return out
        for start in range(0, len(out), 4):
            rows = slice(start, start + 4)
            for x, g in zip(self.x, self.g, strict=True):
                seen = projection.project("a", self.unfold(x[rows]).transpose(1, 2))
                seen *= projection.project("g", g[rows].transpose(1, 2))
                out[rows] += seen.sum(1)
        return out * projection.scale()

    def slab(self, low: int, high: int) -> Float[Tensor, "b q"]:
        """Per-sample gradients of some output channels, a few samples at a time."""
        first = self.g[0][:, low:high]
        out = first.new_empty(len(first), first.shape[1], self.unfold.width(self.x[0]))
        positions = sum(g.shape[2] for g in self.g)
        step = max(2, _CACHE // max(1, first.element_size() * out.shape[2] * positions))
        for start in range(0, len(out), step):
            rows = slice(start, start + step)
            for call, (x, g) in enumerate(zip(self.x, self.g, strict=True)):
                a = self.unfold(x[rows]).transpose(1, 2)
                if call == 0:
                    torch.bmm(g[rows, low:high], a, out=out[rows])
                else:
                    out[rows] += torch.bmm(g[rows, low:high], a)
        return out.flatten(1)


@dataclass(frozen=True)
class Rows:
    """A layer with few parameters: its per-sample gradients, weighted or not."""

    j: Float[Tensor, "b p"]
    weights: Float[Tensor, " p"] | None = None

    def add_(self, out: Float[Tensor, "b1 b2"], other: "Rows", room: int) -> None:
        out += (self.j if self.weights is None else self.j * self.weights) @ other.j.T

    def diag(self, room: int) -> Float[Tensor, " b"]:
        squares = self.j.square()
        return squares.sum(1) if self.weights is None else squares @ self.weights

    def work(self) -> int:
        return self.j.shape[1]

    def sketch(self, projection: Projection) -> Float[Tensor, "b p"]:
        j = self.j
        if self.weights is not None:
            if bool((self.weights < 0).any()):
                raise NetworkError(
                    "a sketch does not support weight norm whose lengths exceed those of its "
                    "directions; remove it with torch.nn.utils.parametrize.remove_parametrizations"
                )
            j = j * self.weights.sqrt()
        if not projection.count:
            return projection.project("j", j) * projection.scale()
        out = j.new_zeros(len(j), projection.p)
        projection.add_(out, j, 0, j.shape[1])
        return out


@dataclass(frozen=True)
class Lookup:
    """An embedding: positions share a gradient where they have the same index."""

    index: Tensor  # b x t
    g: Float[Tensor, "b t c"]
    size: int  # entries of the table

    def add_(self, out: Float[Tensor, "b1 b2"], other: "Lookup", room: int) -> None:
        if self._table_is_cheaper():
            return self._add_table(out, other, room)
        t, u = self.index.shape[1], other.index.shape[1]
        most = max(1, room // max(1, 12 * t * u))  # pairs of samples at a time
        rows = max(1, min(len(self.index), most))
        columns = max(1, most // rows)
        for low in range(0, len(self.index), rows):
            index, g = self.index[low : low + rows], self.g[low : low + rows]
            for at in range(0, len(other.index), columns):
                near, h = other.index[at : at + columns], other.g[at : at + columns]
                same = index.flatten()[:, None] == near.flatten()
                shared = (g.flatten(0, 1) @ h.flatten(0, 1).T).mul_(same)
                summed = shared.view(len(index), t, len(near), u).sum((1, 3))
                out[low : low + rows, at : at + columns] += summed

    def diag(self, room: int) -> Float[Tensor, " b"]:
        parts = [self.g.new_empty(0)]
        step = max(1, room // max(1, 12 * self.index.shape[1] ** 2))
        for low in range(0, len(self.index), step):
            index, g = self.index[low : low + step], self.g[low : low + step]
            same = index[:, :, None] == index[:, None]
            parts.append((torch.bmm(g, g.transpose(1, 2)) * same).sum((1, 2)))
        return torch.cat(parts)

    def _table_is_cheaper(self) -> bool:
        """Whether gradients for every entry cost less than all pairs of positions."""
        t, c = self.index.shape[1], self.g.shape[2]
        return self.size * c < t * t * (c + 16)

    def _add_table(self, out: Float[Tensor, "b1 b2"], other: "Lookup", room: int) -> None:
        """Add the kernel from the gradients of the table, some of its columns at a time."""
        size, count = self.size, len(self.index) + (0 if other is self else len(other.index))
        step = max(1, room // max(1, self.g.element_size() * size * count))
        for low in range(0, self.g.shape[2], step):
            left = self._table(low, low + step)
            right = left if other is self else other._table(low, low + step)
            out += left @ right.T

    def _table(self, low: int, high: int) -> Float[Tensor, "b q"]:
        g = self.g[:, :, low:high]
        table = g.new_zeros(len(g), self.size, g.shape[2])
        table.scatter_add_(1, self.index[:, :, None].expand_as(g), g)
        return table.flatten(1)

    def work(self) -> int:
        t, c = self.index.shape[1], self.g.shape[2]
        return self.size * c if self._table_is_cheaper() else t * t * (c + 16)

    def sketch(self, projection: Projection) -> Float[Tensor, "b p"]:
        table = projection.signs("index", self.size, self.g)
        seen = table[self.index] * projection.project("g", self.g)
        return seen.sum(1) * projection.scale()


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
        # A view with separate axes for the window: copying it is several times faster than im2col.
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
        raise RuntimeError("groups of a transposed convolution take the slow path")
    flat = isinstance(module, nn.ConvTranspose1d)
    kernel, stride = _pair(module.kernel_size, flat, 1), _pair(module.stride, flat, 1)
    down, right = _pair(tuple(map(int, module.padding)), flat, 0)
    unfold = Unfold(kernel, stride, (right, right, down, down), _pair(module.dilation, flat, 1))
    grads = tuple(g[:, :, None] if flat else g for _, g in calls)
    weights = Positions(grads, tuple(x.flatten(2) for x, _ in calls), unfold)
    bias = 0.0 if module.bias is None else 1.0
    return [weights, *_biases(tuple(g.flatten(2) for g in grads), bias)]


def weight_normed(module: nn.Linear | nn.Conv1d | nn.Conv2d, calls: Calls) -> list[Factor]:
    r"""Dense and convolutional layers with a length and a direction for every output.

    With $W_c = l_c v_c / \|v_c\|$ and $G$ the gradient of $W$, the gradient of the length $l_c$ is
    $d_c = G_c \cdot v_c / \|v_c\|$, and that of the direction $v_c$ is
    $s_c (G_c - d_c v_c / \|v_c\|)$ with $s_c = l_c / \|v_c\|$. So the kernel is that of a plain
    layer whose output gradients are scaled by $s$, plus $\sum_c (1 - s_c^2) d_c d'_c$.
    """
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
    """Length and direction of a layer normed by either of torch's weight-norm functions."""
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
    """The factor of the inputs, and the input that the bias sees (0 without a bias)."""
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
