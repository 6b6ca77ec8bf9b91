"""Every kind of file is read alike, and every broken one gets a sentence."""

import gzip
import os
from pathlib import Path
from time import process_time

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from evgp.datasets import Encoder, Table, read_pool, read_table, write_rows
from evgp.errors import DatasetError
from tests.messages import refused


def written(folder: Path, content: bytes | str, name: str = "pool.csv") -> Path:
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


@pytest.mark.parametrize(
    "content",
    [
        "",
        "\n \n",
        "\ufeff\n",
        "\u00a0\n\u00a0\n",
        "a,b\n",
        "a,b",
        "a,b\n1,2\n3,4,5\n",
        "a,b\n1,2\n3\n",
        "a,a,b\n1,2,3\n",
        "5.1,3.5\n4.9,3.0\n",
        'a,b\n"1,2\n3,4\n',
    ],
)
def test_a_broken_csv_is_refused_clearly(tmp_path: Path, content: bytes | str) -> None:
    with refused(DatasetError):
        read_table(written(tmp_path, content))


@pytest.mark.parametrize("name", ["t.parquet", "t.feather", "t.arrow", "t.ipc"])
@pytest.mark.parametrize("cut", [0.3, 0.9, "text"])
def test_a_cut_file_is_refused_clearly(tmp_path: Path, name: str, cut: float | str) -> None:
    path = tmp_path / name
    table = pa.table({"a": np.arange(500.0)})
    if name == "t.parquet":
        pq.write_table(table, path)
    else:
        pyarrow.feather.write_feather(table, str(path))
    whole = path.read_bytes()
    path.write_bytes(b"a,b\n1,2\n" if cut == "text" else whole[: int(float(cut) * len(whole))])
    with refused(DatasetError):
        read_table(path)


