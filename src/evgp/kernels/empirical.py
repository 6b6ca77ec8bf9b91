r"""The tangent kernel of any torch module, as it is initialised.

$$ \hat\Theta(x, x') = \nabla_\theta f(x) \cdot \nabla_\theta f(x') $$

Exact, layer by layer (`evgp.kernels.taps`), without the n x p Jacobian.
"""

import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from math import isfinite
from typing import Any, ClassVar

import torch
from jaxtyping import Float, Shaped
from torch import Tensor, nn

from evgp._checks import BYTES, flag, integer, keep, numbers, seed_of
from evgp._errors import NetworkError
from evgp._linalg import mirror_
from evgp._machine import available_memory, seconds, speed
from evgp.kernels import taps, trial
from evgp.kernels.factors import Factor, Projection
from evgp.kernels.kernel import Tabulated, storage_of
from evgp.kernels.taps import Calls
from evgp.nets import (
    Buildable,
    NTKLinear,
    called,
    check_source,
    drawn_anew,
    is_description,
    looks_up,
    made_by,
    saved_bytes,
)

_BATCH_NORM = nn.modules.batchnorm._BatchNorm
Builder = Callable[[nn.Module, Calls], list[Factor]]
_BUILDERS: tuple[tuple[tuple[type[nn.Module], ...], Callable[..., list[Factor]]], ...] = (
    ((nn.Linear, NTKLinear), taps.linear),
    ((nn.Conv1d, nn.Conv2d), taps.convolution),
    ((nn.ConvTranspose1d, nn.ConvTranspose2d), taps.transposed),
    ((nn.LayerNorm, nn.GroupNorm, _BATCH_NORM), taps.normalisation),
    ((nn.Embedding,), taps.embedding),
)


