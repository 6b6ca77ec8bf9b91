"""`evgp pick` does what the library does, and reports it."""

import csv
import errno
import io
import json
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

import evgp
from evgp.datasets import Encoder, Table, read_table
from tests.messages import printed

NAMED = ("--id", "name", "--drop", "price")


def table(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text), delimiter="\t"))


def by_the_library(pool: Path, **options: object) -> evgp.Selection:
    """Three picks of the pool, as `NAMED` reads it."""
    read = read_table(pool)
    x = Encoder.fit(read, id="name", drop=["price"]).transform(read)
    return evgp.pick(x, 3, scale=None, storage="auto", **options)


def lines_of(path: Path) -> list[str]:
    return path.read_text().splitlines()


def test_the_picks_are_those_of_the_library(run, pool: Path) -> None:
    read = read_table(pool)
    x = Encoder.fit(read, id="name", drop=["price"]).transform(read)
    expected = evgp.pick(x, 5, scale=None, storage="auto")
    ran = run("pick", pool, "-k", 5, *NAMED)
    assert ran.code == 0
    picked = table(ran.out)
    assert [row["id"] for row in picked] == [f"row-{j:02d}" for j in expected.indices]
    assert [float(row["gain"]) for row in picked] == expected.gains.tolist()
    assert [float(row["variance_left"]) for row in picked] == expected.variance_left.tolist()
    assert [row["rank"] for row in picked] == ["1", "2", "3", "4", "5"]


def test_without_ids_rows_are_counted_from_zero(run, pool: Path) -> None:
    named = table(run("pick", pool, "-k", 5, *NAMED).out)
    counted = table(run("pick", pool, "-k", 5, "--drop", "name,price").out)
    assert [f"row-{int(row['index']):02d}" for row in counted] == [row["id"] for row in named]


def test_the_summary_goes_to_stderr(run, pool: Path) -> None:
    err = run("pick", pool, "-k", 5, *NAMED).err
    assert "5 of 40 rows picked: variance" in err
    assert "% of the largest reduction any 5 rows could achieve" in err
    assert "Labels needed to remove a share of the variance:" in err
    assert run("pick", pool, "-k", 5, *NAMED, "--quiet").err == ""


def test_files_are_written_by_their_name(run, pool: Path, tmp_path: Path) -> None:
    out = table(run("pick", pool, "-k", 3, *NAMED).out)
    for name in ("p.csv", "p.tsv", "p.jsonl", "p.parquet"):
        assert run("pick", pool, "-k", 3, *NAMED, "-o", tmp_path / name).code == 0
    ids = [row["id"] for row in out]
    assert [row["name"] for row in csv.DictReader(lines_of(tmp_path / "p.csv"))] == ids
    assert [json.loads(line)["name"] for line in lines_of(tmp_path / "p.jsonl")] == ids
    assert pq.ParquetFile(tmp_path / "p.parquet").read()["name"].to_pylist() == ids
    assert [row["name"] for row in table((tmp_path / "p.tsv").read_text())] == ids


def test_a_report_is_written(run, pool: Path, tmp_path: Path) -> None:
    ran = run("pick", pool, "-k", 3, *NAMED, "--report", tmp_path / "r.html")
    assert ran.code == 0
    assert f"Written: {tmp_path / 'r.html'}." in ran.err
    page = (tmp_path / "r.html").read_text()
    assert page.lstrip().lower().startswith("<!doctype html")
    assert all(row["id"] in page for row in table(ran.out))


def test_one_json_document_has_everything(run, pool: Path) -> None:
    ran = run("pick", pool, "-k", 3, *NAMED, "--json")
    document = json.loads(ran.out)
    assert list(document["picks"][0]) == ["rank", "id", "index", "gain", "variance_left", "cost"]
    assert [f"row-{pick['index']:02d}" for pick in document["picks"]] == [
        pick["id"] for pick in document["picks"]
    ]
    assert document["rows"] == 40
    assert document["features"] == ["a", "b", "kind=x", "kind=y", "kind=z"]
    assert (
        document["picks"][-1]["variance_left"]
        < document["start_variance"]
        <= document["prior_variance"]
    )
    assert len(document["certificate"]["share"]) == 3
    assert {item["share"] for item in document["needed"]} == {0.5, 0.8, 0.9, 0.95}
    assert document["settings"]["seed"] == 0
    assert isinstance(document["warnings"], list)


