"""Checks of arguments at public entry points: one function for each kind of argument.

Each function returns the checked value, or raises an error with a one-sentence message. Criteria,
kernels, searches and sources declare what they support as boolean attributes (see `can`), so that
user-defined ones work without inheriting from a class of this package.
"""

import os
import re
from collections.abc import Sequence, Sized
from math import inf, isfinite
from numbers import Real
from operator import index
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor, nn

from evgp.errors import (
    BadArgument,
    EvgpError,
    NotFinite,
    NotNumbers,
    PoolError,
    UnknownName,
    WrongShape,
)


def can(thing: object, what: str) -> bool:
    """Whether an object declares a capability; a missing attribute means no.

    >>> class Mine:
    ...     by_features = True
    >>> can(Mine(), "by_features"), can(Mine(), "certifiable")
    (True, False)
    """
    declared = getattr(thing, what, False)
    # A data frame may have a column of this name, which is not a bool.
    return isinstance(declared, bool | np.bool_) and bool(declared)


SEEDS = 2**32  # number of seeds that NumPy accepts
BYTES = 10**18  # more memory than any machine has, and it still fits in an int64

Error = type[EvgpError]


def shown(value: object) -> str:
    """Return a value as one short line of text, for messages.

    >>> shown("2 apples"), shown(np.zeros((100, 3))), shown(float("nan"))
    ("'2 apples'", 'ndarray of shape (100, 3)', 'nan')
    """
    shape = getattr(value, "shape", None)
    if isinstance(shape, tuple) and len(shape):
        return f"{type(value).__name__} of shape {tuple(shape)}"
    if isinstance(value, type):
        return f"the class {value.__name__}"
    try:
        text = " ".join(repr(value).split())
    except Exception:  # __repr__ of a user's object may raise anything
        text = type(value).__name__
    return text if len(text) <= 80 else f"{text[:60]}... ({type(value).__name__})"


_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")


def recorded(thing: object) -> str:
    """Return an object as text that is the same in every run: its repr, or else its class.

    >>> recorded(2), recorded(object()), recorded(lambda: 0)
    ('2', 'builtins.object', '<function <lambda>>')
    """
    if type(thing).__repr__ is object.__repr__:
        return f"{type(thing).__module__}.{type(thing).__qualname__}"
    return _ADDRESS.sub("", repr(thing))


def integer(
    value: object,
    name: str,
    least: int = 0,
    most: int | None = None,
    *,
    why: str = "",
    error: Error = PoolError,
) -> int:
    """Return an integer within bounds, from Python, NumPy or torch; True and 3.0 are refused.

    >>> integer(np.uint8(3), "k", 1)
    3
    """
    try:
        checked = None if isinstance(value, bool | np.bool_) else index(value)  # type: ignore[arg-type]
    except TypeError:
        checked = None
    if checked is None or checked < least or (most is not None and checked > most):
        upto = "" if most is None else f" to {most}"
        because = f", {why}" if why else ""
        bounds = f"as an integer from {least}{upto}{because}"
        raise BadArgument.of(error)(name, bounds, shown(value))
    return checked


def seed_of(value: object, *, error: Error = PoolError) -> int:
    """Return a checked seed for random numbers.

    >>> seed_of(7)
    7
    """
    return integer(value, "seed", 0, SEEDS - 1, error=error)


def number(
    value: object,
    name: str,
    least: float = 0.0,
    most: float = inf,
    *,
    above: bool = False,
    below: bool = False,
    why: str = "",
    error: Error = PoolError,
) -> float:
    """Return a finite number within bounds; `above` and `below` exclude the bounds themselves.

    >>> number(1, "noise")
    1.0
    """
    try:
        real = isinstance(value, Real) and not isinstance(value, bool | np.bool_)
        checked = float(value) if real else inf  # type: ignore[arg-type]
    except (OverflowError, TypeError, ValueError):
        checked = inf
    inside = least <= checked <= most and not (above and checked == least)
    if not inside or not isfinite(checked) or (below and checked == most):
        bounds = f"{'>' if above else '>='} {least:g}" if least > -inf else "as a finite number"
        if most < inf:
            bounds += f" and {'<' if below else '<='} {most:g}"
        elif least > -inf and not isfinite(checked):
            bounds += " and finite"
        because = f", {why}" if why else ""
        raise BadArgument.of(error)(name, bounds + because, shown(value))
    return checked


