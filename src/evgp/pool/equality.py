"""Equality of records that hold arrays, for which that of a dataclass raises."""

from collections.abc import Mapping
from dataclasses import fields
from math import isnan
from typing import Any

import numpy as np


def same_fields(one: Any, other: Any) -> bool:
    """Whether two records of one class are equal, field by field."""
    return all(_same(getattr(one, each.name), getattr(other, each.name)) for each in fields(one))


def _same(one: object, other: object) -> bool:
    """Whether two values are equal; NaN is equal to NaN."""
    if isinstance(one, np.ndarray) or isinstance(other, np.ndarray):
        both = np.asarray(one), np.asarray(other)
        return np.array_equal(*both, equal_nan=all(array.dtype.kind == "f" for array in both))
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        return one.keys() == other.keys() and all(_same(one[key], other[key]) for key in one)
    if isinstance(one, list | tuple) and type(one) is type(other):
        return len(one) == len(other) and all(map(_same, one, other))
    if isinstance(one, float) and isinstance(other, float) and isnan(one):
        return isnan(other)
    return bool(one == other)
