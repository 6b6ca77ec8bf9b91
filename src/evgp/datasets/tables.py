"""Tables from files: CSV, TSV, Parquet, Arrow and NumPy, each with errors a person can act on."""

import os
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
from jaxtyping import Float

from evgp._errors import DatasetError
from evgp._reading import check_plain
from evgp.datasets.arrays import check_columns, read_npy, read_npz
from evgp.datasets.columns import is_number, plain, to_numbers
from evgp.datasets.csv import read_separated
from evgp.datasets.parquet import parquet_rows, read_arrow, read_parquet

_SEPARATED = {".csv": ",", ".tsv": "\t", ".txt": ","}
_ARROW = (".arrow", ".feather", ".ipc")
# Letters of a column's name in a message.
_SHOWN = 40


@dataclass(frozen=True)
class Table:
    """Named columns of equal length, and the name of where they came from.

    >>> table = Table(pa.table({"a": [1, 2], "b": ["x", "y"]}), source="two.csv")
    >>> len(table), table.names
    (2, ('a', 'b'))
    """

    data: pa.Table
    source: str

    def __post_init__(self) -> None:
        check_names(self.data.column_names, self.source)

    def __len__(self) -> int:
        return int(self.data.num_rows)

    @property
    def names(self) -> tuple[str, ...]:
        """Column names in order."""
        return tuple(self.data.column_names)

    def column(self, name: str) -> pa.ChunkedArray:
        """One column by name."""
        if place_of(self.data.schema, name) < 0:
            raise no_column(self.source, name, self.names)
        return self.data.column(name)

    def cells(self, name: str) -> "Cells":
        """One column, to be read cell by cell."""
        return Cells(self.column(name))

    def numbers(self, name: str) -> Float[np.ndarray, " n"]:
        """One column as float64, where every cell must be a number.

        >>> Table(pa.table({"price": [1, 2]}), source="two.csv").numbers("price")
        array([1., 2.])
        """
        return checked_numbers(self.source, name, self.column(name))


@dataclass(frozen=True)
class Cells:
    """A column whose cells are read one at a time, as plain values.

    >>> Cells(pa.chunked_array([[1.5, None]]))[0]
    1.5
    """

    column: pa.ChunkedArray

    def __len__(self) -> int:
        return len(self.column)

    def __getitem__(self, index: int, /) -> object:
        return plain(self.column.slice(index, 1))[0].as_py()


def place_of(schema: pa.Schema, name: str) -> int:
    r"""The place of a column, or -1; a name that is no text, as of a broken argument, has none.

    >>> place_of(pa.schema([("a", pa.int64())]), "\udcff")
    -1
    """
    try:
        return int(schema.get_field_index(name))
    except UnicodeEncodeError:
        return -1


def check_names(names: Sequence[str], source: str) -> None:
    """Refuse columns of which two have one name."""
    doubled = [name for name, count in Counter(names).items() if count > 1]
    if doubled:
        raise DatasetError(
            f"{source}: expected different column names, got {quoted(doubled)} more than once; "
            "rename the columns"
        )


def checked_numbers(
    source: str, name: str, column: pa.ChunkedArray, first: int = 0
) -> Float[np.ndarray, " n"]:
    """Cells as float64, where every one must be a number; the first row has the number `first`."""
    if not is_number(column.type):
        raise DatasetError(f"{source}: expected numbers in column {name!r}, got {column.type}")
    return all_finite(source, name, to_numbers(column), first)


def all_finite(
    source: str, name: str, values: Float[np.ndarray, " n"], first: int
) -> Float[np.ndarray, " n"]:
    """The same numbers, unless one is missing or infinite; the first row has the number `first`."""
    bad = np.flatnonzero(~np.isfinite(values))
    if len(bad):
        raise DatasetError(
            f"{source}: expected a number in each row of column {name!r}, got {len(bad)} missing "
            f"or infinite, first in row {first + bad[0]} (rows count from 0)"
        )
    return values