def keep(owner: object, **checked: object) -> None:
    """Store checked values in a frozen dataclass; NumPy and torch numbers become Python numbers.

    Python numbers stay as they are, so that 90 is not shown as 90.0.
    """
    for name, value in checked.items():
        if type(getattr(owner, name)) not in (bool, int, float):
            object.__setattr__(owner, name, value)


def noise_of(value: object) -> float:
    """Return the checked noise of a label, as a fraction of the prior variance.

    >>> noise_of(1e-6)
    1e-06
    """
    return number(value, "noise", 0, 1e6, why="a fraction of the prior variance")


def flag(value: object, name: str, *, error: Error = PoolError) -> bool:
    """Return True or False; other truthy or falsy values are refused.

    >>> flag(True, "standardise")
    True
    """
    if not isinstance(value, bool | np.bool_):
        raise BadArgument.of(error)(name, "as True or False", shown(value))
    return bool(value)


def one_of(value: object, name: str, among: Sequence[str], *, error: Error = PoolError) -> str:
    """Return one of a few allowed strings.

    >>> one_of("gd", "optimiser", ("gd", "sgd"))
    'gd'
    """
    if not isinstance(value, str):
        raise BadArgument.of(error)(name, f"among {', '.join(among)}", shown(value))
    if value not in among:
        raise UnknownName.of(error)(name, value, tuple(among))
    return value


def instance(value: Any, name: str, kind: Any, such_as: str, *, error: Error = PoolError) -> Any:
    """Return an instance of a class or protocol; the class itself is refused.

    >>> instance("a", "name", str, "'kin8nm'")
    'a'
    """
    if isinstance(value, type) or not isinstance(value, kind):
        raise BadArgument.of(error)(name, f"such as {such_as}", shown(value))
    return value


def function(value: Any, name: str, what: str, *, error: Error = PoolError) -> Any:
    """Return a function; classes and torch modules are callable too, but are refused.

    >>> function(len, "oracle", "a function of rows")(())
    0
    """
    if not callable(value) or isinstance(value, type | nn.Module):
        raise BadArgument.of(error)(name, f"as {what}", shown(value))
    return value


def word(value: object, name: str, *, error: Error = PoolError) -> str:
    """Return a string, such as the name of a column.

    >>> word("price", "label")
    'price'
    """
    if not isinstance(value, str):
        raise BadArgument.of(error)(name, "as text", shown(value))
    return value


def words(value: object, name: str, *, error: Error = PoolError) -> tuple[str, ...]:
    """Return a tuple of strings; a single string becomes a tuple of one.

    >>> words("price", "drop"), words(["price", "age"], "drop")
    (('price',), ('price', 'age'))
    """
    if isinstance(value, str):
        return (value,)
    if not isinstance(value, Sequence) or not all(isinstance(item, str) for item in value):
        raise BadArgument.of(error)(name, "as a list of texts", shown(value))
    return tuple(value)


# Maximum characters of a path, and bytes of one name in it, that any operating system accepts.
_LONGEST_PATH, _LONGEST_NAME = 4_096, 255


