"""The `evgp audit` command."""

import csv
import json
from pathlib import Path

import numpy as np
import pytest

import evgp
from evgp.cli import _audit_io
from evgp.datasets import Encoder, ReadOptions, load_csv, read_table
from evgp.report.words import percent
from tests.messages import printed

QUICK = ("--train", "--members", 6, "--steps", 40, "--width", 32)


def lines(count: int, seed: int, *, label: bool = True) -> str:
    random = np.random.default_rng(seed)
    result = ["name,a,b,kind" + (",y,group" if label else "")]
    for j, (a, b) in enumerate(random.normal(size=(count, 2))):
        reported = f",{50 * (np.sin(a) + b) + 7:.4f},{'up' if a > 0 else 'down'}" if label else ""
        result.append(f"{seed}-{j:02d},{a:.5f},{1000 * b:.3f},{'xyz'[j % 3]}{reported}")
    return "\n".join(result) + "\n"


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path, Path]:
    result = tuple(tmp_path / f"{name}.csv" for name in ("train", "test", "pool"))
    for seed, path in enumerate(result):
        path.write_text(lines((20, 12, 25)[seed], seed, label=seed < 2))
    return result


GIVEN = ("--label", "y", "--id", "name", "--drop", "group")


def encoded(files) -> list[np.ndarray]:
    tables = [read_table(path) for path in files]
    encoder = Encoder.fit(tables[0], id="name", drop=("y", "group"), scale="columns")
    return [encoder.transform(table) for table in tables]


def test_the_table_is_the_librarys_audit(run, files, tmp_path) -> None:
    out = tmp_path / "spread.csv"
    ran = run("audit", *files[:2], *GIVEN, "-k", 4, "-o", out)
    assert ran.code == 0, ran.err
    x, test, _ = encoded(files)
    result = evgp.audit(x, test, scale=None)
    rows = list(csv.DictReader(ran.out.splitlines(), delimiter="\t"))
    assert [row["id"] for row in rows] == [f"1-{row:02d}" for row in result.at_risk(4)]
    assert [float(row["standard_deviation"]) for row in rows] == result.deviation[
        result.at_risk(4)
    ].tolist()
    written = list(csv.DictReader(out.read_text().splitlines()))
    assert [float(row["ceiling"]) for row in written] == result.ceiling.tolist()
    unit = load_csv(files[0], "y", id="name", drop=["group"], test=0).y_std
    for row in written:
        assert float(row["in_label_unit"]) == pytest.approx(unit * float(row["standard_deviation"]))
    assert "observed" not in written[0]
    common = run("audit", *files[:2], *GIVEN, "--scale", "common", "-o", out)
    assert common.code == 0, common.err
    data = evgp.read_pool(files[0], id="name", drop=("y", "group"), scale="common")
    found_so = evgp.audit(data.in_memory, data.tensor_like(files[1]), scale=None)
    written_so = list(csv.DictReader(out.read_text().splitlines()))
    assert [float(row["ceiling"]) for row in written_so] == found_so.ceiling.tolist()
    assert f"{100 * result.share:.1f}".rstrip("0").rstrip(".") in ran.err
    assert f"{len(result.redundant())} of the 20 training rows" in ran.err


def test_a_pool_says_what_to_label_next(run, files) -> None:
    ran = run("audit", *files[:2], *GIVEN, "--pool", files[2], "-k", 3, "--json")
    assert ran.code == 0, ran.err
    x, test, pool = encoded(files)
    result = evgp.audit(x, test, pool=pool, k=3, scale=None)
    document = json.loads(ran.out)
    assert document["further"]["rows"] == [f"2-{row:02d}" for row in result.further.indices]
    assert document["further"]["variance_left"] == pytest.approx(result.after.tolist())
    assert document["random_sets"] == pytest.approx(result.random.tolist())
    assert document["matter"] == [f"0-{row:02d}" for row in result.matter(3)]
    assert len(document["test_rows"]) == 12 and len(document["influence"]) == 20
    assert "best 3 more labels from pool.csv" in ran.err
    assert f"{(result.random > result.variance).sum()} would leave more" in ran.err