def test_the_settings_are_those_of_the_command(
    run, pool: Path, rows: list[str], tmp_path: Path
) -> None:
    plain = json.loads(run("pick", pool, "-k", 2, *NAMED, "--json").out)["settings"]
    assert plain["scale"] == "smooth" and plain["impute"] is False
    assert plain["id"] == "name" and plain["drop"] == ["price"] and plain["test_file"] is None
    (tmp_path / "test.csv").write_text("\n".join(rows))
    (tmp_path / "known.txt").write_text("row-01\n")
    files = ("--test", tmp_path / "test.csv", "--labelled", tmp_path / "known.txt")
    money = ("--costs", "price", "--budget", 9, "--id", "name", "--max-categories", 7)
    options = ("--scale", "none", "--impute", "--json", "--report", tmp_path / "r.html")
    document = json.loads(run("pick", pool, *files, *money, *options).out)["settings"]
    assert document["scale"] is None and document["impute"] is True
    assert (document["costs"], document["budget"], document["max_categories"]) == ("price", 9, 7)
    assert document["test_file"] == str(tmp_path / "test.csv")
    assert document["labelled_file"] == str(tmp_path / "known.txt") and document["labelled"] == 1
    page = (tmp_path / "r.html").read_text()
    assert "<dt>impute</dt><dd>True</dd>" in page


def test_a_budget_is_kept(run, pool: Path) -> None:
    ran = run("pick", pool, "--budget", 7, "--costs", "price", "--id", "name")
    picked = table(ran.out)
    assert picked and sum(float(row["cost"]) for row in picked) <= 7
    assert "for a cost of" in ran.err
    prices = [1 + int(row["id"].removeprefix("row-")) % 4 for row in picked]
    assert [float(row["cost"]) for row in picked] == prices


def test_labelled_rows_are_not_picked_again(run, pool: Path, tmp_path: Path) -> None:
    first = tmp_path / "first.csv"
    run("pick", pool, "-k", 5, *NAMED, "-o", first)
    ran = run("pick", pool, "-k", 5, *NAMED, "--labelled", first)
    before = {row["name"] for row in csv.DictReader(lines_of(first))}
    assert before.isdisjoint(row["id"] for row in table(ran.out))
    assert "read as 5 values of 'name' that are labelled" in ran.err


def test_labelled_rows_may_come_from_outside(run, pool: Path, tmp_path: Path) -> None:
    known = tmp_path / "known.csv"
    known.write_text("kind,b,a,label\nx,10,0.5,1\ny,-900,0.1,0\n")
    ran = run("pick", pool, "-k", 3, *NAMED, "--labelled", known)
    assert ran.code == 0
    assert "2 labelled rows from outside the pool" in ran.err
    assert "ignored 1 column ('label')" in ran.err
    read, other = read_table(pool), Table(read_table(known).data.drop_columns(["label"]), "known")
    outside = Encoder.fit(read, id="name", drop=["price"]).transform(other)
    expected = by_the_library(pool, x_labelled=outside)
    left = [float(row["variance_left"]) for row in table(ran.out)]
    assert left == pytest.approx(expected.variance_left.tolist(), rel=1e-9)


def test_labelled_rows_of_the_pool_are_known_by_their_values(
    run, pool: Path, rows: list[str], tmp_path: Path
) -> None:
    first = table(run("pick", pool, "-k", 3, "--drop", "name,price").out)
    chosen = [rows[1 + int(row["index"])].split(",", 1)[1] for row in first]
    known = tmp_path / "known.csv"
    known.write_text("\n".join(["a,b,kind,price", *chosen, "9,9,x,1"]) + "\n")
    ran = run("pick", pool, "-k", 5, "--drop", "name,price", "--labelled", known)
    assert "3 labelled rows of the pool and 1 labelled row from outside the pool" in ran.err
    assert not {row["index"] for row in first} & {row["index"] for row in table(ran.out)}


