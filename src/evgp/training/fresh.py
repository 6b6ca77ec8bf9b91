"""Members before training: one network, initialised again and again."""

from collections.abc import Callable

import numpy as np
import torch
from torch import nn

from evgp._errors import NetworkError
from evgp.nets import Buildable, drawn_anew, is_description, made_by, plain

Source = nn.Module | Buildable | Callable[[], nn.Module]


def seed_of(seed: int, member: int) -> int:
    """The seed of one member: ensembles of different seeds share no member.

    >>> seed_of(0, 1) == seed_of(1, 0)
    False
    """
    return int(np.random.SeedSequence([seed, member]).generate_state(1)[0])


def fresh(network: Source, shape: tuple[int, ...], seed: int, member: int) -> nn.Module:
    """The untrained module of one member, for inputs of this shape.

    A description is built, a function called, and a module copied with its layers drawn anew; what
    is frozen in a module (`requires_grad=False`) stays as it is.

    >>> fresh(nn.Linear(3, 1), (3,), seed=0, member=4)
    Linear(in_features=3, out_features=1, bias=True)
    """
    own = seed_of(seed, member)
    if is_description(network):
        return network.build(shape, generator=torch.Generator().manual_seed(own))
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(own)
        if isinstance(network, nn.Module):
            return drawn_anew(network, keep_frozen=True)
        return made_by(network)


def fit_for_training(module: nn.Module) -> None:
    """Refuse what cannot be trained as one of many, with a remedy."""
    plain(module)
    _once(module)


def _once(module: nn.Module) -> None:
    """Refuse a layer under two names, which `functional_call` does not put back as it was."""
    found: dict[nn.Module, str] = {}
    for name, part in module.named_modules(remove_duplicate=False):
        if part in found and next(part.parameters(), None) is not None:
            raise NetworkError(
                f"expected every layer under one name, got {found[part]} as {name} too; keep it "
                "once and call it twice in forward()"
            )
        found[part] = name
