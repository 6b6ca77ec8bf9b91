"""Modules that are made again: by a function, or as a copy whose layers are drawn anew."""

import copy
from collections.abc import Callable
from typing import TypeGuard

import torch
from torch import Tensor, nn

from evgp._checks import shown
from evgp._errors import NetworkError
from evgp.nets.zoo import Buildable


def check_source(network: object) -> None:
    """Refuse what no module can be made of; the class of a module is called as a function is.

    >>> check_source(nn.Identity)
    """
    kind = isinstance(network, type) and not issubclass(network, nn.Module)
    if kind or not (callable(network) or isinstance(network, Buildable)):
        raise NetworkError(
            "expected a torch module, a description such as evgp.mlp(), or a function that makes a "
            f"module; got {shown(network)}"
        )


def is_description(network: object) -> TypeGuard[Buildable]:
    """Whether it is built for a shape; a module, or its class, may have a method `build` too.

    >>> is_description(nn.Identity()), is_description(Buildable)
    (False, False)
    """
    return isinstance(network, Buildable) and not isinstance(network, nn.Module | type)


def made_by(make: Callable[[], nn.Module] | Buildable) -> nn.Module:
    """What a user's function makes, which may raise anything."""
    try:
        made = make()  # type: ignore[operator]  # not called for descriptions
    except (Exception, SystemExit) as error:
        raise NetworkError(
            "expected a function that makes a torch module, without arguments, it stopped: "
            f"{type(error).__name__}: {error}"
        ) from error
    if not isinstance(made, nn.Module):
        raise NetworkError(
            f"expected a function that makes a torch module, got {type(made).__name__} from it"
        )
    return made


def drawn_anew(module: nn.Module, *, keep_frozen: bool = False) -> nn.Module:
    """A copy with fresh parameters, from the global generator, as torch's layers draw them.

    With `keep_frozen` those without a gradient stay as they are.

    >>> drawn_anew(nn.Linear(3, 1))
    Linear(in_features=3, out_features=1, bias=True)
    """
    made = copy.deepcopy(module)
    for name, part in made.named_modules():
        own = dict(part.named_parameters(recurse=False))
        kept = {
            key: one.detach().clone()
            for key, one in own.items()
            if keep_frozen and not one.requires_grad
        }
        reset = getattr(part, "reset_parameters", None)
        if keep_frozen and len(kept) == len(own):
            continue
        if callable(reset):
            reset()
        elif own:
            raise NetworkError(
                f"expected a way to initialise {name or type(part).__name__} anew, got no "
                "reset_parameters(); give a function that makes the module"
            )
        for key, value in kept.items():
            own[key].data.copy_(value)
    return made


def saved_bytes(run: Callable[[Tensor], object], x: Tensor) -> int:
    """Bytes that a forward pass keeps for the backward one, for each further sample."""
    few, more = (_saved(run, x[torch.arange(count) % len(x)]) for count in (2, 4))
    return max(0, more - few) // 2


def _saved(run: Callable[[Tensor], object], x: Tensor) -> int:
    found: dict[int, int] = {}

    def pack(tensor: Tensor) -> Tensor:
        storage = tensor.untyped_storage()
        found[storage.data_ptr()] = storage.nbytes()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda one: one), torch.enable_grad():
        kept = run(x)
    del kept
    return sum(found.values())
