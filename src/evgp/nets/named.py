"""Networks by name, and their weights from files that can hold nothing else."""

import pickle
import re
import sys
import warnings
import zipfile
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from evgp._errors import NetworkError
from evgp._extras import lacking
from evgp._plugins import plugin, plugin_names
from evgp._reading import check_memory, check_plain, is_utf8, opened, read_bytes
from evgp.nets.anew import is_description, made_by
from evgp.nets.network import Network, mlp
from evgp.nets.zoo import Buildable, cnn, resnet18, wide_resnet

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

    An installed package can offer more, in its entry points `evgp.networks`. What stands there, or
    behind the colon, is a function that makes a torch module, a module, or a description
    such as `evgp.cnn()`; the package is looked for in the working directory too, and is run. It
    has the outputs it has; the others get as many as `outputs` says.

    >>> network_named("wrn-16-2")
    wide_resnet(16, 2)(outputs=10, init='kaiming', parametrisation='standard')
    """
    told: dict[str, Any] = {} if outputs is None else {"outputs": outputs}
    if name in _ZOO:
        return _ZOO[name](**told)
    if wide := _WIDE.fullmatch(name):
        return wide_resnet(int(wide[1]), int(wide[2]), **told)
    package, colon, attribute = name.partition(":")
    if not colon and (offered := plugin("networks", name)) is not None:
        return _checked(offered, name)
    if not colon or not package or not attribute:
        known = ", ".join((*_ZOO, *plugin_names("networks", _ZOO)))
        raise NetworkError(
            f"expected a network among {known}, wrn-DEPTH-WIDTH, or package.module:name of your "
            f"own; got {name!r}"
        )
    return _checked(found_at(package, attribute, "a network"), name)


def load_weights(network: Named, path: str | Path, shape: tuple[int, ...]) -> nn.Module:
    """A module with the weights of a `.safetensors` file, or of one that `torch.save` wrote.

    Of the latter only tensors are read (`weights_only=True`), so a file cannot run code. `shape` is
    that of one sample, which descriptions are built for.
    """
    path = Path(path)
    if isinstance(network, nn.Module):
        module = network
    elif is_description(network):
        module = network.build(shape, generator=torch.Generator().manual_seed(0))
    else:
        module = made_by(network)
    state = _read(path)
    wanted = module.state_dict()
    problems = [
        *_listed("no", [name for name in wanted if name not in state]),
        *_listed("an unknown", [name for name in state if name not in wanted]),
        *[
            f"{name} of shape {tuple(state[name].shape)} instead of {tuple(value.shape)}"
            for name, value in wanted.items()
            if name in state and state[name].shape != value.shape
        ][:3],
    ]
    if problems:
        raise NetworkError(
            f"{path}: expected the weights of {type(module).__name__}, got {'; '.join(problems)}"
        )
    module.load_state_dict(state)
    return module


def found_at(package: str, attribute: str, what: str) -> object:
    """What a user's own package holds; the working directory is searched too, and it is run."""
    here = str(Path.cwd())
    sys.path.insert(0, here)
    try:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)  # what is initialised on import is the same each time
            found: object = import_module(package)
        for part in attribute.split("."):
            found = getattr(found, part)
    except (ImportError, AttributeError) as error:
        raise NetworkError(
            f"expected {what} at {package}:{attribute}, got none: {error}; it is looked for in "
            "the working directory and among the installed packages"
        ) from error
    except (Exception, SystemExit) as error:  # a user's module may raise anything
        raise NetworkError(
            f"{package} stopped while it was imported: {type(error).__name__}: {error}"
        ) from error
    finally:
        sys.path.remove(here)
    return found


def _checked(found: object, name: str) -> Named:
    if isinstance(found, Network | nn.Module) or is_description(found):
        return found
    if not callable(found):
        raise NetworkError(
            f"expected {name} as a function that makes a torch module, got {type(found).__name__}"
        )
    try:
        with torch.random.fork_rng(devices=[]):
            made = found()
    except (Exception, SystemExit) as error:  # a user's function may raise anything
        raise NetworkError(
            f"{name} stopped: {type(error).__name__}: {error}; it is called without arguments"
        ) from error
    if isinstance(made, Network) or is_description(made):
        return made
    if not isinstance(made, nn.Module):
        raise NetworkError(f"expected a torch module from {name}(), got {type(made).__name__}")
    return found


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
            warnings.simplefilter("ignore")  # torch's own, on what it then refuses
            state = torch.load(stream, map_location="cpu", weights_only=True)
    except pickle.UnpicklingError as error:
        if _start(path) not in (b"PK", b"\x80\x02", b"\x80\x04", b"\x80\x05"):
            raise _foreign(path) from error
        raise NetworkError(
            f"{path}: expected tensors only, got a file that holds other objects, which are never "
            "unpickled here; save module.state_dict()"
        ) from error
    except NetworkError:
        raise
    except Exception as error:  # a damaged file makes torch raise anything
        raise _foreign(path) from error
    if isinstance(state, Mapping) and isinstance(state.get("state_dict"), Mapping):
        state = state["state_dict"]  # a checkpoint with more than weights
    if not isinstance(state, Mapping) or not all(isinstance(v, Tensor) for v in state.values()):
        raise NetworkError(
            f"{path}: expected weights by name, got {type(state).__name__}; save "
            "module.state_dict()"
        )
    return state


def _check_sizes(path: Path, size: int) -> None:
    """Refuse an archive that unpacks to more than it holds: torch.save packs nothing."""
    if not zipfile.is_zipfile(path):
        return
    try:
        with zipfile.ZipFile(path) as archive:
            claimed = sum(info.file_size for info in archive.infolist())
    except Exception as error:  # so do damaged archives
        raise _foreign(path) from error
    if claimed > 2 * size + _SMALL:
        raise NetworkError(
            f"{path}: expected weights as torch.save writes them, got {size:,} bytes that unpack "
            f"to {claimed:,}; save module.state_dict() again"
        )


def _start(path: Path) -> bytes:
    with opened(path, NetworkError) as stream:
        return stream.read(2)


def _foreign(path: Path) -> NetworkError:
    return NetworkError(
        f"{path}: expected weights written by torch.save, got a damaged or foreign file"
    )


def _read_safetensors(path: Path) -> Mapping[str, Tensor]:
    try:
        from safetensors import SafetensorError
        from safetensors.torch import load, load_file
    except ImportError as error:
        raise NetworkError(f"{path}: {lacking('weights')}") from error
    try:
        # It opens names in UTF-8 only.
        return load_file(path) if is_utf8(path) else load(read_bytes(path, NetworkError))
    except (SafetensorError, OSError, ValueError, KeyError, RuntimeError) as error:
        raise NetworkError(
            f"{path}: expected a safetensors file, got {str(error)[:200]}"
        ) from error


def _listed(what: str, names: Sequence[str]) -> list[str]:
    if not names:
        return []
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return [f"{what} {', '.join(names[:3])}{more}"]
