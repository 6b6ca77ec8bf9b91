"""Any torch module, tried before it is trusted: what cannot be used is refused with a remedy."""

import torch
from jaxtyping import Float, Shaped
from torch import Tensor, nn

from evgp._errors import NetworkError


def looks_up(module: nn.Module) -> bool:
    """Does a network look whole numbers up in a table, as those for text do?

    >>> looks_up(nn.Embedding(3, 2)), looks_up(nn.Linear(3, 2))
    (True, False)
    """
    return any(isinstance(part, nn.Embedding | nn.EmbeddingBag) for part in module.modules())


def sized(module: nn.Module) -> None:
    """Refuse layers that are sized by their first batch: no seed would decide their weights."""
    if any(isinstance(part, nn.modules.lazy.LazyModuleMixin) for part in module.modules()):
        raise NetworkError(
            "expected a module whose layers know their sizes, got lazy ones; run a batch through it"
        )


def plain(module: nn.Module) -> None:
    """Refuse what is no function of one sample and of parameters that can be trained."""
    sized(module)
    for name, part in module.named_modules():
        where = name or type(part).__name__
        if isinstance(part, torch.jit.ScriptModule):
            raise NetworkError(
                f"expected a plain torch module, got a scripted one ({where}); give the module as "
                "it was before torch.jit"
            )
        if isinstance(part, nn.modules.batchnorm._BatchNorm) and (
            part.training or part.running_mean is None
        ):
            raise NetworkError(
                f"expected no batch norm in training mode, got {where}, which mixes samples; call "
                "module.eval(), or replace it with evgp.without_batchnorm(module)"
            )
        if isinstance(part, nn.modules.dropout._DropoutNd) and part.training and part.p > 0:
            raise NetworkError(
                f"expected no active dropout, got {where} with p={part.p}: outputs would be "
                "random; call module.eval(), or remove it"
            )
    if not any(param.requires_grad for param in module.parameters()):
        raise NetworkError("expected a network with trainable parameters, got none")


def called(module: nn.Module, x: Shaped[Tensor, " n *d"]) -> Tensor:
    """The outputs of samples; whatever stops a network becomes a sentence."""
    try:
        out = module(x)
    except Exception as error:  # a user's network may raise anything
        said = str(error).strip().splitlines()
        raise NetworkError(
            f"expected a network that takes samples of shape {tuple(x.shape[1:])}, "
            f"{type(module).__name__} stopped at them: {type(error).__name__}"
            + (f": {said[0]}" if said else "")
        ) from error
    if not isinstance(out, Tensor):
        raise NetworkError(
            f"expected a network whose output is one tensor, got {type(out).__name__} from "
            f"{type(module).__name__}; wrap it in a module that returns the logits"
        )
    return out


def outputs_of(module: nn.Module, x: Shaped[Tensor, " n *d"]) -> Float[Tensor, "n o"]:
    """The same, one row of numbers a sample."""
    out = called(module, x)
    if out.ndim != 2 or len(out) != len(x):
        raise NetworkError(
            f"expected a network from (rows, ...) to (rows, outputs), got {tuple(out.shape)} "
            f"from {len(x)} rows; flatten its output"
        )
    return out


def steady_outputs(module: nn.Module, x: Shaped[Tensor, " n *d"]) -> Float[Tensor, "n o"]:
    """The same, of a network that gives them each time; a random one is refused.

    A few outputs of a random network may agree by chance (two masks of dropout are alike), so one
    that draws from torch's generator is called until it shows it, 32 times at most.
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
