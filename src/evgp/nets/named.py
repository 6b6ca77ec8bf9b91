"""Networks by name, and their weights from files, of which only tensors are read."""

import pickle
import re
import sys
import warnings
import zipfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any

import torch
from torch import Generator, Tensor, nn

from evgp._extras import lacking
from evgp._plugins import plugin, plugin_names
from evgp._reading import check_memory, check_plain, is_utf8, opened, read_bytes
from evgp.errors import BadArgument, EvgpError, NetworkError, Stopped, UnknownName, WrongFormat
from evgp.nets.modules import Buildable, is_description, module_from
from evgp.nets.network import Network, mlp
from evgp.nets.zoo import cnn, resnet18, wide_resnet

Named = Network | Buildable | nn.Module | Callable[[], nn.Module]
_ZOO: dict[str, Callable[..., Network | Buildable]] = {
    "mlp": mlp,
    "cnn": cnn,
    "resnet18": resnet18,
    "wide_resnet": wide_resnet,
}
_SMALL = 1_000_000
_WIDE = re.compile(r"(?:wide_resnet|wrn)-(\d+)-(\d+)")


def network_named(name: str, outputs: int | None = None) -> Named:
    """The network of this name: mlp, cnn, resnet18, wide_resnet, wrn-16-1, or package.module:name.

    An installed package can offer more through the entry points `evgp.networks`. An entry point, or
    the name after the colon, is a function that makes a torch module, a module, or a description
    such as `evgp.cnn()`. The package is imported, from the working directory too. `outputs` is
    the number of outputs of the built-in networks; your own keep theirs.

    >>> network_named("wrn-16-2")
    wide_resnet(16, 2)(outputs=10, init='kaiming', parametrisation='standard')
    """
    options: dict[str, Any] = {} if outputs is None else {"outputs": outputs}
    if name in _ZOO:
        return _ZOO[name](**options)
    if wide := _WIDE.fullmatch(name):
        return wide_resnet(int(wide[1]), int(wide[2]), **options)
    package, colon, attribute = name.partition(":")
    if not colon and (offered := plugin("networks", name)) is not None:
        return _checked(offered, name)
    if not colon or not package or not attribute:
        known = (*_ZOO, *plugin_names("networks", _ZOO))
        others = "wrn-DEPTH-WIDTH, or package.module:name of your own"
        raise UnknownName.of(NetworkError)("a network", name, known, others)
    return _checked(imported_object(package, attribute, "a network"), name)


@dataclass(frozen=True)
class WithWeights:
    """A network with the weights of a file, which are read once the shape of a sample is known."""

    network: Named
    path: Path
    _module: list[nn.Module] = field(default_factory=list, repr=False, compare=False)

    def build(self, shape: tuple[int, ...], *, generator: Generator) -> nn.Module:
        """The module, read once: nothing is drawn."""
        if not self._module:
            self._module.append(load_weights(self.network, self.path, shape))
        return self._module[0]


def load_weights(network: Named, path: str | Path, shape: tuple[int, ...]) -> nn.Module:
    """A module with weights from a `.safetensors` file, or from a file written by `torch.save`.

    Only tensors are read (`weights_only=True`), so that a file cannot run code. `shape` is the
    shape of one sample; descriptions are built for it.
    """
    path = Path(path)
    if isinstance(network, nn.Module):
        module = network
    elif is_description(network):
        module = network.build(shape, generator=torch.Generator().manual_seed(0))
    else:
        module = module_from(network)
    state = _read(path)
    own = module.state_dict()
    problems = [
        *_listed("no", [name for name in own if name not in state]),
        *_listed("an unknown", [name for name in state if name not in own]),
        *[
            f"{name} of shape {tuple(state[name].shape)} instead of {tuple(value.shape)}"
            for name, value in own.items()
            if name in state and state[name].shape != value.shape
        ][:3],
    ]
    if problems:
        raise WrongFormat.of(NetworkError)(
            str(path), f"the weights of {type(module).__name__}", str("; ".join(problems))
        )
    module.load_state_dict(state)
    return module


