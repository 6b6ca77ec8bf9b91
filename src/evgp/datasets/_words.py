"""Columns of words: how often each occurs, and whether they are categories."""

from collections.abc import Mapping

import numpy as np
import pyarrow as pa

from evgp._errors import DatasetError
from evgp.datasets import _looks
from evgp.datasets._columns import Category, word_table

# Letters of a word that may still be the name of a category.
_LONGEST = 1_000


def counts_of(words: pa.ChunkedArray) -> dict[str, int]:
    """How often each word occurs, in the order of their first rows.

    >>> counts_of(pa.chunked_array([["b", "a", None, "b"]]))
    {'b': 2, 'a': 1}
    """
    total: dict[str, int] = {}
    for chunk in words.chunks:
        values, rows = word_table(chunk)
        found, first, count = np.unique(rows[rows >= 0], return_index=True, return_counts=True)
        order = np.argsort(first)
        words_here = values.take(pa.array(found[order])).to_pylist()
        for word, times in zip(words_here, count[order].tolist(), strict=True):
            total[word] = total.get(word, 0) + times
    return total


def joined(one: Mapping[str, int], other: Mapping[str, int]) -> dict[str, int]:
    """The counts of two runs of rows, the first one before the other.

    >>> joined({"b": 2}, {"a": 1, "b": 1})
    {'b': 3, 'a': 1}
    """
    total = dict(one)
    for word, count in other.items():
        total[word] = total.get(word, 0) + count
    return total


def check(
    source: str,
    name: str,
    counts: Mapping[str, int],
    rows: int,
    most: int,
    *,
    written: bool = True,
    whole: bool = True,
) -> str:
    """Raise where words are not categories; otherwise what they may have been meant to be.

    `written` is False for true and false; `whole` is False while further rows are to come.
    """
    if (longest := max(map(len, counts), default=0)) > _LONGEST:
        raise DatasetError(
            f"{source}: expected numbers or categories in column {name!r}, got text of up to "
            f"{longest:,} letters; leave it out with drop={name!r}"
        )
    if not whole and len(counts) <= most:
        return ""
    hint = _looks.of_words(name, counts)
    differ = len(counts) == rows and written
    if hint and (differ or len(counts) > most):
        raise DatasetError(
            f"{source}: {hint}; correct it, or leave the column out with drop={name!r}"
        )
    if differ:
        raise DatasetError(
            f"{source}: expected numbers or categories in column {name!r}, got another word in "
            f"each of {rows:,} rows; use id={name!r} or drop={name!r}"
        )
    if len(counts) > most:
        seen = "" if whole else f" in {rows:,} of the rows"
        raise DatasetError(
            f"{source}: expected at most {most} categories in column {name!r}, got "
            f"{len(counts):,}{seen}; use drop={name!r}, or raise max_categories="
        )
    return hint


def category(name: str, counts: Mapping[str, int], written: bool) -> Category:
    """The words in order, to be filled in with the commonest.

    >>> category("kind", {"b": 2, "a": 1}, written=True).features
    ('kind=a', 'kind=b')
    """
    commonest = min(counts, key=lambda word: (-counts[word], word))
    return Category(name, tuple(sorted(counts)), commonest, written)
