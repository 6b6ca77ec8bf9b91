"""However a table is written, the same numbers are read, and what was recognised is reported."""

import codecs
import warnings
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from evgp.datasets import read_pool, read_table
from evgp.errors import DatasetError, DataWarning
from tests.messages import refused, warned

ENCODINGS = ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32", "cp1252"]
SIGNS = [",", ";", "\t", "|"]
NUMBERS = st.floats(-1e9, 1e9).map(lambda number: round(number, 4))


def saved(folder: Path, content: bytes | str, name: str = "pool.csv") -> Path:
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


@pytest.mark.filterwarnings("ignore::evgp.errors.DataWarning")
@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    rows=st.lists(st.tuples(NUMBERS, NUMBERS), min_size=2, max_size=9),
    dialect=st.tuples(st.sampled_from(SIGNS), st.sampled_from(".,"), st.sampled_from(ENCODINGS)),
    given_all=st.booleans(),
)
def test_any_dialect_gives_the_same_numbers(
    tmp_path: Path,
    rows: list[tuple[float, float]],
    dialect: tuple[str, str, str],
    given_all: bool,
) -> None:
    sign, decimal, encoding = dialect
    quote = '"' if sign == decimal else ""

    def cell(number: float) -> str:
        # Four decimals, so that no cell can be read in two ways.
        return f"{quote}{number:.4f}{quote}".replace(".", decimal)

    lines = [sign.join(["größe", "b", "kind"])]
    lines += [
        sign.join([cell(a), cell(b), "é" if at % 2 else "x"]) for at, (a, b) in enumerate(rows)
    ]
    path = saved(tmp_path, ("\n".join(lines) + "\n").encode(encoding))
    assume(not (given_all and sign == decimal))
    how = {"delimiter": sign, "decimal": decimal, "encoding": encoding} if given_all else {}
    table = read_table(path, **how)
    assert table.names == ("größe", "b", "kind")
    read = np.column_stack([table.numbers("größe"), table.numbers("b")])
    assert read == pytest.approx(np.array(rows), abs=1e-12, rel=0)
    assert table.column("kind").to_pylist() == ["é" if at % 2 else "x" for at in range(len(rows))]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("a;b\n1;2\n3;4\n", "recognised ';' as the delimiter"),
        ("a\tb\n1\t2\n", "recognised 'tab' as the delimiter"),
        ("a|b\n1|2\n", "recognised '|' as the delimiter"),
        (b"a,b\n1,caf\xe9\n2,x\n", "recognised text in cp1252"),
        (b"a,b\n1,caf\x81\n2,x\n", "recognised text in iso-8859-1"),
        (b"caf\xe9,b\n1,2\n", "recognised text in cp1252"),
        ("a,b\n1,2\n".encode("utf-16"), "recognised text in utf-16"),
        ("a,b\n1,2\n".encode("utf-16-le"), "recognised text in utf-16-le"),
    ],
)
def test_what_is_recognised_is_reported(tmp_path: Path, content: bytes | str, said: str) -> None:
    with warned(DataWarning) as caught:
        table = read_table(saved(tmp_path, content))
    assert said in str(caught[0].message)
    assert len(table.names) == 2 and table.column(table.names[0]).to_pylist()[0] == 1


def test_a_table_as_excel_saves_it_in_europe(tmp_path: Path) -> None:
    text = "Größe;Preis;Menge;Tag\n1,5;1.200,50 €;1.234;31.12.2024\n2,5;3,00 €;5.678;01.02.2024\n"
    pool = read_pool(saved(tmp_path, text.encode("cp1252")))
    assert pool.table.data.select([0, 1, 2]).to_pylist() == [
        {"Größe": 1.5, "Preis": 1200.5, "Menge": 1234.0},
        {"Größe": 2.5, "Preis": 3.0, "Menge": 5678.0},
    ]
    words = " ".join(pool.notes)
    for message in ("cp1252", "';'", "decimal commas", "'€'", "thousands points", "day.month.year"):
        assert message in words
    assert pool.features[0] == "Größe"
    # Test points are read as the pool was, though '1.500' alone could be another number.
    other = saved(tmp_path, "Größe;Preis;Menge;Tag\n1,5;3;1.234;02.01.2024\n", "test.csv")
    with warned(DataWarning):
        x = pool.like(other)
    assert x[0, 0] == pool.x[0, 0] and x[0, 2] == pool.x[0, 2]


