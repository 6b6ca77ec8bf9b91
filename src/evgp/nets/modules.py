"""Torch modules from elsewhere: copied with fresh weights, and checked for use here."""

import copy
from collections.abc import Callable
from typing import Protocol, TypeGuard, runtime_checkable

import torch
from jaxtyping import Float, Shaped
from torch import Generator, Tensor, nn

from evgp._checks import shown
from evgp.errors import NetworkError


@runtime_checkable
class Buildable(Protocol):
    """A description of a network: it builds modules for inputs of a given shape."""

    def build(self, shape: tuple[int, ...], *, generator: Generator) -> nn.Module:
        """A fresh torch module."""
        ...


def check_source(network: object) -> None:
    """Check that a module can be made from this; a module's class is called like a function.

    >>> check_source(nn.Identity)
    """
    kind = isinstance(network, type) and not issubclass(network, nn.Module)
    if kind or not (callable(network) or isinstance(network, Buildable)):
        raise NetworkError(
            "expected a torch module, a description such as evgp.mlp(), or a function that makes a "
            f"module; got {shown(network)}"
        )


def is_description(network: object) -> TypeGuard[Buildable]:
    """Whether this describes a network; modules and classes do not, even with a method `build`.

    >>> is_description(nn.Identity()), is_description(Buildable)
    (False, False)
    """
    return isinstance(network, Buildable) and not isinstance(network, nn.Module | type)


def module_from(make: Callable[[], nn.Module] | Buildable) -> nn.Module:
    """The module that a user's function makes; the function may raise anything."""
    try:
        module = make()  # type: ignore[operator]  # not called for descriptions
    except (Exception, SystemExit) as error:
        raise NetworkError(
            "expected a function without arguments that makes a torch module, but it raised "
            f"{type(error).__name__}: {error}"
        ) from error
    if not isinstance(module, nn.Module):
        raise NetworkError(
            f"expected a function that makes a torch module, got {type(module).__name__} from it"
        )
    return module


def reinitialised(module: nn.Module, *, keep_frozen: bool = False) -> nn.Module:
    """A copy with new parameters, drawn by torch's layers from the global generator.

    With `keep_frozen`, parameters with `requires_grad=False` stay as they are.

    >>> reinitialised(nn.Linear(3, 1))
    Linear(in_features=3, out_features=1, bias=True)
    """
    fresh = copy.deepcopy(module)
    for name, part in fresh.named_modules():
        own = dict(part.named_parameters(recurse=False))
        frozen = {
            key: param.detach().clone()
            for key, param in own.items()
            if keep_frozen and not param.requires_grad
        }
        reset = getattr(part, "reset_parameters", None)
        if keep_frozen and len(frozen) == len(own):
            continue
        if callable(reset):
            reset()
        elif own:
            raise NetworkError(
                f"expected {name or type(part).__name__} to have reset_parameters(), so that its "
                "weights can be drawn again; it has none: pass a function that makes the module"
            )
        for key, value in frozen.items():
            own[key].data.copy_(value)
    return fresh


def saved_bytes(run: Callable[[Tensor], object], x: Tensor) -> int:
    """Bytes that a forward pass keeps for the backward pass, per additional sample."""
    few, more = (_saved(run, x[torch.arange(count) % len(x)]) for count in (2, 4))
    return max(0, more - few) // 2


def _saved(run: Callable[[Tensor], object], x: Tensor) -> int:
    """Bytes of all tensors that one forward pass saves for the backward pass."""
    sizes: dict[int, int] = {}

    def pack(tensor: Tensor) -> Tensor:
        storage = tensor.untyped_storage()
        sizes[storage.data_ptr()] = storage.nbytes()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda saved: saved), torch.enable_grad():
        outputs = run(x)
    del outputs
    return sum(sizes.values())


