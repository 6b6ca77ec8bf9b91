"""Pools larger than memory: files that are read a block at a time."""

from collections.abc import Sequence
from pathlib import Path

from evgp._checks import flag, integer, word, words
from evgp._errors import DatasetError
from evgp.datasets._found import NPY, find
from evgp.datasets._streamed_arrays import open_arrays
from evgp.datasets._streamed_tables import open_tables
from evgp.datasets.fitted import Streamed


def open_pool(
    where: str | Path | Sequence[str | Path],
    *,
    id: str | None = None,
    drop: Sequence[str] = (),
    costs: str | None = None,
    impute: bool = False,
    max_categories: int = 50,
    standardise: bool = True,
) -> Streamed:
    """A pool in Parquet, Arrow or npy files, of which only the metadata is read yet.

    `where` is a file, a folder, a list of files, or the address of Parquet files for fsspec. The
    columns named by `id`, `drop` and `costs` are no features. With `impute`, the mean of a column
    of numbers and the most frequent word stand for cells without a value.

    >>> import numpy as np, tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> np.save(folder / "a.npy", np.array([[1.0, 5.0], [3.0, 9.0]]))
    >>> np.save(folder / "b.npy", np.array([[3.0, 5.0], [1.0, 9.0]]))
    >>> pool = open_pool(folder)
    >>> len(pool), pool.shape
    (4, (2,))
    >>> fitted = pool.fitted(pool.survey(0, 4, rows=np.array([0, 3])))
    >>> fitted.sample
    array([[-1., -1.],
           [-1.,  1.]])
    >>> [(first, len(x)) for first, x in fitted.blocks(1, 4, size=2)]
    [(1, 1), (2, 2)]
    """
    found = find(where)
    for name, given in (("id", id), ("costs", costs)):
        if given is not None:
            word(given, name, error=DatasetError)
    drop = words(drop, "drop", error=DatasetError)
    flag(impute, "impute", error=DatasetError)
    flag(standardise, "standardise", error=DatasetError)
    max_categories = integer(max_categories, "max_categories", 1, error=DatasetError)
    named = [name for name in (id, *drop, costs) if name is not None]
    left_out = tuple(dict.fromkeys(named))
    pool: Streamed
    if found.kind == NPY:
        if impute:
            raise DatasetError(f"{found.name}: impute is for tables, got an array; fill it in")
        pool = open_arrays(found, left_out, standardise)
    else:
        pool = open_tables(found, left_out, max_categories, standardise, impute)
    if costs is not None:
        pool.numbers(costs, 0, 0)  # refuses a column of words before anything is read
    return pool