def test_training_confirms_it(run, files, tmp_path) -> None:
    page, out = tmp_path / "audit.html", tmp_path / "spread.jsonl"
    ran = run("audit", *files[:2], *GIVEN, *QUICK, "--report", page, "-o", out, "--json")
    assert ran.code == 0, ran.err
    document = json.loads(ran.out)["trained"]
    x, test, _ = encoded(files)
    data = load_csv(files[0], "y", id="name", drop=["group"], test=0)
    y = np.empty(20)
    y[data.rows] = data.y[:, 0]
    how = {"optimiser": "adam", "lr": 0.01, "steps": 40}
    nets = evgp.training.Recipe(evgp.mlp(width=32), how)(x, y, members=6)
    result = evgp.audits.confirm(evgp.audit(x, test, scale=None), nets.predict(test))
    assert document["pearson"] == pytest.approx(result.pearson, abs=1e-6)
    assert document["variance_ratio"] == pytest.approx(result.ratio, rel=1e-5)
    assert document["training_loss"] == pytest.approx(float(nets.losses.mean()), rel=1e-4)
    seen = [json.loads(line)["observed"] for line in out.read_text().splitlines()]
    assert seen == pytest.approx(result.deviation.tolist(), rel=1e-5)
    truth = read_table(files[1]).numbers("y")
    reported = nets.predict(test)[..., 0].numpy() * data.y_std + data.y_mean
    assert document["test_error"] == pytest.approx(
        np.sqrt(((reported - truth) ** 2).mean()), rel=1e-5
    )
    alone = np.sqrt(((reported.mean(0) - truth) ** 2).mean())
    assert document["test_error_of_mean"] == pytest.approx(alone, rel=1e-5)
    assert "Was the prediction right?" in page.read_text() and "6 trained networks" in ran.err


def test_classes_are_columns_around_zero(run, files, tmp_path) -> None:
    options = ("--label", "group", "--id", "name", "--drop", "y")
    ran = run("audit", *files[:2], *options, *QUICK, "--json")
    assert ran.code == 0, ran.err
    document = json.loads(ran.out)
    assert document["kind"] == "classification" and document["label_standard_deviation"] is None
    assert 0 <= document["trained"]["test_error"] < 0.5
    assert "in_label_unit" not in document["test_rows"][0]
    tables = _audit_io.read_tables((*files[:2], None), "group", ReadOptions(id="name", drop=["y"]))
    assert tables.y.mean(0).abs().max() < 1e-12 and tables.y.shape == (20, 2)
    codes = ["down", "up"]
    truth = [codes[int(row.argmax())] for row in tables.y]
    assert truth == read_table(files[0]).column("group").to_pylist()


def test_the_classes_of_unbalanced_labels_are_those_that_networks_say(run, tmp_path) -> None:
    """A rare class needs its mean back: outputs around zero favour it everywhere."""
    random = np.random.default_rng(0)
    paths = [tmp_path / f"{name}.csv" for name in ("train", "test")]
    for path, count in zip(paths, (60, 200), strict=True):
        x = random.normal(size=(count, 2))
        result = [f"{a},{b},{'rare' if a > 1.2 else 'usual'}" for a, b in x]
        path.write_text("\n".join(["a,b,kind", *result]))
    page = tmp_path / "audit.html"
    ran = run("audit", *paths, "--label", "kind", *QUICK, "--json", "--report", page)
    assert ran.code == 0, ran.err
    document = json.loads(ran.out)["trained"]
    tables = _audit_io.read_tables((*paths, None), "kind", ReadOptions(scale="columns"))
    assert 0 < tables.means[0] < 0.25 and tables.means.sum() == pytest.approx(1)
    how = {"optimiser": "adam", "lr": 0.01, "steps": 40}
    nets = evgp.training.Recipe(evgp.mlp(width=32, outputs=2), how)(
        tables.train.x, tables.y, members=6
    )
    outputs = nets.predict(tables.test.x)
    message = [item + tables.means for item in (outputs, outputs.mean(0))]
    single, mean = (float((item.argmax(-1) != tables.y_test).double().mean()) for item in message)
    assert document["test_error"] == pytest.approx(single, abs=1e-6)
    assert document["test_error_of_mean"] == pytest.approx(mean, abs=1e-6)
    around_zero = float((outputs.argmax(-1) != tables.y_test).double().mean())
    assert single < 0.8 * around_zero
    assert f"wrong on {percent(single)} of the test rows" in page.read_text()


