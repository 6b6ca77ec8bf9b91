"""Try a network on a few samples before its kernel is trusted."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from evgp.errors import NetworkError
from evgp.nets import called, check_module, deterministic_outputs

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
