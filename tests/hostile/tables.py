"""Bad tables by kind: damaged, forged, bombs, odd types, wrong encodings.

Each function writes the files of one kind to a folder and gives them by name. `whole` are small
good ones, of which damaged ones are made.
"""

import bz2
import gzip
import io
import lzma
import struct
import warnings
import zipfile
from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq

Cases = dict[str, Path]
Rng = np.random.Generator
ROWS = 24


def good_columns() -> dict[str, list[object]]:
    """A small pool: an id, two numbers, a word, with b as a label."""
    random = np.random.default_rng(5)
    return {
        "id": list(range(ROWS)),
        "a": random.normal(size=ROWS).round(4).tolist(),
        "b": random.normal(size=ROWS).round(4).tolist(),
        "kind": ["xyz"[j % 3] for j in range(ROWS)],
    }


def good_text(sign: str = ",") -> str:
    columns = good_columns()
    rows = zip(*columns.values(), strict=True)
    return "\n".join([sign.join(columns), *(sign.join(map(str, row)) for row in rows)]) + "\n"


def good_table() -> pa.Table:
    return pa.table(good_columns())


def good_array() -> np.ndarray:
    return np.random.default_rng(5).normal(size=(ROWS, 4))


def save(folder: Path, name: str, content: bytes | str) -> Path:
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def damaged(whole: bytes, rng: Rng, flips: int, cuts: int, tail: int = 0) -> Iterator[bytes]:
    """Copies with a few bits flipped (of the last `tail` bytes, where given), and cut short."""
    for _ in range(flips):
        data = bytearray(whole)
        low = len(data) - tail if tail else 0
        for _ in range(int(rng.integers(1, 6))):
            data[int(rng.integers(low, len(data)))] ^= 1 << int(rng.integers(8))
        yield bytes(data)
    for _ in range(cuts):
        yield whole[: int(rng.integers(1, len(whole)))]


def numbered(folder: Path, contents: Iterator[bytes], suffix: str) -> Cases:
    return {
        f"{j}{suffix}": save(folder, f"{j}{suffix}", content) for j, content in enumerate(contents)
    }


def text_damaged(folder: Path, rng: Rng) -> Cases:
    whole = good_text().encode()
    result = numbered(folder, damaged(whole, rng, 10, 6), ".csv")
    odd = {
        "nul bytes": whole.replace(b"0", b"\0", 5),
        "random bytes": rng.bytes(4000),
        "all nul": bytes(4000),
        "lone returns": whole.replace(b"\n", b"\r"),
        "mixed lines": whole.replace(b"\n", b"\r\n", 9),
        "an open quote": whole.replace(b"y", b'"y', 1),
        "a quote within": whole.replace(b",y", b',y"y', 1),
        "quotes only": b'"' * 999,
        "a bell and an escape": whole.replace(b"y", b"\x1b]0;gone\x07\x1b[2J"),
        "a zip": b"PK\x03\x04" + rng.bytes(400),
        "a Parquet": _parquet_bytes(good_table()),
        "vertical tabs": whole.replace(b",", b"\x0b"),
        "no last line end": whole[:-1] + b",",
    }
    return result | {name: save(folder, f"{name}.csv", content) for name, content in odd.items()}


def text_encodings(folder: Path, rng: Rng) -> Cases:
    text = good_text().replace("x", "é").replace("y", "\u4e2d")
    simple = good_text().replace("x", "é")
    coded = {
        "latin-1": simple.encode("latin-1"),
        "utf-16": text.encode("utf-16"),
        "utf-16-be": text.encode("utf-16-be"),
        "utf-32": text.encode("utf-32"),
        "gb18030": text.encode("gb18030"),
        "a mark twice": b"\xef\xbb\xbf" * 2 + text.encode(),
        "overlong": good_text().encode().replace(b"x", b"\xc0\x80"),
        "half a pair": good_text().encode().replace(b"x", b"\xed\xa0\x80"),
        "a header in latin-1": simple.replace("kind", "gä").encode("latin-1"),
        "utf-7": text.encode("utf-7"),
        "cut within a letter": text.encode()[: text.encode().index(b"\xe4") + 1],
    }
    return {name: save(folder, f"{name}.csv", content) for name, content in coded.items()}