def test_test_rows_are_scaled_as_the_pool(run, pool: Path, rows: list[str], tmp_path: Path) -> None:
    same = tmp_path / "test.csv"
    same.write_text("\n".join(rows) + "\n")
    own = table(run("pick", pool, "-k", 4, *NAMED, "--greedy", "exact").out)
    text = table(run("pick", pool, "-k", 4, *NAMED, "--greedy", "exact", "--test", same).out)
    assert [row["id"] for row in text] == [row["id"] for row in own]
    few = tmp_path / "few.csv"
    few.write_text("a,b,kind\n0,0,x\n0.1,5,new\n")
    ran = run("pick", pool, "-k", 2, *NAMED, "--test", few)
    assert ran.code == 0
    assert "column 'kind': values that" in ran.err


@pytest.mark.parametrize("criterion", ["ev", "median", "p90", "max", "mi"])
def test_every_criterion_runs(run, pool: Path, criterion: str) -> None:
    ran = run("pick", pool, "-k", 3, *NAMED, "--criterion", criterion, "--json")
    assert ran.code == 0
    document, parsed = json.loads(ran.out), by_the_library(pool, criterion=criterion)
    assert [pick["index"] for pick in document["picks"]] == parsed.indices.tolist()
    assert [pick["gain"] for pick in document["picks"]] == parsed.gains.tolist()
    assert document["settings"]["criterion"] == parsed.settings["criterion"]


@pytest.mark.parametrize("greedy", ["auto", "exact", "lazy", "stochastic", "exchange"])
def test_every_greedy_runs(run, pool: Path, greedy: str) -> None:
    ran = run("pick", pool, "-k", 3, *NAMED, "--greedy", greedy, "--seed", 3, "--json")
    assert ran.code == 0
    document, parsed = json.loads(ran.out), by_the_library(pool, greedy=greedy, seed=3)
    assert [pick["index"] for pick in document["picks"]] == parsed.indices.tolist()
    assert document["settings"]["greedy"] == parsed.settings["greedy"]
    assert document["settings"]["seed"] == 3


def test_random_state_is_another_word_for_the_seed(run, pool: Path) -> None:
    line = ("pick", pool, "-k", 3, *NAMED, "--greedy", "stochastic", "--json")
    by_seed = json.loads(run(*line, "--seed", 3).out)
    assert json.loads(run(*line, "--random-state", 3).out) == by_seed
    assert by_seed["settings"]["seed"] == 3 and "random_state" not in by_seed["settings"]
    # Two spellings of one option: the last one counts, as for any option that is repeated.
    assert json.loads(run(*line, "--seed", 0, "--random-state", 3).out) == by_seed


def test_the_network_is_as_requested(run, pool: Path) -> None:
    options = ("--depth", 3, "--activation", "erf", "--w-std", 1.5, "--b-std", 0.5)
    document = json.loads(run("pick", pool, "-k", 2, *NAMED, *options, "--json").out)
    expected = evgp.mlp(depth=3, activation="erf", w_std=1.5, b_std=0.5)
    assert document["settings"]["network"] == repr(expected)


def test_storage_thinning_and_noise_are_passed_on(run, pool: Path) -> None:
    options = ("--storage", "float32", "--thin", 10, "--noise", 0.01, "--scale", "none")
    document = json.loads(run("pick", pool, "-k", 2, *NAMED, *options, "--json").out)
    settings = document["settings"]
    assert (settings["storage"], settings["test_points"], settings["noise"]) == (
        "float32",
        10,
        0.01,
    )


def test_every_format_gives_the_same_picks(run, tmp_path: Path) -> None:
    x = np.random.default_rng(1).normal(size=(30, 3))
    np.save(tmp_path / "x.npy", x)
    np.savez(tmp_path / "x.npz", first=x, second=x[:5])
    lines = [",".join(map(repr, row)) for row in x.tolist()]
    (tmp_path / "x.csv").write_text("\n".join(["x0,x1,x2", *lines]) + "\n")
    (tmp_path / "semi.csv").write_text("\n".join(["x0,x1,x2", *lines]).replace(",", ";"))
    outs = [
        run("pick", tmp_path / "x.npy", "-k", 4).out,
        run("pick", tmp_path / "x.npz", "-k", 4, "--array", "first").out,
        run("pick", tmp_path / "x.csv", "-k", 4).out,
        run("pick", tmp_path / "semi.csv", "-k", 4, "--delimiter", ";").out,
    ]
    assert len(set(outs)) == 1 and outs[0]


