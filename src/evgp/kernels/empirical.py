r"""The tangent kernel of any torch module, as it is initialised.

$$ \hat\Theta(x, x') = \nabla_\theta f(x) \cdot \nabla_\theta f(x') $$

Exact, layer by layer (`evgp.kernels.layerwise`), without the n x p Jacobian.
"""

import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from math import isfinite
from typing import Any, ClassVar

import torch
from jaxtyping import Float, Shaped
from torch import Tensor, nn

from evgp._checks import BYTES, flag, integer, keep, numbers, seed_of
from evgp._linalg import mirror_
from evgp._machine import available_memory, seconds, speed
from evgp.errors import BadArgument, NetworkError
from evgp.kernels import layerwise
from evgp.kernels.kernel import Tabulated, check_storage
from evgp.kernels.layerwise import Calls, Factor, Projection
from evgp.nets import (
    Buildable,
    NTKLinear,
    called,
    check_module,
    check_source,
    deterministic_outputs,
    is_description,
    looks_up,
    module_from,
    reinitialised,
    saved_bytes,
)

_BATCH_NORM = nn.modules.batchnorm._BatchNorm
Builder = Callable[[nn.Module, Calls], list[Factor]]
_BUILDERS: tuple[tuple[tuple[type[nn.Module], ...], Callable[..., list[Factor]]], ...] = (
    ((nn.Linear, NTKLinear), layerwise.linear),
    ((nn.Conv1d, nn.Conv2d), layerwise.convolution),
    ((nn.ConvTranspose1d, nn.ConvTranspose2d), layerwise.transposed),
    ((nn.LayerNorm, nn.GroupNorm, _BATCH_NORM), layerwise.normalisation),
    ((nn.Embedding,), layerwise.embedding),
)


