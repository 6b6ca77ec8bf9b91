"""What doors check: one function for each kind of argument, with one sentence where it is wrong.

Criteria, kernels, searches and sources say what they can do: whoever writes one of their own says
what holds for it as an attribute, and has it used; nobody asks for their class.
"""

import os
import re
from collections.abc import Sequence
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

from evgp._errors import EvgpError, NotNumbers, PoolError


def can(thing: object, what: str) -> bool:
    """Whether it says so; an attribute that is missing says no.

    >>> class Mine:
    ...     by_features = True
    >>> can(Mine(), "by_features"), can(Mine(), "certifiable")
    (True, False)
    """
    said = getattr(thing, what, False)  # a frame may have a column of this name
    return isinstance(said, bool | np.bool_) and bool(said)


SEEDS = 2**32  # as many as NumPy has
BYTES = 10**18  # as much memory as anybody has, and an int64 holds

Error = type[EvgpError]


def shown(value: object) -> str:
    """A value in one short line.

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
    except Exception:  # of somebody else's object
        text = type(value).__name__
    return text if len(text) <= 80 else f"{text[:60]}... ({type(value).__name__})"


def integer(
    value: object,
    name: str,
    least: int = 0,
    most: int | None = None,
    *,
    why: str = "",
    error: Error = PoolError,
) -> int:
    """An integer within bounds, of Python, NumPy or torch; True and 3.0 are none.

    >>> integer(np.uint8(3), "k", 1)
    3
    """
    try:
        found = None if isinstance(value, bool | np.bool_) else index(value)  # type: ignore[arg-type]
    except TypeError:
        found = None
    if found is None or found < least or (most is not None and found > most):
        upto = "" if most is None else f" to {most}"
        because = f", {why}; got" if why else ", got"
        raise error(f"expected {name} as an integer from {least}{upto}{because} {shown(value)}")
    return found


def seed_of(value: object, *, error: Error = PoolError) -> int:
    """A seed: what random numbers depend on.

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
    """A finite number within bounds, which `above` and `below` leave out.

    >>> number(1, "noise")
    1.0
    """
    try:
        real = isinstance(value, Real) and not isinstance(value, bool | np.bool_)
        found = float(value) if real else inf  # type: ignore[arg-type]
    except (OverflowError, TypeError, ValueError):
        found = inf
    inside = least <= found <= most and not (above and found == least)
    if not inside or not isfinite(found) or (below and found == most):
        bounds = f"{'>' if above else '>='} {least:g}" if least > -inf else "as a finite number"
        if most < inf:
            bounds += f" and {'<' if below else '<='} {most:g}"
        elif least > -inf and not isfinite(found):
            bounds += " and finite"
        because = f", {why}; got" if why else ", got"
        raise error(f"expected {name} {bounds}{because} {shown(value)}")
    return found


def keep(owner: object, **checked: object) -> None:
    """Put what was checked into a frozen dataclass: numbers of NumPy and torch become Python's.

    Those of Python stay as they are, so that 90 is not shown as 90.0.
    """
    for name, value in checked.items():
        if type(getattr(owner, name)) not in (bool, int, float):
            object.__setattr__(owner, name, value)


def noise_of(value: object, *, error: Error = PoolError) -> float:
    """The noise of a label, as a fraction of the prior variance.

    >>> noise_of(1e-6)
    1e-06
    """
    return number(value, "noise", 0, 1e6, why="a fraction of the prior variance", error=error)


def flag(value: object, name: str, *, error: Error = PoolError) -> bool:
    """True or False, and nothing that only looks like it.

    >>> flag(True, "standardise")
    True
    """
    if not isinstance(value, bool | np.bool_):
        raise error(f"expected {name} as True or False, got {shown(value)}")
    return bool(value)


def one_of(value: object, name: str, among: Sequence[str], *, error: Error = PoolError) -> str:
    """One of a few words.

    >>> one_of("gd", "optimiser", ("gd", "sgd"))
    'gd'
    """
    if not isinstance(value, str) or value not in among:
        raise error(f"expected {name} among {', '.join(among)}; got {shown(value)}")
    return value


def instance(value: Any, name: str, kind: Any, such_as: str, *, error: Error = PoolError) -> Any:
    """An instance of a class or protocol; the class itself is refused.

    >>> instance("a", "name", str, "'kin8nm'")
    'a'
    """
    if isinstance(value, type) or not isinstance(value, kind):
        raise error(f"expected {name} such as {such_as}, got {shown(value)}")
    return value