def text_shapes(folder: Path, rng: Rng) -> Cases:
    head, *rows = good_text().splitlines()
    wide = 1_000_000
    shaped = {
        "empty": "",
        "only a header": head + "\n",
        "only line ends": "\n" * 5000,
        "only spaces": " " * 5000,
        "one row": f"{head}\n{rows[0]}\n",
        "a longer row": "\n".join([head, *rows[:9], rows[9] + ",7,7", *rows[10:]]),
        "a shorter row": "\n".join([head, *rows[:9], "1", *rows[10:]]),
        "every row longer": "\n".join([head, *(f"{row},1" for row in rows)]),
        "names twice": "\n".join([head.replace("a", "b"), *rows]),
        "names empty": "\n".join([",,,", *rows]),
        "no names": "\n".join(rows),
        "a million columns": ",".join(["a"] * wide) + "\n" + ",".join("1" * wide) + "\n",
        "200,000 names": "\n".join(
            [
                ",".join(f"c{i}" for i in range(200_000)),
                ",".join("1" * 200_000),
                ",".join("2" * 200_000),
            ]
        ),
        "a million names": ",".join(map(str, range(5, wide + 5))) + "\n",
        "a row of 9 MB": head + "\n" + "\n".join(rows) + "\n1,2,3," + "x" * 9_000_000 + "\n",
        "a name of 1 MB": head.replace("kind", "k" * 1_000_000) + "\n" + "\n".join(rows),
        "words of 20 KB": head + "\n" + "\n".join(row[:-1] + row[-1] * 20_000 for row in rows),
        "an id of 20 KB": head + "\n" + "\n".join("7" * 20_000 + row for row in rows),
        "cells of nothing": head + "\n" + ",,,\n" * 300_000,
        "semicolons": good_text(";"),
        "a column of words": "w\n" + "\n".join(f"word {j}" for j in range(99)),
        "one column": "a\n" + "\n".join(map(str, range(30))),
    }
    return {name: save(folder, f"{name}.csv", content) for name, content in shaped.items()}


def text_values(folder: Path, rng: Rng) -> Cases:
    values = [
        "1e400", "-1e400", "nan", "inf", "-inf", "1e-400", "9" * 400, "-0.0", "0x10", "1_000",
        "1,5", "2026-11-17", "2026-11-17T10:00:00Z", "99999-01-01", "12:30", "true", "NULL", "N/A",
        "#REF!",
        "=1+2", "@cmd", "\x1b[31mred", "\u202eright to left", "1.7976931348623157e308", "5e-324",
        "18446744073709551616", "[1, 2]", "{}", "1+2j", "",
    ]  # fmt: skip
    entries = {}
    for number, value in enumerate(values):
        head, *rows = good_text().splitlines()
        cells = [row.split(",") for row in rows]
        for row in cells[3:6] if number % 2 else cells:
            row[2 - number % 3] = f'"{value}"' if "," in value else value
        text = "\n".join([head, *(",".join(row) for row in cells)]) + "\n"
        entries[f"value {value[:20]!r}"] = save(folder, f"value-{number}.csv", text)
    return entries


def tabs(folder: Path, rng: Rng) -> Cases:
    whole = good_text("\t").encode()
    result = numbered(folder, damaged(whole, rng, 4, 3), ".tsv")
    result["commas.tsv"] = save(folder, "commas.tsv", good_text())
    result["ids.txt"] = save(folder, "ids.txt", "id\n1\n2\nnothing\n")
    result["escapes.txt"] = save(folder, "escapes.txt", "1\n\x1b[2J\n")
    result["a long line.txt"] = save(folder, "a long line.txt", "1" * 3_000_000)
    result["many lines.txt"] = save(folder, "many lines.txt", "1\n" * 1_000_000)
    result["bytes.txt"] = save(folder, "bytes.txt", rng.bytes(3000))
    return result


def gzips(folder: Path, rng: Rng) -> Cases:
    whole = gzip.compress(good_text().encode())
    result = numbered(folder, damaged(whole, rng, 6, 4), ".csv.gz")
    odd = {
        "a bomb": gzip.compress(b"a,b\n" + b"1,2\n" * 30_000_000, 9),
        "a bomb of one line": gzip.compress(b"a,b\n" + bytes(300_000_000), 9),
        "twice packed": gzip.compress(whole),
        "not packed": good_text().encode(),
        "empty": b"",
        "packed nothing": gzip.compress(b""),
        "two members": whole + gzip.compress(b"7,7,7,x\n"),
        "trailing bytes": whole + rng.bytes(99),
        "a header alone": whole[:10],
        "a long name": b"\x1f\x8b\x08\x08" + bytes(6) + b"n" * 500_000,
        "bzip2": bz2.compress(good_text().encode()),
    }
    return result | {name: save(folder, f"{name}.csv.gz", content) for name, content in odd.items()}