def path_of(value: object, name: str, *, error: Error = PoolError) -> Path:
    """Return a path that was given as a string or a Path.

    >>> path_of("runs", "out").name
    'runs'
    """
    if not isinstance(value, str | PathLike) or isinstance(value, bytes) or "\0" in str(value):
        raise BadArgument.of(error)(name, "as a path", shown(value))
    longest = max(len(os.fsencode(part)) for part in str(value).split("/"))
    if len(str(value)) > _LONGEST_PATH or longest > _LONGEST_NAME:
        got = f"text of {len(str(value)):,} characters"
        advice = "save its content to a file, and give the path of that"
        raise BadArgument.of(error)(name, "as a path", got, advice)
    return Path(value)


def bytes_of(value: object) -> int:
    """Return the number of bytes in a size such as "2GB".

    >>> bytes_of("2GB"), bytes_of("512 MiB"), bytes_of(1000)
    (2000000000, 536870912, 1000)
    """
    text = str(value).lower() if isinstance(value, str | int | np.integer) else ""
    match = re.fullmatch(r"\s*(\d{1,18}(?:\.\d+)?)\s*([kmgt]?i?b?)\s*", text)
    if match is None or float(match[1]) <= 0 or isinstance(value, bool):
        raise BadArgument.of(PoolError)("memory", "such as 2GB or 500MB", shown(value))
    base, power = (1024 if "i" in match[2] else 1000), "kmgt".find(match[2][:1] or "b") + 1
    return int(float(match[1]) * base ** max(0, power))


def check_numbers(x: Any, name: str, *, error: Error = PoolError) -> None:
    """Refuse pandas and polars frames with non-numeric columns, and arrays of dates.

    >>> check_numbers(np.array(["2026-01-01"], dtype="M8[D]"), "x")
    Traceback (most recent call last):
    evgp.errors.NotNumbers: expected numbers in x, got datetime64[D]; encode words and dates first
    """
    if type(x).__name__ == "LazyFrame":
        raise BadArgument.of(error)(name, "with rows", "a LazyFrame", "call its collect() first")
    if np.ma.is_masked(x):
        cells = int(np.ma.getmaskarray(x).sum())
        masked = "1 masked cell" if cells == 1 else f"{cells:,} masked cells"
        raise error(f"{name} has {masked}; fill or drop them")
    frame = getattr(x, "ndim", 2) == 2
    columns = zip(x.columns, x.dtypes, strict=True) if frame and hasattr(x, "dtypes") else ()
    problems = [
        f"{dtype} in column {column!r}" for column, dtype in columns if not _is_number(dtype)
    ]
    if getattr(dtype := getattr(x, "dtype", None), "kind", None) in ("M", "m"):
        problems.append(str(dtype))
    if problems:
        listed = ", ".join(problems[:8]) + (
            f" and {len(problems) - 8} more" if len(problems) > 8 else ""
        )
        raise NotNumbers(name, listed)


def unequal(error: Exception) -> str:
    """Return why NumPy could not make an array; of ragged rows, in our own words."""
    text = " ".join(str(error).split())
    return "rows of different lengths" if "inhomogeneous" in text else text


def _is_number(dtype: object) -> bool:
    if hasattr(dtype, "is_numeric"):  # a polars dtype
        return bool(dtype.is_numeric()) or str(dtype) == "Boolean"
    return getattr(dtype, "kind", "f") in "biufc"


def _unequal(value: Any) -> str:
    """Say which of several lists has another length than the first; empty if none has."""
    if not isinstance(value, list | tuple) or not all(isinstance(row, Sized) for row in value):
        return ""
    rows = (row for row, cells in enumerate(value) if len(cells) != len(value[0]))
    row = next(rows, None)
    return "" if row is None else f"{len(value[0])} numbers in row 0 and {len(value[row])} in {row}"