@dataclass(frozen=True)
class Rest:
    """Parameters that no tap covers: their per-sample gradients by `torch.func`, in groups."""

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
    """One initialisation of a network, with hooks (taps) on its layers that give their factors.

    The slow path, per-sample gradients, takes every parameter that reaches the outputs other than
    through the call of its layer, or that several layers share, and every layer whose kernel
    differs from that of plain gradients on a few samples.
    """

    module: nn.Module
    outputs: int = 0
    taps: dict[nn.Module, Builder] = field(default_factory=dict)
    rest: list[str] = field(default_factory=list)
    altered: set[nn.Module] = field(default_factory=set)  # whose outputs are changed in place
    kept: int = 0  # bytes per sample that the factors keep
    saved: int = 0  # bytes per sample that a forward pass keeps for the backward pass

    @classmethod
    def of(cls, module: nn.Module, x: Tensor) -> "Tapped":
        """Taps for a module, checked on a few samples."""
        check_has_kernel(module)
        tapped = cls(module)
        few = tapped.cast(different(x, 2))
        tapped.outputs = count_outputs(module, few)
        with torch.enable_grad():
            if not called(module, few).requires_grad:
                raise NetworkError(
                    "expected outputs that depend on the parameters, got outputs detached from "
                    "them; remove detach() and no_grad()"
                )
        tapped._tap(few)
        factors = tapped.factors(few, 0)
        tapped.kept = sum(map(_bytes, factors)) // len(few)
        tapped.saved = saved_bytes(lambda samples: called(module, samples), few)
        return tapped

    def cast(self, x: Tensor) -> Tensor:
        """Inputs in the type and on the device of the parameters; indices stay indices."""
        param = next(self.module.parameters())
        whole = not x.is_floating_point() and looks_up(self.module)
        inputs = x.to(param.device, torch.long if whole else param.dtype)
        return inputs.clone() if inputs.is_inference() else inputs  # autograd needs a normal tensor

    def zeros(self, *shape: int) -> Tensor:
        """Zeros in the type and on the device of the parameters."""
        param = next(self.module.parameters())
        return torch.zeros(*shape, dtype=param.dtype, device=param.device)

    def factors(self, x: Tensor, output: int) -> list[Factor]:
        """The factors of every layer for a block of samples, for one output."""
        x = self.cast(x)
        calls = self._calls(x, lambda out: out[:, output].sum())
        factors: list[Factor] = []
        for module, builder in self.taps.items():
            if calls[module]:
                factors += builder(module, calls[module])
        if self.rest:
            factors.append(Rest(self, x, output))
        return factors

    def slab(self, x: Tensor, output: int, names: list[str]) -> Float[Tensor, "b p"]:
        """Per-sample gradients of these parameters, as a b x p matrix."""
        every = {name: value.detach() for name, value in self.module.named_parameters()}
        buffers = dict(self.module.named_buffers())
        chosen = {name: every[name] for name in names}

        def output_of(params: dict[str, Tensor], sample: Tensor) -> Tensor:
            state = {**every, **buffers, **params}
            return torch.func.functional_call(self.module, state, (sample[None],))[0, output]

        try:
            with warnings.catch_warnings():
                warnings.filterwarnings("ignore", "There is a performance drop", UserWarning)
                grads = torch.func.vmap(torch.func.grad(output_of), (None, 0))(chosen, x)
        except RuntimeError:  # not every operation can be batched; one by one always works
            each = [torch.func.grad(output_of)(chosen, sample) for sample in x]
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
        """Bytes of the largest parameter on the slow path."""
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
        wrong = off_batch(self.module, x, owned)
        wrong |= used_elsewhere(self.module, x, owned)
        for layer in wrong:
            del self.taps[layer]
        self.altered = changed_in_place(self.module, x, self.taps)
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
            calls[layer].append((first_of(args, kwargs).detach(), out))
            # An output that is changed in place later is replaced by a copy.
            return out.clone() if layer in self.altered else out

        with hooked(self.taps, hear), torch.enable_grad():
            total = scalar(called(self.module, x))
            flat = [out for pairs in calls.values() for _, out in pairs]
            grads = iter(torch.autograd.grad(total, flat, allow_unused=True)) if flat else iter(())
        return {
            layer: [(a, _or_zeros(next(grads), out)) for a, out in pairs]
            for layer, pairs in calls.items()
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
                for factor in builder(module, calls[module]) if calls[module] else []:
                    factor.add_(kernel, factor, 1 << 28)
            except (RuntimeError, IndexError, ValueError, TypeError):
                del self.taps[module]
                continue
            near = 1e-3 if kernel.dtype == torch.float32 else 1e-8
            scale = near * float(expected.abs().max())
            # Weights so large that gradients overflow are reported where the kernel is used.
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
    """The parameters that a layer's tap covers, and the tap.

    Weight norm keeps its parameters under other names.
    """
    own = dict(module.named_parameters(recurse=False))
    builder = next((b for kinds, b in _BUILDERS if isinstance(module, kinds)), None)
    if isinstance(module, nn.Linear | nn.Conv1d | nn.Conv2d):
        norms: Any = getattr(module, "parametrizations", None)
        inner = norms["weight"] if norms is not None and set(norms) == {"weight"} else []
        if len(inner) == 1 and type(inner[0]).__name__ == "_WeightNorm" and inner[0].dim == 0:
            inside = norms.named_parameters(prefix="parametrizations")
            return {**own, **dict(inside)}, layerwise.weight_normed
        if {"weight_g", "weight_v"} <= set(own) and len(own["weight_g"]) == len(own["weight_v"]):
            return own, layerwise.weight_normed
    whole = "weight" in own and not hasattr(module, "parametrizations")
    return own, builder if whole else None


def _or_zeros(grad: Tensor | None, like: Tensor) -> Tensor:
    return torch.zeros_like(like) if grad is None else grad


Source = nn.Module | Buildable | Callable[[], nn.Module]


@dataclass(frozen=True)
class EmpiricalNTK:
    """The tangent kernel of a finite network, at initialisation or with its current weights.

    With p parameters the cost is O(n m p) for convolutions and O(n m (inputs + outputs of each
    layer)) for dense layers; memory for the result and about `memory` bytes.

    Parameters
    ----------
    network : torch.nn.Module, description or callable
        A module, a description such as `evgp.cnn()`, or a function without arguments that makes a
        module.
    output : "random", "trace" or int
        One output drawn at random (by the seed), the sum over all outputs, or the output with this
        number.
    draws : int
        Number of initialisations to average over.
    seed : int
        Seed of the initialisations, and of the random output.
    memory : int, optional
        Bytes of working space, by default a quarter of the free memory.
    storage : torch.dtype, optional
        Type of the result, by default that of the network.
    anew : bool
        Whether to initialise a module again, by the seed; by default a module keeps its weights.

    Examples
    --------
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
    _cache: dict[tuple[int, ...], list[Tapped]] = field(
        default_factory=dict, repr=False, compare=False
    )

    def __post_init__(self) -> None:
        if not isinstance(self.output, str) or self.output not in ("random", "trace"):
            why = "or random, or trace"
            keep(self, output=integer(self.output, "output", 0, why=why, error=NetworkError))
        keep(self, draws=integer(self.draws, "draws", 1, 100_000, error=NetworkError))
        keep(self, seed=seed_of(self.seed, error=NetworkError))
        flag(self.anew, "anew", error=NetworkError)
        check_storage(self.storage)
        if self.memory is not None:
            memory = integer(self.memory, "memory", 1, BYTES, why="in bytes", error=NetworkError)
            keep(self, memory=memory)
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
        """Each point with itself, from one backward pass and without the n x n matrix."""
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
        """Whether the network takes integers as indices, as networks for text do."""
        return looks_up(self._initialise(shape, 0))

    def cost(self, x: Shaped[Tensor, " b *d"], n: int) -> tuple[int, float]:
        """Bytes and seconds that the n x n matrix takes, estimated from a few samples.

        The bytes include the scratch space.
        """
        tapped = self._instances(x)[0]
        output = self._outputs(tapped, 0)[0]
        blocks = _Blocks(tapped, output, self._room())
        few = x[:8]
        factors = tapped.factors(few, output)
        step, keep = blocks.size(n)
        count = -(-n // step)
        passes = n if keep and not tapped.rest else step * count * (count + 1) / 2
        passes *= 2 if tapped.rest else 1  # the slow path stores nothing for either block
        sample = seconds(lambda: blocks.diag(few), times=1) / len(few)
        size = tapped.zeros(1).element_size()
        flops = speed()[0] * (2 if size == 4 else 1)
        product = n * n * sum(factor.work() for factor in factors) / flops
        repeats = self.draws * len(self._outputs(tapped, 0))
        scratch = n * blocks.sample() + sum(p.numel() for p in tapped.module.parameters()) * size
        matrix = n * n * (self.storage.itemsize if self.storage else size)
        return matrix + min(self._room(), scratch), repeats * (passes * sample + product)

    def passes(self, x: Shaped[Tensor, " n *d"]) -> Iterator[tuple[int, int, list[Factor]]]:
        """Factors of every block, with its first row, by number of initialisation and output."""
        number, room = 0, self._room()
        for draw, tapped in enumerate(self._instances(x)):
            for output in self._outputs(tapped, draw):
                step, _ = _Blocks(tapped, output, room).size(len(x))
                for start in range(0, len(x), step):
                    yield number, start, tapped.factors(x[start : start + step], output)
                number += 1

    def fresh(self, seed: int) -> "EmpiricalNTK":
        """The same kernel from another initialisation, for the next round."""
        return replace(self, seed=seed, anew=True, _cache={})

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
            raise BadArgument.of(NetworkError)("output", f"from 0 to {count - 1}", str(self.output))
        return [int(self.output)]

    def _instances(self, x: Tensor) -> list[Tapped]:
        """The initialisations, made once for inputs of this shape."""
        shape = tuple(x.shape[1:])
        if shape not in self._cache:
            modules = [self._initialise(shape, draw) for draw in range(self.draws)]
            self._cache[shape] = [Tapped.of(module, x) for module in modules]
        return self._cache[shape]

    def _initialise(self, shape: tuple[int, ...], draw: int) -> nn.Module:
        seed = self.seed + draw
        if is_description(self.network):
            return self.network.build(shape, generator=torch.Generator().manual_seed(seed))
        if isinstance(self.network, nn.Module) and draw == 0 and not self.anew:
            return self.network
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            if isinstance(self.network, nn.Module):
                return reinitialised(self.network)
            return module_from(self.network)


@dataclass(frozen=True)
class _Blocks:
    """One network and output; samples go through it in blocks that fit into memory."""

    tapped: Tapped
    output: int
    room: int

    def add_(self, out: Tensor, x1: Tensor, x2: Tensor | None) -> None:
        """Add the kernel to `out`; factors are kept if all of them fit."""
        other = x1 if x2 is None else x2
        step, keep = self.size(len(x1) + (0 if x2 is None else len(x2)))
        kept: dict[tuple[int, int], list[Factor]] = {}
        zeros = self.tapped.zeros(0)

        def factors(side: int, start: int) -> list[Factor]:
            key = (0 if x2 is None else side, start)
            if key in kept:
                return kept[key]
            block = self.tapped.factors((x1, other)[side][start : start + step], self.output)
            if keep:
                kept[key] = block
            return block

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
            factors = self.tapped.factors(x[i : i + step], self.output)
            diagonals = (factor.diag(self.room // 4) for factor in factors)
            parts.append(sum(diagonals, self.tapped.zeros(1)))
        return torch.cat(parts)

    def size(self, n: int) -> tuple[int, bool]:
        """Samples in a block, and whether all blocks may be kept."""
        step = max(1, self.room // 2 // max(1, self.sample()))
        return step, n * self.tapped.kept <= self.room // 4

    def sample(self) -> int:
        """Bytes that one sample takes at the peak of a backward pass, or on the slow path."""
        return 2 * self.tapped.kept + 2 * self.tapped.saved + 2 * self.tapped.widest()


def sampled(x: object) -> Shaped[Tensor, " n *d"]:
    """Samples for a network, one in each row."""
    samples = numbers(x, "the inputs", error=NetworkError)
    if samples.ndim < 2:
        raise NetworkError(f"expected samples of shape (rows, ...), got {tuple(samples.shape)}")
    return samples


_LOOKED_AT = 64
Hook = Callable[[nn.Module, tuple[Any, ...], dict[str, Any], Any], Any]


def check_has_kernel(module: nn.Module) -> None:
    """Check that a module can have a tangent kernel."""
    check_module(module)
    kinds = {param.dtype for param in module.parameters()}
    if not kinds <= {torch.float32, torch.float64}:
        raise NetworkError(
            f"expected parameters in float32 or float64, got {', '.join(sorted(map(str, kinds)))}; "
            "call module.float()"
        )


def different(x: Tensor, count: int) -> Tensor:
    """The first rows that differ from each other, filled up with others if there are too few."""
    rows = [0]
    for row in range(1, min(len(x), _LOOKED_AT)):
        if len(rows) < count and not any(torch.equal(x[row], x[known]) for known in rows):
            rows.append(row)
    rows += [row for row in range(len(x)) if row not in rows][: count - len(rows)]
    return x[rows[:count]]


def count_outputs(module: nn.Module, x: Tensor) -> int:
    """The number of outputs; checks that each output depends on a single sample."""
    with torch.no_grad():
        out, alone = deterministic_outputs(module, x), called(module, x[:1])
    if not bool(torch.isfinite(out).all()):
        raise NetworkError(
            "expected finite outputs, got NaN or infinite ones; check the weights and the scale of "
            "the inputs"
        )
    scale = 1e-4 * float(out.abs().max())
    if not torch.allclose(out[:1], alone, rtol=1e-3, atol=scale) or _mixes(module, x):
        raise NetworkError(
            "expected a network whose output depends on one sample alone; got one that mixes "
            "the samples of a batch (a batch norm in a function, perhaps), which has no tangent "
            "kernel"
        )
    return out.shape[1]


def _mixes(module: nn.Module, x: Tensor) -> bool:
    """Whether the first output depends on any other sample."""
    if len(x) < 2 or not x.is_floating_point():
        return False
    with torch.enable_grad():
        points = x.detach().clone().requires_grad_()
        first = called(module, points)[0].sum()
        if not first.requires_grad:
            return False
        (grad,) = torch.autograd.grad(first, points, allow_unused=True)
    return grad is not None and bool(grad[1:].any())


@contextmanager
def hooked(layers: Iterable[nn.Module], hook: Hook) -> Iterator[None]:
    """Put a hook on these layers, and remove it at the end."""
    handles = [layer.register_forward_hook(hook, with_kwargs=True) for layer in layers]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


def first_of(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The input of a layer, however it was called."""
    return args[0] if args else next(iter(kwargs.values()), None)


def used_elsewhere(
    module: nn.Module, x: Tensor, owned: dict[nn.Module, list[nn.Parameter]]
) -> set[nn.Module]:
    """The layers whose parameters reach the outputs other than through the layer's own call.

    Every layer's output is replaced by one that depends on its input but not on its parameters. A
    parameter that the outputs still depend on, for any values, is used elsewhere.
    """

    def hear(layer: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any], out: Any) -> Any:
        if not isinstance(out, Tensor):
            return None
        cut = out.detach().clone()
        for value in (*args, *kwargs.values()):
            if isinstance(value, Tensor) and value.requires_grad:
                cut = cut + 0 * value.sum()
        return cut

    params = [param for own in owned.values() for param in own]
    with hooked(owned, hear), torch.enable_grad():
        total = called(module, x).sum()
        if not params or not total.requires_grad:
            return set()
        grads = torch.autograd.grad(total, params, allow_unused=True)
    reached = {id(p) for p, grad in zip(params, grads, strict=True) if grad is not None}
    return {layer for layer, own in owned.items() if any(id(p) in reached for p in own)}


