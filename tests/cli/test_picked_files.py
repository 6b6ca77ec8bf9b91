"""Picks are written with the pool's own columns, and picked images are copied."""

import csv
import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from openpyxl import load_workbook
from PIL import Image

from evgp.datasets import read_table
from tests.messages import printed

OURS = ["rank", "index", "gain", "variance_left"]


def records(path: Path) -> list[dict[str, object]]:
    if path.suffix == ".csv":
        with path.open(newline="") as stream:
            return list(csv.DictReader(stream))
    if path.suffix == ".jsonl":
        return [json.loads(line) for line in path.read_text().splitlines()]
    return read_table(path).data.to_pylist()


@pytest.mark.parametrize("ending", [".csv", ".jsonl", ".parquet", ".xlsx"])
def test_picks_have_the_columns_of_the_pool(
    run, pool: Path, rows: list[str], tmp_path: Path, ending: str
) -> None:
    out = tmp_path / f"picks{ending}"
    assert run("pick", pool, "-k", 4, "--id", "name", "-o", out).code == 0
    written = records(out)
    assert list(written[0]) == [*OURS[:2], "name", *OURS[2:], "a", "b", "kind", "price"]
    for row in written:
        cells = rows[1 + int(row["index"])].split(",")
        assert row["name"] == cells[0] and float(row["b"]) == float(cells[2])
    # It says again which rows are labelled.
    ran = run("pick", pool, "-k", 2, "--id", "name", "--labelled", out)
    assert ran.code == 0 and "4 values of 'name' that are labelled" in ran.err, ran.err


@pytest.mark.parametrize("ending", [".csv", ".parquet"])
@pytest.mark.parametrize("folder", [False, True])
def test_without_ids_row_numbers_say_what_is_labelled(
    run, tmp_path: Path, ending: str, folder: bool
) -> None:
    (tmp_path / "pool").mkdir()
    source = tmp_path / "pool" / "part.parquet"
    x = np.arange(30.0)
    pq.write_table(pa.table({"a": x % 7, "b": x % 2, "gain": x % 5}), source)
    out = tmp_path / f"picks{ending}"
    where = source.parent if folder else source
    first = run("pick", where, "-k", 3, "-o", out)
    assert first.code == 0, first.err
    assert list(records(out)[0]) == [*OURS, "a", "b", "gain_pool"]
    ran = run("pick", where, "-k", 2, "--labelled", out)
    assert ran.code == 0 and "3 row numbers (counted from 0) that are labelled" in ran.err, ran.err
    assert not {*indices(first.out)} & {*indices(ran.out)}


def indices(out: str) -> list[int]:
    return [int(row["index"]) for row in csv.DictReader(out.splitlines(), delimiter="\t")]


@pytest.mark.parametrize("name", ["index", "rank"])
def test_an_id_keeps_its_name_if_it_is_ours(run, tmp_path: Path, name: str) -> None:
    lines = [f"{name},a", *(f"{at + 100},{at % 7}" for at in range(30))]
    (tmp_path / "pool.csv").write_text("\n".join(lines))
    out = tmp_path / "picks.csv"
    call = ("pick", tmp_path / "pool.csv", "-k", 3, "--id", name)
    assert run(*call, "-o", out).code == 0
    written = records(out)
    assert all(int(row[name]) >= 100 for row in written) and f"pick_{name}" in written[0]
    ran = run(*call, "--labelled", out)
    assert ran.code == 0 and f"read as 3 values of '{name}' that are labelled" in ran.err, ran.err


def test_lists_are_for_files_that_can_hold_them(run, tmp_path: Path) -> None:
    x = np.arange(30.0)
    columns = {"a": x % 7, "tags": [["x", "y"]] * 30, "raw": [b"z"] * 30}
    pq.write_table(pa.table(columns), tmp_path / "pool.parquet")
    call = ("pick", tmp_path / "pool.parquet", "-k", 2, "--drop", "tags,raw", "-o")
    for ending, names in ((".csv", ["a"]), (".parquet", ["a", "tags", "raw"])):
        assert run(*call, tmp_path / f"picks{ending}").code == 0
        assert list(records(tmp_path / f"picks{ending}")[0]) == [*OURS, *names]


def test_an_array_has_no_columns_of_its_own(run, tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.random.default_rng(0).normal(size=(30, 3)))
    assert run("pick", tmp_path / "x.npy", "-k", 2, "-o", tmp_path / "picks.csv").code == 0
    assert list(records(tmp_path / "picks.csv")[0]) == OURS


def test_a_workbook_keeps_text_as_it_is(run, tmp_path: Path) -> None:
    pq.write_table(
        pa.table({"note": ["=1+2", "\x07bell"] * 15, "a": np.arange(30) % 7}),
        tmp_path / "p.parquet",
    )
    ran = run("pick", tmp_path / "p.parquet", "-k", 30, "-o", tmp_path / "picks.xlsx")
    assert ran.code == 0, ran.err
    assert {row["note"] for row in records(tmp_path / "picks.xlsx")} == {"=1+2", "\ufffdbell"}