def function(value: Any, name: str, what: str, *, error: Error = PoolError) -> Any:
    """A function; neither a class nor a torch module, which can be called, but not for this.

    >>> function(len, "oracle", "a function of rows")(())
    0
    """
    if not callable(value) or isinstance(value, type | nn.Module):
        raise error(f"expected {name} as {what}, got {shown(value)}")
    return value


def word(value: object, name: str, *, error: Error = PoolError) -> str:
    """Text, such as the name of a column.

    >>> word("price", "label")
    'price'
    """
    if not isinstance(value, str):
        raise error(f"expected {name} as text, got {shown(value)}")
    return value


def words(value: object, name: str, *, error: Error = PoolError) -> tuple[str, ...]:
    """A list of texts; one text is a list of its own.

    >>> words("price", "drop"), words(["price", "age"], "drop")
    (('price',), ('price', 'age'))
    """
    if isinstance(value, str):
        return (value,)
    if not isinstance(value, Sequence) or not all(isinstance(one, str) for one in value):
        raise error(f"expected {name} as a list of texts, got {shown(value)}")
    return tuple(value)


# Characters of a path, and bytes of a name in it: no system takes more.
_LONGEST_PATH, _LONGEST_NAME = 4_096, 255


def path_of(value: object, name: str, *, error: Error = PoolError) -> Path:
    """A path, as text or as a Path.

    >>> path_of("runs", "out").name
    'runs'
    """
    if not isinstance(value, str | PathLike) or isinstance(value, bytes) or "\0" in str(value):
        raise error(f"expected {name} as a path, got {shown(value)}")
    longest = max(len(os.fsencode(part)) for part in str(value).split("/"))
    if len(str(value)) > _LONGEST_PATH or longest > _LONGEST_NAME:
        raise error(
            f"expected {name} as a path, got text of {len(str(value)):,} characters; save its "
            "content to a file, and give the path of that"
        )
    return Path(value)


def bytes_of(value: object, name: str = "memory", *, error: Error = PoolError) -> int:
    """A number of bytes, as people write it.

    >>> bytes_of("2GB"), bytes_of("512 MiB"), bytes_of(1000)
    (2000000000, 536870912, 1000)
    """
    text = str(value).lower() if isinstance(value, str | int | np.integer) else ""
    found = re.fullmatch(r"\s*(\d{1,18}(?:\.\d+)?)\s*([kmgt]?i?b?)\s*", text)
    if found is None or float(found[1]) <= 0 or isinstance(value, bool):
        raise error(f"expected {name} such as 2GB or 500MB, got {shown(value)}")
    base, power = (1024 if "i" in found[2] else 1000), "kmgt".find(found[2][:1] or "b") + 1
    return int(float(found[1]) * base ** max(0, power))


def check_numbers(x: Any, name: str, *, error: Error = PoolError) -> None:
    """Refuse frames of pandas and polars with other columns than numbers, and arrays of dates.

    >>> check_numbers(np.array(["2026-01-01"], dtype="M8[D]"), "x")
    Traceback (most recent call last):
    evgp._errors.NotNumbers: expected numbers in x, got datetime64[D]; encode dates and words first
    """
    if type(x).__name__ == "LazyFrame":
        raise error(f"expected rows in {name}, got a LazyFrame; call its collect() first")
    if np.ma.is_masked(x):
        cells = int(np.ma.getmaskarray(x).sum())
        raise error(f"expected every cell of {name}, got {cells} masked; fill or drop them")
    frame = getattr(x, "ndim", 2) == 2
    columns = zip(x.columns, x.dtypes, strict=True) if frame and hasattr(x, "dtypes") else ()
    found = [f"{dtype} in column {one!r}" for one, dtype in columns if not _is_number(dtype)]
    if getattr(dtype := getattr(x, "dtype", None), "kind", None) in ("M", "m"):
        found.append(str(dtype))
    if found:
        listed = ", ".join(found[:8]) + (f" and {len(found) - 8} more" if len(found) > 8 else "")
        raise NotNumbers(f"expected numbers in {name}, got {listed}; encode dates and words first")


def _is_number(dtype: object) -> bool:
    if hasattr(dtype, "is_numeric"):  # of polars
        return bool(dtype.is_numeric()) or str(dtype) == "Boolean"
    return getattr(dtype, "kind", "f") in "biufc"


