"""Kernels by name."""

from collections.abc import Callable
from types import FunctionType

from evgp._plugins import plugin, plugin_names
from evgp.errors import NetworkError, PluginError, Stopped, UnknownName
from evgp.kernels.analytic import NNGP, NTK
from evgp.kernels.kernel import Kernel
from evgp.nets import Network, imported_object

# Kernels that are made from a network.
OF_NETWORKS: dict[str, Callable[[Network], Kernel]] = {"ntk": NTK, "nngp": NNGP}


def kernel_named(name: str, network: object) -> Kernel:
    """The kernel of this name: ntk and nngp of an `mlp`, a plugin's, or package.module:name.

    An installed package offers kernels through the entry points `evgp.kernels`. An entry point, or
    the name after the colon, is a kernel, or a function or class that makes one without arguments.

    >>> from evgp.nets import mlp
    >>> kernel_named("nngp", mlp(1))
    NNGP(network=Network(depth=1, width=512, activation=relu, w_std=1, b_std=0.1), storage=None)
    """
    if name in OF_NETWORKS:
        if not isinstance(network, Network):
            raise NetworkError(
                f"expected an mlp for the kernel {name!r}, which is defined at infinite width; got "
                f"{type(network).__name__}; leave out the kernel to use its empirical NTK"
            )
        return OF_NETWORKS[name](network)
    package, _, attribute = name.partition(":")
    if package and attribute:
        return _kernel_from(imported_object(package, attribute, "a kernel"), name)
    offered = None if attribute or ":" in name else plugin("kernels", name)
    if offered is None:
        known = (*OF_NETWORKS, *plugin_names("kernels", OF_NETWORKS))
        others = "or package.module:name of your own"
        raise UnknownName.of(PluginError)("a kernel", name, known, others)
    return _kernel_from(offered, name)


def _kernel_from(source: object, name: str) -> Kernel:
    kernel = source
    if isinstance(source, FunctionType | type):
        try:
            kernel = source()
        except (Exception, SystemExit) as error:  # a user's function may raise anything
            raise Stopped.of(PluginError)(
                f"{name}()", f"{type(error).__name__}: {error}", "it is called without arguments"
            ) from error
    if isinstance(kernel, type) or not isinstance(kernel, Kernel):
        raise PluginError(
            f"expected a kernel at {name}, with __call__(x1, x2=None) and diag(x), or a function "
            f"that makes one; got {type(kernel).__name__}"
        )
    return kernel
