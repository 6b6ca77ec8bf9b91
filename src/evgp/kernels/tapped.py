"""A module with an ear at every layer: factors of its tangent kernel, block by block."""

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from evgp._errors import NetworkError
from evgp.kernels import taps
from evgp.kernels.factors import Factor
from evgp.kernels.projection import Projection
from evgp.kernels.taps import Calls
from evgp.nets import NTKLinear

_BATCH_NORM = nn.modules.batchnorm._BatchNorm
_DROPOUT = nn.modules.dropout._DropoutNd
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

    Every tapped layer is checked once against plain gradients of two samples; what disagrees (a
    weight used outside its layer, an in-place change, a shared parameter) goes to the slow road.
    """

    module: nn.Module
    outputs: int = 0
    taps: dict[nn.Module, Builder] = field(default_factory=dict)
    rest: list[str] = field(default_factory=list)
    altered: set[nn.Module] = field(default_factory=set)  # whose outputs are changed in place
    kept: int = 0  # bytes a sample that the factors keep

    @classmethod
    def of(cls, module: nn.Module, x: Tensor) -> "Tapped":
        """Taps for a module, checked on a few samples."""
        _refuse_noise(module)
        if not any(param.requires_grad for param in module.parameters()):
            raise NetworkError("expected a network with trainable parameters, got none")
        tapped = cls(module)
        two = tapped.cast(x[:2])
        out, alone = _tried(module, two)
        if out.ndim != 2 or len(out) != len(two):
            raise NetworkError(
                f"expected a network from (rows, ...) to (rows, outputs), got {tuple(out.shape)} "
                f"from {len(two)} rows; flatten its output"
            )
        if not torch.allclose(out[:1], alone, rtol=1e-3, atol=1e-5):
            raise NetworkError(
                "expected a network whose output depends on one sample alone; got one that mixes "
                "the samples of a batch, which has no tangent kernel"
            )
        tapped.outputs = out.shape[1]
        tapped._tap(two)
        made = tapped.factors(two, 0)
        tapped.kept = sum(map(_bytes, made)) // len(two)
        return tapped

    def cast(self, x: Tensor) -> Tensor:
        """Inputs in the type and on the device of the parameters; indices stay indices."""
        one = next(self.module.parameters())
        whole = not x.is_floating_point() and looks_up(self.module)
        return x.to(one.device) if whole else x.to(one.device, one.dtype)

    def zeros(self, *shape: int) -> Tensor:
        """In the type of the parameters."""
        one = next(self.module.parameters())
        return torch.zeros(*shape, dtype=one.dtype, device=one.device)

    def factors(self, x: Tensor, output: int) -> list[Factor]:
        """What every layer keeps of a block of samples, for one output."""
        x = self.cast(x)
        calls: dict[nn.Module, list[tuple[Tensor, Tensor]]] = {module: [] for module in self.taps}
        with _listening(calls, self.altered), torch.enable_grad():
            total = self.module(x)[:, output].sum()
            flat = [out for made in calls.values() for _, out in made]
            grads = iter(torch.autograd.grad(total, flat, allow_unused=True)) if flat else iter(())
        made: list[Factor] = []
        for module, builder in self.taps.items():
            pairs = [(a, _or_zeros(next(grads), out)) for a, out in calls[module]]
            if pairs:
                made += builder(module, pairs)
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
        return torch.cat([grads[name].flatten(1) for name in names], dim=1)

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
        self.altered = _changed_in_place(self.module, x, self.taps)
        self._check(x, covered)
        known = {name for module in self.taps for name in covered[module]}
        self.rest = [
            name
            for name, param in self.module.named_parameters()
            if param.requires_grad and name not in known
        ]

    def _check(self, x: Tensor, covered: dict[nn.Module, list[str]]) -> None:
        """Drop taps whose kernel differs from that of plain gradients."""
        params = {n: p for n, p in self.module.named_parameters() if p.requires_grad}
        out = self.module(x)[:, 0]
        rows = [
            torch.autograd.grad(value, list(params.values()), retain_graph=True, allow_unused=True)
            for value in out
        ]
        grads = [dict(zip(params, row, strict=True)) for row in rows]
        for module, builder in list(self.taps.items()):
            calls: dict[nn.Module, list[tuple[Tensor, Tensor]]] = {module: []}
            with _listening(calls, self.altered):
                total = self.module(x)[:, 0].sum()
                flat = [out for _, out in calls[module]]
                found = torch.autograd.grad(total, flat, allow_unused=True) if flat else ()
            pairs = [
                (a, _or_zeros(g, out)) for (a, out), g in zip(calls[module], found, strict=True)
            ]
            expected = self.zeros(len(x), len(x))
            for name in covered[module]:
                parts = [_or_zeros(row[name], params[name]).flatten() for row in grads]
                stacked = torch.stack(parts)
                expected += stacked @ stacked.T
            kernel = self.zeros(len(x), len(x))
            try:
                for one in builder(module, pairs) if pairs else []:
                    one.add_(kernel, one, 1 << 28)
            except RuntimeError:
                del self.taps[module]
                continue
            near = 1e-3 if kernel.dtype == torch.float32 else 1e-8
            if not torch.allclose(kernel, expected, rtol=near, atol=near * float(expected.max())):
                del self.taps[module]


@contextmanager
def _listening(
    calls: dict[nn.Module, list[tuple[Tensor, Tensor]]], altered: set[nn.Module]
) -> Iterator[None]:
    """Record input and output of each call; whoever changes an output in place gets a copy."""

    def hear(module: nn.Module, args: tuple[Tensor, ...], out: Tensor) -> Tensor:
        calls[module].append((args[0].detach(), out))
        return out.clone() if module in altered else out

    handles = [module.register_forward_hook(hear) for module in calls]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


def _changed_in_place(
    module: nn.Module, x: Tensor, taps: dict[nn.Module, Builder]
) -> set[nn.Module]:
    """The layers whose outputs somebody changes after they were recorded."""
    seen: list[tuple[nn.Module, Tensor, int]] = []

    def hear(layer: nn.Module, args: tuple[Tensor, ...], out: Tensor) -> None:
        seen.append((layer, out, out._version))

    handles = [layer.register_forward_hook(hear) for layer in taps]
    try:
        with torch.enable_grad():
            module(x)
    finally:
        for handle in handles:
            handle.remove()
    return {layer for layer, one, version in seen if one._version != version}


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


def looks_up(module: nn.Module) -> bool:
    """Does a network look whole numbers up in a table, as those for text do?

    >>> looks_up(nn.Embedding(3, 2)), looks_up(nn.Linear(3, 2))
    (True, False)
    """
    return any(isinstance(part, nn.Embedding | nn.EmbeddingBag) for part in module.modules())


def _tried(module: nn.Module, two: Tensor) -> tuple[Tensor, Tensor]:
    """The outputs of two samples together, and of the first alone."""
    try:
        with torch.no_grad():
            out, alone = module(two), module(two[:1])
    except (RuntimeError, ValueError, IndexError, TypeError) as error:
        said = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise NetworkError(
            f"expected a network that takes samples of shape {tuple(two.shape[1:])}, "
            f"{type(module).__name__} stopped at them: {said}"
        ) from error
    if not isinstance(out, Tensor):
        raise NetworkError(
            f"expected a network whose output is one tensor, got {type(out).__name__} from "
            f"{type(module).__name__}; wrap it in a module that returns the logits"
        )
    return out, alone


def _refuse_noise(module: nn.Module) -> None:
    for name, part in module.named_modules():
        if isinstance(part, _BATCH_NORM) and (part.training or part.running_mean is None):
            raise NetworkError(
                f"expected no batch norm in training mode, got {name or 'the module'}: it mixes "
                "samples, so there is no tangent kernel; call module.eval(), or replace it with "
                "evgp.without_batchnorm(module)"
            )
        if isinstance(part, _DROPOUT) and part.training and part.p > 0:
            raise NetworkError(
                f"expected no active dropout, got {name or 'the module'} with p={part.p}: outputs "
                "would be random; call module.eval(), or remove it"
            )
