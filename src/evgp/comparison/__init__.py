"""Compare strategies on labelled data, by networks that are trained on what each one picks."""

import warnings
from typing import TYPE_CHECKING

from evgp.comparison.page import PAGE as PAGE
from evgp.comparison.page import check_publishable as check_publishable
from evgp.comparison.page import publish as publish
from evgp.comparison.protocol import DatasetSource as DatasetSource
from evgp.comparison.protocol import Protocol as Protocol
from evgp.comparison.rows import MEASURES as MEASURES
from evgp.comparison.rows import Row as Row
from evgp.comparison.rows import read_rows as read_rows
from evgp.comparison.run import compare as compare
from evgp.comparison.run import play_cell as play_cell
from evgp.comparison.statistics import summarise as summarise
from evgp.comparison.summary import Comparison as Comparison

_FORMER = {"Subject": DatasetSource, "Terms": Protocol}  # to be removed after one release


if not TYPE_CHECKING:  # a type checker would otherwise accept any misspelt name

    def __getattr__(name: str) -> object:
        if name not in _FORMER:
            raise AttributeError(f"module 'evgp.comparison' has no attribute {name!r}")
        now = _FORMER[name]
        warnings.warn(
            f"evgp.comparison.{name} is now evgp.comparison.{now.__name__}; the old name will be "
            "removed in the next release.",
            DeprecationWarning,
            stacklevel=2,
        )
        return now
