"""Labelled tables of text: compare, audit and choose read them as pick does."""

import csv
import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch

import evgp
from evgp.architectures import candidates
from evgp.comparison import DatasetSource, read_rows
from evgp.datasets import load_csv
from evgp.errors import DatasetError
from tests.messages import refused

FOOD = "soup bread pasta sauce cheese plate".split()
TRIP = "train ticket driver seat delay station".split()
TEXT = ("--label", "topic", "--text", "body", "--embed", "tfidf-8")
pytestmark = pytest.mark.filterwarnings("ignore::evgp.errors.DataWarning")


def rows(count: int) -> list[list[object]]:
    random = np.random.default_rng(0)
    lines = []
    for at in range(count):
        words = random.choice(FOOD if at % 2 else TRIP, 6)
        lines.append([" ".join(words), "food" if at % 2 else "trip", f"{at % 7},5"])
    return lines


@pytest.fixture
def reviews(tmp_path, monkeypatch) -> Path:
    """Reviews in a semicolon CSV with decimal commas, in Latin-1."""
    monkeypatch.setenv("EVGP_CACHE", str(tmp_path / "cache"))
    path = tmp_path / "reviews.csv"
    with path.open("w", newline="", encoding="latin-1") as stream:
        csv.writer(stream, delimiter=";").writerows([["body", "topic", "größe"], *rows(60)])
    return path


def test_a_dataset_of_texts(reviews: Path) -> None:
    data = load_csv(reviews, "topic", text="body", embed="tfidf-8", drop="größe")
    assert data.x.shape == data.x_test.shape == (30, 8)
    assert data.class_names == ("food", "trip")
    texts = [rows(60)[row][0] for row in data.rows.tolist()]
    as_picked = evgp.read_pool(texts, embed="tfidf-8")
    assert torch.equal(data.x, as_picked.x)
    assert data.scaled("auto")[0] is data.x
    columns, _ = data.scaled("columns")
    assert not torch.equal(columns, data.x)
    np.testing.assert_allclose(columns.std(0, correction=0), 1)


def test_free_text_is_found_and_other_columns_stay(reviews: Path) -> None:
    data = load_csv(reviews, "topic")
    both = load_csv(reviews, "topic", drop="größe")
    assert data.x.shape[1] == both.x.shape[1] + 1


def test_a_missing_text_is_empty(reviews: Path) -> None:
    with reviews.open("a", encoding="latin-1") as stream:
        stream.write(";food;1,5\n")
    assert len(load_csv(reviews, "topic", text="body", test=0).x) == 61


def test_the_label_is_not_a_feature(reviews: Path) -> None:
    with refused(DatasetError):
        load_csv(reviews, "topic", text="topic")


def test_one_column_of_embeddings(tmp_path: Path) -> None:
    x = np.random.default_rng(0).normal(size=(40, 3))
    table = {"first": [*x], "second": [*x[:, :2]], "y": x[:, 0]}
    pq.write_table(pa.table(table), tmp_path / "two.parquet")
    assert load_csv(tmp_path / "two.parquet", "y", column="second").x.shape == (20, 2)
    assert load_csv(tmp_path / "two.parquet", "y", drop="second").x.shape == (20, 3)


def test_compare(run, reviews: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    how = ("--learner", "linear", "--budgets", "2,6", "--seeds", 2, "--jobs", 1)
    ran = run("compare", reviews, *TEXT, "--strategies", "evgp,random", "--out", out, *how)
    assert ran.code == 0, ran.err
    assert "embedded by tfidf" in ran.err
    assert max(row.accuracy for row in read_rows(out / "rows.csv")) > 0.9
    settings = [json.loads(path.read_text())["settings"] for path in out.glob("cells/*.json")]
    assert all(
        setting["text"] == ["body"] and setting["embed"] == "tfidf-8" for setting in settings
    )


def test_a_dataset_of_the_paper_has_no_text() -> None:
    with refused(DatasetError):
        DatasetSource("kin8nm", text=("body",), embed="tfidf").load(0)


def test_audit(run, reviews: Path, tmp_path: Path) -> None:
    page = tmp_path / "audit.html"
    ran = run("audit", reviews, reviews, *TEXT, "--drop", "größe", "-k", 3, "--report", page)
    assert ran.code == 0, ran.err
    assert "column 'body': embedded by tfidf (8 numbers each)" in ran.err
    shown = page.read_text()
    assert any(str(row[0]) in shown for row in rows(60))


def test_choose(run, reviews: Path) -> None:
    ran = run("choose", reviews, *TEXT, "--folds", 3, "--depths", 1, "--json")
    assert ran.code == 0, ran.err
    assert json.loads(ran.out)["ranked"][0]["score"] < 0.3


def test_audit_and_choose_take_texts_in_python(reviews: Path) -> None:
    texts, topics, _ = zip(*rows(60), strict=True)
    assert len(evgp.audit(list(texts[:40]), list(texts[40:])).deviation) == 20
    named = [{"body": text, "nr": at % 5} for at, text in enumerate(texts)]
    frame = pa.Table.from_pylist(named)
    again = evgp.audit(frame[:40], frame[40:], text="body", embed="tfidf-8")
    assert again.deviation.max() > 0
    nets = candidates(depths=(1,))
    assert evgp.choose(nets, list(texts), topics, folds=3).chosen.score < 0.3
    chosen = evgp.choose(nets, frame, topics, text="body", folds=3).chosen
    assert chosen.score < 0.3
    with refused(DatasetError):
        evgp.choose(nets, frame, topics, text="boddy", folds=3)


def test_a_pool_of_texts_for_modal() -> None:
    import pandas as pd

    from evgp.integrations.modal import query_strategy

    frame = pd.DataFrame({"body": [row[0] for row in rows(30)]})

    class Learner:
        X_training = frame[:3]

    actual = query_strategy(Learner(), frame[3:], 2, text="body", embed="tfidf-8")
    expected = evgp.pick(frame[3:], 2, x_labelled=frame[:3], text="body", embed="tfidf-8")
    assert actual.tolist() == expected.indices.tolist()