def test_without_openpyxl_nothing_is_computed(
    run, pool: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("evgp._extras.find_spec", lambda name: None)
    ran = run("pick", pool, "-k", 2, "-o", tmp_path / "picks.xlsx")
    assert ran.code == 1 and 'pip install "evgp[excel]"' in ran.err
    printed(ran.err)


@pytest.fixture
def images(tmp_path: Path) -> Path:
    folder = tmp_path / "images"
    (folder / "inner").mkdir(parents=True)
    random = np.random.default_rng(0)
    for at in range(12):
        pixels = random.integers(0, 256, (8, 8), dtype=np.uint8)
        Image.fromarray(pixels).save(folder / ("inner" if at % 2 else "") / f"{at}.png")
    return folder


def test_picked_images_are_copied(run, images: Path, tmp_path: Path) -> None:
    ran = run("pick", images, "-k", 10, "--copy-to", tmp_path / "new", "-o", tmp_path / "picks.csv")
    assert ran.code == 0, ran.err
    copied = sorted(path.name for path in (tmp_path / "new").iterdir())
    picked = [str(row["id"]) for row in records(tmp_path / "picks.csv")]
    assert copied == [f"{at:02d}_{name.replace('/', '_')}" for at, name in enumerate(picked, 1)]
    assert (tmp_path / "new" / copied[0]).read_bytes() == (images / picked[0]).read_bytes()
    assert str(tmp_path / "new") in ran.err


def test_copies_never_overwrite(run, images: Path, pool: Path, tmp_path: Path) -> None:
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "1_0.png").write_text("mine")
    for folder in (tmp_path / "full", pool, tmp_path / "no" / "where", images / "picks"):
        before = sorted(tmp_path.rglob("*"))
        ran = run("pick", images, "-k", 2, "--copy-to", folder)
        assert ran.code == 1 and sorted(tmp_path.rglob("*")) == before
        printed(ran.err)
    ran = run("pick", pool, "-k", 2, "--id", "name", "--copy-to", tmp_path / "new")
    assert ran.code == 1 and not (tmp_path / "new").exists()
    printed(ran.err)
    assert (tmp_path / "full" / "1_0.png").read_text() == "mine"


ODD = "price,when,share,size\n" + "".join(
    f'"${1000 + at:,}.50",{1 + at % 28}/12/2021,{at} %,{at % 7}.5\n' for at in range(30)
)


@pytest.mark.parametrize("ending", [".csv", ".jsonl", ".parquet", ".xlsx"])
def test_values_are_written_as_they_were(run, tmp_path: Path, ending: str) -> None:
    (tmp_path / "pool.csv").write_text(ODD)
    out = tmp_path / f"picks{ending}"
    assert run("pick", tmp_path / "pool.csv", "-k", 4, "-o", out).code == 0
    with (tmp_path / "pool.csv").open(newline="") as stream:
        lines = list(csv.DictReader(stream))
    actual = pq.read_table(out).to_pylist() if ending == ".parquet" else raw(out)
    for row in actual:
        own = lines[int(row["index"])]
        assert [row[name] for name in ("price", "when", "share")] == [*own.values()][:3]
        assert float(row["size"]) == float(own["size"])


def raw(path: Path) -> list[dict[str, object]]:
    if path.suffix != ".xlsx":
        return records(path)
    names, *rows = load_workbook(path).worksheets[0].iter_rows(values_only=True)
    return [dict(zip(names, row, strict=True)) for row in rows]


def test_types_of_lists_and_times_stay(run, tmp_path: Path) -> None:
    x = np.random.default_rng(0).normal(size=(20, 3)).astype(np.float32)
    lists = pa.FixedSizeListArray.from_arrays(pa.array(x.reshape(-1)), 3)
    times = pa.array(range(0, 20 * 86_400, 86_400), pa.timestamp("s"))
    pool = pa.table({"embedding": lists, "when": times})
    pq.write_table(pool, tmp_path / "pool.parquet")
    pool = pq.read_table(tmp_path / "pool.parquet")
    out = tmp_path / "picks.parquet"
    assert run("pick", tmp_path / "pool.parquet", "-k", 4, "-o", out).code == 0
    picks = pq.read_table(out)
    assert picks.select(["embedding", "when"]) == pool.take(picks["index"])
    ran = run("pick", tmp_path / "pool.parquet", "-k", 4, "-o", tmp_path / "picks.csv")
    assert "column 'embedding' left out" in ran.err
    printed(ran.err)
    assert "when" in records(tmp_path / "picks.csv")[0]
