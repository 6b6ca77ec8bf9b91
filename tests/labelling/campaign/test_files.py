"""`label` reads what `export` writes: every kind of file, every label, every name."""

import csv
import json
import warnings

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from evgp.datasets import read_table
from evgp.errors import CampaignError, DataWarning
from evgp.labelling.campaign import Campaign, export
from evgp.labelling.campaign.files import read_answers
from tests.messages import refused

KINDS = (".csv", ".tsv", ".jsonl", ".parquet")
ODD = ["007", "NA", "null", "nan", "true", "=1+2", "-x", "@a", "skip", "unsure", "'=1", '"q"',
       "a,b", "ü ", "1.0", "1e3", "2024-01-01"]  # fmt: skip


def written(path, rows):
    with path.open("w", newline="", encoding="utf-8") as stream:
        csv.writer(stream).writerows(rows)
    return path


def again(campaign, path):
    return [item for _, item in read_answers(campaign, path)]


@pytest.mark.parametrize("kind", KINDS)
def test_labels_come_back_exactly(tmp_path, kind) -> None:
    names = [*ODD, " lead"]
    pool = tmp_path / "pool.parquet"
    pq.write_table(pa.table({"key": names, "a": [0.5 * i for i in range(len(names))]}), pool)
    classes = [item for item in ODD if item == item.strip()]
    first = Campaign.create(tmp_path / "one", pool, id="key", classes=classes)
    for row in range(len(names)):
        first.answer(row, "label", classes[row % len(classes)])
    path = tmp_path / f"out{kind}"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)  # formulas get a quote, which is undone
        assert export(first, path) == len(names)
    second = Campaign.create(tmp_path / "two", pool, id="key", classes=classes)
    second.answers(again(second, path))
    assert second.state.labels == first.state.labels


def test_a_quote_that_may_be_part_of_a_name_is_refused_in_csv(tmp_path) -> None:
    pool = written(tmp_path / "pool.csv", [["key", "a"], ["-x", "1"], ["'-x", "2"], ["'-y", "3"]])
    campaign = Campaign.create(tmp_path / "c", pool, id="key", classes=["a", "b"])
    file = written(tmp_path / "said.csv", [["key", "label"], ["'-y", "a"]])
    assert again(campaign, file) == [("'-y", "label", "a")]
    with refused(CampaignError):
        again(campaign, written(tmp_path / "said.csv", [["key", "label"], ["'-x", "a"]]))


@pytest.mark.parametrize("kind", KINDS)
@settings(
    max_examples=5,
    deadline=None,
    phases=[Phase.explicit, Phase.reuse, Phase.generate],
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(numbers=st.lists(st.floats(-1e100, 1e100), min_size=2, max_size=6))
def test_numbers_come_back_to_the_last_digit(tmp_path_factory, kind, numbers) -> None:
    folder = tmp_path_factory.mktemp("n")
    rows = [["label", "id"], *([str(i), str(9 - i)] for i in range(6))]
    pool = written(folder / "pool.csv", rows)  # columns with misleading names
    first = Campaign.create(folder / "one", pool, number=True)
    first.answers([(row, "label", value) for row, value in enumerate(numbers)])
    export(first, folder / f"out{kind}")
    second = Campaign.create(folder / "two", pool, number=True)
    second.answers(again(second, folder / f"out{kind}"))
    assert second.state.labels == first.state.labels == dict(enumerate(numbers))


def test_the_columns_of_the_pool_come_back_too(spam, tmp_path) -> None:
    spam.answer("m3", "label", "ham")
    expected = {
        "evgp_row": 3,
        **spam.source.card(3),
        "label": "ham",
        "answers": 1,
        "disputed": False,
    }
    export(spam, tmp_path / "out.parquet")
    table = read_table(tmp_path / "out.parquet")
    assert table.data.to_pylist() == [expected]
    export(spam, tmp_path / "out.jsonl")
    assert [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()] == [
        expected
    ]


def test_people_write_skip_unsure_and_nothing(spam, tmp_path) -> None:
    path = tmp_path / "said.csv"
    path.write_text("\ufeffkey,label\nm1,spam\n\nm2,Skip\nm3,cannot tell\nm4,\n", encoding="utf-8")
    assert again(spam, path) == [
        ("m1", "label", "spam"), ("m2", "skip", None), ("m3", "unsure", None),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.jsonl", '{"key": "m1", "label": "spam"}\n{"key"'),
        ("a.jsonl", "[1]\n"),
        ("a.jsonl", '{"x": 1}\n'),
        ("a.csv", "key,says\nm1,spam\n"),
        ("a.csv", "row,label\nfirst,spam\n"),
        ("a.csv", "row,label\n1_0,spam\n"),
    ],
)
def test_errors_in_a_file_are_reported_in_one_line(spam, tmp_path, name, text) -> None:
    (tmp_path / name).write_text(text)
    with refused(CampaignError):
        read_answers(spam, tmp_path / name)


@pytest.mark.parametrize("kind", KINDS)
def test_long_texts_and_columns_like_formulas_come_back(tmp_path, kind) -> None:
    rows = [
        ["=id", "text", "x"],
        *([f"r{i}", "long " * 40_000 if i == 2 else "a", i] for i in range(6)),
    ]
    pool = written(tmp_path / "pool.csv", rows)
    campaign = Campaign.create(tmp_path / "long", pool, id="=id", classes=["a", "b"], drop=["text"])
    campaign.answers([("r2", "label", "a"), ("r4", "label", "b")])
    path = tmp_path / f"out{kind}"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        export(campaign, path)
    if kind in (".csv", ".tsv"):
        assert "'=id" in path.read_text().splitlines()[0]
    assert again(campaign, path) == [("r2", "label", "a"), ("r4", "label", "b")]


@pytest.mark.parametrize("text", ["1_5", "\u0663", "1,5", "nan", "1e400", "1e101", "one"])
def test_numbers_that_only_python_would_accept_are_refused(tmp_path, text) -> None:
    pool = written(tmp_path / "pool.csv", [["x"], *([str(i)] for i in range(4))])
    campaign = Campaign.create(tmp_path / "one", pool, number=True)
    path = written(tmp_path / "said.csv", [["row", "label"], ["1", "1.5"], ["2", text]])
    with refused(CampaignError):
        campaign.answers(again(campaign, path))
    assert campaign.state.labels == {}


@pytest.mark.parametrize(
    ("name", "sign"), [("my.tsv.csv", ","), ("my.csv.tsv", "\t"), ("my.TSV", "\t")]
)
def test_the_end_of_a_name_alone_says_how_cells_are_divided(spam, tmp_path, name, sign) -> None:
    path = tmp_path / name
    path.write_text(f"id{sign}label\nm3{sign}ham\n")
    assert again(spam, path) == [("m3", "label", "ham")]
