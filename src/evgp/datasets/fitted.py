"""A pool that stays in its files: what one pass over it learns, and its rows as numbers."""

import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import ClassVar, Protocol, TypeAlias, runtime_checkable

import numpy as np
import pyarrow as pa
from jaxtyping import Float, Int, Shaped

from evgp._errors import DatasetError, DataWarning
from evgp._executor import Executor
from evgp._linalg import BLOCK
from evgp.datasets import findings
from evgp.datasets.columns import Moments
from evgp.datasets.findings import Hole

# Numbers looked at together.
_AT_ONCE = 2**22

# Rows as they are in files.
Raw: TypeAlias = pa.Table | np.ndarray


@dataclass(frozen=True, eq=False)
class Survey:
    """Statistics of the rows from start to stop, and some of these rows as they are.

    Surveys of 2^j blocks each, merged by `in_pairs`, are the same to the last digit whatever j.
    """

    source: str
    start: int
    stop: int
    moments: Moments
    sample: Raw
    words: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    holes: tuple[Hole, ...] = ()
    most: int = 50
    total: int = 0  # rows of the whole pool

    def __post_init__(self) -> None:
        rows = self.stop - self.start
        for name, counts in self.words.items():
            if len(counts) > self.most:
                findings.check(self.source, name, counts, rows, self.most, whole=rows == self.total)

    def merge(self, other: "Survey") -> "Survey":
        """The survey of both ranges, where the other begins at the end of this one."""
        if other.start != self.stop:
            raise DatasetError(
                f"{self.source}: expected a survey that begins at row {self.stop}, got one that "
                f"begins at {other.start}; merge them in order"
            )
        return Survey(
            self.source,
            self.start,
            other.stop,
            self.moments.merge(other.moments),
            _stacked(self.sample, other.sample),
            {name: findings.added(self.words[name], other.words[name]) for name in self.words},
            findings.joined(self.holes, other.holes),
            self.most,
            self.total,
        )


def _stacked(one: Raw, other: Raw) -> Raw:
    if isinstance(one, np.ndarray):
        return np.concatenate([one, other]) if len(other) else one
    return pa.concat_tables([one, other]) if len(other) else one


def step_of(width: int) -> int:
    """Rows surveyed together: a block, or a part of one where rows are wide.

    It is a power of two, so that the parts of a block are merged as a tree of their own.

    >>> step_of(20), step_of(3 * 224 * 224)
    (4096, 16)
    """
    step = BLOCK
    while step > 1 and step * width > _AT_ONCE:
        step //= 2
    return step


@runtime_checkable
class Streamed(Protocol):
    """Rows in one or many files, read a block at a time; no file stays open.

    Rows are counted through all files. Any process may hold a copy and read its own range. It says
    `in_files = True`.
    """

    in_files: ClassVar[bool]

    @property
    def name(self) -> str:
        """What to call it in messages."""

    @property
    def files(self) -> tuple[str, ...]:
        """Its files in order."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Of a row as it is in the files."""

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of all columns, where rows have any."""

    @property
    def widest(self) -> int:
        """The most numbers that an encoded row may have."""

    def __len__(self) -> int: ...

    def digest(self, file: str) -> str:
        """A hash of all bytes of a file."""

    def survey(self, start: int, stop: int, rows: Int[np.ndarray, " r"]) -> Survey:
        """Statistics of a range in one pass, and those of the sorted rows that lie in it."""

    def fitted(self, survey: Survey) -> "Fitted":
        """The pool with the scaling and categories of a survey of all rows."""

    def cells(self, column: str, rows: Int[np.ndarray, " r"]) -> list[object]:
        """Plain values of one column in a few rows, in the order given."""

    def numbers(self, column: str, start: int, stop: int) -> Float[np.ndarray, " n"]:
        """One column of a range as float64, where every cell must be a number."""

    def raw(
        self, start: int, stop: int, size: int, columns: Sequence[str]
    ) -> Iterator[tuple[int, Raw]]:
        """A range as it is in the files, cut at the multiples of a size."""

    def raw_at(self, rows: Int[np.ndarray, " r"], columns: Sequence[str]) -> Raw:
        """A few rows as they are in the files, in the order given."""


@runtime_checkable
class Code(Protocol):
    """From rows as they are in files to numbers."""

    @property
    def names(self) -> tuple[str, ...]:
        """Of the features, where they have any."""

    @property
    def sources(self) -> tuple[str, ...]:
        """Columns that it reads."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Of an encoded row."""

    @property
    def unchanged(self) -> bool:
        """Whether encoded rows are the floating point numbers that are in the files."""

    def encode(
        self, raw: Raw, first: int, source: str
    ) -> tuple[Shaped[np.ndarray, " n *d"], list[str]]:
        """Encoded rows, and columns with words that it does not know."""

    def check(self, other: Streamed) -> list[str]:
        """Refuse a pool that it cannot encode; notes on one that differs."""


