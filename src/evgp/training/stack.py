"""The parameters of many members, one beside the other."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from math import prod

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from evgp._errors import NetworkError


@dataclass(frozen=True, eq=False)
class Stack:
    """Parameters of all members in one buffer; each name has a contiguous e x shape part of it.

    One buffer makes a step of any optimiser a few passes over memory. `fixed` holds what is not
    trained and differs between members.
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
        return Stack, (self.flat, self.shapes, self.members, self.fixed)  # views are made again

    @classmethod
    def empty(cls, module: nn.Module, members: int) -> "Stack":
        """Room for the trainable parameters of that many modules like this one."""
        own = {name: p for name, p in module.named_parameters() if p.requires_grad}
        shapes = {name: tuple(p.shape) for name, p in own.items()}
        dtype = next(iter(own.values())).dtype
        size = members * sum(map(prod, shapes.values()))
        return cls(torch.empty(size, dtype=dtype), shapes, members)

    @classmethod
    def gathered(
        cls, make: Callable[[int], nn.Module], members: int, template: nn.Module
    ) -> "Stack":
        """The modules 0, 1, ... that a function makes, one after another."""
        stack, odd = cls.empty(template, members), dict[str, dict[int, Tensor]]()
        usual = _untrained(template)
        for member in range(members):
            module = make(member)
            own = dict(module.named_parameters())
            for name, view in stack.views.items():
                if name not in own or own[name].shape != view.shape[1:]:
                    raise NetworkError(
                        "expected modules of one architecture, got others for other seeds; let the "
                        "function make the same layers each time"
                    )
                view[member] = own[name].detach()
            for name, value in _untrained(module).items():
                if not torch.equal(value, usual[name]):
                    odd.setdefault(name, {})[member] = value
        fixed = {
            name: torch.stack([some.get(member, usual[name]) for member in range(members)])
            for name, some in odd.items()
        }
        return cls(stack.flat, stack.shapes, members, fixed)

    def zeros(self) -> "Stack":
        """As many zeros, for gradients and what an optimiser remembers."""
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
        """What differs between members, by name."""
        return {**self.views, **self.fixed}


def _untrained(module: nn.Module) -> dict[str, Tensor]:
    frozen = {name: p.detach() for name, p in module.named_parameters() if not p.requires_grad}
    return frozen | dict(module.named_buffers())
