"""`evgp campaign` from the first pick to the export."""

import csv
import json
import warnings

import numpy as np
import pytest
import typer
from PIL import Image

from evgp.cli._options import SHARED, PickOptions
from evgp.cli.main import app
from tests.messages import printed


@pytest.fixture
def mails(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    random = np.random.default_rng(0)
    rows = [f"m{i},{random.normal():.4f},{random.normal():.4f}" for i in range(20)]
    (tmp_path / "mails.csv").write_text("key,length,links\n" + "\n".join(rows) + "\n")
    return tmp_path


def lines(text):
    return list(csv.DictReader(text.splitlines(), delimiter="\t"))


def test_from_the_first_pick_to_the_export(run, mails) -> None:
    ran = run("new", "spam", "mails.csv", "--id", "key", "--classes", "spam,ham")
    assert ran.code == 0 and "20 rows" in ran.err, ran.err
    first = lines(run("next", "spam", "-k", 4).out)
    assert [item["rank"] for item in first] == ["1", "2", "3", "4"]
    document = json.loads(run("next", "spam", "-k", 4, "--json").out)
    assert [item["name"] for item in document["items"]] == [item["id"] for item in first]
    assert document["items"][0]["card"]["key"] == first[0]["id"]
    ids = [item["id"] for item in first]
    message = ["spam", "ham", "skip", ""]
    text = "key,label\n" + "".join(f"{id},{item}\n" for id, item in zip(ids, message, strict=True))
    (mails / "labels.csv").write_text(text)
    assert "3 new answers recorded" in run("label", "spam", "labels.csv", "--who", "ann").err
    assert (
        "0 new answers recorded; 3 were known"
        in run("label", "spam", "labels.csv", "--who", "ann").err
    )
    status = json.loads(run("status", "spam", "--json").out)
    assert (status["labelled"], status["waiting"], status["skipped or unsure"]) == (2, 1, 1)
    assert status["people"] == {"ann": 3} and "variance is left" in status["hint"]["words"]
    assert run("undo", "spam", "--who", "ann").err.endswith(f"undone: {ids[2]}, skip by ann\n")
    (mails / "again.csv").write_text(f"key,label\n{ids[1]},spam\n")
    assert run("label", "spam", "again.csv", "--who", "ann").err.endswith("1 new answer recorded\n")
    document = run("undo", "spam", "--who", "ann").err
    assert f"{ids[1]}, 'spam' by ann; the earlier answer of ann counts again: 'ham'" in document
    assert lines(run("next", "spam", "-k", 2).out)[0]["id"] == ids[2]
    ran = run("export", "spam", "-o", "out.csv")
    assert "2 labelled rows written to out.csv" in ran.err
    with (mails / "out.csv").open(newline="") as stream:
        assert {row["key"]: row["label"] for row in csv.DictReader(stream)} == {
            ids[0]: "spam", ids[1]: "ham",
        }  # fmt: skip


def test_an_export_never_takes_the_place_of_the_pool(run, mails) -> None:
    run("new", "spam", "mails.csv", "--id", "key", "--classes", "spam,ham")
    before = (mails / "mails.csv").read_bytes()
    ran = run("export", "spam", "-o", "mails.csv")
    assert ran.code == 1, ran.err
    printed(ran.err)
    assert (mails / "mails.csv").read_bytes() == before


def test_a_page_shows_picks_and_answers(run, mails) -> None:
    text = (mails / "mails.csv").read_text().replace("m4,", "<script>alert(1)</script>,")
    (mails / "mails.csv").write_text(text)
    run("new", "spam", "mails.csv", "--id", "key", "--classes", "spam,ham")
    assert run("report", "spam", "-o", "empty.html").code == 0  # before the first round too
    run("next", "spam", "-k", 20)
    (mails / "labels.csv").write_text("key,label\nm1,spam\nm2,ham\nm3,ham\n")
    run("label", "spam", "labels.csv", "--who", "ann")
    ran = run("report", "spam", "-o", "page.html")
    assert ran.code == 0 and "written: page.html" in ran.err, ran.err
    page = (mails / "page.html").read_text()
    assert "1 round: 3 labels, 17 waiting" in page and "Labels by class: spam 1, ham 2." in page
    assert "<script>alert" not in page and "&lt;script&gt;alert" in page


def test_a_page_has_the_name_of_the_campaign(run, mails) -> None:
    run("new", "spam", "mails.csv", "--id", "key", "--classes", "spam,ham")
    assert run("report", "spam").code == 0 and (mails / "spam.html").exists()


def test_two_columns_of_one_file_and_another_delimiter(run, mails) -> None:
    run("new", "spam", "mails.csv", "--id", "key", "--classes", "spam,ham")
    (mails / "both.csv").write_text("key;ann;bob\nm1;spam;ham\nm2;ham;ham\n")
    result = run("label", "spam", "both.csv", "--label", "ann").err
    assert "--delimiter" in result
    for _ in range(2):
        for who in ("ann", "bob"):
            ran = run("label", "spam", "both.csv", "--label", who, "--delimiter", ";")
            assert ran.code == 0, ran.err
    document = json.loads(run("status", "spam", "--json").out)
    assert (document["labelled"], document["people"]) == (2, {"me": 4})


def test_a_campaign_inside_its_folder_of_images(run, mails) -> None:
    for i in range(6):
        Image.new("L", (8, 8), 20 * i).save(mails / f"{i}.png")
    assert run("new", "birds", ".", "--classes", "a,b").code == 0
    (mails / ".DS_Store").write_text("x")
    ran = run("next", "birds", "-k", 2)
    assert ran.code == 0, ran.err
    assert run("report", "birds").code == 0
    Image.new("L", (8, 8), 200).save(mails / "7.png")
    assert "has changed since" in run("next", "birds", "-k", 3).err


def test_numbers_by_row(run, mails) -> None:
    run("new", "n", "mails.csv", "--drop", "key", "--number")
    (mails / "labels.csv").write_text("row,y\n3,1.5\n4,2\n")
    assert run("label", "n", "labels.csv", "--label", "y").code == 0
    assert json.loads(run("status", "n", "--json").out)["labelled"] == 2
    table = run("status", "n").out
    assert "answers of me\t2" in table


@pytest.mark.parametrize(
    "call",
    [
        ("new", "spam", "mails.csv", "--classes", "a,b"),
        ("new", "x", "none.csv", "--number"),
        ("new", "x", "mails.csv"),
        ("next", "none"),
        ("label", "spam", "odd.csv"),
        ("label", "spam", "mails.csv"),
        ("undo", "spam"),
        ("export", "spam", "-o", "out.exe"),
        ("status", "/"),
        ("new", ".", "mails.csv", "--number"),
    ],
)
def test_what_cannot_be_done_is_refused_in_one_line(run, mails, call) -> None:
    run("new", "spam", "mails.csv", "--id", "key", "--classes", "spam,ham")
    (mails / "odd.csv").write_text("key,label\nm1,spam\nm2,eggs\n")
    ran = run(*call)
    assert ran.code == 1, ran.err
    printed(ran.err)
    assert json.loads(run("status", "spam", "--json").out)["labelled"] == 0


def test_a_repaired_file_is_a_note(run, tmp_path) -> None:
    (tmp_path / "pool.csv").write_text("a,b\n" + "".join(f"{i},{i * i % 7}\n" for i in range(20)))
    assert run("new", tmp_path / "c", tmp_path / "pool.csv", "--number", "-q").code == 0
    (array,) = (tmp_path / "c.evgp-arrays").iterdir()
    array.write_bytes(array.read_bytes()[:-9])
    with warnings.catch_warnings():
        warnings.simplefilter("default")
        ran = run("next", tmp_path / "c", "-k", 3, "-q")
    assert ran.code == 0
    assert ran.err == f"note: {array} was damaged; it was written again from the pool\n"
    assert run("next", tmp_path / "c", "-k", 5, "-q").err == ""


def test_new_takes_the_options_of_pick() -> None:
    """Also those that this file does not know: every option of a pick is shared, or its own."""
    own = {
        "pool", "k", "output", "report", "copy_to", "labelled", "no_standardise",
        "as_in_paper", "method", "memory", "dask", "cache", "criterion", "greedy", "final",
        "noise", "storage", "json", "quiet",
    }  # fmt: skip
    assert {*SHARED} | own == {*PickOptions.__dataclass_fields__} and not {*SHARED} & own
    command = typer.main.get_command(app).commands["campaign"].commands["new"]
    assert {*SHARED} <= {param.name for param in command.params}


def test_new_says_what_pick_says(run, mails) -> None:
    texts = [f"m{i},the {word} cat sat on mat {i}" for i, word in enumerate("abcdefghijkl")]
    (mails / "texts.csv").write_text("key,body\n" + "\n".join(texts) + "\n")
    ran = run("new", "texts", "texts.csv", "--id", "key", "--classes", "a,b")
    assert "note: column 'body' of free text: embedded by tfidf" in ran.err
    assert "12 rows. Scale: " in ran.err
    quiet = run("new", "more", "texts.csv", "--id", "key", "--classes", "a,b", "-q")
    assert (quiet.code, quiet.err) == (0, "")


def test_costs_of_a_campaign(run, mails) -> None:
    text = (mails / "mails.csv").read_text().splitlines()
    rows = [f"{line},{1 + row % 3}" for row, line in enumerate(text[1:])]
    (mails / "mails.csv").write_text("\n".join([f"{text[0]},minutes", *rows]) + "\n")
    more = ("--id", "key", "--classes", "spam,ham", "--kernel", "nngp", "--costs", "minutes")
    assert "a budget with costs" in run("new", "spam", "mails.csv", *more).err
    assert run("new", "spam", "mails.csv", *more, "--budget", 6).code == 0
    items = lines(run("next", "spam", "-k", 9).out)
    assert 0 < sum(float(item["cost"]) for item in items) <= 6
    assert run("next", "spam", "-k", 30).code == 0