@dataclass(frozen=True, eq=False)
class Fitted:
    """A pool with its scaling and categories, to be read as numbers.

    `kept` are the rows that the survey kept, as they are, and `notes` what looks odd.
    """

    pool: Streamed
    code: Code
    kept: Raw
    notes: tuple[str, ...] = ()

    @property
    def sample(self) -> Shaped[np.ndarray, " r *d"]:
        """The rows that the survey kept."""
        return self.sampled(np.arange(len(self.kept)))

    def sampled(self, rows: Int[np.ndarray, " s"]) -> Shaped[np.ndarray, " s *d"]:
        """Some of the rows that the survey kept."""
        some = self.kept[rows] if isinstance(self.kept, np.ndarray) else self.kept.take(rows)
        return self.code.encode(some, 0, self.pool.name)[0]

    def bare(self) -> "Fitted":
        """The same without these, to be sent elsewhere."""
        return Fitted(self.pool, self.code, self.kept[:0], self.notes)

    def __len__(self) -> int:
        return len(self.pool)

    @property
    def as_is(self) -> tuple[str, ...]:
        """The files, if their floating point numbers are the encoded rows; else none."""
        return self.pool.files if self.code.unchanged else ()

    def content(self, executor: Executor) -> str:
        """A hash of all that the files hold and of how they are read."""
        calls = [(self.pool, file) for file in self.pool.files]
        digests = executor.run(_digest, calls, list(self.pool.files))
        return blake2b(repr((digests, self.code)).encode(), digest_size=16).hexdigest()

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the features; none where samples have more than one axis."""
        return self.code.names

    @property
    def shape(self) -> tuple[int, ...]:
        """Of an encoded sample."""
        return self.code.shape

    def blocks(
        self, start: int, stop: int, size: int = BLOCK
    ) -> Iterator[tuple[int, Shaped[np.ndarray, " b *d"]]]:
        """The encoded rows of a range in order, cut at the multiples of a size.

        Each block comes with the number of its first row.
        """
        if size < 1:
            raise DatasetError(f"expected blocks of at least 1 row, got size={size}")
        told: set[str] = set()
        for first, raw in self.pool.raw(start, stop, size, self.code.sources):
            x, unknown = self.code.encode(raw, first, self.pool.name)
            self._tell([name for name in unknown if name not in told])
            told.update(unknown)
            yield first, x

    def take(self, rows: Int[np.ndarray, " r"]) -> Shaped[np.ndarray, " r *d"]:
        """A few encoded rows, in the order given."""
        raw = self.pool.raw_at(rows, self.code.sources)
        try:
            x, unknown = self.code.encode(raw, 0, self.pool.name)
        except DatasetError:
            # Once more row by row, for an error with the row's number in the pool.
            for at, row in enumerate(rows.tolist()):
                self.code.encode(raw[at : at + 1], row, self.pool.name)
            raise
        self._tell(unknown)
        return x

    def like(self, other: Streamed) -> "Fitted":
        """Another pool, such as test points, with the scaling and categories of this one."""
        for note in self.code.check(other):
            warnings.warn(f"{other.name}: {note}", DataWarning, stacklevel=2)
        return Fitted(other, self.code, self.kept[:0])

    def _tell(self, unknown: Sequence[str]) -> None:
        for name in unknown:
            warnings.warn(
                f"{self.pool.name}: column {name!r} holds words that the pool does not have; they "
                "count as none of its categories",
                DataWarning,
                stacklevel=3,
            )


def _digest(pool: Streamed, file: str) -> str:
    return pool.digest(file)