def test_constant_columns_count_as_in_the_library(run, tmp_path) -> None:
    random = np.random.default_rng(0)
    x = random.normal(size=(40, 3))
    x[:, 1] = 7.0
    paths = write(tmp_path, x[:20], x[20:])
    ran = run("audit", *paths, "--label", "y", "--json")
    assert ran.code == 0 and "varies in the" not in ran.err, ran.err
    listed = [row["standard_deviation"] for row in json.loads(ran.out)["test_rows"]]
    assert listed == pytest.approx(evgp.audit(x[:20], x[20:]).deviation.tolist(), rel=1e-9)


def write(folder: Path, *parts: np.ndarray) -> list[Path]:
    paths = []
    for name, x in zip(("train", "test", "pool"), parts, strict=False):
        paths.append(folder / f"{name}.csv")
        lines = [f"{','.join(map(repr, row.tolist()))},{np.sin(row[0])}" for row in x]
        paths[-1].write_text("\n".join(["a,b,c,y", *lines]) + "\n")
    return paths


def test_a_column_that_varies_only_in_the_test_rows_is_named(run, tmp_path) -> None:
    x = np.random.default_rng(0).normal(size=(60, 3))
    x[:20, 1] = 7.0
    train, test, pool = write(tmp_path, x[:20], x[20:40], x[40:])
    page = tmp_path / "audit.html"
    ran = run("audit", train, test, "--label", "y", "--pool", pool, "-k", 2, "--report", page)
    message = (
        "column 'b' is constant in the training rows but varies in the test rows: the audit "
        "ignores it"
    )
    assert ran.code == 0 and f"note: {message}" in ran.err, ran.err
    assert "'b' is constant in the training rows but varies in the pool rows" in ran.err
    assert message in page.read_text().replace("&#39;", "'").split(">Notes<")[1]
    test.write_text(test.read_text().replace("a,b,c", "a,bb,c"))
    assert "varies in the" not in run("audit", train, test, "--label", "y").err
    words = [path.with_name(f"words-{path.name}") for path in (train, test)]
    for path, word in zip(words, "rs", strict=True):
        path.write_text("a,kind,y\n" + "".join(f"{i % 7},{word},{i}\n" for i in range(20)))
    ran = run("audit", *words, "--label", "y")
    assert "column 'kind' is constant in the training rows but varies in the test" in ran.err, (
        ran.err
    )


def test_training_rows_in_the_pool_are_noted(run, files) -> None:
    ran = run("audit", *files[:2], *GIVEN, "--pool", files[0], "-k", 3)
    assert (
        "note: 20 of 20 rows of the pool, and 3 of the 3 picked ones, are training rows already"
        in ran.err
    )


def test_it_says_how_labels_were_read(run, files) -> None:
    ran = run("audit", *files[:2], *GIVEN)
    assert "Labels were read as numbers; use --task classification" in ran.err, ran.err
    ran = run("audit", *files[:2], *GIVEN, "--task", "regression")
    assert "Labels were read as numbers.\n" in ran.err
    ran = run("audit", *files[:2], "--label", "group", "--drop", "name,y")
    assert "Labels were read as 2 classes (down, up).\n" in ran.err
    for path in files[:2]:
        path.write_text(path.read_text().replace(",up", ",1").replace(",down", ",0"))
    ran = run("audit", *files[:2], "--label", "group", "--drop", "name,y")
    assert "2 classes (0, 1); use --task regression to read them as numbers" in ran.err, ran.err


def test_it_says_that_networks_have_not_converged(run, files) -> None:
    ran = run("audit", *files[:2], *GIVEN, "--train", "--members", 3, "--steps", 2, "--width", 32)
    assert "have not converged" in ran.err and "Their training loss is" in ran.err, ran.err


def test_notes_are_of_training_rows(run, files) -> None:
    cells = files[0].read_text().split("\n")
    cells[3] = ",".join([cells[3].split(",")[0], "", *cells[3].split(",")[2:]])
    files[0].write_text("\n".join(cells))
    ran = run("audit", *files[:2], *GIVEN, "--impute")
    assert "the training rows' mean" in ran.err and "pool" not in ran.err, ran.err
    copy = files[1].with_name("few.csv")
    copy.write_text("a,y\n1,1\n2,1.0000000000000002\n3,1\n")
    ran = run("audit", copy, copy, "--label", "y", "--task", "regression")
    assert ran.code == 1, ran.err
    printed(ran.err)


