"""Hugging Face `datasets` reads what `export` writes, without the network."""

import warnings
from importlib import import_module

import pytest

from evgp.labelling.campaign import export


@pytest.fixture
def hugging(monkeypatch, tmp_path):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setenv("HF_HOME", str(tmp_path / "home"))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return import_module("datasets")


@pytest.mark.parametrize(
    ("kind", "named"), [("csv", "csv"), ("jsonl", "json"), ("parquet", "parquet")]
)
def test_it_reads_what_we_write(hugging, spam, tmp_path, kind, named) -> None:
    spam.answers([("m3", "label", "ham"), ("m7", "label", "spam"), ("m9", "skip", None)])
    path = tmp_path / f"out.{kind}"
    export(spam, path)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result = hugging.load_dataset(
            named, data_files=str(path), split="train", cache_dir=str(tmp_path / "cache")
        )
    rows = [
        {"evgp_row": row, **spam.source.card(row), "label": label, "answers": 1, "disputed": False}
        for row, label in ((3, "ham"), (7, "spam"))
    ]
    assert list(result) == rows
