"""The command on pools that stay in their files."""

import json
import re
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq
import pytest

import evgp
from evgp.datasets.options import ReadOptions, address
from evgp.datasets.read import stays_in_files
from tests.messages import printed

FEW = ("--features", "nystrom-24")


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch) -> Path:
    monkeypatch.setenv("EVGP_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def table(n: int = 300, seed: int = 0) -> pa.Table:
    random = np.random.default_rng(seed)
    return pa.table(
        {
            "key": [f"r{i:04}" for i in range(n)],
            **{f"a{j}": random.normal(size=n) for j in range(4)},
            "kind": [["u", "v", "w"][i % 3] for i in range(n)],
            "price": random.uniform(1, 2, n),
        }
    )


@pytest.fixture
def folder(tmp_path) -> Path:
    path = tmp_path / "pool"
    path.mkdir()
    pq.write_table(table().slice(0, 120), path / "a.parquet")
    pq.write_table(table().slice(120), path / "b.parquet")
    return path


def ids(ran) -> list[str]:
    assert ran.code == 0, ran.err
    return [line.split("\t")[1] for line in ran.out.splitlines()[1:]]


def test_a_folder_is_one_pool(run, folder, tmp_path) -> None:
    whole = tmp_path / "whole.parquet"
    pq.write_table(table(), whole)
    asked = ("-k", 6, "--id", "key", "--drop", "price, ", "--greedy", "exact")
    expected = ids(run("pick", whole, *asked))
    assert ids(run("pick", folder, *asked)) == expected
    sharded = ids(run("pick", folder, *asked, "--method", "sharded", *FEW))
    inside = ids(run("pick", whole, *asked, "--method", "features", *FEW))
    assert sharded == inside and len(set(sharded)) == 6
    arrow = tmp_path / "whole.arrow"
    pyarrow.feather.write_feather(table(), arrow, compression="uncompressed")
    assert ids(run("pick", arrow, *asked, "--method", "sharded", *FEW)) == sharded


def test_names_costs_labels_and_test_points(run, folder, tmp_path, cache) -> None:
    labels = tmp_path / "labels.csv"
    labels.write_text("key\nr0007\nr0200\n")
    test = tmp_path / "test.parquet"
    pq.write_table(table(50, seed=1), test)
    asked = ("--id", "key", "--costs", "price", "--budget", 9, "--labelled", labels)
    out, report = tmp_path / "picks.csv", tmp_path / "report.html"
    ran = run(
        "pick", folder, *asked, "--test", test, "--method", "sharded", *FEW,
        "-o", out, "--report", report, "--json",
    )  # fmt: skip
    document = json.loads(ran.out)
    names = [pick["id"] for pick in document["picks"]]
    assert not {"r0007", "r0200"} & set(names) and len(names) > 3
    assert [f"r{pick['index']:04}" for pick in document["picks"]] == names
    assert sum(pick["cost"] for pick in document["picks"]) <= 9
    assert document["rows"] == 300 and document["settings"]["method"] == "sharded"
    assert document["settings"]["labelled"] == 2 and document["settings"]["test_points"] == 50
    assert "read as 2 values of 'key'" in " ".join(document["warnings"])
    assert out.read_text().splitlines()[1].split(",")[2] == names[0]
    page = report.read_text()
    assert names[0] in page and "300 rows" in re.sub(r"<[^>]+>", "", page)
    assert not cache.exists() or list(cache.iterdir()) == []


def test_labelled_rows_from_outside(run, folder, tmp_path) -> None:
    pq.write_table(table(40, seed=2).drop(["key"]), tmp_path / "known.parquet")
    ran = run("pick", folder, "-k", 4, "--id", "key", "--drop", "price", "--method", "sharded",
              *FEW, "--labelled", tmp_path / "known.parquet", "--json")  # fmt: skip
    document = json.loads(ran.out)
    assert document["settings"]["labelled"] == 40 and document["settings"]["drop"] == ["price"]
    assert document["start_variance"] < 0.9 * document["prior_variance"]
    assert "read as 40 labelled rows from outside" in " ".join(document["warnings"])


def test_the_plan_reads_only_metadata(run, folder) -> None:
    ran = run("plan", folder, "-k", 5, "--method", "sharded", *FEW, "--memory", "2GB", "--json")
    document = json.loads(ran.out)
    assert (
        document["method"] == "sharded"
        and document["kind"] == "nystrom-24"
        and document["rows"] == 300
    )
    assert document["disk"] == 300 * (4 * 24 + 8) and document["available"] == 2_000_000_000
    small = run("plan", folder, "-k", 5, "--json")
    assert json.loads(small.out)["method"] == "dense"


@pytest.mark.parametrize(
    "arguments",
    [
        ("--memory", "lots"),
        ("--memory", "100MB"),
        ("--id", "nokey"),
        ("--greedy", "lazy"),
        ("--criterion", "mi"),
        ("--thin", "9"),
        ("--dask", "foo"),
        ("--dask", "http://127.0.0.1:1"),
        ("--dask", "tcp://127.0.0.1:1"),
    ],
    ids=lambda value: str(value)[:30],
)
def test_what_cannot_be_is_refused_in_one_line(run, folder, arguments) -> None:
    drop = () if "--id" in arguments else ("--id", "key")
    ran = run("pick", folder, "-k", 3, "--method", "sharded", *FEW, *drop, *arguments)
    assert ran.code == 1, ran.err
    printed(ran.err)


def test_a_file_that_is_not_there(run, tmp_path) -> None:
    ran = run("pick", tmp_path / "nothing", "-k", 3, "--method", "sharded")
    assert ran.code == 1, ran.err
    printed(ran.err)


def test_a_damaged_file_is_named_and_nothing_is_written(run, folder, tmp_path) -> None:
    file = folder / "b.parquet"
    file.write_bytes(file.read_bytes()[:-40])
    ran = run("pick", folder, "-k", 3, "--id", "key", "-o", tmp_path / "picks.csv")
    assert ran.code == 1 and not (tmp_path / "picks.csv").exists(), ran.err
    printed(ran.err)


def test_files_larger_than_the_memory_given_stay_where_they_are(tmp_path) -> None:
    np.save(tmp_path / "x.npy", np.zeros((100_000, 100), dtype=np.float32))
    how = ReadOptions()
    assert stays_in_files(tmp_path / "x.npy", how, 100_000_000)
    assert not stays_in_files(tmp_path / "x.npy", how, None)
    assert not stays_in_files(tmp_path / "x.csv", how, 100_000_000)


@pytest.mark.parametrize(
    ("path", "url"),
    [
        ("s3://bucket/pool", "s3://bucket/pool"),
        ("file:///data/pool", "file:///data/pool"),
        ("/data/pool", None),
        ("C:/pool", None),
    ],
)
def test_addresses_are_distinguished_from_paths(path, url) -> None:
    assert address(Path(path)) == url


def test_an_address_is_a_pool(run, folder) -> None:
    asked = ("-k", 4, "--id", "key", "--method", "sharded", *FEW)
    assert ids(run("pick", f"file://{folder}", *asked)) == ids(run("pick", folder, *asked))


@pytest.mark.parametrize("drop", [("a,b",), ("a,b", "c,d")])
def test_a_comma_may_belong_to_the_name_of_a_column(run, tmp_path, drop) -> None:
    x = np.random.default_rng(0).normal(size=(300, 4))
    whole = dict(zip(("a,b", "c", "d", "e"), x.T, strict=True))
    out = {"a,b"} if len(drop) == 1 else {"a,b", "c", "d"}
    for name, left in (("pool", whole), ("left", {k: v for k, v in whole.items() if k not in out})):
        pq.write_table(pa.table(left), tmp_path / f"{name}.parquet")
    asked = ("-k", 3, "--method", "sharded", *FEW)
    dropped = [part for name in drop for part in ("--drop", name)]
    ran = run("pick", tmp_path / "pool.parquet", *asked, *dropped)
    assert ran.code == 0 and ids(ran) == ids(run("pick", tmp_path / "left.parquet", *asked))


def test_the_features_of_a_folder_are_those_of_the_run(run, folder) -> None:
    document = json.loads(run("pick", folder, "-k", 5, "--id", "key", "--json").out)
    picks = evgp.pick(folder, 5, id="key")
    assert (
        document["settings"]["features"] == picks.settings["features"] == len(document["features"])
    )
