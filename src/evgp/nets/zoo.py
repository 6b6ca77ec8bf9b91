r"""Finite networks without batch norm, as descriptions that can be built any number of times.

Their kernel is the empirical one. Two parametrisations: "standard", where the standard deviation of
the weights follows Kaiming's rule ($\sqrt{2 / \mathrm{fan\ in}}$), Xavier's
($\sqrt{2 / (\mathrm{fan\ in} + \mathrm{fan\ out})}$) or "normal" (0.05), biases zero; and "ntk",
where all weights are standard normal and the layer multiplies by $\sqrt{2 / \mathrm{fan\ in}}$, so
that the tangent kernel keeps its scale as the width grows. Residual branches have no extra scaling.
"""

import copy
from collections.abc import Callable
from dataclasses import dataclass, field

import torch
from torch import Generator, Tensor, nn

from evgp._checks import instance, integer, keep, one_of, shown
from evgp.errors import NetworkError
from evgp.nets.layers import NTKLinear
from evgp.nets.modules import check_not_lazy

INITS = ("kaiming", "xavier", "normal")


class NTKConv2d(nn.Conv2d):
    r"""A convolution with standard normal weights, times $\sigma_w / \sqrt{\mathrm{fan\ in}}$."""

    w_std = 2**0.5
    b_std = 0.1

    def reset_parameters(self) -> None:
        """Draw new weights and biases."""
        nn.init.normal_(self.weight)
        if self.bias is not None:
            nn.init.normal_(self.bias)

    def forward(self, x: Tensor) -> Tensor:
        """The scaled convolution."""
        scale = self.w_std / self.weight[0].numel() ** 0.5
        bias = None if self.bias is None else self.bias * self.b_std
        return self._conv_forward(x, self.weight * scale, bias)


@dataclass(frozen=True)
class Finite:
    """An architecture that can only be built finite: its infinite kernel is not known.

    Parameters
    ----------
    name : str
    make : callable
        Makes a module from `Bricks` and the shape of a sample.
    outputs : int
    init : str
        "kaiming", "xavier" or "normal".
    parametrisation : str
        "standard" or "ntk".
    images : bool
        Whether samples are images.

    Examples
    --------
    >>> cnn(outputs=10)
    cnn(outputs=10, init='kaiming', parametrisation='standard')
    """

    name: str
    make: Callable[["Bricks", tuple[int, ...]], nn.Module] = field(repr=False)
    outputs: int = 10
    init: str = "kaiming"
    parametrisation: str = "standard"
    images: bool = True

    def __post_init__(self) -> None:
        one_of(self.init, "init", INITS, error=NetworkError)
        both = ("standard", "ntk")
        one_of(self.parametrisation, "parametrisation", both, error=NetworkError)
        if self.parametrisation == "ntk" and self.init != "kaiming":
            raise NetworkError(
                f"expected no init with parametrisation='ntk', where weights are standard normal; "
                f"got {self.init!r}"
            )
        outputs = integer(self.outputs, "outputs", 1, 10_000_000, error=NetworkError)
        keep(self, outputs=outputs)

    def build(self, shape: tuple[int, ...], *, generator: Generator) -> nn.Module:
        """A freshly initialised module; the shape of images is (channels, height, width)."""
        shape = shape_of(shape)
        instance(generator, "generator", Generator, "torch.Generator()", error=NetworkError)
        if self.images and len(shape) != 3:
            raise NetworkError(
                f"expected images of shape (channels, height, width) for {self.name}, got {shape}"
            )
        bricks = Bricks(self.parametrisation, generator)
        module = self.make(bricks, shape)
        if self.parametrisation == "standard":
            initialise_(module, self.init, generator=generator)
        return module

    def __repr__(self) -> str:
        return (
            f"{self.name}(outputs={self.outputs}, init={self.init!r}, "
            f"parametrisation={self.parametrisation!r})"
        )


