"""Embed images by a torch module with its weights, and anything by a user's function."""

import inspect
from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch
from jaxtyping import Bool, Float, UInt8
from torch import Tensor, nn

from evgp.embedders.embedder import Batch, Kind, hashed, steady_vectors
from evgp.embedders.sentences import hash_of_weights
from evgp.errors import EmbedderError

SIDE = 224
# Channel means and standard deviations of ImageNet, which pretrained networks expect.
_MEAN, _STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
_PROBES = (
    "The quick brown fox jumps over the lazy dog.",
    "Invoice 4711 is due on Monday, in euros.",
    "zwölf Boxkämpfer",
    "?",
)


@dataclass(frozen=True, eq=False)
class ModuleEmbedder:
    """The inputs of a network's last linear layer, if that gives its outputs; else its outputs.

    So a classifier gives the features that it has learnt, and a network without a classifier stays
    as it is. Images are divided by 255 and normalised with the mean and standard deviation in the
    module's `default_cfg`, as timm writes it, or else with those of ImageNet.

    >>> network = nn.Sequential(nn.Flatten(), nn.Linear(12, 3), nn.ReLU(), nn.Linear(3, 10))
    >>> ModuleEmbedder(network, "mine", side=2).embed(np.zeros((5, 3, 2, 2), np.uint8)).shape
    torch.Size([5, 3])
    """

    module: nn.Module = field(repr=False)
    name: str
    side: int = 0
    reads: ClassVar[Kind] = "images"
    batch: ClassVar[int] = 32

    def __post_init__(self) -> None:
        # A copy, as the caller's module may be trained further; without dropout.
        object.__setattr__(self, "module", deepcopy(self.module).eval())
        object.__setattr__(self, "side", self.side or _side_of(self.module))

    def fingerprint(self) -> str:
        """Return a hash of the weights, the layers, the code and how images are normalised."""
        code = _source_of(type(self.module))
        parts = hash_of_weights(self.module), str(self.module), code, self._normalisation, self.side
        return hashed("module", 1, *parts)

    @property
    def _normalisation(self) -> tuple[tuple[float, ...], tuple[float, ...]]:
        settings = _settings_of(self.module)
        mean, std = settings.get("mean", _MEAN), settings.get("std", _STD)
        return tuple(map(float, mean)), tuple(map(float, std))

    def embed(self, batch: UInt8[np.ndarray, "b c h w"]) -> Float[Tensor, "b d"]:
        """Return one vector for each image."""
        mean, std = (torch.tensor(values)[:, None, None] for values in self._normalisation)
        x = (torch.from_numpy(np.ascontiguousarray(batch)).float() / 255 - mean) / std
        seen: list[tuple[Tensor, Tensor]] = []

        def keep(layer: nn.Module, inputs: tuple[Tensor, ...], output: Tensor) -> None:
            seen[:] = [(inputs[0], output)]

        linear = [part for part in self.module.modules() if isinstance(part, nn.Linear)]
        hooks = [part.register_forward_hook(keep) for part in linear]
        try:
            with torch.inference_mode():
                out = self.module(x)
        finally:
            for hook in hooks:
                hook.remove()
        if not isinstance(out, Tensor):
            raise EmbedderError(
                f"expected a tensor from the network {self.name}, got {type(out).__name__}; use a "
                "function that returns the vectors (package.module:function)"
            )
        if seen and seen[0][1] is out and seen[0][0].ndim == 2:
            return seen[0][0]
        return out.mean((2, 3)) if out.ndim == 4 else out.flatten(1)

    def limit(self) -> str:
        """Return that nothing is cut."""
        return ""

    def cut(self, batch: Batch) -> Bool[np.ndarray, " b"]:
        """Return that no image is cut."""
        return np.zeros(len(batch), dtype=bool)


@dataclass(frozen=True, eq=False)
class FunctionEmbedder:
    """A function of a batch, such as one that calls your own model.

    What a function depends on cannot be inspected. So its fingerprint contains the vectors of a few
    fixed inputs, which change if its model is trained further.
    """

    function: Callable[[Any], Any]
    name: str
    reads: Kind = "text"
    side: int = 0
    batch: ClassVar[int] = 32

    def __post_init__(self) -> None:
        if self.reads == "images":
            object.__setattr__(self, "side", self.side or SIDE)

    def fingerprint(self) -> str:
        """Return a hash of the code, and of the vectors of a few fixed inputs."""
        vectors = steady_vectors(self, self._probes())
        probe = blake2b(vectors.tobytes(), digest_size=16).hexdigest()
        parts = self.name, self.reads, self.side, probe, _source_of(self.function)
        return hashed("function", 1, *parts)

    def _probes(self) -> Batch:
        if self.reads == "text":
            return _PROBES
        random = np.random.default_rng(0)
        return random.integers(0, 256, (3, 3, self.side, self.side), dtype=np.uint8)

    def embed(self, batch: Batch) -> Any:
        """Return what the function returns for a list of texts, or an array of images."""
        return self.function(list(batch) if self.reads == "text" else batch)

    def limit(self) -> str:
        """Return that nothing is cut."""
        return ""

    def cut(self, batch: Batch) -> Bool[np.ndarray, " b"]:
        """Return that nothing is known to be cut."""
        return np.zeros(len(batch), dtype=bool)


def needs_nothing(function: Callable[..., Any]) -> bool:
    """Whether a function can be called without arguments, as those that make a network are.

    >>> needs_nothing(lambda: 1), needs_nothing(lambda batch: batch)
    (True, False)
    """
    try:
        inspect.signature(function).bind()
    except TypeError:
        return False
    except ValueError:  # a function written in C
        return False
    return True


def _settings_of(module: nn.Module) -> Mapping[str, Any]:
    for name in ("pretrained_cfg", "default_cfg"):
        settings = getattr(module, name, None)
        if isinstance(settings, Mapping) and settings:
            return settings
    return {}


def _side_of(module: nn.Module) -> int:
    shape: Sequence[int] = _settings_of(module).get("input_size", (3, SIDE, SIDE))
    return int(shape[-1])


def _source_of(thing: Any) -> str:
    """Return a hash of the file that defines a class or function; empty without such a file."""
    try:
        path = inspect.getsourcefile(inspect.unwrap(thing))
        content = Path(path or "").read_bytes()
    except (OSError, TypeError, ValueError):
        return ""
    return blake2b(content, digest_size=16).hexdigest()