def _parquet_bytes(table: pa.Table, **options: object) -> bytes:
    stream = io.BytesIO()
    pq.write_table(table, stream, **options)
    return stream.getvalue()


def parquet_damaged(folder: Path, rng: Rng) -> Cases:
    whole = _parquet_bytes(good_table())
    result = numbered(folder, damaged(whole, rng, 10, 6), ".parquet")
    # The footer is a quarter of a megabyte of claims; most of what can be forged is in it.
    tail = int.from_bytes(whole[-8:-4], "little") + 8
    footer = enumerate(damaged(whole, rng, 14, 0, tail))
    result |= {f"footer {j}": save(folder, f"footer-{j}.parquet", data) for j, data in footer}
    odd = {
        "empty": b"",
        "the magic alone": b"PAR1",
        "the magic twice": b"PAR1PAR1",
        "a footer of all": whole[:-8] + struct.pack("<i", 2**31 - 1) + b"PAR1",
        "a negative footer": whole[:-8] + struct.pack("<i", -5) + b"PAR1",
        "encrypted": b"PARE" + whole[4:-4] + b"PARE",
        "zeros": b"PAR1" + bytes(5000) + struct.pack("<i", 4000) + b"PAR1",
        "text": good_text().encode(),
    }
    return result | {name: save(folder, f"{name}.parquet", data) for name, data in odd.items()}


