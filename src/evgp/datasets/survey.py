"""What one pass over a range of rows learns, in parts that are merged."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np
import pyarrow as pa

from evgp._errors import DatasetError
from evgp._linalg import BLOCK
from evgp.datasets import _holes, _words
from evgp.datasets._holes import Hole
from evgp.datasets._moments import Moments

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
                _words.check(self.source, name, counts, rows, self.most, whole=rows == self.total)

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
            {name: _words.joined(self.words[name], other.words[name]) for name in self.words},
            _holes.joined(self.holes, other.holes),
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