def shape_of(shape: object) -> tuple[int, ...]:
    """The shape of a sample: a tuple of integers."""
    if not isinstance(shape, tuple):
        raise NetworkError(f"expected a shape as a tuple of integers, got {shown(shape)}")
    return tuple(integer(axis, "each axis of a shape", 1, error=NetworkError) for axis in shape)


@dataclass(frozen=True)
class Bricks:
    """Makes layers in the requested parametrisation."""

    parametrisation: str
    generator: Generator

    def conv(self, fan_in: int, fan_out: int, size: int, stride: int = 1) -> nn.Module:
        """A convolution that keeps height and width at stride 1."""
        kind = NTKConv2d if self.parametrisation == "ntk" else nn.Conv2d
        with torch.random.fork_rng(devices=[]):  # drawn again below, by the generator
            layer = kind(fan_in, fan_out, size, stride=stride, padding=size // 2)
        if self.parametrisation == "ntk":
            for param in layer.parameters():
                nn.init.normal_(param, generator=self.generator)
        return layer

    def dense(self, fan_in: int, fan_out: int) -> nn.Module:
        """A dense layer."""
        if self.parametrisation == "ntk":
            return NTKLinear(fan_in, fan_out, 2**0.5, 0.1, generator=self.generator)
        with torch.random.fork_rng(devices=[]):
            return nn.Linear(fan_in, fan_out)


class Block(nn.Module):
    """Two 3 x 3 convolutions and a shortcut, activations before weights (He et al. 2016)."""

    def __init__(self, bricks: Bricks, fan_in: int, fan_out: int, stride: int) -> None:
        super().__init__()
        self.first = bricks.conv(fan_in, fan_out, 3, stride)
        self.second = bricks.conv(fan_out, fan_out, 3)
        same = fan_in == fan_out and stride == 1
        self.short = nn.Identity() if same else bricks.conv(fan_in, fan_out, 1, stride)

    def forward(self, x: Tensor) -> Tensor:
        """The branch plus the shortcut."""
        h = torch.relu(x)
        branch = self.second(torch.relu(self.first(h)))
        return branch + (x if isinstance(self.short, nn.Identity) else self.short(h))


def cnn(outputs: int = 10, *, init: str = "kaiming", parametrisation: str = "standard") -> Finite:
    """A small convolutional network for images.

    Two blocks of 5 x 5 convolution (32, then 64 channels), max-pooling and ReLU, then a dense layer
    of 512 units.

    Parameters
    ----------
    outputs : int
        Number of outputs.
    init : {"kaiming", "xavier", "normal"}
        How weights are drawn in the standard parametrisation.
    parametrisation : {"standard", "ntk"}
        "ntk" keeps the scale of the tangent kernel as the width grows.

    Returns
    -------
    Finite
        A description, for `evgp.pick(network=...)`, `evgp.EmpiricalNTK` and `evgp.train`.

    Examples
    --------
    >>> module = cnn(outputs=10).build((1, 28, 28), generator=torch.Generator().manual_seed(0))
    >>> module(torch.zeros(2, 1, 28, 28)).shape
    torch.Size([2, 10])
    """

    def make(bricks: Bricks, shape: tuple[int, ...]) -> nn.Module:
        channels, height, width = shape
        return nn.Sequential(
            bricks.conv(channels, 32, 5),
            nn.MaxPool2d(2, ceil_mode=True),
            nn.ReLU(),
            bricks.conv(32, 64, 5),
            nn.MaxPool2d(2, ceil_mode=True),
            nn.ReLU(),
            nn.Flatten(),
            bricks.dense(64 * -(-height // 4) * -(-width // 4), 512),
            nn.ReLU(),
            bricks.dense(512, outputs),
        )

    return Finite("cnn", make, outputs, init, parametrisation)


def wide_resnet(
    depth: int = 10,
    width: int = 1,
    outputs: int = 10,
    *,
    init: str = "kaiming",
    parametrisation: str = "standard",
) -> Finite:
    """WRN-depth-width (Zagoruyko & Komodakis 2016) without batch norm; depth is 6 i + 4.

    Parameters
    ----------
    depth, width, outputs : int
    init, parametrisation : str
        As for `Finite`.

    Returns
    -------
    Finite

    Examples
    --------
    >>> wide_resnet(16, 1).name
    'wide_resnet(16, 1)'
    """
    depth = integer(depth, "depth", 10, 10_000, error=NetworkError)
    if (depth - 4) % 6:
        raise NetworkError(f"expected a depth of 10, 16, 22, ... (6 i + 4), got {depth}")
    width = integer(width, "width", 1, 10_000, error=NetworkError)
    groups = [(16 * width, 1), (32 * width, 2), (64 * width, 2)]
    name = f"wide_resnet({depth}, {width})"
    make = _residual(16, groups, (depth - 4) // 6, outputs)
    return Finite(name, make, outputs, init, parametrisation)


def resnet18(
    outputs: int = 10, *, init: str = "kaiming", parametrisation: str = "standard"
) -> Finite:
    """ResNet18 for small images: a 3 x 3 stem, no pooling after it, no batch norm.

    Parameters
    ----------
    outputs : int
        Number of outputs.
    init : {"kaiming", "xavier", "normal"}
        How weights are drawn in the standard parametrisation.
    parametrisation : {"standard", "ntk"}
        "ntk" keeps the scale of the tangent kernel as the width grows.

    Returns
    -------
    Finite
        A description, for `evgp.pick(network=...)`, `evgp.EmpiricalNTK` and `evgp.train`.

    Examples
    --------
    >>> module = resnet18(outputs=10).build((3, 8, 8), generator=torch.Generator().manual_seed(0))
    >>> module(torch.zeros(2, 3, 8, 8)).shape
    torch.Size([2, 10])
    """
    make = _residual(64, [(64, 1), (128, 2), (256, 2), (512, 2)], 2, outputs)
    return Finite("resnet18", make, outputs, init, parametrisation)


def _residual(
    stem: int, groups: list[tuple[int, int]], blocks: int, outputs: int
) -> Callable[[Bricks, tuple[int, ...]], nn.Module]:
    def make(bricks: Bricks, shape: tuple[int, ...]) -> nn.Module:
        layers: list[nn.Module] = [bricks.conv(shape[0], stem, 3)]
        channels = stem
        for wide, stride in groups:
            for place in range(blocks):
                layers.append(Block(bricks, channels, wide, stride if place == 0 else 1))
                channels = wide
        head = [nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), bricks.dense(channels, outputs)]
        return nn.Sequential(*layers, *head)

    return make


def initialise_(module: nn.Module, init: str, *, generator: Generator) -> None:
    """Draw new weights for all dense and convolutional layers by a rule; biases become zero."""
    for part in module.modules():
        if not isinstance(part, nn.Linear | nn.Conv1d | nn.Conv2d):
            continue
        if init == "kaiming":
            nn.init.kaiming_normal_(part.weight, nonlinearity="relu", generator=generator)
        elif init == "xavier":
            nn.init.xavier_normal_(part.weight, generator=generator)
        else:
            nn.init.normal_(part.weight, std=0.05, generator=generator)
        if part.bias is not None:
            nn.init.zeros_(part.bias)


def without_batchnorm(module: nn.Module) -> nn.Module:
    """A copy of a module without its batch norms.

    Parameters
    ----------
    module : torch.nn.Module

    Returns
    -------
    torch.nn.Module

    Examples
    --------
    >>> without_batchnorm(nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3)))[1]
    Identity()
    """
    instance(module, "a module", nn.Module, "nn.Linear(2, 1)", error=NetworkError)
    if isinstance(module, nn.modules.batchnorm._BatchNorm):
        return nn.Identity()
    check_not_lazy(module)
    result = copy.deepcopy(module)
    for parent in list(result.modules()):
        for name, child in list(parent._modules.items()):  # also where two names share one
            if isinstance(child, nn.modules.batchnorm._BatchNorm):
                setattr(parent, name, nn.Identity())
    return result