def parquet_bombs(folder: Path, rng: Rng) -> Cases:
    rows = 30_000_000
    entries = {}
    schema = pa.schema([("a", pa.float64()), ("b", pa.int64()), ("kind", pa.string())])
    part = pa.table(
        {
            "a": np.zeros(rows // 30),
            "b": np.zeros(rows // 30, np.int64),
            "kind": pa.array(["x"]).take(pa.array(np.zeros(rows // 30, np.int64))),
        },
        schema=schema,
    )
    entries["30 million equal rows"] = folder / "equal.parquet"
    with pq.ParquetWriter(entries["30 million equal rows"], schema) as writer:
        for _ in range(30):
            writer.write_table(part)
    count = 60_000
    words = pa.array([letter * 20_000 for letter in "abcdefghij"])
    coded = pa.DictionaryArray.from_arrays(pa.array(np.arange(count) % 10, pa.int32()), words)
    table = pa.table({"a": rng.normal(size=count), "b": rng.normal(size=count), "kind": coded})
    for name, options in {"kept": {}, "lost": {"store_schema": False}}.items():
        entries[f"words of 20 KB, {name}"] = save(
            folder, f"words-{name}.parquet", _parquet_bytes(table, **options)
        )
    answers = pa.table({"row": np.arange(count) % ROWS, "label": coded})
    data = _parquet_bytes(answers, store_schema=False)
    entries["answers of 20 KB"] = save(folder, "answers.parquet", data)
    long = pa.table({"a": [0.5, 1.5], "b": [1.0, 2.0], "kind": ["x" * 200_000_000, "y"]})
    for packed in ("zstd", "gzip"):
        data = _parquet_bytes(long, compression=packed, use_dictionary=packed == "zstd")
        entries[f"a word of 200 MB in {packed}"] = save(folder, f"long-{packed}.parquet", data)
    lists = pa.table({"a": [1.0, 2.0], "kind": [[0] * 50_000_000, [1]]})
    data = _parquet_bytes(lists, compression="zstd")
    entries["a list of 50 million"] = save(folder, "list.parquet", data)
    wide = pa.table({f"c{j}": [1, 2] for j in range(3000)})
    entries["3000 columns"] = save(folder, "wide.parquet", _parquet_bytes(wide))
    return entries


def _typed() -> dict[str, pa.Array]:
    """Columns of every kind that Arrow has, of a few rows each."""
    n = ROWS
    numbers = pa.array(range(n))
    days = [date(2026, 1, 1 + j) for j in range(n)]
    moments = [datetime(2026, 1, 1 + j, tzinfo=UTC) for j in range(n)]
    words = pa.array(["xyz"[j % 3] for j in range(n)])
    kinds: dict[str, pa.DataType] = {
        str(kind): kind
        for kind in (
            pa.int8(), pa.uint8(), pa.int16(), pa.uint64(), pa.float16(), pa.float32(),
            pa.decimal128(38, 10), pa.decimal256(70, 3), pa.string(), pa.large_string(),
        )
    }  # fmt: skip
    result = {name: numbers.cast(kind) for name, kind in kinds.items()}
    result |= {
        "bool": pa.array([j % 2 == 0 for j in range(n)]),
        "null": pa.nulls(n),
        "date32": pa.array(days),
        "date64": pa.array(days, pa.date64()),
        "time32": pa.array([time(j) for j in range(n)], pa.time32("s")),
        "time64": pa.array([time(j) for j in range(n)], pa.time64("ns")),
        "timestamp": pa.array(moments, pa.timestamp("us", "Europe/Berlin")),
        "far timestamp": numbers.cast(pa.int64()).cast(pa.timestamp("s")),
        "duration": pa.array([timedelta(j) for j in range(n)]),
        "binary": pa.array([bytes([j]) for j in range(n)]),
        "fixed binary": pa.array([bytes([j] * 4) for j in range(n)], pa.binary(4)),
        "list": pa.array([[j, j] for j in range(n)]),
        "large list": pa.array([[j] for j in range(n)], pa.large_list(pa.int64())),
        "fixed list": pa.array([[j, j] for j in range(n)], pa.list_(pa.int64(), 2)),
        "struct": pa.array([{"p": j, "q": "w"} for j in range(n)]),
        "map": pa.array([[("k", j)] for j in range(n)], pa.map_(pa.string(), pa.int64())),
        "dictionary": words.dictionary_encode(),
        "dictionary of numbers": numbers.dictionary_encode(),
        "dictionary with nothing": pa.DictionaryArray.from_arrays(
            pa.array([j % 3 for j in range(n)], pa.int8()), pa.array(["x", None, "x"])
        ),
        "views": words.cast(pa.string_view()),
        "huge decimals": pa.array([Decimal("1e37") - j for j in range(n)], pa.decimal128(38, 0)),
        "huge whole numbers": pa.array([2**63 - 1 - j for j in range(n)]),
        "nan": pa.array([float("nan")] * n),
        "infinite": pa.array([float("inf"), *map(float, range(n - 1))]),
        "other letters": pa.array([b"\xff\xfe" if j % 2 else b"x" for j in range(n)]),
    }
    return result


def _odd_tables() -> dict[str, pa.Table]:
    good = good_table()
    result = {f"of {name}": good.set_column(3, "kind", cells) for name, cells in _typed().items()}
    result |= {
        f"ids of {name}": good.set_column(0, "id", cells)
        for name, cells in _typed().items()
        if name in ("list", "null", "bool", "timestamp", "dictionary", "nan", "views", "struct")
    }
    result |= {
        "no rows": good.slice(0, 0),
        "no columns": pa.table({}),
        "names twice": pa.Table.from_arrays(good.columns, ["id", "a", "a", "a"]),
        "names of control letters": good.rename_columns(["id", "a", "b", "\x1b[2J\n\u202e"]),
        "an empty name": good.rename_columns(["id", "a", "b", ""]),
        "a name of 20 KB": good.rename_columns(["id", "a", "b", "n" * 20_000]),
    }
    return result


def parquet_types(folder: Path, rng: Rng) -> Cases:
    entries = {}
    for number, (name, table) in enumerate(_odd_tables().items()):
        path = folder / f"{number}.parquet"
        try:
            pq.write_table(table, path)
        except (pa.ArrowException, ValueError):
            continue  # Parquet does not have all that Arrow has
        entries[name] = path
    forged = good_table().set_column(3, "kind", _typed()["other letters"])
    data = _parquet_bytes(forged)
    # What is reported to be text need not be any.
    entries["text of other letters"] = save(folder, "letters.parquet", data)
    return entries


def _arrow_bytes(table: pa.Table, *, stream: bool = False, packed: str | None = None) -> bytes:
    out = io.BytesIO()
    start = pa.ipc.new_stream if stream else pa.ipc.new_file
    with start(out, table.schema, options=pa.ipc.IpcWriteOptions(compression=packed)) as writer:
        writer.write_table(table)
    return out.getvalue()


def arrow_damaged(folder: Path, rng: Rng) -> Cases:
    table = good_table().append_column("coded", good_table()["kind"].dictionary_encode())
    whole = {
        "file": _arrow_bytes(table),
        "stream": _arrow_bytes(table, stream=True),
        "packed": _arrow_bytes(table, packed="zstd"),
    }
    entries = {}
    for name, data in whole.items():
        for j, content in enumerate(damaged(data, rng, 8, 3)):
            entries[f"{name} {j}"] = save(folder, f"{name}-{j}.arrow", content)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        pyarrow.feather.write_feather(good_table(), str(folder / "old"), version=1)
    old = (folder / "old").read_bytes()
    for j, content in enumerate(damaged(old, rng, 4, 2)):
        entries[f"old feather {j}"] = save(folder, f"old-{j}.feather", content)
    odd = {"empty": b"", "the magic alone": b"ARROW1\0\0", "text": good_text().encode()}
    odd |= {"a magic twice": b"ARROW1\0\0" + struct.pack("<i", 2**31 - 1) + b"ARROW1"}
    return entries | {name: save(folder, f"{name}.arrow", data) for name, data in odd.items()}


def arrow_bombs(folder: Path, rng: Rng) -> Cases:
    entries = {}
    for packed, rows in {"zstd": 40_000_000, "lz4": 4_000_000}.items():
        zeros = pa.table({"a": np.zeros(rows), "b": np.zeros(rows)})
        data = _arrow_bytes(zeros, packed=packed)
        entries[f"zeros in {packed}"] = save(folder, f"zeros-{packed}.arrow", data)
        entries[f"a stream of zeros in {packed}"] = save(
            folder, f"stream-{packed}.arrow", _arrow_bytes(zeros, stream=True, packed=packed)
        )
    small = pa.table({"a": rng.normal(size=4000), "b": np.zeros(4000)})
    data = _arrow_bytes(small, packed="zstd")
    # The length that a packed buffer claims precedes it.
    for name, claim in {"huge": 10**15, "negative": -7, "of 20 GB": 20 * 10**9}.items():
        forged = data.replace(struct.pack("<q", 32_000), struct.pack("<q", claim))
        entries[f"a claim that is {name}"] = save(folder, f"claim-{name}.arrow", forged)
    none = pa.table({"a": pa.nulls(12_345), "b": pa.nulls(12_345)})
    for rows in (10**12, 2**62, -1):
        forged = _arrow_bytes(none).replace(struct.pack("<q", 12_345), struct.pack("<q", rows))
        entries[f"{rows} rows of nothing"] = save(folder, f"nothing-{rows}.arrow", forged)
    words = pa.array([letter * 20_000 for letter in "abcdefghij"])
    coded = pa.DictionaryArray.from_arrays(pa.array(np.arange(60_000) % 10, pa.int32()), words)
    table = pa.table({"a": rng.normal(size=60_000), "b": rng.normal(size=60_000), "kind": coded})
    entries["words of 20 KB"] = save(folder, "words.arrow", _arrow_bytes(table))
    views = words.cast(pa.string_view())
    many = pa.table({"a": rng.normal(size=10), "b": rng.normal(size=10), "kind": views})
    entries["views of 20 KB"] = save(folder, "views.arrow", _arrow_bytes(many))
    return entries


def arrow_types(folder: Path, rng: Rng) -> Cases:
    n = ROWS
    more = {
        "runs": pa.RunEndEncodedArray.from_arrays([10, n], ["x", "y"]),
        "list views": pa.array([[j] for j in range(n)], pa.list_view(pa.int64())),
        "binary views": pa.array([b"x"] * n, pa.binary_view()),
        "intervals": pa.array([pa.MonthDayNano([1, j, 0]) for j in range(n)]),
        "a union": pa.UnionArray.from_sparse(
            pa.array([0] * n, pa.int8()), [pa.array(range(n)), pa.array(["x"] * n)]
        ),
        "an extension": pa.ExtensionArray.from_storage(
            pa.uuid(), pa.array([bytes([j] * 16) for j in range(n)], pa.binary(16))
        ),
    }
    tables = _odd_tables() | {
        f"of {name}": good_table().set_column(3, "kind", pa.chunked_array([cells]))
        for name, cells in more.items()
    }
    return {
        name: save(folder, f"{number}.arrow", _arrow_bytes(table))
        for number, (name, table) in enumerate(tables.items())
    }


def npy(header: bytes, content: bytes, version: bytes = b"\x01\x00") -> bytes:
    size = struct.pack("<H" if version[:1] == b"\x01" else "<I", len(header))
    return b"\x93NUMPY" + version + size + header + content


def npy_headers(folder: Path, rng: Rng) -> Cases:
    numbers = good_array().tobytes()

    def of(shape: str, kind: str = "'<f8'", order: str = "False", extra: str = "") -> bytes:
        text = f"{{'descr': {kind}, 'fortran_order': {order}, 'shape': {shape}{extra}, }}\n"
        return npy(text.encode("latin-1", "replace"), numbers)

    shapes = [
        "(True, 4)", "(24, True)", "(-24, 4)", "(24, -4)", "(-24, -4)", "(2500000000, 1000)",
        "(24.0, 4)", "((24, 4),)", "[24, 4]", "24", "'24x4'", "None", "(24, None)", "()", "(96,)",
        "(0, 4)", "(24, 0)", "(1,)*65", f"({'1,' * 65})", f"({'1,' * 40} 24, 4)",
        "(9223372036854775807, 9223372036854775807)", "(1" + "0" * 4000 + ", 4)",
        "(0x" + "f" * 4500 + ", 4)", "(24, 4j)", "(24, 'a')", "({24}, 4)", "(1, 0x60)",
        "(4294967297, 4)", "(24, 1, 4)",
    ]  # fmt: skip
    kinds = [
        "'>f8'", "'|O'", "'O'", "[('a', '<f8'), ('b', '<i8')]", "('<f8', (2,))", "'<c16'",
        "'<M8[s]'", "'<m8[D]'", "'|S8'", "'<U2'", "'|V8'", "'<f16'", "'<f2'", "'|b1'", "'<i8'",
        "'<u8'", "'|S0'", "'nothing'", "7", "None", "'f8,f8'", "[('a', '|O')]", "''", "'<f8' * 999",
    ]  # fmt: skip
    result = {f"shape {shape[:40]}": of(shape) for shape in shapes}
    result |= {f"kind {kind[:40]}": of("(24, 4)", kind) for kind in kinds}
    plain = b"{'descr': '<f8', 'fortran_order': False, 'shape': (24, 4), }\n"
    result |= {
        "order of columns": of("(24, 4)", order="True"),
        "order of seven": of("(24, 4)", order="7"),
        "more keys": of("(24, 4)", extra=", 'more': 1"),
        "fewer keys": npy(b"{'descr': '<f8', 'shape': (24, 4)}\n", numbers),
        "code": npy(b"__import__('os').system('touch ran')\n", numbers),
        "deep": npy(b"(" * 5000 + b")" * 5000, numbers),
        "version 2": npy(plain, numbers, b"\x02\x00"),
        "version 3": npy(plain, numbers, b"\x03\x00"),
        "version 9": npy(plain, numbers, b"\x09\x09"),
        "a header of 4 GB": b"\x93NUMPY\x02\x00\xff\xff\xff\xff" + plain + numbers,
        "a header of nothing": npy(b"", numbers),
        "other letters": npy(plain.replace(b"descr", b"d\xff\xfe"), numbers),
        "no magic": numbers,
        "the magic alone": b"\x93NUMPY",
        "empty": b"",
        "a million columns": npy(
            b"{'descr': '|u1', 'fortran_order': False, 'shape': (2, 1000000), }\n",
            rng.bytes(2_000_000),
        ),
    }
    return {
        name: save(folder, f"{number}.npy", data)
        for number, (name, data) in enumerate(result.items())
    }


def npy_damaged(folder: Path, rng: Rng) -> Cases:
    out = io.BytesIO()
    np.save(out, good_array())
    result = numbered(folder, damaged(out.getvalue(), rng, 10, 6), ".npy")
    pickled = io.BytesIO()
    np.save(pickled, np.array([[1, None]], dtype=object), allow_pickle=True)
    odd = good_array()
    odd[3, 2], odd[5, 1] = np.nan, -np.inf
    strange = io.BytesIO()
    np.save(strange, odd)
    result["objects"] = save(folder, "objects.npy", pickled.getvalue())
    result["not all numbers"] = save(folder, "nan.npy", strange.getvalue())
    result["more than it says"] = save(folder, "more.npy", out.getvalue() + rng.bytes(999))
    result["twice"] = save(folder, "twice.npy", out.getvalue() * 2)
    return result


def npz(folder: Path, rng: Rng) -> Cases:
    plain = io.BytesIO()
    np.savez(plain, x=good_array())
    packed = io.BytesIO()
    np.savez_compressed(packed, x=good_array())
    result = numbered(folder, damaged(plain.getvalue(), rng, 8, 3), ".npz")
    for j, data in enumerate(damaged(packed.getvalue(), rng, 8, 3)):
        result[f"packed {j}"] = save(folder, f"packed-{j}.npz", data)
    zeros = io.BytesIO()
    np.save(zeros, np.zeros((300_000, 100)))
    member = io.BytesIO()
    np.save(member, good_array())
    methods = {
        "deflate": zipfile.ZIP_DEFLATED, "bzip2": zipfile.ZIP_BZIP2, "lzma": zipfile.ZIP_LZMA,
    }  # fmt: skip
    for name, method in methods.items():
        result[f"a bomb in {name}"] = _zipped(
            folder, f"bomb-{name}", {"x.npy": zeros.getvalue()}, method
        )
    inner = (folder / "bomb-deflate.npz").read_bytes()
    first = member.getvalue()
    names = {
        "nested": {"x.npz": inner},
        "a nested member": {"x.npy": inner},
        "nothing": {},
        "text": {"x.npy": b"text"},
        "two tables": {"x.npy": first, "y.npy": first},
        "paths": {"../../x.npy": first, "/etc/x.npy": first},
        "escapes": {"\x1b[2J\n.npy": first, "y.npy": first},
        "a long name": {"n" * 60_000 + ".npy": first, "y.npy": first},
        "many": {f"{j}.npy": first for j in range(3000)},
        "objects": {
            "x.npy": npy(b"{'descr': '|O', 'fortran_order': False, 'shape': (2, 2)}", b"N.")
        },
        "true": {
            "x.npy": npy(b"{'descr': '<f8', 'fortran_order': False, 'shape': (True, 4)}", bytes(32))
        },
    }
    result |= {
        name: _zipped(folder, name.replace(" ", "-"), parts) for name, parts in names.items()
    }
    whole = bytearray(plain.getvalue())
    at = whole.index(b"PK\x01\x02")
    forged = {
        "encrypted": (at + 8, b"\x01"),
        "another method": (at + 10, b"\x63"),
        "a size of 4 GB": (at + 24, b"\xfe\xff\xff\xff"),
        "a place outside": (at + 42, b"\xf0\xff\xff\x7f"),
        "names in other letters": (at + 8, b"\x00\x08"),
        "an extra field": (at + 30, b"\xff\xff"),
    }
    for name, (place, what) in forged.items():
        data = whole.copy()
        data[place : place + len(what)] = what
        if name.startswith("names"):
            data[at + 46] = 0xFF
        result[name] = save(folder, f"{name}.npz", bytes(data))
    result["lzma alone"] = save(folder, "lzma.npz", lzma.compress(first))
    result["empty"] = save(folder, "empty.npz", b"")
    result["an end alone"] = save(folder, "end.npz", b"PK\x05\x06" + bytes(18))
    return result


def _zipped(folder: Path, name: str, parts: dict[str, bytes], method: int = 0) -> Path:
    path = folder / f"{name}.npz"
    with zipfile.ZipFile(path, "w", method) as archive:
        for inside, content in parts.items():
            archive.writestr(inside, content)
    return path


KINDS: dict[str, Callable[[Path, Rng], Cases]] = {
    "CSV, damaged": text_damaged,
    "CSV in other encodings": text_encodings,
    "CSV of odd shapes": text_shapes,
    "CSV with odd values": text_values,
    "TSV and lists of ids": tabs,
    "gzip, damaged and bombs": gzips,
    "Parquet, damaged and forged": parquet_damaged,
    "Parquet bombs": parquet_bombs,
    "Parquet of every type": parquet_types,
    "Arrow and Feather, damaged": arrow_damaged,
    "Arrow bombs and forged claims": arrow_bombs,
    "Arrow of every type": arrow_types,
    "npy headers": npy_headers,
    "npy, damaged": npy_damaged,
    "npz, damaged, forged and bombs": npz,
}
