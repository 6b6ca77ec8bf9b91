"""`evgp audit` as a person runs it."""

import csv
import json
from pathlib import Path

import numpy as np
import pytest

import evgp
from evgp.cli import _audited
from evgp.datasets import Encoder, load_csv, read_table

QUICK = ("--train", "--members", 6, "--steps", 40, "--width", 32)


def lines(count: int, seed: int, *, label: bool = True) -> str:
    random = np.random.default_rng(seed)
    made = ["name,a,b,kind" + (",y,group" if label else "")]
    for j, (a, b) in enumerate(random.normal(size=(count, 2))):
        told = f",{50 * (np.sin(a) + b) + 7:.4f},{'up' if a > 0 else 'down'}" if label else ""
        made.append(f"{seed}-{j:02d},{a:.5f},{1000 * b:.3f},{'xyz'[j % 3]}{told}")
    return "\n".join(made) + "\n"


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path, Path]:
    made = tuple(tmp_path / f"{name}.csv" for name in ("train", "test", "pool"))
    for seed, path in enumerate(made):
        path.write_text(lines((20, 12, 25)[seed], seed, label=seed < 2))
    return made


GIVEN = ("--label", "y", "--id", "name", "--drop", "group")


def encoded(files) -> list[np.ndarray]:
    tables = [read_table(path) for path in files]
    encoder = Encoder.fit(tables[0], id="name", drop=("y", "group"))
    return [encoder.transform(table) for table in tables]


def test_the_table_is_the_librarys_audit(run, files, tmp_path) -> None:
    out = tmp_path / "spread.csv"
    ran = run("audit", *files[:2], *GIVEN, "-k", 4, "-o", out)
    assert ran.code == 0, ran.err
    x, test, _ = encoded(files)
    found = evgp.audit(x, test, standardise=False)
    rows = list(csv.DictReader(ran.out.splitlines(), delimiter="\t"))
    assert [row["id"] for row in rows] == [f"1-{row:02d}" for row in found.at_risk(4)]
    assert [float(row["deviation"]) for row in rows] == found.deviation[found.at_risk(4)].tolist()
    written = list(csv.DictReader(out.read_text().splitlines()))
    assert [float(row["ceiling"]) for row in written] == found.ceiling.tolist()
    unit = load_csv(files[0], "y", id="name", drop=["group"], test=0).y_std
    for row in written:
        assert float(row["in_label_unit"]) == pytest.approx(unit * float(row["deviation"]))
    assert "observed" not in written[0]
    assert f"{100 * found.share:.1f}".rstrip("0").rstrip(".") in ran.err
    assert f"{len(found.redundant())} of the 20 training rows" in ran.err


def test_a_pool_says_what_to_label_next(run, files) -> None:
    ran = run("audit", *files[:2], *GIVEN, "--pool", files[2], "-k", 3, "--json")
    assert ran.code == 0, ran.err
    x, test, pool = encoded(files)
    found = evgp.audit(x, test, pool=pool, k=3, standardise=False)
    made = json.loads(ran.out)
    assert made["further"]["rows"] == [f"2-{row:02d}" for row in found.further.indices]
    assert made["further"]["variance_left"] == pytest.approx(found.after.tolist())
    assert made["random_sets"] == pytest.approx(found.random.tolist())
    assert made["matter"] == [f"0-{row:02d}" for row in found.matter(3)]
    assert len(made["test_rows"]) == 12 and len(made["influence"]) == 20
    assert "best 3 further labels from pool.csv" in ran.err
    assert f"{(found.random > found.variance).sum()} would leave more" in ran.err


def test_training_confirms_it(run, files, tmp_path) -> None:
    page, out = tmp_path / "audit.html", tmp_path / "spread.jsonl"
    ran = run("audit", *files[:2], *GIVEN, *QUICK, "--report", page, "-o", out, "--json")
    assert ran.code == 0, ran.err
    made = json.loads(ran.out)["trained"]
    x, test, _ = encoded(files)
    data = load_csv(files[0], "y", id="name", drop=["group"], test=0)
    y = np.empty(20)
    y[data.rows] = data.y[:, 0]
    how = {"optimiser": "adam", "lr": 0.01, "steps": 40}
    nets = evgp.Recipe(evgp.mlp(width=32), how)(x, y, members=6)
    wanted = evgp.confirm(evgp.audit(x, test, standardise=False), nets.predict(test))
    assert made["pearson"] == pytest.approx(wanted.pearson, abs=1e-6)
    assert made["variance_ratio"] == pytest.approx(wanted.ratio, rel=1e-5)
    assert made["training_loss"] == pytest.approx(float(nets.losses.mean()), rel=1e-4)
    seen = [json.loads(line)["observed"] for line in out.read_text().splitlines()]
    assert seen == pytest.approx(wanted.deviation.tolist(), rel=1e-5)
    truth = read_table(files[1]).numbers("y")
    told = nets.predict(test)[..., 0].numpy() * data.y_std + data.y_mean
    assert made["test_error"] == pytest.approx(np.sqrt(((told - truth) ** 2).mean()), rel=1e-5)
    alone = np.sqrt(((told.mean(0) - truth) ** 2).mean())
    assert made["test_error_of_mean"] == pytest.approx(alone, rel=1e-5)
    assert "Was the prediction right?" in page.read_text() and "6 networks" in ran.err


