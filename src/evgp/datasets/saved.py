"""Save and load selections: JSON with a version and a checksum, exact to the bit."""

import hashlib
import json
from collections.abc import Mapping
from math import inf, isfinite, isnan, nan
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float

from evgp._checks import path_of
from evgp._reading import read_json_bytes
from evgp.datasets.files import check_writable, write_text
from evgp.datasets.tables import check_file
from evgp.errors import DatasetError, EvgpError, WrongFormat
from evgp.pool import Certificate, Needed, Selection

FORMAT, VERSION = "evgp selection", 1
_FLOATS = ("gains", "variance_left", "test_before", "test_after")
_NUMBERS = ("prior_variance", "start_variance")
_OTHERS = ("indices", "costs", "certificate", "ids", "settings", "warnings")
# Numbers that JSON does not have, by name.
_WORDS = {"NaN": nan, "Infinity": inf, "-Infinity": -inf}
_MARK = "$float"


def save_selection(selection: Selection, path: str | Path) -> None:
    """Write a selection to one JSON file, completely or not at all.

    Python writes enough digits of each float to restore it exactly.
    """
    check_writable(path, (".json",))
    body = _body(selection)
    head = json.dumps({"format": FORMAT, "version": VERSION, "sha256": _digest(body)})
    lines = [f"  {json.dumps(name)}: {json.dumps(value)}" for name, value in body.items()]
    write_text(path, head[:-1] + ', "selection": {\n' + ",\n".join(lines) + "\n}}\n")


def load_selection(path: str | Path) -> Selection:
    """Read a selection written by `save_selection`; refuse other and damaged files."""
    path = path_of(path, "path", error=DatasetError)
    check_file(path, "a selection")
    content = read_json_bytes(path)
    try:
        document = json.loads(content)
        if document["format"] != FORMAT:
            raise ValueError("another format")
        version = document["version"]
    except (ValueError, TypeError, LookupError, RecursionError) as error:
        raise _unreadable(path) from error
    if isinstance(version, int) and version > VERSION:
        raise WrongFormat.of(DatasetError)(
            str(path),
            f"a selection in version {VERSION} of the format",
            f"version {version}",
            "install a newer evgp to read it",
        )
    try:
        body = document["selection"]
        if version != VERSION or document["sha256"] != _digest(body):
            raise ValueError("other content than was written")
        return _selection(body)
    except (EvgpError, ArithmeticError, AttributeError, LookupError, RecursionError, TypeError,
            ValueError) as error:  # fmt: skip
        raise _unreadable(path) from error


def _unreadable(path: Path) -> EvgpError:
    return WrongFormat.of(DatasetError)(
        str(path),
        "a file written by Selection.save",
        "one that is cut short, damaged or of another kind",
        "save the selection again",
    )


def _digest(body: object) -> str:
    """Return a checksum of the content that does not depend on white space."""
    text = json.dumps(body, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()


def _body(selection: Selection) -> dict[str, object]:
    """Convert a selection to JSON types."""
    certificate, costs = selection.certificate, selection.costs
    return {
        "indices": selection.indices.tolist(),
        **{name: _numbers(getattr(selection, name)) for name in _FLOATS},
        **{name: _number(float(getattr(selection, name))) for name in _NUMBERS},
        "costs": None if costs is None else _numbers(costs),
        "certificate": certificate
        and {
            "lowest": _numbers(certificate.lowest),
            "share": _numbers(certificate.share),
            "needed": [
                [_number(float(share)), int(low), None if high is None else int(high)]
                for share, (low, high) in certificate.needed.items()
            ],
        },
        "ids": list(selection.ids),
        "settings": {name: _setting(name, item) for name, item in selection.settings.items()},
        "warnings": list(selection.warnings),
    }


def _selection(body: Mapping[str, Any]) -> Selection:
    if set(body) != {*_FLOATS, *_NUMBERS, *_OTHERS}:
        raise LookupError("other fields than those of a selection")
    certificate = body["certificate"]
    if certificate is not None:
        needed = {_float(share): _needed(*labels) for share, *labels in certificate["needed"]}
        lowest, share = _floats(certificate["lowest"]), _floats(certificate["share"])
        certificate = Certificate(lowest, share, needed)
    fields: dict[str, Any] = {name: _floats(body[name]) for name in _FLOATS}
    fields |= {name: _float(body[name]) for name in _NUMBERS}
    return Selection(
        indices=np.array([_whole(row) for row in body["indices"]], dtype=np.int64),
        costs=None if body["costs"] is None else _floats(body["costs"]),
        certificate=certificate,
        ids=tuple(id if isinstance(id, int) else str(id) for id in body["ids"]),
        settings={name: _restored(item) for name, item in body["settings"].items()},
        warnings=tuple(str(text) for text in body["warnings"]),
        **fields,
    )


def _numbers(values: Float[np.ndarray, " n"]) -> list[float | str]:
    return [_number(value) for value in values.tolist()]


def _number(value: float) -> float | str:
    if isfinite(value):
        return value
    return "NaN" if isnan(value) else "Infinity" if value > 0 else "-Infinity"


def _floats(values: Any) -> Float[np.ndarray, " n"]:
    return np.array([_float(value) for value in values], dtype=np.float64)


def _float(value: Any) -> float:
    if isinstance(value, str):
        return _WORDS[value]
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError("something other than a number")
    return float(value)


def _whole(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError("something other than an integer")
    return value


def _needed(low: Any, high: Any) -> Needed:
    return Needed(_whole(low), None if high is None else _whole(high))


def _setting(name: str, value: object) -> object:
    """Convert a setting to JSON types from which `_restored` can restore it."""
    value = value.item() if isinstance(value, np.generic) else value
    if value is None or isinstance(value, str | int):
        return value
    if isinstance(value, float):
        return value if isfinite(value) else {_MARK: _number(value)}
    if isinstance(value, list):
        return [_setting(name, item) for item in value]
    if isinstance(value, dict) and _MARK not in value and all(isinstance(k, str) for k in value):
        return {key: _setting(name, item) for key, item in value.items()}
    raise DatasetError(
        f"expected numbers, text, lists and dictionaries of these in settings, got "
        f"{type(value).__name__} in {name!r}; replace it by its repr before saving"
    )


def _restored(value: Any) -> object:
    if isinstance(value, list):
        return [_restored(item) for item in value]
    if isinstance(value, dict):
        if _MARK in value:
            return _WORDS[value[_MARK]]
        return {key: _restored(item) for key, item in value.items()}
    return value