def test_points_stay_decimals_where_other_columns_have_some(tmp_path: Path) -> None:
    with warned(DataWarning):
        table = read_table(saved(tmp_path, 'a,b,c\n"1,5",1.234,7.5\n"2,5",5.678,8\n'))
    assert table.data.to_pydict() == {"a": [1.5, 2.5], "b": [1.234, 5.678], "c": [7.5, 8.0]}


def test_what_is_given_is_not_recognised(tmp_path: Path) -> None:
    path = saved(tmp_path, 'a;b\n"1,234";x\n"5,678";y\n')
    assert read_table(path, delimiter=";", decimal=",").numbers("a").tolist() == [1.234, 5.678]
    with warned(DataWarning):
        assert read_table(path, delimiter=";", decimal=".").numbers("a").tolist() == [1234, 5678]
    with warned(DataWarning):
        table = read_table(path, delimiter=";")
    assert table.column("a").to_pylist() == ["1,234", "5,678"]
    path = saved(tmp_path, b"a,b\n1,caf\xe9\n2,x\n")
    assert read_table(path, encoding="latin-1").column("b").to_pylist() == ["café", "x"]


@pytest.mark.parametrize(
    "content",
    [
        "größe,b\n1,é\n2,ü\n".encode() + b"3,\xe9\n",  # mostly UTF-8
        bytes(range(256)) * 9,
        b"a,b\n1,2\n\x00\xff\n",
        "a,b\n1,2\n".encode("utf-16")[:-1],
        codecs.BOM_UTF16_LE,
        "größe,b\n1,2\n".encode()[:3],
    ],
)
def test_anything_but_a_text_is_refused_clearly(tmp_path: Path, content: bytes) -> None:
    with refused(DatasetError):
        read_table(saved(tmp_path, content))


@pytest.mark.parametrize(
    "how",
    [
        {"encoding": "klingon"},
        {"encoding": "base64"},
        {"encoding": "utf-16"},
        {"decimal": ";"},
        {"decimal": ",", "delimiter": ","},
    ],
)
def test_bad_words_for_a_dialect_are_refused_clearly(tmp_path: Path, how: dict[str, str]) -> None:
    with refused(DatasetError):
        read_table(saved(tmp_path, "a,b\n1,2\nx"), **how)


@pytest.mark.parametrize("both", [False, True])
def test_the_first_line_that_is_not_utf8_is_named(tmp_path: Path, both: bool) -> None:
    first = "é".encode() if both else b"e"
    content = b"a,b\n1," + first + b"\n2,\xe9\xe8\xe9\n3,x\n"
    with warned(DataWarning) as caught:
        table = read_table(saved(tmp_path, content))
    assert "cp1252 (line 3 is the first not in UTF-8" in str(caught[0].message)
    assert ("though others with accents are" in str(caught[0].message)) is both
    assert table.column("b").to_pylist() == ["Ã©" if both else "e", "éèé", "x"]
    inputs = read_table(saved(tmp_path, content), encoding="cp1250")
    assert inputs.column("b").to_pylist()[1] == "éčé"


def test_a_text_file_has_one_text_per_line_and_no_header(tmp_path: Path) -> None:
    path = saved(tmp_path, "The cat, said he, sat\n\nA dog ran\r\nno comma here; none\n\n", "t.txt")
    with warned(DataWarning):
        table = read_table(path)
    lines = ["The cat, said he, sat", "", "A dog ran", "no comma here; none"]
    assert table.data.to_pydict() == {"text": lines}


@pytest.mark.parametrize("text", ["a,b\n1,x\n2,y\n", "a\tb\n1\tx\n2\ty\n", "a\n1.5\n2.5\n"])
def test_a_text_file_that_is_a_table_is_read_as_one(tmp_path: Path, text: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        assert read_table(saved(tmp_path, text, "t.txt")).names[0] == "a"
