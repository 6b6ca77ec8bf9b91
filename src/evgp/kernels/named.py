"""Kernels by name, as they are asked for at the front doors."""

from collections.abc import Callable
from types import FunctionType

from evgp._errors import NetworkError, PluginError
from evgp._plugins import plugin, plugin_names
from evgp.kernels.analytic import NNGP, NTK
from evgp.kernels.kernel import Kernel
from evgp.nets import Network, found_at

_OF_NETWORKS: dict[str, Callable[[Network], Kernel]] = {"ntk": NTK, "nngp": NNGP}


def is_of_network(name: str) -> bool:
    """Is it the kernel of a network, rather than one in its place?

    >>> is_of_network("nngp"), is_of_network("package.module:name")
    (True, False)
    """
    return name in _OF_NETWORKS


def kernel_named(name: str, network: object) -> Kernel:
    """The kernel of this name: ntk and nngp of an `mlp`, a plugin's, or package.module:name.

    An installed package offers kernels in its entry points `evgp.kernels`. What stands there, or
    behind the colon, is a kernel, or a function (or class) that makes one without arguments.

    >>> from evgp.nets import mlp
    >>> kernel_named("nngp", mlp(1))
    NNGP(network=Network(depth=1, width=512, activation=relu, w_std=1, b_std=0.1), storage=None)
    """
    if is_of_network(name):
        if not isinstance(network, Network):
            raise NetworkError(
                f"expected an mlp for the kernel {name!r}, which is that of infinite width; got "
                f"{type(network).__name__}; leave the kernel out for its empirical NTK"
            )
        return _OF_NETWORKS[name](network)
    package, _, attribute = name.partition(":")
    if package and attribute:
        return _made(found_at(package, attribute, "a kernel"), name)
    offered = None if attribute or ":" in name else plugin("kernels", name)
    if offered is None:
        known = ", ".join((*_OF_NETWORKS, *plugin_names("kernels", _OF_NETWORKS)))
        raise PluginError(
            f"expected a kernel among {known}, or package.module:name of your own; got {name!r}"
        )
    return _made(offered, name)


def _made(found: object, name: str) -> Kernel:
    if isinstance(found, FunctionType | type):
        try:
            found = found()
        except (Exception, SystemExit) as error:  # a user's function may raise anything
            raise PluginError(
                f"{name} stopped: {type(error).__name__}: {error}; it is called without arguments"
            ) from error
    if isinstance(found, type) or not isinstance(found, Kernel):
        raise PluginError(
            f"expected a kernel at {name}, with __call__(x1, x2=None) and diag(x), or a function "
            f"that makes one; got {type(found).__name__}"
        )
    return found