def off_batch(module: nn.Module, x: Tensor, layers: Iterable[nn.Module]) -> set[nn.Module]:
    """The layers not called with one row per sample, or called more often for more samples."""
    seen: dict[nn.Module, list[int]] = {layer: [0, 0, 0, 0] for layer in layers}
    wrong: set[nn.Module] = set()
    for count in (2, 3):
        samples = x[torch.arange(count) % len(x)]
        with hooked(seen, partial(_counts, seen, wrong, count)), torch.no_grad():
            called(module, samples)
    return wrong | {layer for layer, calls in seen.items() if calls[2] != calls[3]}


def _counts(  # noqa: PLR0917  a hook, with what it writes to in front
    seen: dict[nn.Module, list[int]],
    wrong: set[nn.Module],
    count: int,
    layer: nn.Module,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    out: Any,
) -> None:
    seen[layer][count] += 1
    parts = (first_of(args, kwargs), out)
    if not all(isinstance(p, Tensor) and p.ndim and len(p) == count for p in parts):
        wrong.add(layer)


def changed_in_place(module: nn.Module, x: Tensor, layers: Iterable[nn.Module]) -> set[nn.Module]:
    """The layers whose outputs are changed in place later."""
    seen: list[tuple[nn.Module, Tensor, int]] = []

    def hear(layer: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any], out: Any) -> None:
        if isinstance(out, Tensor):
            seen.append((layer, out, out._version))

    with hooked(layers, hear), torch.enable_grad():
        called(module, x)
    return {layer for layer, out, version in seen if out._version != version}
