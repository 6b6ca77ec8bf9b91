"""Networks: one description for finite modules and for infinite kernels."""

from dataclasses import dataclass
from math import prod

import torch
from jaxtyping import Float
from torch import Generator, Tensor, nn

from evgp._checks import instance, integer, number, one_of, shown
from evgp.errors import NetworkError
from evgp.nets.layers import (
    Activation,
    Dense,
    Erf,
    Gelu,
    Identity,
    Layer,
    LeakyRelu,
    Moments,
    Sin,
)
from evgp.nets.zoo import INITS, Bricks, Finite, shape_of

ACTIVATIONS: dict[str, Activation] = {
    "relu": LeakyRelu(0.0),
    "leaky_relu": LeakyRelu(0.1),
    "gelu": Gelu(),
    "erf": Erf(),
    "sin": Sin(),
    "identity": Identity(),
}

# Beyond this, kernels of deep networks leave what float64 can hold.
_LARGEST = 1e6
_DEEPEST, _WIDEST = 10_000, 10_000_000


@dataclass(frozen=True, repr=False)
class Network:
    """An architecture that can be built at finite width and analysed at infinite width.

    `evgp.mlp` makes the usual ones. A network is a description: it has no weights of its own.

    Parameters
    ----------
    layers : tuple of Layer
        Dense layers and activations, in order; at least one is dense.

    Examples
    --------
    >>> network = mlp(depth=1, activation="erf")
    >>> network
    Network(depth=1, width=512, activation=erf, w_std=1, b_std=0.1)
    >>> module = network.build((3,), generator=torch.Generator().manual_seed(0))
    >>> module(torch.zeros(5, 3)).shape
    torch.Size([5, 1])
    """

    layers: tuple[Layer, ...]

    def __post_init__(self) -> None:
        layers = self.layers
        if not isinstance(layers, tuple) or not all(isinstance(part, Layer) for part in layers):
            raise NetworkError(f"expected a tuple of layers, got {shown(layers)}")
        if not any(isinstance(layer, Dense) for layer in layers):
            raise NetworkError("expected at least one dense layer, got none")

    def build(self, shape: tuple[int, ...], *, generator: Generator) -> nn.Module:
        """A finite torch module for inputs of this shape, freshly initialised.

        >>> net = mlp(depth=1, width=8).build((3,), generator=torch.Generator().manual_seed(0))
        >>> net(torch.zeros(5, 3)).shape
        torch.Size([5, 1])
        """
        fan = prod(shape_of(shape))
        instance(generator, "generator", Generator, "torch.Generator()", error=NetworkError)
        modules: list[nn.Module] = [nn.Flatten()]
        for layer in self.layers:
            module, fan = layer.module(fan, generator=generator)
            modules.append(module)
        return nn.Sequential(*modules)

    def standard(self, init: str = "kaiming") -> Finite:
        """The same network in the standard parametrisation, made of torch's layers; finite only.

        Weights follow Kaiming's rule, Xavier's or "normal"; biases are zero.

        >>> mlp(depth=1, width=8).standard("xavier")
        mlp(outputs=1, init='xavier', parametrisation='standard')
        """

        def make(bricks: Bricks, shape: tuple[int, ...]) -> nn.Module:
            fan, modules = prod(shape), list[nn.Module]([nn.Flatten()])
            for layer in self.layers:
                if isinstance(layer, Dense):
                    modules.append(bricks.dense(fan, layer.width))
                    fan = layer.width
                else:
                    modules.append(layer.module(fan, generator=bricks.generator)[0])
            return nn.Sequential(*modules)

        one_of(init, "init", INITS, error=NetworkError)
        outputs = [layer.width for layer in self.layers if isinstance(layer, Dense)][-1]
        return Finite("mlp", make, outputs, init, images=False)

    def propagate(
        self,
        cov: Float[Tensor, "n m"],
        var1: Float[Tensor, " n"],
        var2: Float[Tensor, " m"],
        apart: Float[Tensor, "n m"] | None = None,
    ) -> Moments:
        """Covariances of the outputs from those of the inputs; overwrites `cov`.

        `apart` is one minus the correlation of the inputs; it keeps the digits of points that
        nearly coincide. O(n m depth) time, a few n x m buffers of memory.
        """
        moments = Moments(cov, torch.zeros_like(cov), var1, var2, apart)
        for layer in self.layers:
            layer.propagate_(moments)
        return moments

    def diagonal(self, var: Float[Tensor, " n"]) -> tuple[Float[Tensor, " n"], Float[Tensor, " n"]]:
        """NNGP and NTK of each point with itself, from the variances of the inputs."""
        ntk = torch.zeros_like(var)
        for layer in self.layers:
            var, ntk = layer.diagonal(var, ntk)
        return var, ntk

    def __repr__(self) -> str:
        dense = [layer for layer in self.layers if isinstance(layer, Dense)]
        activations = [str(layer) for layer in self.layers if isinstance(layer, Activation)]
        shown = "-".join(dict.fromkeys(activations)) or "none"
        width = dense[0].width if activations else "none"
        return (
            f"Network(depth={len(activations)}, width={width}, activation={shown}, "
            f"w_std={dense[0].w_std:g}, b_std={dense[0].b_std:g})"
        )


def mlp(
    depth: int = 2,
    width: int = 512,
    activation: str | Activation = "relu",
    w_std: float = 1.0,
    b_std: float = 0.1,
    *,
    outputs: int = 1,
) -> Network:
    """A fully connected network in the NTK parametrisation.

    Parameters
    ----------
    depth : int
        Number of hidden layers.
    width : int
        Units in each hidden layer of a finite network; the infinite kernels do not depend on it.
    activation : str or Activation
        "relu", "leaky_relu" (slope 0.1, or `evgp.nets.LeakyRelu(slope)`), "gelu", "erf", "sin" or
        "identity". Activations are not rescaled.
    w_std, b_std : float
        Standard deviations of weights (times the square root of the fan-in) and biases.
    outputs : int
        Number of outputs.

    Returns
    -------
    Network

    Raises
    ------
    EvgpError
        If a number is out of range or the activation is unknown.

    Examples
    --------
    >>> mlp(depth=3, activation="gelu")
    Network(depth=3, width=512, activation=gelu, w_std=1, b_std=0.1)
    """
    if not isinstance(activation, Activation):
        named = one_of(activation, "an activation", tuple(ACTIVATIONS), error=NetworkError)
        activation = ACTIVATIONS[named]
    depth = integer(depth, "depth", 0, _DEEPEST, error=NetworkError)
    width = integer(width, "width", 1, _WIDEST, error=NetworkError)
    outputs = integer(outputs, "outputs", 1, _WIDEST, error=NetworkError)
    w_std = number(w_std, "w_std", 1 / _LARGEST, _LARGEST, error=NetworkError)
    b_std = number(b_std, "b_std", 0, _LARGEST, error=NetworkError)
    hidden: list[Layer] = []
    for _ in range(depth):
        hidden += [Dense(width, w_std, b_std), activation]
    return Network((*hidden, Dense(outputs, w_std, b_std)))
