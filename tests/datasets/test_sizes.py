"""What Parquet and Arrow files take once decoded is known, and bounded, before they are."""

import io
import struct
import tracemalloc
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from evgp._reading import reading_within
from evgp.datasets import open_pool, read_table
from evgp.datasets.parquet import _counted, read_parquet
from evgp.datasets.sizes import ParquetSize, decoded, unpacked
from evgp.errors import DatasetError
from tests.messages import refused

ROWS = 9_000


def table(rows: int = ROWS) -> pa.Table:
    random = np.random.default_rng(0)
    kind = pa.array(np.array(["red", "green", "blue"])[random.integers(0, 3, rows)])
    return pa.table(
        {
            "a": random.normal(size=rows),
            "b": pa.array(random.integers(0, 5, rows)),
            "kind": kind,
            "coded": kind.dictionary_encode(),
            "id": [f"row-{j}" for j in range(rows)],
            "list": [[j, j] for j in range(rows)],
            "tags": [["x", "y"]] * rows,
            "none": pa.nulls(rows),
            "truth": pa.array(random.integers(0, 2, rows) > 0),
            "price": pa.array(random.integers(0, 99, rows)).cast(pa.decimal128(21, 2)),
        }
    )


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"data_page_version": "2.0"},
        {"compression": "zstd"},
        {"compression": "none"},
        {"use_dictionary": False},
        {"row_group_size": 777, "write_page_index": True},
        {"write_page_checksum": True, "data_page_size": 500},
        {"store_schema": False, "write_statistics": False},
    ],
)
def test_the_size_of_parquet_is_bounded_from_above(
    tmp_path: Path, options: Mapping[str, object]
) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(table(), path, **options)
    with path.open("rb") as stream, pq.ParquetFile(path) as file:
        known = decoded(stream, file)
        whole = file.read()
        subset = decoded(stream, file, ["a", "kind"])
    assert whole.nbytes <= known.sure + known.words
    assert known.sure <= 4 * whole.nbytes
    assert known.pages < known.sure
    assert subset.sure < known.sure and subset.pages < known.pages
    assert read_table(path).data.equals(whole)


@pytest.mark.parametrize("stored", [True, False])
def test_words_that_are_counted_first_are_the_same(tmp_path: Path, stored: bool) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(table(), path, store_schema=stored, row_group_size=4000)
    with pq.ParquetFile(path) as file:
        counted = _counted(path, file, 10**9, ParquetSize(0, 0, 0))
        assert counted.equals(file.read())


@pytest.mark.parametrize("packed", [None, "lz4", "zstd"])
@pytest.mark.parametrize("stream", [True, False])
def test_the_size_of_arrow_is_known(packed: str | None, stream: bool) -> None:
    data = arrow(table(), packed=packed, stream=stream)
    known = unpacked(io.BytesIO(data))
    assert known.rows == ROWS
    size = table().nbytes
    assert size <= known.total <= 1.01 * size + 5000
    assert (known.largest > 0) == (packed is not None)


def arrow(data: pa.Table, *, packed: str | None = None, stream: bool = False) -> bytes:
    out = io.BytesIO()
    start = pa.ipc.new_stream if stream else pa.ipc.new_file
    with start(out, data.schema, options=pa.ipc.IpcWriteOptions(compression=packed)) as writer:
        writer.write_table(data, max_chunksize=4000)
    return out.getvalue()


def long_words(rows: int, *, stored: bool) -> bytes:
    words = pa.array([letter * 20_000 for letter in "abcdefghij"])
    coded = pa.DictionaryArray.from_arrays(pa.array(np.arange(rows) % 10, pa.int32()), words)
    out = io.BytesIO()
    pq.write_table(pa.table({"a": np.arange(float(rows)), "w": coded}), out, store_schema=stored)
    return out.getvalue()


def test_words_that_expand_to_gigabytes_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    path.write_bytes(long_words(100_000, stored=False))
    before = pa.total_allocated_bytes()
    with refused(DatasetError):
        read_table(path)
    assert pa.total_allocated_bytes() - before < 10**7


def test_long_words_are_read_where_they_fit(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    path.write_bytes(long_words(1_000, stored=False))
    assert read_parquet(path).column("w")[7].as_py() == "h" * 20_000
    with reading_within(30_000_000), refused(DatasetError):
        read_parquet(path)


@pytest.mark.parametrize("suffix", [".parquet", ".arrow"])
def test_many_rows_of_nothing_are_refused(tmp_path: Path, suffix: str) -> None:
    rows = 17_000_000  # of 16 bytes, just above what sparse data may unpack to
    data = pa.table({"a": pa.nulls(rows, pa.int8()), "b": pa.nulls(rows, pa.int8())})
    path = tmp_path / f"a{suffix}"
    if suffix == ".parquet":
        pq.write_table(data, path)
    else:
        path.write_bytes(arrow(data.slice(0, 12_345), packed=None))
        forged = path.read_bytes().replace(struct.pack("<q", 345), struct.pack("<q", 10**12))
        path.write_bytes(forged)
    tracemalloc.start()
    with refused(DatasetError):
        read_table(path)
    assert tracemalloc.get_traced_memory()[1] < 10**7
    tracemalloc.stop()


@pytest.mark.parametrize("claim", [10**15, 2**62])
def test_a_buffer_that_claims_to_unpack_to_more_is_refused(tmp_path: Path, claim: int) -> None:
    data = arrow(pa.table({"a": np.zeros(4000), "b": np.ones(4000)}), packed="zstd")
    forged = data.replace(struct.pack("<q", 32_000), struct.pack("<q", claim), 1)
    assert forged != data
    (tmp_path / "a.arrow").write_bytes(forged)
    with refused(DatasetError):
        read_table(tmp_path / "a.arrow")
    with refused(DatasetError):
        open_pool(tmp_path / "a.arrow")


def test_claims_of_rows_without_bytes_are_refused_in_streams(tmp_path: Path) -> None:
    data = arrow(pa.table({"a": pa.nulls(3_456)}))
    forged = data.replace(struct.pack("<q", 3_456), struct.pack("<q", 10**14))
    (tmp_path / "a.arrow").write_bytes(forged)
    with refused(DatasetError):
        open_pool(tmp_path / "a.arrow")


def test_old_feather_files_are_not_read(tmp_path: Path) -> None:
    (tmp_path / "a.feather").write_bytes(b"FEA1" + bytes(99))
    with refused(DatasetError):
        read_table(tmp_path / "a.feather")


def test_text_in_views_is_read(tmp_path: Path) -> None:
    data = pa.table({"a": [1.0, 2.0, 3.0], "w": pa.array(["x", "y", "x"], pa.string_view())})
    (tmp_path / "a.arrow").write_bytes(arrow(data))
    assert read_table(tmp_path / "a.arrow").data.column("w").to_pylist() == ["x", "y", "x"]
    pool = open_pool(tmp_path / "a.arrow")
    fitted = pool.fitted(pool.survey(0, 3, np.array([0])))
    assert fitted.names == ("a", "w=x", "w=y")


@pytest.mark.parametrize("damage", [b"\x00" * 40, b"\xff" * 40, b"\x15\x80\x80\x80\x80\x80\x80"])
def test_headers_of_pages_that_are_damaged_are_refused_clearly(
    tmp_path: Path, damage: bytes
) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(table().select(["a", "b"]), path, compression="none")
    whole = path.read_bytes()
    path.write_bytes(whole[:4] + damage + whole[4 + len(damage) :])
    with refused(DatasetError):
        read_table(path)