def test_classes_are_columns_around_zero(run, files, tmp_path) -> None:
    given = ("--label", "group", "--id", "name", "--drop", "y")
    ran = run("audit", *files[:2], *given, *QUICK, "--json")
    assert ran.code == 0, ran.err
    made = json.loads(ran.out)
    assert made["kind"] == "classification" and made["label_deviation"] is None
    assert 0 <= made["trained"]["test_error"] < 0.5
    assert "in_label_unit" not in made["test_rows"][0]
    sets = _audited.load_sets(_audited.Wanted(*files[:2], None, "group", id="name", drop=["y"]))
    assert sets.y.mean(0).abs().max() < 1e-12 and sets.y.shape == (20, 2)
    codes = ["down", "up"]
    truth = [codes[int(row.argmax())] for row in sets.y]
    assert truth == read_table(files[0]).column("group").to_pylist()


def test_the_label_is_no_input_and_need_not_be_in_the_test(run, files) -> None:
    whole = run("audit", *files[:2], *GIVEN, "-q")
    bare = files[1].with_name("bare.csv")
    bare.write_text("\n".join(line.rsplit(",", 2)[0] for line in files[1].read_text().split()))
    without = run("audit", files[0], bare, *GIVEN, "-q")
    assert whole.code == without.code == 0, without.err
    assert whole.out == without.out and not whole.err
    trained = run("audit", files[0], bare, *GIVEN, *QUICK, "--json", "-q")
    assert json.loads(trained.out)["trained"]["test_error"] is None


def test_a_test_with_holes_in_its_labels_has_no_error(run, files) -> None:
    text = files[1].read_text().split("\n")
    cells = text[3].split(",")
    text[3] = ",".join([*cells[:4], "", cells[5]])
    files[1].write_text("\n".join(text))
    ran = run("audit", *files[:2], *GIVEN, *QUICK, "--json")
    assert ran.code == 0 and "labels are missing" in ran.err
    assert json.loads(ran.out)["trained"]["test_error"] is None


def test_a_class_that_training_has_not_seen_is_said(run, files) -> None:
    files[1].write_text(files[1].read_text().replace(",up\n", ",sideways\n"))
    ran = run("audit", *files[:2], "--label", "group", "--drop", "name,y", *QUICK)
    assert ran.code == 0 and "classes that training has not seen" in ran.err, ran.err


def test_row_numbers_stand_where_there_are_no_ids(run, files) -> None:
    ran = run("audit", *files[:2], "--label", "y", "--drop", "name,group", "-k", 2)
    assert ran.code == 0 and ran.out.startswith("rank\tindex\tdeviation\tceiling"), ran.err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--label", "z"], "expected a column 'z'"),
        (["--label", "name"], "got 'name' to be left out"),
        (["--label", "y", "--drop", "y"], "got 'y' to be left out"),
        (["--label", "kind", "--task", "regression"], "expected numbers in column 'kind'"),
        (["--label", "y", "--pool", "absent.csv"], "absent.csv"),
        (["--label", "y", "--report", "page.doc"], ".html"),
        (["--label", "y", "-o", "spread.xlsx"], ".csv, .tsv"),
        (["--label", "y", "--activation", "relu", "--depth", "-1"], "expected depth >= 0"),
        (["--label", "y", "--noise", "-1"], "expected noise >= 0"),
        (["--label", "y", "--train", "--lr", "0"], "expected --lr above 0"),
    ],
)
def test_bad_input_is_one_sentence(run, files, arguments, said) -> None:
    ran = run("audit", *files[:2], "--id", "name", *arguments)
    assert ran.code == 1 and said in ran.err and ran.err.count("\n") == 1, ran.err


def test_a_column_that_is_missing_is_named(run, files) -> None:
    files[1].write_text(files[1].read_text().replace("name,a,b", "name,a,c"))
    ran = run("audit", *files[:2], *GIVEN)
    assert ran.code == 1 and "test.csv" in ran.err and "'b'" in ran.err, ran.err


def test_nothing_is_overwritten_and_paths_are_checked_first(run, files, monkeypatch) -> None:
    monkeypatch.setattr(_audited, "load_sets", lambda wanted: pytest.fail("read before checked"))
    ran = run("audit", *files[:2], *GIVEN, "-o", files[1])
    assert ran.code == 1 and "would overwrite" in ran.err


def test_too_many_rows_are_refused_before_the_work(run, files, monkeypatch) -> None:
    monkeypatch.setattr("evgp.audits.fit.available_memory", lambda: 10_000)
    ran = run("audit", *files[:2], *GIVEN)
    assert ran.code == 1 and "audit 15 of them at most" in ran.err, ran.err