def numbers(value: Any, name: str, *, error: Error = PoolError) -> Tensor:
    """Real numbers as a tensor of any shape, on the processor, in a type that torch knows.

    >>> numbers([[1, 2]], "x").dtype, numbers(np.array([2**63], dtype=np.uint64), "x").dtype
    (torch.int64, torch.float64)
    """
    if isinstance(value, Tensor):
        if value.layout != torch.strided or value.is_quantized or value.is_complex():
            kind = str(value.dtype if value.layout == torch.strided else value.layout)
            raise error(
                f"expected real numbers in {name}, got {kind.removeprefix('torch.')}; convert them"
            )
        return value.detach().cpu()
    if hasattr(value, "toarray"):
        raise error(f"expected a dense array as {name}, got a sparse one; call its toarray() first")
    check_numbers(value, name, error=error)
    try:
        array = np.asarray(value)
    except Exception as wrong:  # somebody else's object may raise anything
        text = " ".join(str(wrong).split())
        raise error(f"expected {name} as rows of equal length; got {text}") from wrong
    if array.dtype.kind == "c":
        raise error(f"expected real numbers in {name}, got {array.dtype}; split them up")
    if array.dtype.kind not in "biuf":
        what = shown(value) if array.ndim == 0 else f"dtype {array.dtype}"
        raise NotNumbers(f"expected numbers in {name}, got {what}; encode words and dates first")
    try:
        return torch.from_numpy(np.require(array, _torch_type(array), ["C", "W"]))
    except MemoryError as wrong:
        raise error(
            f"expected {name} to fit in memory, got shape {array.shape}; take fewer rows"
        ) from wrong


def _torch_type(array: np.ndarray) -> np.dtype:
    """Of the unsigned types torch knows the shortest alone, and no other order of bytes."""
    kind, size = array.dtype.kind, array.dtype.itemsize
    if kind == "f":
        return np.dtype(array.dtype.newbyteorder("=") if size in (4, 8) else np.float64)
    if kind == "u" and size > 1:
        above = size == 8 and array.size and int(array.max()) > np.iinfo(np.int64).max
        return np.dtype(np.float64 if above else np.int64)
    return array.dtype.newbyteorder("=")


def points(
    value: Any, name: str, *, columns: tuple[int, ...] | None = None, error: Error = PoolError
) -> Tensor:
    """Points as float64, finite, one a row; `columns` is the shape that each should have.

    >>> points([[1, 2]], "x").tolist()
    [[1.0, 2.0]]
    """
    made = numbers(value, name, error=error)
    if made.ndim < 2:
        raise error(
            f"expected {name} of shape (rows, features), got {tuple(made.shape)}; reshape one "
            "column to (-1, 1), or one row to (1, -1)"
        )
    if len(made) == 0 or made[0].numel() == 0:
        raise error(f"expected at least one row and one feature in {name}, got {tuple(made.shape)}")
    if columns is not None and tuple(made.shape[1:]) != columns:
        raise error(
            f"expected {name} with features of shape {columns}, as in x; got "
            f"{tuple(made.shape[1:])}"
        )
    return finite(made.double(), name, error=error)


def vector(value: Any, name: str, *, error: Error = PoolError) -> Float[np.ndarray, " k"]:
    """A list of numbers as float64; NaN may be among them.

    >>> vector([1, 2], "gains")
    array([1., 2.])
    """
    if type(value) is np.ndarray and value.dtype == np.float64 and value.ndim == 1:
        return value
    made = numbers(value, name, error=error)
    if made.ndim != 1:
        raise error(f"expected {name} as a list of numbers, got shape {tuple(made.shape)}")
    return made.double().numpy()


def finite(value: Tensor, name: str, *, error: Error = PoolError) -> Tensor:
    """The same numbers, if none of them is NaN or infinite."""
    bad = ~torch.isfinite(value)
    if not bool(bad.any()):
        return value
    bad = bad.reshape(len(value), -1) if value.ndim else bad.reshape(1, 1)
    rows = bad.any(1).nonzero().squeeze(1)
    first = ", ".join(str(row) for row in rows[:3].tolist())
    column = int(bad.any(0).nonzero()[0])
    raise error(
        f"expected finite numbers in {name}, got {int(bad.sum())} NaN or inf in {len(rows)} rows "
        f"(first rows {first}; first column {column}); drop or impute them"
    )
