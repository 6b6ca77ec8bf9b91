"""Architectures to choose from: those of the paper, and lists in TOML files.

Hemachandra et al., Training-Free Neural Active Learning with Initialization-Robustness
Guarantees, ICML 2023, appendix on model selection.
"""

import tomllib
from collections.abc import Sequence
from pathlib import Path

from evgp._checks import shown
from evgp._reading import read_text
from evgp.errors import BadArgument, EvgpError, NetworkError, UnreadableFile, WrongFormat
from evgp.nets import Network, mlp


def candidates(
    depths: tuple[int, ...] = (1, 2, 3, 4),
    activations: tuple[str, ...] = ("relu", "gelu", "leaky_relu", "erf"),
    *,
    width: int = 512,
    outputs: int = 1,
) -> dict[str, Network]:
    """The 16 architectures of the paper by name; with "sin" its 20 for sinusoidal data.

    Parameters
    ----------
    depths : tuple of int
        Numbers of hidden layers.
    activations : tuple of str
    width, outputs : int
        Sizes of the layers.

    Returns
    -------
    dict of str to Network

    Examples
    --------
    >>> list(candidates(depths=(1, 2), activations=("relu", "erf")))
    ['relu-1', 'relu-2', 'erf-1', 'erf-2']
    """
    for name, values in (("depths", depths), ("activations", activations)):
        if not isinstance(values, Sequence) or isinstance(values, str) or not values:
            raise BadArgument.of(NetworkError)(name, "as a list", shown(values))
    return {
        f"{activation}-{depth}": mlp(depth, width, activation, outputs=outputs)
        for activation in activations
        for depth in depths
    }


_MAX_BYTES = 100_000  # more than anybody writes by hand, and quick to parse
# The time and memory that tomllib needs for a dotted key grow with the square of its parts.
_MAX_DOTS = 100
_KEYS = ("name", "depth", "width", "activation", "w_std", "b_std")


def read_networks(path: str | Path, *, outputs: int = 1) -> dict[str, Network]:
    """The networks in a TOML file, by name; each `[[network]]` lists what differs from `mlp()`.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder, "nets.toml")
    ...     _ = file.write_text('[[network]]\\nname = "deep"\\ndepth = 4\\nactivation = "gelu"\\n')
    ...     read_networks(file)
    {'deep': Network(depth=4, width=512, activation=gelu, w_std=1, b_std=0.1)}
    """
    text = read_text(path, NetworkError, most=_MAX_BYTES)
    if max((line.count(".") for line in text.splitlines()), default=0) > _MAX_DOTS:
        raise WrongFormat.of(NetworkError)(
            str(path), "a TOML file of networks", f"a key with more than {_MAX_DOTS} parts"
        )
    try:
        content = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError, ValueError) as error:
        raise UnreadableFile.of(NetworkError)(
            str(path), f"not a valid TOML file ({error})"
        ) from error
    entries = content.get("network")
    if not isinstance(entries, list) or not entries or set(content) != {"network"}:
        raise WrongFormat.of(NetworkError)(
            str(path), "a [[network]] for each architecture", ", ".join(content) or "none"
        )
    networks: dict[str, Network] = {}
    for number, entry in enumerate(entries, 1):
        if not isinstance(entry, dict):
            raise WrongFormat.of(NetworkError)(
                str(path), "a [[network]] for each architecture", repr(entry)
            )
        unknown = [key for key in entry if key not in _KEYS]
        if unknown:
            raise WrongFormat.of(NetworkError)(
                str(path), f"{', '.join(_KEYS)} in network {number}", repr(unknown[0])
            )
        settings = {key: value for key, value in entry.items() if key != "name"}
        try:
            network = mlp(**settings, outputs=outputs)
        except (TypeError, EvgpError) as error:
            listed = ", ".join(f"{key} = {value!r}" for key, value in settings.items())
            raise UnreadableFile.of(NetworkError)(
                str(path), f"invalid arguments of evgp.mlp in network {number} ({listed}): {error}"
            ) from error
        name = str(entry.get("name", network))
        if name in networks:
            raise UnreadableFile.of(NetworkError)(
                str(path), f"two networks are called {name!r}", "give each its own name"
            )
        networks[name] = network
    return networks