def test_an_unwritable_folder_is_reported_before_the_work(run, files, monkeypatch) -> None:
    def refuse(dir: Path) -> None:
        raise FileNotFoundError(2, "No such file or directory", f"{dir}/x")

    monkeypatch.setattr("evgp.cli._picked.TemporaryFile", refuse)
    monkeypatch.setattr(
        _audit_io, "read_tables", lambda expected: pytest.fail("read before checked")
    )
    page = files[0].with_name("page.html")
    ran = run("audit", *files[:2], *GIVEN, "--report", page)
    assert ran.code == 1, ran.err
    printed(ran.err)


def test_the_label_is_not_an_input_and_is_optional_in_the_test(run, files) -> None:
    whole = run("audit", *files[:2], *GIVEN, "-q")
    bare = files[1].with_name("bare.csv")
    bare.write_text("\n".join(line.rsplit(",", 2)[0] for line in files[1].read_text().split()))
    without = run("audit", files[0], bare, *GIVEN, "-q")
    assert whole.code == without.code == 0, without.err
    assert whole.out == without.out and not whole.err
    trained = run("audit", files[0], bare, *GIVEN, *QUICK, "--json", "-q")
    assert json.loads(trained.out)["trained"]["test_error"] is None


def test_missing_test_labels_mean_no_test_error(run, files) -> None:
    text = files[1].read_text().split("\n")
    cells = text[3].split(",")
    text[3] = ",".join([*cells[:4], "", cells[5]])
    files[1].write_text("\n".join(text))
    ran = run("audit", *files[:2], *GIVEN, *QUICK, "--json")
    assert ran.code == 0 and "has missing labels" in ran.err
    assert json.loads(ran.out)["trained"]["test_error"] is None


def test_unknown_classes_in_the_test_rows_are_noted(run, files) -> None:
    files[1].write_text(files[1].read_text().replace(",up\n", ",sideways\n"))
    ran = run("audit", *files[:2], "--label", "group", "--drop", "name,y", *QUICK)
    assert ran.code == 0 and "classes not in the training rows" in ran.err, ran.err


def test_row_numbers_replace_missing_ids(run, files) -> None:
    ran = run("audit", *files[:2], "--label", "y", "--drop", "name,group", "-k", 2)
    assert ran.code == 0 and ran.out.startswith("rank\tindex\tstandard_deviation\tceiling"), ran.err


@pytest.mark.parametrize(
    "arguments",
    [
        ["--label", "z"],
        ["--label", "name"],
        ["--label", "y", "--drop", "y"],
        ["--label", "kind", "--task", "regression"],
        ["--label", "y", "--pool", "absent.csv"],
        ["--label", "y", "--report", "page.doc"],
        ["--label", "y", "-o", "spread.docx"],
        ["--label", "y", "--activation", "relu", "--depth", "-1"],
        ["--label", "y", "--noise", "-1"],
        ["--label", "y", "--noise", "nan"],
        ["--label", "y", "--seed", "-1"],
        ["--label", "y", "--train", "--lr", "0"],
    ],
)
def test_bad_input_is_refused_in_one_line(run, files, arguments) -> None:
    ran = run("audit", *files[:2], "--id", "name", *arguments)
    assert ran.code == 1, ran.err
    printed(ran.err)


def test_a_column_that_is_missing_is_named(run, files) -> None:
    files[1].write_text(files[1].read_text().replace("name,a,b", "name,a,c"))
    ran = run("audit", *files[:2], *GIVEN)
    assert ran.code == 1, ran.err
    printed(ran.err)


def test_nothing_is_overwritten_and_paths_are_checked_first(run, files, monkeypatch) -> None:
    monkeypatch.setattr(
        _audit_io, "read_tables", lambda expected: pytest.fail("read before checked")
    )
    ran = run("audit", *files[:2], *GIVEN, "-o", files[1])
    assert ran.code == 1, ran.err
    printed(ran.err)


def test_too_many_rows_are_refused_before_the_work(run, files, monkeypatch) -> None:
    monkeypatch.setattr("evgp.audits.run.available_memory", lambda: 10_000)
    ran = run("audit", *files[:2], *GIVEN)
    assert ran.code == 1, ran.err
    printed(ran.err)