def test_ids_keep_their_zeros(run, tmp_path: Path) -> None:
    lines = [f"{j:04d},{j * j % 17},{j % 5}" for j in range(20)]
    (tmp_path / "pool.csv").write_text("\n".join(["key,a,b", *lines]))
    picked = table(run("pick", tmp_path / "pool.csv", "-k", 3, "--id", "key").out)
    assert all(len(row["id"]) == 4 for row in picked)


def test_ids_like_formulas_are_made_harmless(run, tmp_path: Path) -> None:
    signs = ["=1+2", "+a", "-b", "@c", "-3", "plain"]
    lines = [f"{sign},{j * j % 7},{j % 2}" for j, sign in enumerate(signs)]
    pool = tmp_path / "pool.csv"
    pool.write_text("\n".join(["key,a,b", *lines]) + "\n")
    for name in ("p.csv", "p.tsv", "p.jsonl", "p.parquet"):
        ran = run("pick", pool, "-k", 5, "--id", "key", "-o", tmp_path / name)
        assert ran.code == 0
        separated = name in ("p.csv", "p.tsv")
        assert ran.err.count("spreadsheet formula") == separated
        if name != "p.jsonl":
            again = run("pick", pool, "-k", 1, "--id", "key", "--labelled", tmp_path / name)
            assert "read as 5 values of 'key' that are labelled" in again.err
    safe = {row["key"] for row in csv.DictReader(lines_of(tmp_path / "p.csv"))}
    assert safe <= {"'=1+2", "'+a", "'-b", "'@c", "-3", "plain"}
    raw = pq.ParquetFile(tmp_path / "p.parquet").read()["key"].to_pylist()
    assert set(raw) <= set(signs)


def test_drop_takes_commas_and_repeats(run, pool: Path) -> None:
    first = run("pick", pool, "-k", 2, "--drop", "name,price,kind")
    two = run("pick", pool, "-k", 2, "--drop", "name", "--drop", "price", "--drop", "kind")
    assert first.code == two.code == 0
    assert first.out == two.out


def test_words_mean_the_same_in_every_file(run, tmp_path: Path) -> None:
    lines = [f"{j * j % 7},{j % 3},{j % 2 == 0},{'12x'[j % 3]}" for j in range(15)]
    (tmp_path / "pool.csv").write_text("\n".join(["a,b,flag,code", *lines]))
    # Alone, this column of words would look like numbers.
    (tmp_path / "test.csv").write_text("a,b,flag,code\n1,1,True,1\n2,0,False,2\n")
    ran = run("pick", tmp_path / "pool.csv", "-k", 2, "--test", tmp_path / "test.csv")
    assert ran.code == 0
    assert "does not have" not in ran.err


def test_a_report_that_cannot_be_written_leaves_no_picks(run, pool, tmp_path, monkeypatch) -> None:
    """Both files, or none of them."""
    out, report = tmp_path / "picks.csv", tmp_path / "report.html"

    def full(part, *rest, **options):
        raise OSError(errno.ENOSPC, "No space left on device", str(part))

    monkeypatch.setattr(Path, "write_text", full)
    ran = run("pick", pool, "--id", "name", "-k", 3, "-o", out, "--report", report)
    assert ran.code == 1, ran.err
    printed(ran.err)
    assert not out.exists() and not report.exists()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["pool.csv"]


def test_raw_features_of_a_file_of_embeddings(run, tmp_path) -> None:
    x = np.random.default_rng(0).normal(size=(50, 6)) * [1, 1, 1, 1, 1, 9]
    np.save(tmp_path / "embeddings.npy", x)
    ran = run("pick", tmp_path / "embeddings.npy", "-k", 5, "--features", "raw", "--json")
    assert ran.code == 0, ran.err
    document = json.loads(ran.out)
    picked = evgp.pick(x, 5, features="raw")
    assert [pick["index"] for pick in document["picks"]] == picked.indices.tolist()
    assert document["prior_variance"] == pytest.approx(picked.prior_variance)
    assert document["settings"]["kernel_features"] == "raw"
    planned = run(
        "plan", tmp_path / "embeddings.npy", "-k", 5, "--features", "nystrom-20", "--json"
    )
    assert json.loads(planned.out)["kind"] == "nystrom-20"
    bad = run("pick", tmp_path / "embeddings.npy", "-k", 5, "--features", "best")
    assert bad.code == 1, bad.err
    printed(bad.err)