def numbers(value: Any, name: str, *, error: Error = PoolError) -> Tensor:
    """Return real numbers as a CPU tensor of any shape, in a dtype that torch supports.

    >>> numbers([[1, 2]], "x").dtype, numbers(np.array([2**63], dtype=np.uint64), "x").dtype
    (torch.int64, torch.float64)
    """
    if isinstance(value, Tensor):
        if value.layout != torch.strided or value.is_quantized or value.is_complex():
            kind = str(value.dtype if value.layout == torch.strided else value.layout)
            got = kind.removeprefix("torch.")
            raise BadArgument.of(error)(name, "as real numbers", got, "convert them")
        return value.detach().cpu()
    if hasattr(value, "toarray"):
        advice = "call its toarray() first"
        raise BadArgument.of(error)(name, "as a dense array", "a sparse one", advice)
    if type(value) is not np.ndarray or value.dtype.kind not in "biuf":
        check_numbers(value, name, error=error)
    try:
        array = np.asarray(value)
    except Exception as wrong:  # a user's object may raise anything
        text = _unequal(value) or " ".join(str(wrong).split())
        raise BadArgument.of(error)(name, "as rows of equal length", text) from wrong
    if array.dtype.kind == "c":
        raise BadArgument.of(error)(name, "as real numbers", str(array.dtype), "convert them")
    if array.dtype.kind not in "biuf":
        got = shown(value) if array.ndim == 0 else f"dtype {array.dtype}"
        raise NotNumbers(name, got)
    kind, size, dtype = array.dtype.kind, array.dtype.itemsize, array.dtype.newbyteorder("=")
    if kind == "f" and size not in (4, 8):
        dtype = np.dtype(np.float64)
    elif kind == "u" and size > 1:  # of the unsigned types, torch fully supports uint8 only
        above = size == 8 and array.size and int(array.max()) > np.iinfo(np.int64).max
        dtype = np.dtype(np.float64 if above else np.int64)
    try:
        return torch.from_numpy(np.require(array, dtype, ["C", "W"]))
    except MemoryError as wrong:
        raise WrongShape.of(error)(
            name, "that fits in memory", array.shape, "take fewer rows"
        ) from wrong


_RESHAPE = "reshape one column to (-1, 1), or one row to (1, -1)"


def points(
    value: Any, name: str, *, columns: tuple[int, ...] | None = None, error: Error = PoolError
) -> Tensor:
    """Return finite points as float64, one per row; `columns` is the expected shape of a point.

    >>> points([[1, 2]], "x").tolist()
    [[1.0, 2.0]]
    """
    tensor = numbers(value, name, error=error)
    if tensor.ndim < 2:
        raise WrongShape.of(error)(name, "of shape (rows, features)", tuple(tensor.shape), _RESHAPE)
    if len(tensor) == 0 or tensor[0].numel() == 0:
        least = "with at least one row and one feature"
        raise WrongShape.of(error)(name, least, tuple(tensor.shape))
    if columns is not None and tuple(tensor.shape[1:]) != columns:
        alike = f"with features of shape {columns}, like x"
        raise WrongShape.of(error)(name, alike, tuple(tensor.shape[1:]))
    return finite(tensor.double(), name, error=error)


def vector(value: Any, name: str) -> Float[np.ndarray, " k"]:
    """Return a list of numbers as a float64 array; NaN is allowed.

    >>> vector([1, 2], "gains")
    array([1., 2.])
    """
    if type(value) is np.ndarray and value.dtype == np.float64 and value.ndim == 1:
        return value
    tensor = numbers(value, name)
    if tensor.ndim != 1:
        raise WrongShape.of(PoolError)(name, "as a list of numbers", tuple(tensor.shape))
    return tensor.double().numpy()


def finite(value: Tensor, name: str, *, error: Error = PoolError) -> Tensor:
    """Return the tensor unchanged if all its numbers are finite; otherwise raise."""
    bad = ~torch.isfinite(value)
    if not bool(bad.any()):
        return value
    bad = bad.reshape(len(value), -1) if value.ndim else bad.reshape(1, 1)
    rows = bad.any(1).nonzero().squeeze(1)
    column = int(bad.any(0).nonzero()[0])
    raise NotFinite.of(error)(name, int(bad.sum()), tuple(rows[:3].tolist()), column)