def test_anything_but_a_file_is_refused_clearly(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with refused(DatasetError):
        read_table(tmp_path)
    with refused(DatasetError):
        read_table(tmp_path / "nowhere.csv")
    with refused(DatasetError):
        read_table(written(tmp_path, "x", "pool.ods"))
    path = written(tmp_path, "a,b\n1,2\n")
    monkeypatch.setattr("os.access", lambda *_: False)
    with refused(DatasetError):
        read_table(path)


def test_a_file_that_turns_unreadable_is_refused_clearly(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied")

    np.save(tmp_path / "x.npy", np.eye(2))
    monkeypatch.setattr("evgp.datasets.tables.read_npy", refuse)
    with refused(DatasetError):
        read_table(tmp_path / "x.npy")


def test_a_csv_may_have_marks_blanks_quotes_and_spaces(tmp_path: Path) -> None:
    content = b'\xef\xbb\xbfa, b,,c\r\n1,"x\ny",7,\r\n\r\n2,"z, z",8,0.5\r\n'
    table = read_table(written(tmp_path, content))
    assert table.names == ("a", "b", "Unnamed: 2", "c")
    assert table.data.to_pydict()["b"] == ["x\ny", "z, z"]
    assert table.data.to_pydict()["c"] == [None, 0.5]


def records(*spoiled: str, at: tuple[int, ...] = (), count: int = 1000) -> str:
    """Lines of two numbers and a word, some of them replaced."""
    lines = [f"{j},{j * j % 17},{'red blue'.split()[j % 2]}" for j in range(count)]
    for line, text in zip(at, spoiled, strict=True):
        lines[line] = text
    return "\n".join(["a,b,kind", *lines]) + "\n"


@pytest.mark.parametrize(
    "content",
    [
        records('7,8,"red', at=(499,)),
        records('7,"8,red', at=(499,)),
        records('"7,8,red', at=(499,)),
        records('7,8,"red', at=(998,)),
        records('7,8,"red', '7,8,"blue', at=(99, 899)),
        records('7,8,"red', '7,8,blue"', at=(99, 899)),
        records('7,8,"red', '7,8,blue"', at=(99, 102)),
        records('7,8,"red', '7,8,blue"', at=(99, 100)),
        records('7,8,"red', '7,8,"blue', at=(99, 100)),
        records('7,"8,red', '7,"8,blue', at=(99, 120)),
        records('7,8,"red', '7,8,"red"', at=(99, 120)),
        'a,note\n1,"' + "word\n" * 150 + '"\n2,x\n',
    ],
)
@pytest.mark.parametrize("packed", [False, True])
def test_a_quote_left_open_never_swallows_rows(tmp_path: Path, content: str, packed: bool) -> None:
    path = written(tmp_path, gzip.compress(content.encode()), "pool.csv.gz")
    with refused(DatasetError) as caught:
        read_table(path if packed else written(tmp_path, content))
    assert "; " in str(caught.value)


@pytest.mark.parametrize(
    "cell",
    [
        "Dear all,\nwe met, talked\nand left.\n\nYours, A",
        "Foo Ltd, Dept\n12, Main St, Town\nCity, Country",
        'he said ""no"",\nand 5 "" pipes',
        "one\r\ntwo\r\n",
    ],
)
def test_a_cell_may_hold_a_few_lines(tmp_path: Path, cell: str) -> None:
    content = f'a,note,b\n1,"{cell}",2\n3,5" pipe,4\n5,"{cell}" ,6\n'
    table = read_table(written(tmp_path, content))
    assert table.column("note").to_pylist()[0] == cell.replace('""', '"')
    assert table.column("b").to_pylist() == [2, 4, 6]


def test_a_header_that_counts_is_a_header(tmp_path: Path) -> None:
    assert read_table(written(tmp_path, "0,1,2\n4,5,6\n")).names == ("0", "1", "2")


def test_a_delimiter_can_be_chosen(tmp_path: Path) -> None:
    assert read_table(written(tmp_path, "a;b\n1;2\n"), delimiter=";").names == ("a", "b")
    assert read_table(written(tmp_path, "a\tb\n1\t2\n"), delimiter="tab").names == ("a", "b")
    assert read_table(written(tmp_path, "a\tb\n1\t2\n", "pool.tsv")).names == ("a", "b")
    with refused(DatasetError):
        read_table(written(tmp_path, "a;b\n1;2\n"), delimiter=";;")


def test_a_wrong_choice_of_delimiter_gets_a_suggestion(tmp_path: Path) -> None:
    for content in ("a,b\n1,2\n3,4\n", "a,b\n1,2\n3;4\n"):
        with refused(DatasetError):
            read_table(written(tmp_path, content), delimiter=";")
    first = read_table(written(tmp_path, "height, cm\n1\n2\n"), delimiter=";")
    assert first.names == ("height, cm",)


def test_an_array_is_named_only_in_an_archive(tmp_path: Path) -> None:
    with refused(DatasetError):
        read_table(written(tmp_path, "a,b\n1,2\n"), array="x")


def test_a_packed_csv_is_read(tmp_path: Path) -> None:
    whole = gzip.compress(b"a,b\n1,2\n3,4\n")
    assert len(read_table(written(tmp_path, whole, "pool.csv.gz"))) == 2
    for content in (whole[:-12], b"a,b\n1,2\n"):
        with refused(DatasetError):
            read_table(written(tmp_path, content, "pool.csv.gz"))


def test_a_packed_csv_that_grows_too_large_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Little:
        available = 1000

    path = written(tmp_path, gzip.compress(b"a,b\n" + b"1,2\n" * 1000), "pool.csv.gz")
    monkeypatch.setattr("psutil.virtual_memory", Little)
    with refused(DatasetError):
        read_table(path)


def test_text_columns_keep_their_zeros(tmp_path: Path) -> None:
    table = read_table(written(tmp_path, "id,a\n007,1\n010,2\n"), text=("id", "absent"))
    assert table.column("id").to_pylist() == ["007", "010"]


def test_a_row_may_be_very_long(tmp_path: Path) -> None:
    lines = "".join(f"{letter * 3_000_000},1\n" for letter in "abcde")
    assert len(read_table(written(tmp_path, "note,a\n" + lines))) == 5


def test_numbers_are_read_by_name() -> None:
    table = Table(pa.table({"price": [1.0, None], "kind": ["a", "b"]}), "pool.csv")
    with refused(DatasetError):
        table.numbers("price")
    with refused(DatasetError):
        table.numbers("kind")
    with refused(DatasetError):
        table.numbers("cost")


@settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    x=arrays(
        np.float64,
        st.tuples(st.integers(2, 6), st.integers(1, 4)),
        elements=st.floats(-1e6, 1e6, allow_subnormal=False),
    )
)
def test_every_format_gives_the_same_matrix(tmp_path: Path, x: np.ndarray) -> None:
    x[0], x[1] = 0.0, 1.0
    table = pa.table({f"x{j}": x[:, j] for j in range(x.shape[1])})
    pyarrow.csv.write_csv(table, tmp_path / "t.csv")
    pq.write_table(table, tmp_path / "t.parquet")
    pyarrow.feather.write_feather(table, str(tmp_path / "t.feather"))
    with pa.ipc.new_stream(tmp_path / "t.arrow", table.schema) as stream:
        stream.write_table(table)
    np.save(tmp_path / "t.npy", x)
    np.savez(tmp_path / "t.npz", x=x)
    results = []
    for kind in ("csv", "parquet", "feather", "arrow", "npy", "npz"):
        read = read_table(tmp_path / f"t.{kind}")
        assert read.names == tuple(table.column_names)
        results.append(Encoder.fit(read).transform(read))
    for other in results[1:]:
        np.testing.assert_array_equal(results[0], other)


def test_a_gzip_bomb_is_refused_at_once(tmp_path) -> None:
    path = tmp_path / "bomb.csv.gz"
    with gzip.open(path, "wb") as stream:
        stream.write(b"a,b\n")
        for _ in range(40):
            stream.write(b"0,0\n" * 2**20)
    with refused(DatasetError):
        read_table(path)


def test_a_damaged_table_that_we_wrote_is_refused(tmp_path) -> None:
    """Pages have checksums, and names of columns may be invalid characters."""
    path = tmp_path / "picks.parquet"
    write_rows(path, {"rank": list(range(60)), "id": [f"row {i}" for i in range(60)]})
    whole, rows = path.read_bytes(), read_table(path).data.to_pylist()
    footer = len(whole) - 8 - int.from_bytes(whole[-8:-4], "little")
    for at in range(4, footer):
        damaged = bytearray(whole)
        damaged[at] ^= 1 << (at % 8)
        path.write_bytes(damaged)
        try:
            assert read_table(path).data.to_pylist() == rows
        except DatasetError as error:
            assert "picks.parquet" in str(error)
    path.write_bytes(whole.replace(b"rank", b"ra\xeek"))
    with refused(DatasetError):
        read_table(path)


def test_wide_tables_are_read_in_time_and_wider_ones_refused(tmp_path) -> None:
    path = tmp_path / "wide.csv"

    def write(columns: int) -> None:
        rows = [[str((i * 7 + row * 13) % 11) for i in range(columns)] for row in range(3)]
        lines = [[f"c{i}" for i in range(columns)], *rows]
        path.write_text("\n".join(map(",".join, lines)) + "\n")

    write(8_000)
    begun = process_time()
    assert read_pool(path).in_memory.shape == (3, 8_000)
    assert process_time() - begun < 12  # some one; with a look at all for each it was several
    write(100_001)
    with refused(DatasetError):
        read_pool(path)


def test_a_table_larger_than_memory_is_refused_unread(tmp_path) -> None:
    path = tmp_path / "hole.csv"
    path.write_text("a,b\n1,2\n3,4\n")
    os.truncate(path, 10**12)
    begun = process_time()
    with refused(DatasetError):
        read_pool(path)
    assert process_time() - begun < 5
