"""Plugins: what installed packages offer by name, through entry points.

Loading a plugin runs code that the user installed. Names come from a call or a command line,
never from a data file.
"""

from collections.abc import Collection
from importlib.metadata import entry_points
from typing import Any, Literal, TypeAlias

import torch

from evgp.errors import PluginError, Stopped

Kind: TypeAlias = Literal["strategies", "networks", "kernels"]


def plugin_names(kind: Kind, ours: Collection[str] = ()) -> list[str]:
    """The names of the plugins, sorted; nothing is loaded.

    Our own names (`ours`) take precedence, so they are left out, and so are names with a special
    meaning: those that begin with `evgp-` or contain a plus, a colon or a comma.

    >>> plugin_names("kernels")
    []
    """
    names = {point.name for point in entry_points(group=f"evgp.{kind}")}.difference(ours)
    return sorted(name for name in names if not name.startswith("evgp-") and not {*name} & {*"+:,"})


def plugin(kind: Kind, name: str) -> object | None:
    """The plugin of this name; None if there is none.

    >>> plugin("kernels", "nobody's") is None
    True
    """
    points = {point.value: point for point in entry_points(group=f"evgp.{kind}", name=name)}
    if not points:
        return None
    if len(points) > 1:
        owners = ", ".join(f"{point.value} of {_owner(point)}" for point in points.values())
        raise PluginError(
            f"expected one package to offer {name} in evgp.{kind}, got {owners}; choose one "
            "by package.module:name"
        )
    point = next(iter(points.values()))
    try:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)  # modules that are initialised on import are the same each time
            return point.load()
    except (Exception, SystemExit) as error:  # another's module may raise anything
        raise Stopped.of(PluginError)(
            f"expected evgp.{kind} {name} at {point.value}, as registered by {_owner(point)}; "
            "loading it",
            f"{type(error).__name__}: {error}",
            "reinstall that package, or remove it",
        ) from error


def _owner(point: Any) -> str:
    # Another class, if a package has imported importlib_metadata.
    return "an unknown package" if point.dist is None else f"{point.dist.name}"