def read_table(
    path: str | Path,
    *,
    delimiter: str | None = None,
    array: str | None = None,
    text: Sequence[str] = (),
) -> Table:
    """Read a table of any known kind, by the end of its name.

    `delimiter` is for CSV, `array` names an array of an npz archive, and the columns in `text` are
    taken from a CSV as they are written, so that an id keeps its leading zeros.
    """
    path = Path(path)
    check_file(path)
    suffix, packed = _suffix(path)
    if array is not None and suffix != ".npz":
        raise DatasetError(
            f"{path}: expected an .npz file, the only kind that array= is for; leave out "
            f"array={array!r}"
        )
    try:
        if suffix in _SEPARATED:
            data = read_separated(
                path, delimiter or _SEPARATED[suffix], packed, text, delimiter is None
            )
        elif suffix == ".npy":
            data = _named(read_npy(path), str(path))
        elif suffix == ".npz":
            data = _named(read_npz(path, array), str(path))
        else:
            data = read_parquet(path) if suffix == ".parquet" else read_arrow(path)
            if suffix == ".parquet" and data.num_rows != parquet_rows(path):
                raise damaged(path, suffix)
        data.column_names  # noqa: B018  letters of no alphabet show when they are asked for
    except UnicodeDecodeError as error:
        raise damaged(path, suffix) from error
    except OSError as error:
        # Arrow reports a damaged file as an OSError without a number.
        if error.errno is None:
            raise damaged(path, suffix) from error
        raise DatasetError(f"{path}: cannot be read: {os.strerror(error.errno).lower()}") from error
    except pa.ArrowException as error:
        raise damaged(path, suffix) from error
    if data.num_rows == 0:
        raise DatasetError(f"{path}: expected rows of data, got column names only")
    return Table(data, str(path))


def check_file(path: Path, what: str = "a table") -> None:
    """Refuse anything but a plain, readable file with something in it."""
    if check_plain(path) == 0:
        raise DatasetError(f"{path}: expected {what}, got an empty file")


def _suffix(path: Path) -> tuple[str, bool]:
    packed = path.suffix.lower() == ".gz"
    suffix = Path(path.stem).suffix.lower() if packed else path.suffix.lower()
    known = tuple(_SEPARATED) if packed else (*_SEPARATED, ".parquet", *_ARROW, ".npy", ".npz")
    if suffix not in known:
        raise DatasetError(
            f"{path}: expected a name that ends in .csv, .tsv (also with .gz), .parquet, .arrow, "
            ".feather, .npy or .npz; save the table as one of these"
        )
    return suffix, packed


def _named(x: Float[np.ndarray, "n d"], source: str) -> pa.Table:
    check_columns(x.shape[1], source)
    # Column by column in memory, so that Arrow can hold the columns without a copy.
    x = np.asfortranarray(x)
    return pa.table({f"x{j}": x[:, j] for j in range(x.shape[1])})


def damaged(path: str | Path, suffix: str) -> DatasetError:
    """What to say of a file that cannot be what its name says."""
    kind = {".parquet": "a Parquet", ".npy": "an npy", ".npz": "an npz"}.get(suffix, "an Arrow")
    if suffix in _SEPARATED:
        kind = "a text"
    return DatasetError(
        f"{path}: expected {kind} file, got one that is cut short, damaged or of another kind; "
        "write it again"
    )


def no_column(source: str, name: str, names: Sequence[str]) -> DatasetError:
    """What to say of a column that is not there."""
    return DatasetError(f"{source}: expected a column {name!r}, got {quoted(names)}")


def quoted(names: Sequence[str]) -> str:
    """The first few names of a longer list, and of each its first letters.

    >>> quoted(["a", "b" * 99])
    "'a', 'bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb...'"
    """
    short = [name if len(name) <= _SHOWN else f"{name[:_SHOWN]}..." for name in names[:8]]
    shown = ", ".join(map(repr, short))
    return shown + (f" and {len(names) - 8} more" if len(names) > 8 else "")
