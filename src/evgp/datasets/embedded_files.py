"""Texts of pools in files: embedded a block at a time, into files that are read in their place."""

import shutil
import warnings
from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, fields
from pathlib import Path

import numpy as np
import pyarrow as pa
from jaxtyping import Float, Int

from evgp._executor import Progress, silent
from evgp.datasets.cache import array_file, cache_folder, verify
from evgp.datasets.embedding import embedded, key_of
from evgp.datasets.options import ReadOptions, split
from evgp.datasets.streamed import StreamedTable, find, open_as_is, open_tables
from evgp.datasets.tables import Table
from evgp.datasets.text import TextColumns, text_columns, texts_of
from evgp.datasets.vector_cache import VectorCache
from evgp.embedders.embedder import Embedder, hashed
from evgp.errors import DamageWarning, DatasetError, UnreadableFile

_ROWS = 4_096  # rows of a file of vectors
_READ = 64  # rows that are read at once, as texts may be long
_LOOKED_AT = 1_000  # rows in which free text is looked for


@dataclass(frozen=True)
class EmbeddedTable(StreamedTable):
    """Rows in files whose texts are read as vectors, which take the place of a column of text.

    `blocks` are the names of the files of vectors in `folder`, one for each 4,096 rows. `given` are
    the rows as they are in their files.
    """

    given: StreamedTable = field(kw_only=True)
    texts: tuple[str, ...] = field(kw_only=True)
    folder: Path = field(kw_only=True)
    blocks: tuple[str, ...] = field(kw_only=True)

    def digest(self, file: str) -> str:
        """Return a hash of all bytes of a file, and of how its texts are embedded."""
        return hashed(super().digest(file), self.texts, self.folder.name)

    def raw(
        self, start: int, stop: int, size: int, columns: Sequence[str]
    ) -> Iterator[tuple[int, pa.Table]]:
        """Yield the rows of a range, with vectors for texts, cut at the multiples of `size`."""
        plain = [name for name in columns if name != self.texts[0]]
        if plain == list(columns):
            yield from super().raw(start, stop, size, columns)
        elif plain:
            for first, table in super().raw(start, stop, size, plain):
                yield first, self._joined(np.arange(first, first + len(table)), columns, table)
        else:
            self.ranges.check_range(start, stop, self.name)
            for first in [*range(start, stop)[:1], *range((start // size + 1) * size, stop, size)]:
                rows = np.arange(first, min(stop, (first // size + 1) * size))
                yield first, self._joined(rows, columns, None)

    def raw_at(self, rows: Int[np.ndarray, " r"], columns: Sequence[str]) -> pa.Table:
        """Return a few rows, with vectors for texts, in the given order."""
        plain = [name for name in columns if name != self.texts[0]]
        if plain == list(columns):
            return super().raw_at(rows, columns)
        self.ranges.check_rows(rows, self.name)
        return self._joined(rows, columns, super().raw_at(rows, plain) if plain else None)

    def _joined(
        self, rows: Int[np.ndarray, " r"], columns: Sequence[str], plain: pa.Table | None
    ) -> pa.Table:
        kind = self.layout.schema.field(self.texts[0]).type
        x = np.empty((len(rows), kind.list_size), np.float32)
        for block in np.unique(rows // _ROWS).tolist():
            inside = rows // _ROWS == block
            x[inside] = self._block(block)[rows[inside] - block * _ROWS, :-1]
        cells = {} if plain is None else dict(zip(plain.column_names, plain.columns, strict=True))
        cells[self.texts[0]] = pa.FixedSizeListArray.from_arrays(pa.array(x.ravel()), type=kind)
        return pa.table({name: cells[name] for name in columns})

    def _block(self, block: int) -> Float[np.ndarray, "r e"]:
        path = self.folder / f"{self.blocks[block]}.npy"
        try:
            return np.load(path, mmap_mode="r", allow_pickle=False)
        except (OSError, ValueError) as error:
            why = "the vectors of its texts were removed or damaged"
            raise UnreadableFile.of(DatasetError)(str(path), why, "run again") from error


def texts_in_files(place: str | Path, options: ReadOptions) -> TextColumns | None:
    """Return the columns of text of a pool in files, by its first rows, with their embedder."""
    plain = open_as_is(place)
    if not isinstance(plain, StreamedTable):
        return None
    left_out = [*split(options.drop, plain.columns), options.id, options.costs]
    if options.column is not None:
        left_out += [name for name in plain.columns if name != options.column]
    looked_at = plain.raw(0, min(len(plain), _LOOKED_AT), _READ, plain.columns)
    first = pa.concat_tables([table for _, table in looked_at])
    wanted = split(options.text, plain.columns)
    names = text_columns(
        Table(first, plain.name),
        wanted,
        [name for name in left_out if name is not None],
        options.max_categories,
        options.embed,
    )
    if not names:
        return None
    every = (text for _, texts in _blocks(plain, names) for text in texts)
    return TextColumns.learn(names, every, options.embed)


@dataclass(frozen=True)
class OpenedTexts:
    """A pool whose texts were embedded, with notes on them, and the rows without text."""

    pool: EmbeddedTable
    notes: tuple[str, ...]
    empty: tuple[int, ...]


def open_embedded(
    place: str | Path,
    columns: TextColumns,
    options: ReadOptions,
    *,
    like: Collection[str] | None = None,
    progress: Progress = silent,
) -> OpenedTexts:
    """Open a pool in files with vectors in place of texts; embed those that are not in the cache.

    What was embedded is kept, by the content of each block of rows, also if the run is killed.
    """
    files, plain = find(place), open_as_is(place)
    assert isinstance(plain, StreamedTable)
    fingerprint = columns.embedder.fingerprint()
    folder = cache_folder() / "embeddings" / f"{fingerprint}-rows"
    blocks, empty, cut, width = [], [], 0, 0
    for first, texts in _blocks(plain, columns.names):
        name = key_of(b"".join(key_of(_bytes(text)) for text in texts)).hex()

        def heard(what: str, done: int, of: int, at: int = first, count: int = len(texts)) -> None:
            progress(what, at + done * count // of, len(plain))

        block = _read(folder / f"{name}.npy", fingerprint, len(texts))
        if block is None:
            block = _embedded(columns.embedder, texts, VectorCache(name, folder), heard)
            with array_file(folder / f"{name}.npy", block.shape, "float32", fingerprint) as array:
                array[:] = block
            shutil.rmtree(folder / name, ignore_errors=True)
        width, cut = block.shape[1] - 1, cut + int(block[:, -1].sum())
        empty += [first + row for row, text in enumerate(texts) if not text]
        blocks.append(name)
    schema, text = plain.layout.schema, columns.names[0]
    at, kind = schema.get_field_index(text), pa.list_(pa.float32(), width)
    named = [options.id, options.costs, *split(options.drop, plain.columns)]
    pool = open_tables(
        files,
        [name for name in (*named, *columns.names[1:]) if name is not None and like is None],
        options.max_categories,
        options.scale,
        options.impute,
        column=options.column,
        like=like,
        schema=schema.set(at, pa.field(text, kind)),
    )
    own = {part.name: getattr(pool, part.name) for part in fields(StreamedTable)}
    opened = EmbeddedTable(
        **own, given=plain, texts=columns.names, folder=folder, blocks=tuple(blocks)
    )
    said = columns.described(width, bool(options.text))
    return OpenedTexts(opened, (said, *columns.noted(empty, cut, len(plain))), tuple(empty))


def _blocks(plain: StreamedTable, names: Sequence[str]) -> Iterator[tuple[int, list[str]]]:
    texts: list[str] = []
    for first, table in plain.raw(0, len(plain), min(_READ, _ROWS), names):
        texts += texts_of(Table(table, plain.name), names)
        end = first + len(table)
        if end % _ROWS == 0 or end == len(plain):
            yield end - len(texts), texts
            texts = []


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _read(path: Path, fingerprint: str, rows: int) -> Float[np.ndarray, "r e"] | None:
    """Return a block of vectors of the cache; None if it is not there, or damaged."""
    try:
        verify(path, fingerprint)
        block = np.load(path, mmap_mode="r", allow_pickle=False)
        if block.ndim == 2 and len(block) == rows and block.dtype == np.float32:
            return block
        raise DatasetError("it holds something else")
    except FileNotFoundError:
        return None
    except (DatasetError, OSError, ValueError) as error:
        warnings.warn(
            f"{path} was damaged ({error}); its vectors are computed again",
            DamageWarning,
            stacklevel=2,
        )
        with suppress(OSError):
            path.unlink(missing_ok=True)
        return None


def _embedded(
    embedder: Embedder, texts: Sequence[str], parts: VectorCache, progress: Progress
) -> Float[np.ndarray, "r e"]:
    """Return the vectors of a block, each followed by whether its text was cut.

    `parts` keeps what is done until the block is complete.
    """
    result = embedded(
        embedder,
        [key_of(_bytes(text)) for text in texts],
        lambda rows: [texts[row] for row in rows],
        size=lambda row: len(texts[row]),
        progress=progress,
        cache=parts,
    )
    parts.folder.parent.mkdir(parents=True, exist_ok=True)
    return np.column_stack([result.x, result.cut]).astype(np.float32)
