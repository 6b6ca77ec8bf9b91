"""What installed packages offer by name, through entry points.

To load a plugin is to run code that the user installed. Names come from a call or a command line,
never from a file of data.
"""

from collections.abc import Collection
from importlib.metadata import entry_points
from typing import Any, Literal, TypeAlias

import torch

from evgp._errors import PluginError

Kind: TypeAlias = Literal["strategies", "networks", "kernels"]


def plugin_names(kind: Kind, ours: Collection[str] = ()) -> list[str]:
    """What is offered and can be asked for, in order; nothing is loaded.

    Our own names win, so they are left out, and so are names that mean something else with us:
    those that begin with `evgp-`, or hold a plus, a colon or a comma.

    >>> plugin_names("kernels")
    []
    """
    names = {point.name for point in entry_points(group=f"evgp.{kind}")}.difference(ours)
    return sorted(name for name in names if not name.startswith("evgp-") and not {*name} & {*"+:,"})


def plugin(kind: Kind, name: str) -> object | None:
    """What a package offers under this name; None where none does.

    >>> plugin("kernels", "nobody's") is None
    True
    """
    found = {point.value: point for point in entry_points(group=f"evgp.{kind}", name=name)}
    if not found:
        return None
    if len(found) > 1:
        owners = ", ".join(f"{point.value} of {_owner(point)}" for point in found.values())
        raise PluginError(
            f"expected one package to offer {name} in evgp.{kind}, got {owners}; write the one "
            "you mean as package.module:name"
        )
    point = next(iter(found.values()))
    try:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)  # what is initialised on import is the same each time
            return point.load()
    except (Exception, SystemExit) as error:  # another's module may raise anything
        raise PluginError(
            f"expected {name} of evgp.{kind} at {point.value}, as {_owner(point)} says; loading "
            f"it stopped: {type(error).__name__}: {error}; install that package anew, or remove it"
        ) from error


def _owner(point: Any) -> str:
    # Of another class where a package has imported importlib_metadata.
    return "an unknown package" if point.dist is None else f"{point.dist.name}"
