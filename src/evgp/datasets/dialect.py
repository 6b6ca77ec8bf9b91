"""Recognise how a text file is written: its encoding and its delimiter."""

import codecs
import csv
import io
import re
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa

from evgp._reading import check_memory, opened
from evgp.errors import DatasetError, WrongFormat

DELIMITERS = ",;\t|"
NAMES = {"\t": "tab", " ": "space"}
_CHUNK = 2**24
# Number of bytes, and of lines, examined at the beginning of a file.
_HEAD, _LINES = 2**20, 200
# Bytes that cp1252 leaves undefined, while ISO 8859-1 has control characters there.
_NOT_CP1252 = re.compile(rb"[\x81\x8d\x8f\x90\x9d]")
# Bytes that never occur in text.
_CONTROL = re.compile(rb"[\x00-\x08\x0e-\x1a\x1c-\x1f]")
UTF8 = ("utf-8", "ascii")


def chunks(path: Path, content: pa.Buffer | None) -> Iterator[bytes]:
    """Yield the bytes of a file, or of its content in memory, in parts."""
    with opened(path) if content is None else pa.BufferReader(content) as stream:
        while chunk := stream.read(_CHUNK):
            yield bytes(chunk)


def encoding_of(path: Path, content: pa.Buffer | None) -> tuple[str, str]:
    """Recognise UTF-8, UTF-16 (also without its mark), and the encodings of Western Europe.

    A file in UTF-8 is read to its end, because the first invalid byte may be in its last line. The
    second item explains why it is not UTF-8.
    """
    decoder = codecs.getincrementaldecoder("utf-8")()
    line, wide, chunk = 1, 0, b""
    for number, chunk in enumerate(chunks(path, content)):
        if number == 0 and (encoding := _utf16(chunk[:_HEAD])):
            return encoding, ""
        try:
            text = decoder.decode(chunk)
        except UnicodeDecodeError:
            return _eight_bits(path, content, chunk, wide, line)
        wide += len(chunk) - len(text)
        line += chunk.count(b"\n")
    if decoder.getstate()[0]:  # the last character may be incomplete
        return _eight_bits(path, content, chunk, wide, line)
    return "utf-8", ""


def _utf16(head: bytes) -> str:
    """Return the kind of UTF-16 or UTF-32 that a file is in; empty if it is in neither."""
    if head.startswith((codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE)):
        return "utf-32"
    if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "utf-16"
    pairs = head[: len(head) // 2 * 2]
    zeros = [pairs[start::2].count(0) for start in (0, 1)]
    # In UTF-16 half of the bytes of plain letters and digits are zero; in UTF-8 none are.
    if max(zeros) > 0.4 * len(pairs) / 2 and min(zeros) == 0:
        return "utf-16-le" if zeros[1] else "utf-16-be"
    return ""


def _eight_bits(
    path: Path, content: pa.Buffer | None, chunk: bytes, wide: int, line: int
) -> tuple[str, str]:
    """Return the encoding of a file that is not UTF-8; refuse a file that mostly is."""
    text = chunk.decode("utf-8", errors="surrogateescape")
    strange = [at for at, char in enumerate(text) if "\udc80" <= char <= "\udcff"]
    wide += len(chunk) - len(text)
    if _CONTROL.search(chunk[:_HEAD]):
        raise WrongFormat.of(DatasetError)(str(path), "a text file", "binary data")
    line += text.count("\n", 0, strange[0])
    if wide > len(strange):
        raise WrongFormat.of(DatasetError)(
            str(path),
            "text in one encoding",
            f"UTF-8, but other bytes in line {line:,}",
            "fix that line, or pass encoding='cp1252' if the text is not UTF-8",
        )
    latin = any(_NOT_CP1252.search(part) for part in chunks(path, content))
    mixed = ", though others with accents are" if wide else ""
    return "iso-8859-1" if latin else "cp1252", f" (line {line:,} is the first not in UTF-8{mixed})"


def checked_encoding(name: str) -> str:
    """Return the standard name of an encoding; refuse one that Python does not know.

    >>> checked_encoding("UTF8"), checked_encoding("latin1")
    ('utf-8', 'iso8859-1')
    """
    try:
        codec = codecs.lookup(name)
        "".encode(codec.name)  # some codecs are not for text
    except (LookupError, ValueError) as error:
        raise DatasetError(
            f"expected an encoding such as 'utf-8', 'utf-16' or 'cp1252', got {name!r}"
        ) from error
    return "utf-8" if codec.name == "utf-8-sig" else codec.name


def recoded(path: Path, content: pa.Buffer | None, encoding: str) -> pa.Buffer:
    """Return a file, or its content in memory, in UTF-8."""
    decoder = codecs.getincrementaldecoder(encoding)()
    text = io.BytesIO()
    try:
        for chunk in chunks(path, content):
            text.write(decoder.decode(chunk).encode())
            check_memory(2 * text.tell(), str(path))
        text.write(decoder.decode(b"", final=True).encode())
    except UnicodeError as error:
        raise WrongFormat.of(DatasetError)(
            str(path), f"text in {encoding}", "other bytes", "pass another encoding="
        ) from error
    return pa.py_buffer(text.getbuffer())


def has_texts(path: Path, content: pa.Buffer | None) -> bool:
    """Whether a file has one text per line, and no delimiter that splits all lines alike."""
    lines = _lines(path, content)
    signs = [sign for sign in DELIMITERS if not any(f"{sign} " in line for line in lines)]
    divided = any(_agreement(lines, sign) == 1 for sign in {*signs, "\t"})
    return not divided and any(char.isalpha() for line in lines[1:] for char in line)


def delimiter_of(path: Path, content: pa.Buffer | None, usual: str) -> str:
    """Return the delimiter that splits most lines into as many columns as the first line."""
    lines = _lines(path, content)
    agreement = {sign: _agreement(lines, sign) for sign in (usual, *DELIMITERS)}
    best = max(agreement, key=lambda sign: agreement[sign])  # the usual one if several are equal
    return best if agreement[best] >= 0.5 and agreement[usual] < 0.5 else usual


def _lines(path: Path, content: pa.Buffer | None) -> list[str]:
    """Return the first lines that are not empty."""
    head = next(chunks(path, content), b"")[:_HEAD].decode("utf-8-sig", errors="replace")
    lines = [line for line in head.splitlines(keepends=True) if line.strip()]
    if len(lines) > 1 and len(head) >= _HEAD // 4:
        lines.pop()  # it may be incomplete
    return lines[:_LINES]


def _agreement(lines: list[str], sign: str) -> float:
    """Return the share of lines that a delimiter splits into as many parts as the first."""
    try:
        widths = [len(row) for row in csv.reader(lines, delimiter=sign) if row]
    except csv.Error:
        return 0.0
    if not widths or widths[0] < 2:
        return 0.0
    same = sum(width == widths[0] for width in widths[1:])
    return same / (len(widths) - 1) if len(widths) > 1 else 1.0
