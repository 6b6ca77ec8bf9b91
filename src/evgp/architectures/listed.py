"""A list of architectures in a TOML file."""

import tomllib
from pathlib import Path

from evgp._errors import EvgpError, NetworkError
from evgp._reading import read_text
from evgp.nets import Network, mlp

# More than anybody writes by hand, and so little that no file of it takes long to parse.
_MOST_BYTES = 100_000
# Keys of many parts take tomllib a time and memory that grow with their square.
_MOST_DOTS = 100
_KNOWN = ("name", "depth", "width", "activation", "w_std", "b_std")


def listed(path: str | Path, *, outputs: int = 1) -> dict[str, Network]:
    """The networks of a file, by name; each `[[network]]` says what differs from `mlp()`.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder, "nets.toml")
    ...     _ = file.write_text('[[network]]\\nname = "deep"\\ndepth = 4\\nactivation = "gelu"\\n')
    ...     listed(file)
    {'deep': Network(depth=4, width=512, activation=gelu, w_std=1, b_std=0.1)}
    """
    text = read_text(path, NetworkError, most=_MOST_BYTES)
    if max((line.count(".") for line in text.splitlines()), default=0) > _MOST_DOTS:
        raise NetworkError(f"{path}: expected a TOML file of networks, got a key of many parts")
    try:
        found = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError, ValueError) as error:
        raise NetworkError(f"{path}: expected a TOML file of networks, got {error}") from error
    entries = found.get("network")
    if not isinstance(entries, list) or not entries or set(found) != {"network"}:
        raise NetworkError(
            f"{path}: expected a [[network]] for each architecture, got "
            f"{', '.join(found) or 'none'}"
        )
    made: dict[str, Network] = {}
    for number, entry in enumerate(entries, 1):
        if not isinstance(entry, dict):
            raise NetworkError(
                f"{path}: expected a [[network]] for each architecture, got {entry!r}"
            )
        wrong = [key for key in entry if key not in _KNOWN]
        if wrong:
            raise NetworkError(
                f"{path}: expected {', '.join(_KNOWN)} in network {number}, got {wrong[0]!r}"
            )
        told = {key: value for key, value in entry.items() if key != "name"}
        try:
            network = mlp(**told, outputs=outputs)
        except (TypeError, EvgpError) as error:
            raise NetworkError(
                f"{path}: expected what evgp.mlp takes in network {number}, got "
                f"{', '.join(f'{key} = {value!r}' for key, value in told.items())}: {error}"
            ) from error
        name = str(entry.get("name", network))
        if name in made:
            raise NetworkError(f"{path}: expected names that differ, got {name!r} twice")
        made[name] = network
    return made
