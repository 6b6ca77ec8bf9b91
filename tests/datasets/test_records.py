"""JSON lines, workbooks, packed files, standard input and Arrow streams are read alike."""

import gzip
import io
import json
import sys
import zipfile
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import openpyxl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import evgp
from evgp.datasets import read_pool, read_table
from evgp.errors import DatasetError, DataWarning
from tests.messages import refused, warned

ROWS = [{"a": 1.5, "kind": "x"}, {"a": 2.5, "kind": "é"}, {"a": -3.0, "kind": "x"}]
CSV = b"a,kind\n1.5,x\n2.5,\xc3\xa9\n-3.0,x\n"


def lines(rows: list[dict[str, Any]]) -> bytes:
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows).encode()


def framed(content: bytes) -> bytes:
    """A zstd file, which says its size itself."""
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, "zstd") as stream:
        stream.write(content)
    return sink.getvalue().to_pybytes()


FILES = {
    "pool.jsonl": lines(ROWS),
    "pool.ndjson": lines(ROWS),
    "mark.jsonl": b"\xef\xbb\xbf" + lines(ROWS),
    "pool.jsonl.gz": gzip.compress(lines(ROWS)),
    "pool.jsonl.zst": framed(lines(ROWS)),
    "pool.csv.gz": gzip.compress(CSV),
    "pool.csv.zst": framed(CSV),
    "utf16.jsonl": lines(ROWS).decode().encode("utf-16"),
}


@pytest.mark.parametrize("name", FILES)
def test_every_kind_gives_the_same_table(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(FILES[name])
    assert read_table(tmp_path / name).data.to_pylist() == ROWS


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(
        st.fixed_dictionaries(
            {"a": st.floats(allow_nan=False, allow_infinity=False), "b": st.text(max_size=5)}
        ),
        min_size=1,
        max_size=9,
    )
)
def test_json_lines_are_read_back(tmp_path: Path, rows: list[dict[str, Any]]) -> None:
    rows = [*rows, {"a": 0.5, "b": "word"}]  # text stays text, even if the rest are dates
    path = tmp_path / "pool.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert read_table(path).data.to_pylist() == rows


def test_inner_objects_become_columns(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_bytes(lines([{"a": {"b": {"c": 1}, "d": 2}}, {"a": {"d": 3}}]))
    assert read_table(tmp_path / "a.jsonl").data.to_pydict() == {"a.b.c": [1, None], "a.d": [2, 3]}


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.jsonl", b""),
        ("a.jsonl", b"\n\n"),
        ("a.jsonl", b'{"a": 1}\n{"a": "x"}\n'),
        ("a.jsonl", b'{"a": 1}\n{"a": '),
        ("a.jsonl", b'[{"a": 1}]'),
        ("a.jsonl", b"\x00\xff\x01"),
        ("a.jsonl.zst", b"{}"),
        ("a.csv.zst", framed(CSV)[:-9]),
        ("a.xlsx", b"PK\x03\x04 nothing"),
        ("a.xlsx", b"x"),
    ],
)
def test_damaged_files_are_refused_clearly(tmp_path: Path, name: str, content: bytes) -> None:
    (tmp_path / name).write_bytes(content)
    with refused(DatasetError):
        read_table(tmp_path / name)


class Piped:
    """Standard input with some bytes in it."""

    def __init__(self, content: bytes, terminal: bool = False) -> None:
        self.buffer, self.terminal = io.BytesIO(content), terminal

    def isatty(self) -> bool:
        return self.terminal


def arrow_stream() -> bytes:
    sink = pa.BufferOutputStream()
    table = pa.Table.from_pylist(ROWS)
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue().to_pybytes()


@pytest.mark.parametrize(
    "content",
    [CSV, lines(ROWS), gzip.compress(CSV), framed(lines(ROWS)), arrow_stream()],
    ids=["csv", "jsonl", "gzip", "zstd", "arrow"],
)
def test_standard_input_is_read(monkeypatch: pytest.MonkeyPatch, content: bytes) -> None:
    monkeypatch.setattr(sys, "stdin", Piped(content))
    assert read_table("-").data.to_pylist() == ROWS


def test_standard_input_without_a_table_is_refused_clearly(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    pq.write_table(pa.Table.from_pylist(ROWS), tmp_path / "a.parquet")
    for content in (b"", (tmp_path / "a.parquet").read_bytes(), b"\xff\xff\xff\xff cut"):
        monkeypatch.setattr(sys, "stdin", Piped(content))
        with refused(DatasetError):
            read_table("-")
    monkeypatch.setattr(sys, "stdin", Piped(CSV, terminal=True))
    with refused(DatasetError):
        read_table("-")


def test_arrow_streams_are_pools() -> None:
    table = pa.table({"a": np.arange(30.0) % 7, "b": np.arange(30.0) % 5})

    class Query:
        """The result of a database that speaks Arrow's C stream interface, and nothing else."""

        def __arrow_c_stream__(self, requested: object = None) -> object:
            return table.__arrow_c_stream__(requested)

    expected = evgp.pick(table, 3).indices.tolist()
    reader = pa.RecordBatchReader.from_batches(table.schema, table.to_batches(7))
    for pool in (Query(), reader):
        assert evgp.pick(pool, 3).indices.tolist() == expected


def test_a_relation_of_duckdb_is_a_pool() -> None:
    table = pa.table({"a": np.arange(30.0) % 7, "b": np.arange(30.0) % 5})
    relation = duckdb.connect().from_arrow(table)
    assert evgp.pick(relation, 3).indices.tolist() == evgp.pick(table, 3).indices.tolist()


def workbook(path: Path, *sheets: list[list[object]]) -> Path:
    book = openpyxl.Workbook()
    book.remove(book.active)
    for number, rows in enumerate(sheets):
        sheet = book.create_sheet(f"sheet {number}")
        for row in rows:
            sheet.append(row)
    book.save(path)
    return path


def test_a_workbook_is_read(tmp_path: Path) -> None:
    head, *rows = [["a", " kind", None], [1, "x", "#N/A"], [2.5, None, 7], [None, None, None]]
    path = workbook(tmp_path / "a.xlsx", [[], head, *rows])
    expected = {"a": [1, 2.5], "kind": ["x", None], "Unnamed: 2": [None, 7]}
    assert read_table(path).data.to_pydict() == expected
    path = workbook(tmp_path / "b.xlsx", [["a"], [1], ["x"]], [["b"], [2]])
    with warned(DataWarning):
        assert read_table(path).data.to_pydict() == {"a": ["1", "x"]}
    for sheet in ([], [["a", "a"], [1, 2]], [["a"]]):
        with refused(DatasetError):
            read_table(workbook(tmp_path / "c.xlsx", sheet))


def test_a_workbook_that_is_a_bomb_is_refused(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "a.xlsx", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("xl/worksheets/sheet1.xml", bytes(2**26))
    with refused(DatasetError):
        read_table(tmp_path / "a.xlsx")


def test_without_openpyxl_its_install_line_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a.xlsx").write_bytes(b"x")
    monkeypatch.setitem(sys.modules, "openpyxl", None)
    with refused(DatasetError) as caught:
        read_pool(tmp_path / "a.xlsx")
    assert 'pip install "evgp[excel]"' in str(caught.value)