@dataclass(frozen=True)
class Rest:
    """Parameters that no tap covers: per-sample gradients by `torch.func`, some at a time."""

    tapped: "Tapped"
    x: Tensor
    output: int

    def add_(self, out: Float[Tensor, "b1 b2"], other: "Rest", room: int) -> None:
        for names in self.tapped.groups(room // max(1, len(self.x) + len(other.x))):
            left = self.tapped.slab(self.x, self.output, names)
            right = left if other is self else other.tapped.slab(other.x, other.output, names)
            out += left @ right.T

    def diag(self, room: int) -> Float[Tensor, " b"]:
        out = self.tapped.zeros(len(self.x))
        for names in self.tapped.groups(room // max(1, len(self.x))):
            out += self.tapped.slab(self.x, self.output, names).square().sum(1)
        return out

    def work(self) -> int:
        sizes = {name: param.numel() for name, param in self.tapped.module.named_parameters()}
        return sum(sizes[name] for name in self.tapped.rest)

    def sketch(self, projection: Projection) -> Float[Tensor, "b p"]:
        out = self.tapped.zeros(len(self.x), projection.p)
        low, total = 0, self.work()
        for names in self.tapped.groups((1 << 28) // max(1, len(self.x))):
            slab = self.tapped.slab(self.x, self.output, names)
            projection.add_(out, slab, low, total)
            low += slab.shape[1]
        return out


@dataclass
class Tapped:
    """One initialisation of a network, ready to give factors.

    A parameter that reaches the outputs by another way than the call of its layer, or that several
    layers own, goes to the slow road; and so does a layer whose kernel differs from that of plain
    gradients on a few samples.
    """

    module: nn.Module
    outputs: int = 0
    taps: dict[nn.Module, Builder] = field(default_factory=dict)
    rest: list[str] = field(default_factory=list)
    altered: set[nn.Module] = field(default_factory=set)  # whose outputs are changed in place
    kept: int = 0  # bytes a sample that the factors keep
    saved: int = 0  # and those that a forward pass keeps for the backward one

    @classmethod
    def of(cls, module: nn.Module, x: Tensor) -> "Tapped":
        """Taps for a module, checked on a few samples."""
        trial.fit_for_a_kernel(module)
        tapped = cls(module)
        few = tapped.cast(trial.different(x, 2))
        tapped.outputs = trial.count_outputs(module, few)
        with torch.enable_grad():
            if not called(module, few).requires_grad:
                raise NetworkError(
                    "expected outputs that depend on the parameters, got some that are detached "
                    "from them; leave out detach() and no_grad()"
                )
        tapped._tap(few)
        made = tapped.factors(few, 0)
        tapped.kept = sum(map(_bytes, made)) // len(few)
        tapped.saved = saved_bytes(lambda some: called(module, some), few)
        return tapped

    def cast(self, x: Tensor) -> Tensor:
        """Inputs in the type and on the device of the parameters; indices stay indices."""
        one = next(self.module.parameters())
        whole = not x.is_floating_point() and looks_up(self.module)
        made = x.to(one.device, torch.long if whole else one.dtype)
        return made.clone() if made.is_inference() else made  # which has no part in gradients

    def zeros(self, *shape: int) -> Tensor:
        """In the type of the parameters."""
        one = next(self.module.parameters())
        return torch.zeros(*shape, dtype=one.dtype, device=one.device)

    def factors(self, x: Tensor, output: int) -> list[Factor]:
        """What every layer keeps of a block of samples, for one output."""
        x = self.cast(x)
        calls = self._calls(x, lambda out: out[:, output].sum())
        made: list[Factor] = []
        for module, builder in self.taps.items():
            if calls[module]:
                made += builder(module, calls[module])
        if self.rest:
            made.append(Rest(self, x, output))
        return made

    def slab(self, x: Tensor, output: int, names: list[str]) -> Float[Tensor, "b p"]:
        """Per-sample gradients of these parameters: b x p numbers."""
        every = {name: value.detach() for name, value in self.module.named_parameters()}
        buffers = dict(self.module.named_buffers())
        chosen = {name: every[name] for name in names}

        def one(some: dict[str, Tensor], sample: Tensor) -> Tensor:
            state = {**every, **buffers, **some}
            return torch.func.functional_call(self.module, state, (sample[None],))[0, output]

        try:
            with warnings.catch_warnings():
                warnings.filterwarnings("ignore", "There is a performance drop", UserWarning)
                grads = torch.func.vmap(torch.func.grad(one), (None, 0))(chosen, x)
        except RuntimeError:  # not every operation can be batched; one by one always works
            each = [torch.func.grad(one)(chosen, sample) for sample in x]
            grads = {name: torch.stack([part[name] for part in each]) for name in names}
        return torch.cat([grads[name].reshape(len(x), -1) for name in names], dim=1)

    def groups(self, room: int) -> Iterator[list[str]]:
        """The uncovered parameters, as many at a time as the memory per sample allows."""
        sizes = {n: p.numel() * p.element_size() for n, p in self.module.named_parameters()}
        group: list[str] = []
        for name in self.rest:
            if group and sum(sizes[n] for n in [*group, name]) > room:
                yield group
                group = []
            group.append(name)
        if group:
            yield group

    def widest(self) -> int:
        """Bytes of the largest parameter on the slow road."""
        sizes = {n: p.numel() * p.element_size() for n, p in self.module.named_parameters()}
        return max((sizes[name] for name in self.rest), default=0)

    def _tap(self, x: Tensor) -> None:
        owners: dict[int, int] = {}
        for _, param in self.module.named_parameters(remove_duplicate=False):
            owners[id(param)] = owners.get(id(param), 0) + 1
        covered: dict[nn.Module, list[str]] = {}
        for prefix, module in self.module.named_modules():
            own, builder = _reading(module)
            trained = [param.requires_grad for param in own.values()]
            single = all(owners[id(param)] == 1 for param in own.values())
            if builder is not None and own and all(trained) and single:
                self.taps[module] = builder
                covered[module] = [f"{prefix}.{name}" if prefix else name for name in own]
        params = dict(self.module.named_parameters())
        owned = {layer: [params[name] for name in names] for layer, names in covered.items()}
        wrong = trial.off_batch(self.module, x, owned)
        wrong |= trial.used_elsewhere(self.module, x, owned)
        for layer in wrong:
            del self.taps[layer]
        self.altered = trial.changed_in_place(self.module, x, self.taps)
        self._check(x, covered)
        known = {name for module in self.taps for name in covered[module]}
        self.rest = [
            name
            for name, param in self.module.named_parameters()
            if param.requires_grad and name not in known
        ]

    def _calls(
        self, x: Tensor, scalar: Callable[[Tensor], Tensor]
    ) -> dict[nn.Module, list[tuple[Tensor, Tensor]]]:
        """Input and output gradient of every call of a tapped layer."""
        calls: dict[nn.Module, list[tuple[Tensor, Tensor]]] = {module: [] for module in self.taps}

        def hear(
            layer: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any], out: Tensor
        ) -> Tensor:
            calls[layer].append((trial.first_of(args, kwargs).detach(), out))
            # Whoever changes the output in place gets a copy.
            return out.clone() if layer in self.altered else out

        with trial.hooked(self.taps, hear), torch.enable_grad():
            total = scalar(called(self.module, x))
            flat = [out for made in calls.values() for _, out in made]
            grads = iter(torch.autograd.grad(total, flat, allow_unused=True)) if flat else iter(())
        return {
            layer: [(a, _or_zeros(next(grads), out)) for a, out in made]
            for layer, made in calls.items()
        }

    def _check(self, x: Tensor, covered: dict[nn.Module, list[str]]) -> None:
        """Drop taps whose kernel differs from that of plain gradients, for a mix of all outputs."""
        params = {n: p for n, p in self.module.named_parameters() if p.requires_grad}
        mix = torch.randn(self.outputs, generator=torch.Generator().manual_seed(0)).to(
            self.zeros(1)
        )
        with torch.enable_grad():
            out = called(self.module, x) @ mix
        rows = [
            torch.autograd.grad(value, list(params.values()), retain_graph=True, allow_unused=True)
            for value in out
        ]
        grads = [dict(zip(params, row, strict=True)) for row in rows]
        calls = self._calls(x, lambda out: (out @ mix).sum())
        for module, builder in list(self.taps.items()):
            expected = self.zeros(len(x), len(x))
            for name in covered[module]:
                parts = [_or_zeros(row[name], params[name]).flatten() for row in grads]
                stacked = torch.stack(parts)
                expected += stacked @ stacked.T
            kernel = self.zeros(len(x), len(x))
            try:
                for one in builder(module, calls[module]) if calls[module] else []:
                    one.add_(kernel, one, 1 << 28)
            except (RuntimeError, IndexError, ValueError, TypeError):
                del self.taps[module]
                continue
            near = 1e-3 if kernel.dtype == torch.float32 else 1e-8
            scale = near * float(expected.abs().max())
            # Weights so large that gradients overflow are told of where the kernel is used.
            agree = isfinite(scale) and torch.allclose(
                kernel.triu(), expected.triu(), rtol=near, atol=scale
            )
            if not agree:
                del self.taps[module]


def _bytes(factor: Factor) -> int:
    total = 0
    for value in vars(factor).values():
        for part in value if isinstance(value, tuple) else (value,):
            if isinstance(part, Tensor):
                total += part.numel() * part.element_size()
    return total


def _reading(
    module: nn.Module,
) -> tuple[dict[str, nn.Parameter], Callable[..., list[Factor]] | None]:
    """The parameters that a layer's tap covers, and the tap; weight norm keeps them elsewhere."""
    own = dict(module.named_parameters(recurse=False))
    builder = next((b for kinds, b in _BUILDERS if isinstance(module, kinds)), None)
    if isinstance(module, nn.Linear | nn.Conv1d | nn.Conv2d):
        made: Any = getattr(module, "parametrizations", None)
        inner = made["weight"] if made is not None and set(made) == {"weight"} else []
        if len(inner) == 1 and type(inner[0]).__name__ == "_WeightNorm" and inner[0].dim == 0:
            inside = made.named_parameters(prefix="parametrizations")
            return {**own, **dict(inside)}, taps.weight_normed
        if {"weight_g", "weight_v"} <= set(own) and len(own["weight_g"]) == len(own["weight_v"]):
            return own, taps.weight_normed
    whole = "weight" in own and not hasattr(module, "parametrizations")
    return own, builder if whole else None


def _or_zeros(grad: Tensor | None, like: Tensor) -> Tensor:
    return torch.zeros_like(like) if grad is None else grad


Source = nn.Module | Buildable | Callable[[], nn.Module]


@dataclass(frozen=True)
class EmpiricalNTK:
    """The tangent kernel of a finite network at initialisation (or as it is).

    `network` is a module, a description (`mlp`, `cnn`, ...), or a function that makes a module.
    `output` is one output drawn at random (seeded), the number of one, or "trace": the sum over
    all. `draws` averages over that many initialisations. A module is taken as it is, unless `anew`
    (or `fresh`) has it initialised by the seed; the others always are. With p parameters the cost
    is O(n m p) for convolutions and O(n m (inputs + outputs of each layer)) for dense layers;
    memory is the result and about `memory` bytes (a quarter of what is free, by default).

    >>> from evgp import mlp
    >>> kernel = EmpiricalNTK(mlp(depth=1, width=64))
    >>> kernel(torch.eye(3)).shape
    torch.Size([3, 3])
    """

    network: Source
    output: str | int = "random"
    draws: int = 1
    seed: int = 0
    memory: int | None = None
    storage: torch.dtype | None = None
    anew: bool = False
    gradients: ClassVar[bool] = True
    is_checked: ClassVar[bool] = True
    _made: dict[tuple[int, ...], list[Tapped]] = field(
        default_factory=dict, repr=False, compare=False
    )

    def __post_init__(self) -> None:
        if not isinstance(self.output, str) or self.output not in ("random", "trace"):
            why = "or random, or trace"
            keep(self, output=integer(self.output, "output", 0, why=why, error=NetworkError))
        keep(self, draws=integer(self.draws, "draws", 1, 100_000, error=NetworkError))
        keep(self, seed=seed_of(self.seed, error=NetworkError))
        flag(self.anew, "anew", error=NetworkError)
        storage_of(self.storage)
        if self.memory is not None:
            made = integer(self.memory, "memory", 1, BYTES, why="in bytes", error=NetworkError)
            keep(self, memory=made)
        check_source(self.network)

    def __call__(
        self, x1: Shaped[Tensor, " n *d"], x2: Shaped[Tensor, " m *d"] | None = None
    ) -> Float[Tensor, "n m"]:
        """The n x m matrix; with one argument the symmetric n x n one."""
        symmetric = x2 is None or x2 is x1
        x1 = sampled(x1)
        other = x1 if symmetric else sampled(x2)
        if x1.shape[1:] != other.shape[1:]:
            raise NetworkError(
                f"expected points of one shape, got {tuple(x1.shape[1:])} and "
                f"{tuple(other.shape[1:])}"
            )
        if len(x1) == 0 or len(other) == 0:
            return torch.zeros(len(x1), len(other), dtype=self.storage or torch.float32)
        out: Tensor | None = None
        for draw, tapped in enumerate(self._instances(x1)):
            for output in self._outputs(tapped, draw):
                blocks = _Blocks(tapped, output, self._room())
                out = out if out is not None else self._empty(tapped, len(x1), len(other))
                blocks.add_(out, x1, None if symmetric else other)
        assert out is not None
        out /= self.draws
        if symmetric:
            mirror_(out)
        return out

    def diag(self, x: Shaped[Tensor, " n *d"]) -> Float[Tensor, " n"]:
        """Each point with itself: one backward pass, no n x n matrix."""
        x = sampled(x)
        if len(x) == 0:
            return torch.zeros(0, dtype=self.storage or torch.float32)
        total: Tensor | None = None
        for draw, tapped in enumerate(self._instances(x)):
            total = total if total is not None else self._empty(tapped, len(x))
            for output in self._outputs(tapped, draw):
                blocks = _Blocks(tapped, output, self._room())
                total += blocks.diag(x).to(total)
        assert total is not None
        return total / self.draws

    def tabulated(self, x: Shaped[Tensor, " n *d"]) -> Tabulated:
        """The kernel between these points, computed once, as a kernel of their row numbers."""
        return Tabulated(self(x))

    def looks_up(self, shape: tuple[int, ...]) -> bool:
        """Does the network take whole numbers as indices, as those for text do?"""
        return looks_up(self._initialise(shape, 0))

    def cost(self, x: Shaped[Tensor, " b *d"], n: int) -> tuple[int, float]:
        """Bytes and seconds that the n x n matrix will take, from a look at a few samples.

        The bytes are those of the matrix and the scratch space beside it.
        """
        tapped = self._instances(x)[0]
        output = self._outputs(tapped, 0)[0]
        blocks = _Blocks(tapped, output, self._room())
        few = x[:8]
        made = tapped.factors(few, output)
        step, keep = blocks.size(n)
        count = -(-n // step)
        passes = n if keep and not tapped.rest else step * count * (count + 1) / 2
        passes *= 2 if tapped.rest else 1  # the slow road keeps nothing of either block
        sample = seconds(lambda: blocks.diag(few), times=1) / len(few)
        size = tapped.zeros(1).element_size()
        flops = speed()[0] * (2 if size == 4 else 1)
        product = n * n * sum(one.work() for one in made) / flops
        repeats = self.draws * len(self._outputs(tapped, 0))
        scratch = n * blocks.sample() + sum(p.numel() for p in tapped.module.parameters()) * size
        matrix = n * n * (self.storage.itemsize if self.storage else size)
        return matrix + min(self._room(), scratch), repeats * (passes * sample + product)

    def passes(self, x: Shaped[Tensor, " n *d"]) -> Iterator[tuple[int, int, list[Factor]]]:
        """For every initialisation and output its number, a block's first row, and its factors."""
        number, room = 0, self._room()
        for draw, tapped in enumerate(self._instances(x)):
            for output in self._outputs(tapped, draw):
                step, _ = _Blocks(tapped, output, room).size(len(x))
                for start in range(0, len(x), step):
                    yield number, start, tapped.factors(x[start : start + step], output)
                number += 1

    def fresh(self, seed: int) -> "EmpiricalNTK":
        """The same kernel from another initialisation, for the next round."""
        return replace(self, seed=seed, anew=True, _made={})

    def _room(self) -> int:
        return self.memory if self.memory is not None else available_memory() // 4

    def _empty(self, tapped: Tapped, *shape: int) -> Tensor:
        dtype = self.storage or tapped.zeros(1).dtype
        return torch.zeros(*shape, dtype=dtype)

    def _outputs(self, tapped: Tapped, draw: int) -> list[int]:
        count = tapped.outputs
        if self.output == "trace":
            return list(range(count))
        if self.output == "random":
            generator = torch.Generator().manual_seed(self.seed + draw)
            return [int(torch.randint(count, (), generator=generator))]
        if not 0 <= int(self.output) < count:
            raise NetworkError(f"expected output from 0 to {count - 1}, got {self.output}")
        return [int(self.output)]

    def _instances(self, x: Tensor) -> list[Tapped]:
        """The initialisations, made once for inputs of this shape."""
        shape = tuple(x.shape[1:])
        if shape not in self._made:
            made = [self._initialise(shape, draw) for draw in range(self.draws)]
            self._made[shape] = [Tapped.of(module, x) for module in made]
        return self._made[shape]

    def _initialise(self, shape: tuple[int, ...], draw: int) -> nn.Module:
        seed = self.seed + draw
        if is_description(self.network):
            return self.network.build(shape, generator=torch.Generator().manual_seed(seed))
        if isinstance(self.network, nn.Module) and draw == 0 and not self.anew:
            return self.network
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            if isinstance(self.network, nn.Module):
                return drawn_anew(self.network)
            return made_by(self.network)


@dataclass(frozen=True)
class _Blocks:
    """One network and output; samples go through it in blocks that fit the memory."""

    tapped: Tapped
    output: int
    room: int

    def add_(self, out: Tensor, x1: Tensor, x2: Tensor | None) -> None:
        """Add the kernel to `out`; factors are kept where all of them fit."""
        other = x1 if x2 is None else x2
        step, keep = self.size(len(x1) + (0 if x2 is None else len(x2)))
        kept: dict[tuple[int, int], list[Factor]] = {}
        zeros = self.tapped.zeros(0)

        def factors(side: int, start: int) -> list[Factor]:
            key = (0 if x2 is None else side, start)
            if key in kept:
                return kept[key]
            made = self.tapped.factors((x1, other)[side][start : start + step], self.output)
            if keep:
                kept[key] = made
            return made

        for i in range(0, len(x1), step):
            left = factors(0, i)
            for j in range(i if x2 is None else 0, len(other), step):
                right = left if x2 is None and i == j else factors(1, j)
                rows, columns = slice(i, i + step), slice(j, j + step)
                target = out[rows, columns]
                direct = (target.dtype, target.device) == (zeros.dtype, zeros.device)
                block = target if direct else self.tapped.zeros(*target.shape)
                for a, b in zip(left, right, strict=True):
                    a.add_(block, b, self.room // 4)
                if not direct:
                    target += block.to(out)
            kept.pop((0, i), None)

    def diag(self, x: Tensor) -> Float[Tensor, " n"]:
        step, _ = self.size(len(x))
        parts = [self.tapped.zeros(0)]
        for i in range(0, len(x), step):
            made = self.tapped.factors(x[i : i + step], self.output)
            parts.append(sum((one.diag(self.room // 4) for one in made), self.tapped.zeros(1)))
        return torch.cat(parts)

    def size(self, n: int) -> tuple[int, bool]:
        """Samples in a block, and whether all blocks may be kept."""
        step = max(1, self.room // 2 // max(1, self.sample()))
        return step, n * self.tapped.kept <= self.room // 4

    def sample(self) -> int:
        """Bytes that one sample takes at the peak of a backward pass, or on the slow road."""
        return 2 * self.tapped.kept + 2 * self.tapped.saved + 2 * self.tapped.widest()


def sampled(x: object) -> Shaped[Tensor, " n *d"]:
    """Samples for a network, one a row."""
    made = numbers(x, "the inputs", error=NetworkError)
    if made.ndim < 2:
        raise NetworkError(f"expected samples of shape (rows, ...), got {tuple(made.shape)}")
    return made