def imported_object(package: str, attribute: str, what: str) -> object:
    """An object of a user's package, which is imported, from the working directory too."""
    here = str(Path.cwd())
    sys.path.insert(0, here)
    try:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)  # modules that are initialised on import are the same each time
            thing: object = import_module(package)
        for part in attribute.split("."):
            thing = getattr(thing, part)
    except (ImportError, AttributeError) as error:
        raise NetworkError(
            f"expected {what} at {package}:{attribute}, found none: {error}; the working directory "
            "and the installed packages were searched"
        ) from error
    except (Exception, SystemExit) as error:  # a user's module may raise anything
        raise Stopped.of(NetworkError)(
            f"importing {package}", f"{type(error).__name__}: {error}"
        ) from error
    finally:
        sys.path.remove(here)
    return thing


def _checked(source: object, name: str) -> Named:
    if isinstance(source, Network | nn.Module) or is_description(source):
        return source
    if not callable(source):
        raise BadArgument.of(NetworkError)(
            name, "as a function that makes a torch module", str(type(source).__name__)
        )
    try:
        with torch.random.fork_rng(devices=[]):
            result = source()
    except (Exception, SystemExit) as error:  # a user's function may raise anything
        raise Stopped.of(NetworkError)(
            f"{name}()", f"{type(error).__name__}: {error}", "it is called without arguments"
        ) from error
    if isinstance(result, Network) or is_description(result):
        return result
    if not isinstance(result, nn.Module):
        raise NetworkError(f"expected a torch module from {name}(), got {type(result).__name__}")
    return source


def _read(path: Path) -> Mapping[str, Tensor]:
    if not path.exists():
        raise NetworkError(f"{path}: no such file of weights; check the path")
    size = check_plain(path, NetworkError)
    check_memory(2 * size, str(path))
    if path.suffix.lower() == ".safetensors":
        return _read_safetensors(path)
    _check_sizes(path, size)
    try:
        with warnings.catch_warnings(), opened(path, NetworkError) as stream:
            warnings.simplefilter("ignore")  # torch warns of files that it then refuses
            state = torch.load(stream, map_location="cpu", weights_only=True)
    except pickle.UnpicklingError as error:
        if _start(path) not in (b"PK", b"\x80\x02", b"\x80\x04", b"\x80\x05"):
            raise _foreign(path) from error
        raise WrongFormat.of(NetworkError)(
            str(path),
            "tensors only",
            "a file with other objects, which are never unpickled here",
            "save module.state_dict()",
        ) from error
    except NetworkError:
        raise
    except Exception as error:  # a damaged file makes torch raise anything
        raise _foreign(path) from error
    if isinstance(state, Mapping) and isinstance(state.get("state_dict"), Mapping):
        state = state["state_dict"]  # a checkpoint with more than weights
    if not isinstance(state, Mapping) or not all(isinstance(v, Tensor) for v in state.values()):
        raise WrongFormat.of(NetworkError)(
            str(path), "weights by name", str(type(state).__name__), "save module.state_dict()"
        )
    return state


def _check_sizes(path: Path, size: int) -> None:
    """Refuse an archive that unpacks to more than its size: torch.save does not compress."""
    if not zipfile.is_zipfile(path):
        return
    try:
        with zipfile.ZipFile(path) as archive:
            claimed = sum(info.file_size for info in archive.infolist())
    except Exception as error:  # a damaged archive makes zipfile raise anything
        raise _foreign(path) from error
    if claimed > 2 * size + _SMALL:
        raise WrongFormat.of(NetworkError)(
            str(path),
            "weights as torch.save writes them",
            f"{size:,} bytes that unpack to {claimed:,}",
            "save module.state_dict() again",
        )


def _start(path: Path) -> bytes:
    with opened(path, NetworkError) as stream:
        return stream.read(2)


def _foreign(path: Path) -> EvgpError:
    return WrongFormat.of(NetworkError)(
        str(path), "weights written by torch.save", "a damaged or foreign file"
    )


def _read_safetensors(path: Path) -> Mapping[str, Tensor]:
    try:
        from safetensors import SafetensorError
        from safetensors.torch import load, load_file
    except ImportError as error:
        raise NetworkError(f"{path}: {lacking('weights')}") from error
    try:
        # load_file can only open paths that are valid UTF-8.
        return load_file(path) if is_utf8(path) else load(read_bytes(path, NetworkError))
    except (SafetensorError, OSError, ValueError, KeyError, RuntimeError) as error:
        raise WrongFormat.of(NetworkError)(
            str(path), "a safetensors file", str(str(error)[:200])
        ) from error


def _listed(what: str, names: Sequence[str]) -> list[str]:
    if not names:
        return []
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return [f"{what} {', '.join(names[:3])}{more}"]