def looks_up(module: nn.Module) -> bool:
    """Whether a network looks up integers in a table, as networks for text do.

    >>> looks_up(nn.Embedding(3, 2)), looks_up(nn.Linear(3, 2))
    (True, False)
    """
    return any(isinstance(part, nn.Embedding | nn.EmbeddingBag) for part in module.modules())


def check_not_lazy(module: nn.Module) -> None:
    """Refuse lazy layers: the first batch gives them their size, so no seed fixes their weights."""
    if any(isinstance(part, nn.modules.lazy.LazyModuleMixin) for part in module.modules()):
        raise NetworkError(
            "expected a module whose layers have their sizes, got lazy layers; run a batch through "
            "the module first"
        )


def check_module(module: nn.Module) -> None:
    """Check that outputs depend on one sample at a time, and on parameters that can be trained."""
    check_not_lazy(module)
    for name, part in module.named_modules():
        where = name or type(part).__name__
        if isinstance(part, torch.jit.ScriptModule):
            raise NetworkError(
                f"expected a plain torch module, got a scripted one ({where}); pass the module as "
                "it was before torch.jit"
            )
        if isinstance(part, nn.modules.batchnorm._BatchNorm) and (
            part.training or part.running_mean is None
        ):
            raise NetworkError(
                f"the network has batch norm in training mode ({where}), which mixes samples; "
                "switch it to evaluation mode (module.eval() in torch), or remove batch norm "
                "(evgp.nets.without_batchnorm)"
            )
        if isinstance(part, nn.modules.dropout._DropoutNd) and part.training and part.p > 0:
            raise NetworkError(
                f"the network has active dropout ({where}, p={part.p}), so its outputs are random; "
                "switch it to evaluation mode (module.eval() in torch), or remove dropout"
            )
    if not any(param.requires_grad for param in module.parameters()):
        raise NetworkError("expected a network with trainable parameters, got none")


def called(module: nn.Module, x: Shaped[Tensor, " n *d"]) -> Tensor:
    """The output of a module; any error that it raises becomes a `NetworkError`."""
    try:
        out = module(x)
    except Exception as error:  # a user's network may raise anything
        message = str(error).strip().splitlines()
        raise NetworkError(
            f"expected a network that takes samples of shape {tuple(x.shape[1:])}, but "
            f"{type(module).__name__} raised {type(error).__name__}"
            + (f": {message[0]}" if message else "")
        ) from error
    if not isinstance(out, Tensor):
        raise NetworkError(
            f"expected a network whose output is one tensor, got {type(out).__name__} from "
            f"{type(module).__name__}; wrap it in a module that returns the logits"
        )
    return out


def outputs_of(module: nn.Module, x: Shaped[Tensor, " n *d"]) -> Float[Tensor, "n o"]:
    """The outputs of a module, one row of numbers for each sample."""
    out = called(module, x)
    if out.ndim != 2 or len(out) != len(x):
        raise NetworkError(
            f"expected a network from (rows, ...) to (rows, outputs), got {tuple(out.shape)} "
            f"from {len(x)} rows; flatten its output"
        )
    return out


def deterministic_outputs(module: nn.Module, x: Shaped[Tensor, " n *d"]) -> Float[Tensor, "n o"]:
    """The outputs of a module that gives the same ones each time; a random one is refused.

    Outputs of a random network may agree by chance (two dropout masks may be equal), so a network
    that draws from torch's generator is called up to 32 times, until two outputs differ.
    """
    with torch.random.fork_rng(devices=[]), torch.no_grad():
        before = torch.get_rng_state()
        once = outputs_of(module, x)
        draws = not torch.equal(before, torch.get_rng_state())
        near = 1e-4 * float(once.abs().nan_to_num().max())
        for _ in range(32 if draws else 1):
            again = called(module, x)
            if not torch.allclose(once, again, rtol=1e-3, atol=near, equal_nan=True):
                raise NetworkError(
                    "expected a network that gives the same output each time, got one that is "
                    "random (dropout or noise, perhaps in a function); call module.eval(), or "
                    "remove it"
                )
    return once
