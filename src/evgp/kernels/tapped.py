"""A module with an ear at every layer: factors of its tangent kernel, block by block."""

import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from math import isfinite
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from evgp._errors import NetworkError
from evgp.kernels import taps, trial
from evgp.kernels.factors import Factor
from evgp.kernels.projection import Projection
from evgp.kernels.taps import Calls
from evgp.nets import NTKLinear, called, looks_up, saved_bytes

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
