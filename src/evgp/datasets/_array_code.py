"""What the numbers of a streamed array are, and what a survey teaches of them."""

from dataclasses import dataclass
from functools import cached_property
from math import prod

import numpy as np
from jaxtyping import Float, Int, Shaped

from evgp._errors import DatasetError
from evgp.datasets import _holes
from evgp.datasets._columns import is_constant
from evgp.datasets._holes import Hole
from evgp.datasets._looks import Look, of_ends, of_looks
from evgp.datasets._moments import Moments
from evgp.datasets.encode import FILL, dropped, nothing, too_few
from evgp.datasets.fitted import Streamed
from evgp.datasets.survey import Raw, Survey
from evgp.datasets.tables import quoted


@dataclass(frozen=True)
class ArrayLayout:
    """Rows of one shape and type: columns x0, x1, ..., or channels with further axes.

    Constant columns are dropped, unless the shape is `fixed`; then they are zeros, as channels are.
    """

    source: str
    rows: int
    shape: tuple[int, ...]
    dtype: np.dtype
    left_out: tuple[str, ...] = ()
    standardise: bool = True
    fixed: bool = False

    @cached_property
    def columns(self) -> tuple[str, ...]:
        """Names of the columns; none where a row has more than one axis."""
        return tuple(f"x{at}" for at in range(self.shape[0])) if len(self.shape) == 1 else ()

    @cached_property
    def used(self) -> Int[np.ndarray, " p"]:
        """The places of the columns that become features, or of all channels."""
        out = [int(name[1:]) for name in self.left_out]
        return np.setdiff1d(np.arange(self.shape[0]), out)

    def survey(self, first: int, x: Raw, rows: Int[np.ndarray, " r"]) -> Survey:
        """Statistics of a block, and those of the sorted rows that lie in it."""
        values = as_float(x, self.used)
        holes = _in_array(values, self.used, first, self.columns)
        last = first + len(x)
        inside = slice(*np.searchsorted(rows, [first, last]))
        moments = Moments.of(values.transpose(1, 0, 2).reshape(len(self.used), -1))
        return Survey(self.source, first, last, moments, x[rows[inside] - first], {}, holes)

    def learn(self, survey: Survey) -> tuple["ArrayCode", list[str]]:
        """Scaling by column, or by channel, and notes on what looks odd."""
        if self.rows < 2:
            raise too_few(self.source, self.rows)
        _holes.refuse(survey.holes, self.source, FILL)
        moments, names = survey.moments, [_name(at, self.columns) for at in self.used.tolist()]
        made = moments.numbers(names, int(moments.count[0]), self.standardise)
        ends = list(zip(moments.low.tolist(), moments.high.tolist(), strict=True))
        flat = np.array([is_constant(one, *end) for one, end in zip(made, ends, strict=True)])
        constant = [name for name, is_flat in zip(names, flat, strict=True) if is_flat]
        notes = []
        kept = np.ones(len(made), dtype=bool)
        if self.standardise and constant:
            if flat.all():
                raise nothing(self.source, len(constant), len(self.left_out))
            droppable = bool(self.columns) and not self.fixed
            kept = ~flat if droppable else kept
            zero = f"{quoted(constant)}: the same number everywhere, taken as 0"
            notes.append(dropped(constant) if droppable else zero)
        if self.columns:
            notes += of_looks([Look(names[at], False, False, of_ends(made[at], *ends[at]))
                               for at in np.flatnonzero(kept & ~flat)])  # fmt: skip
        whole = self.dtype.kind in "iu" and not self.standardise
        if whole and moments.high.max() >= 2.0**63:
            raise DatasetError(
                f"{self.source}: expected whole numbers below 2^63, got {moments.high.max():.6g}; "
                "save them as int64"
            )
        wide = np.array([(one.scale, one.mean, one.std) for one in made])[kept]
        wide[flat[kept] & self.standardise, 2] = np.inf
        return ArrayCode(self, self.used[kept], wide[:, 0], wide[:, 1], wide[:, 2], whole), notes


@dataclass(frozen=True, eq=False)
class ArrayCode:
    """A scale for each column or channel that is kept; whole numbers may stay what they are."""

    layout: ArrayLayout
    kept: Int[np.ndarray, " p"]
    unit: Float[np.ndarray, " p"]
    mean: Float[np.ndarray, " p"]
    std: Float[np.ndarray, " p"]
    whole: bool = False

    @property
    def unchanged(self) -> bool:
        """Whether encoded rows are the floating point numbers that are in the files."""
        whole = len(self.layout.shape) == 1 and len(self.kept) == self.layout.shape[0]
        return whole and self.layout.dtype.kind == "f" and not self.layout.standardise

    @property
    def names(self) -> tuple[str, ...]:
        """Of the features; none where a row has more than one axis."""
        return tuple(self.layout.columns[at] for at in self.kept) if self.layout.columns else ()

    @property
    def sources(self) -> tuple[str, ...]:
        """The same: an array is read with all its columns."""
        return self.names

    @property
    def shape(self) -> tuple[int, ...]:
        """Of an encoded row."""
        return (len(self.kept), *self.layout.shape[1:])

    def encode(
        self, raw: Raw, first: int, source: str
    ) -> tuple[Shaped[np.ndarray, " n *d"], list[str]]:
        """Encoded rows; there are no words in an array."""
        if self.whole:
            return np.array(raw[:, self.kept], dtype=np.int64, order="C"), []
        x = as_float(raw, self.kept)
        _holes.refuse(_in_array(x, self.kept, first, self.layout.columns), source, FILL)
        if self.layout.standardise:
            x /= self.unit[:, None]
            x -= self.mean[:, None]
            x /= self.std[:, None]
        return x.reshape(len(x), *self.shape), []

    def check(self, other: Streamed) -> list[str]:
        """Refuse a pool of another shape."""
        layout = getattr(other, "layout", None)
        if not isinstance(layout, ArrayLayout) or layout.shape != self.layout.shape:
            raise DatasetError(
                f"{other.name}: expected rows of shape {self.layout.shape}, as in "
                f"{self.layout.source}, got {other.shape}; save both alike"
            )
        if self.whole and layout.dtype.kind not in "iu":
            raise DatasetError(
                f"{other.name}: expected whole numbers, as in {self.layout.source}, got "
                f"{layout.dtype}; save both alike"
            )
        return []


def as_float(x: Raw, places: Int[np.ndarray, " p"]) -> Float[np.ndarray, "n p s"]:
    """A fresh copy of some columns or channels in float64, with further axes made one."""
    some = x if len(places) == x.shape[1] else x[:, places]
    # A number beyond float64 becomes inf here, and is reported as such.
    with np.errstate(over="ignore"):
        return np.array(some, dtype=np.float64, order="C").reshape(
            len(x), len(places), prod(x.shape[2:])
        )


def _in_array(
    x: Float[np.ndarray, "n p s"], places: Int[np.ndarray, " p"], first: int, names: tuple[str, ...]
) -> tuple[Hole, ...]:
    if np.isfinite(x).all():
        return ()
    found: list[Hole] = []
    for at, place in enumerate(places.tolist()):
        for what, where in (("NaN", np.isnan(x[:, at])), ("infinite", np.isinf(x[:, at]))):
            rows = np.flatnonzero(where.any(axis=1))[:4] + first
            if len(rows):
                found.append(
                    Hole(_name(place, names), what, int(where.sum()), tuple(rows.tolist()))
                )
    return tuple(found)


def _name(place: int, names: tuple[str, ...]) -> str:
    return names[place] if names else f"channel {place}"
