"""Members before training: one network initialised many times, all parameters in one buffer."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from math import prod

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from evgp.errors import NetworkError
from evgp.nets import Buildable, check_module, is_description, module_from, reinitialised

Source = nn.Module | Buildable | Callable[[], nn.Module]


def seed_of(seed: int, member: int) -> int:
    """The seed of one member: ensembles of different seeds share no member.

    >>> seed_of(0, 1) == seed_of(1, 0)
    False
    """
    return int(np.random.SeedSequence([seed, member]).generate_state(1)[0])


def initialised(network: Source, shape: tuple[int, ...], seed: int, member: int) -> nn.Module:
    """The untrained module of one member, for inputs of this shape.

    A description is built, a function is called, and a module is copied with new weights; frozen
    parameters (`requires_grad=False`) stay as they are.

    >>> initialised(nn.Linear(3, 1), (3,), seed=0, member=4)
    Linear(in_features=3, out_features=1, bias=True)
    """
    own = seed_of(seed, member)
    if is_description(network):
        return network.build(shape, generator=torch.Generator().manual_seed(own))
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(own)
        if isinstance(network, nn.Module):
            return reinitialised(network, keep_frozen=True)
        return module_from(network)


def check_trainable(module: nn.Module) -> None:
    """Check that a module can be trained as one of many."""
    check_module(module)
    _once(module)


def _once(module: nn.Module) -> None:
    """Refuse a layer with two names, which `functional_call` does not restore."""
    names: dict[nn.Module, str] = {}
    for name, part in module.named_modules(remove_duplicate=False):
        if part in names and next(part.parameters(), None) is not None:
            raise NetworkError(
                f"expected one name for each layer, but {names[part]} is also {name}; register it "
                "once and call it twice in forward()"
            )
        names[part] = name


@dataclass(frozen=True, eq=False)
class Stack:
    """Parameters of all members in one buffer; each name is a contiguous part of shape e x shape.

    With one buffer a step of any optimiser is a few passes over memory. `fixed` has the values that
    are not trained but differ between members.
    """

    flat: Float[Tensor, " p"]
    shapes: Mapping[str, tuple[int, ...]]
    members: int
    fixed: Mapping[str, Tensor] = field(default_factory=dict)
    views: dict[str, Tensor] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        views, start = {}, 0
        for name, shape in self.shapes.items():
            stop = start + self.members * prod(shape)
            views[name] = self.flat[start:stop].view(self.members, *shape)
            start = stop
        object.__setattr__(self, "views", views)

    def __reduce__(self) -> tuple[object, ...]:
        return Stack, (self.flat, self.shapes, self.members, self.fixed)  # without the views

    @classmethod
    def empty(cls, module: nn.Module, members: int) -> "Stack":
        """Uninitialised space for the trainable parameters of so many modules like this one."""
        own = {name: p for name, p in module.named_parameters() if p.requires_grad}
        shapes = {name: tuple(p.shape) for name, p in own.items()}
        dtype = next(iter(own.values())).dtype
        size = members * sum(map(prod, shapes.values()))
        return cls(torch.empty(size, dtype=dtype), shapes, members)

    @classmethod
    def gathered(
        cls, make: Callable[[int], nn.Module], members: int, template: nn.Module
    ) -> "Stack":
        """The parameters of the modules that a function makes for 0, 1, ..."""
        stack, odd = cls.empty(template, members), dict[str, dict[int, Tensor]]()
        usual = _untrained(template)
        for member in range(members):
            module = make(member)
            own = dict(module.named_parameters())
            for name, view in stack.views.items():
                if name not in own or own[name].shape != view.shape[1:]:
                    raise NetworkError(
                        "expected one architecture for every seed, got different ones; let the "
                        "function make the same layers each time"
                    )
                view[member] = own[name].detach()
            for name, value in _untrained(module).items():
                if not torch.equal(value, usual[name]):
                    odd.setdefault(name, {})[member] = value
        fixed = {
            name: torch.stack([values.get(member, usual[name]) for member in range(members)])
            for name, values in odd.items()
        }
        return cls(stack.flat, stack.shapes, members, fixed)

    def zeros(self) -> "Stack":
        """Zeros of the same shape, for gradients and the state of an optimiser."""
        return Stack(torch.zeros_like(self.flat), self.shapes, self.members)

    def take(self, rows: Int[Tensor, " r"]) -> "Stack":
        """Some of the members."""
        flat = torch.cat([view[rows].flatten() for view in self.views.values()])
        fixed = {name: value[rows] for name, value in self.fixed.items()}
        return Stack(flat, self.shapes, len(rows), fixed)

    def put_(self, rows: Int[Tensor, " r"], other: "Stack", others: Int[Tensor, " r"]) -> None:
        """Copy members of another stack to these rows."""
        for name, view in self.views.items():
            view[rows] = other.views[name][others]

    def everything(self) -> dict[str, Tensor]:
        """All values that differ between members, by name."""
        return {**self.views, **self.fixed}


def _untrained(module: nn.Module) -> dict[str, Tensor]:
    frozen = {name: p.detach() for name, p in module.named_parameters() if not p.requires_grad}
    return frozen | dict(module.named_buffers())
