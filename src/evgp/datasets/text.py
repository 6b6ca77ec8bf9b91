"""Columns of free text: recognised, and replaced by a column of vectors."""

import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, fields

import numpy as np
import pyarrow as pa
from jaxtyping import Float

from evgp._executor import Progress, silent
from evgp._reading import check_memory
from evgp.datasets.checks import several_words
from evgp.datasets.columns import counted, is_category, to_objects, to_text
from evgp.datasets.embedding import embedded, key_of
from evgp.datasets.encode import Encoder
from evgp.datasets.options import ReadOptions, split
from evgp.datasets.tables import Table
from evgp.datasets.vectors import is_vector
from evgp.embedders import Embedder, Tfidf, embedder_of
from evgp.errors import DatasetError, DataWarning, SeveralTexts, UnusableColumn, quoted


def is_free_text(cells: pa.ChunkedArray, most: int) -> bool:
    """Whether a column holds many distinct values of several words.

    Many are more than `most`, the maximum of a categorical column, or than half of the rows.

    >>> is_free_text(pa.chunked_array([["the cat sat down", "a dog ran off"]]), most=50)
    True
    >>> is_free_text(pa.chunked_array([["A. Miller", "B. Smith"]]), most=50)
    False
    """
    if not is_category(cells.type) or pa.types.is_boolean(cells.type):
        return False
    values = [text for text in dict.fromkeys(to_objects(to_text(cells))) if text]
    if len(values) < 2 or len(values) <= min(most, len(cells) // 2):
        return False
    return several_words(values)


def text_columns(
    table: Table,
    wanted: Sequence[str],
    left_out: Sequence[str],
    most: int,
    embed: object = None,
) -> tuple[str, ...]:
    """Return the columns to embed: those that were named, or the only column of free text.

    Next to a column of lists, free text is not embedded unless it was named.
    """
    for name in wanted:
        column = table.column(name)
        if pa.types.is_null(column.type):
            raise _without_text(table, [name])
        if not is_category(column.type) or pa.types.is_boolean(column.type):
            raise UnusableColumn(table.source, name, "text", str(column.type), "check text=")
        if name in left_out:
            raise DatasetError(
                f"{table.source}: expected text={name!r} as a feature, got it left out by id=, "
                "drop=, costs= or column= too; name it once"
            )
    if wanted:
        return tuple(wanted)
    names = [name for name in table.names if name not in left_out]
    free = free_columns(table, left_out, most, embed)
    if len(free) > 1:
        raise SeveralTexts(table.source, tuple(free))
    if embed is not None and not free:
        raise DatasetError(
            f"{table.source}: expected a column of free text for embed=, got none among "
            f"{quoted(names)}; name it with text="
        )
    return tuple(free)


def _without_text(table: Table, names: Sequence[str]) -> DatasetError:
    column, advice = ",".join(names), "choose another with text=, or check how the file was written"
    return UnusableColumn(table.source, column, "text", "none in any row", advice)


def free_columns(
    table: Table, left_out: Sequence[str], most: int, embed: object = None
) -> list[str]:
    """Return the columns of free text; none next to a column of lists without an embedder."""
    names = [name for name in table.names if name not in left_out]
    if embed is None and any(is_vector(table.column(name).type) for name in names):
        return []
    return [name for name in names if is_free_text(table.column(name), most)]


@dataclass(frozen=True, eq=False)
class TextColumns:
    """Columns of text that are embedded together; the vectors take the place of the first."""

    names: tuple[str, ...]
    embedder: Embedder

    @classmethod
    def learn(cls, names: Sequence[str], texts: Iterable[str], embed: object) -> "TextColumns":
        """Return the columns with their embedder, which may learn from their texts."""
        embedder = embedder_of("tfidf" if embed is None else embed, "text")
        if isinstance(embedder, Tfidf):
            return cls(tuple(names), embedder.fit(texts))
        return cls(tuple(names), embedder)

    def replaced(
        self, table: Table, progress: Progress = silent
    ) -> tuple[Table, list[str], list[int]]:
        """Return the table with vectors in place of the texts, notes, and rows without text."""
        texts = texts_of(table, self.names)
        keys = [key_of(text.encode("utf-8", "surrogatepass")) for text in texts]
        result = embedded(
            self.embedder,
            keys,
            lambda rows: [texts[row] for row in rows],
            size=lambda row: len(texts[row]),
            progress=progress,
            source=table.source,
        )
        empty = [row for row, text in enumerate(texts) if not text]
        notes = self.noted(empty, int(result.cut.sum()), len(texts))
        return self._with(table, result.x), notes, empty

    def noted(self, empty: Sequence[int], cut: int, rows: int) -> list[str]:
        """Return the notes on rows without text, and on texts that were cut."""
        notes = empty_noted(self.names, empty, rows)
        if cut:
            count, be = f"{cut:,} of {counted(rows, 'text')}", "was" if cut == 1 else "were"
            notes.append(
                f"{_columns(self.names)}: {count} {be} cut at {self.embedder.limit()}, where "
                f"{self.embedder.name} stops reading"
            )
        return notes

    def named_in(self, note: str) -> str:
        """Return a note of the encoder on the vectors, with the names of all columns."""
        first = f"column {self.names[0]!r}: its"
        return note.replace(first, f"{_columns(self.names)}: their") if self.names[1:] else note

    def described(self, width: int, chosen: bool) -> str:
        """Return the note on how the texts are used; `chosen` says that the user named them."""
        what = _columns(self.names) + (", joined" if self.names[1:] else "")
        free = "" if chosen else " of free text"
        more = "" if chosen else "; pass text= for other columns, embed= for another embedder"
        return f"{what}{free}: embedded by {self.embedder.name} ({width:,} numbers each){more}"

    def _with(self, table: Table, x: Float[np.ndarray, "n d"]) -> Table:
        flat = pa.array(np.ascontiguousarray(x).reshape(-1))
        column = pa.FixedSizeListArray.from_arrays(flat, x.shape[1])
        place = table.data.schema.get_field_index(self.names[0])
        data = table.data.set_column(place, self.names[0], column)
        return Table(data.drop_columns(list(self.names[1:])), table.source)


@dataclass(frozen=True)
class TextEncoder(Encoder):
    """An encoder for tables with columns of text, which it embeds as those of the pool."""

    texts: TextColumns = field(kw_only=True)

    @classmethod
    def of(cls, encoder: Encoder, texts: TextColumns) -> "TextEncoder":
        """Return an encoder of tables in which the texts are still texts."""
        parts = {part.name: getattr(encoder, part.name) for part in fields(encoder)}
        return cls(**parts, texts=texts)

    @property
    def words(self) -> tuple[str, ...]:
        """Names of the columns that must be read from a CSV file as text."""
        return (*super().words, *self.texts.names)

    def transform(self, table: Table) -> Float[np.ndarray, "n d"]:
        """Encode a table whose texts are still texts."""
        vectors, notes, _ = self.texts.replaced(table)
        for note in notes:
            words = note.removesuffix(" and cannot be picked")
            warnings.warn(f"{table.source}: {words}", DataWarning, stacklevel=2)
        return super().transform(vectors)


def empty_noted(names: Sequence[str], empty: Sequence[int], rows: int) -> list[str]:
    """Return the note on rows without text in these columns."""
    if not empty:
        return []
    count = f"{len(empty):,} of {counted(rows, 'row')} {'has' if len(empty) == 1 else 'have'}"
    return [f"{_columns(names)}: {count} no text (first: row {empty[0]}) and cannot be picked"]


def _columns(names: Sequence[str]) -> str:
    return f"column {names[0]!r}" if len(names) == 1 else f"columns {quoted(names)}"


def texts_of(table: Table, names: Sequence[str]) -> list[str]:
    """Return the texts of some columns, joined by line breaks; a missing text is empty.

    >>> texts_of(Table(pa.table({"a": ["x", None], "b": [" y", "z "]}), "two.csv"), ["a", "b"])
    ['x\\ny', 'z']
    """
    columns = []
    for name in names:
        cells = table.column(name)
        if not is_category(cells.type):
            # In a CSV file, a column without any text is read as numbers or nulls.
            if not pa.types.is_null(cells.type):
                raise UnusableColumn(table.source, name, "text", str(cells.type), "check text=")
            columns.append([""] * len(cells))
            continue
        check_memory(2 * cells.nbytes, table.source)
        columns.append([(text or "").strip() for text in to_objects(to_text(cells))])
    return ["\n".join(part for part in parts if part) for parts in zip(*columns, strict=True)]


@dataclass(frozen=True, eq=False)
class TextPart:
    """A table whose texts, if it has any, were replaced by vectors, with notes about them."""

    table: Table
    columns: TextColumns | None = None
    left_out: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    empty: tuple[int, ...] = ()

    @classmethod
    def of(
        cls, table: Table, options: ReadOptions, left_out: Sequence[str], progress: Progress
    ) -> "TextPart":
        """Embed the columns that were named, or the only column of free text."""
        names_given = split(options.text, table.names)
        most, embed = options.max_categories, options.embed
        names = text_columns(table, names_given, left_out, most, embed)
        if not names:
            return cls(table)
        texts = texts_of(table, names)
        different = set(texts)
        if different == {""}:
            raise _without_text(table, names)
        if len(different) < 2:
            note = f"dropped column {quoted(names)}: the same text in every row"
            return cls(table, left_out=names, notes=(note,))
        columns = TextColumns.learn(names, texts, embed)
        vectors, notes, empty = columns.replaced(table, progress)
        width = vectors.column(names[0]).type.list_size
        note = columns.described(width, bool(names_given))
        return cls(vectors, columns, notes=(note, *notes), empty=tuple(empty))
