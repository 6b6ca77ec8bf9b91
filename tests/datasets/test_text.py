"""Columns of text: recognised, embedded once, and never silently encoded by category."""

import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import evgp
from evgp.datasets.text import is_free_text
from evgp.errors import DatasetError, DataWarning, EmbedderError
from evgp.labelling.campaign import Campaign
from tests.messages import printed, refused

WORDS = "apple pear plum car train ship river lake stone cloud table chair house moon".split()


def sentences(count: int, seed: int = 0) -> list[str]:
    random = np.random.default_rng(seed)
    return [" ".join(random.choice(WORDS, 7)) for _ in range(count)]


@pytest.fixture(autouse=True)
def no_cache(tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("EVGP_CACHE", str(tmp_path / "cache"))


def cells(texts: list[str | None]) -> pa.ChunkedArray:
    return pa.chunked_array([texts])


@pytest.mark.parametrize(
    ("texts", "free"),
    [
        (sentences(40), True),
        (sentences(60) * 10, True),
        (["今日は天気がいいですね", "明日は雨が降るでしょう", "電車が遅れています"], True),
        (["strongly agree with this", "neither agree nor disagree"] * 20, False),
        ([f"person {at}" for at in range(40)], False),
        ([f"2024-01-{at % 28 + 1:02} 12:{at}:00" for at in range(40)], False),
        ([f"{at} 4 7 1 3" for at in range(40)], False),
        (["the same long sentence as ever"] * 40, False),
        ([None, None], False),
    ],
    ids=["distinct", "copies", "no spaces", "answers", "names", "times", "digits", "one", "none"],
)
def test_free_text_is_many_values_of_several_words(texts: list[str], free: bool) -> None:
    assert is_free_text(cells(texts), 50) is free


def test_free_text_is_embedded_with_a_note() -> None:
    data = evgp.read_pool(pd.DataFrame({"body": sentences(60), "size": np.arange(60) % 7 * 0.5}))
    assert data.features[:2] == ("body[0]", "body[1]")
    assert data.features[-1] == "size"
    printed("\n".join(data.notes))


def test_the_order_of_rows_and_the_cache_do_not_matter() -> None:
    texts = sentences(80)
    first = evgp.read_pool(pd.DataFrame({"body": texts}))
    order = np.random.default_rng(1).permutation(80)
    for _ in range(2):  # from the cache the second time
        again = evgp.read_pool(pd.DataFrame({"body": [texts[at] for at in order]}))
        np.testing.assert_allclose(again.x, first.x[order], atol=1e-12)


def test_python_and_files_agree(tmp_path: Path) -> None:
    frame = pd.DataFrame({"key": range(60), "body": sentences(60)})
    frame.to_csv(tmp_path / "pool.csv", index=False)
    frame.to_parquet(tmp_path / "pool.parquet")
    first = evgp.read_pool(frame, id="key")
    for name in ("pool.csv", "pool.parquet"):
        other = evgp.read_pool(tmp_path / name, id="key")
        np.testing.assert_array_equal(other.x, first.x)
    np.testing.assert_array_equal(evgp.read_pool(frame["body"].tolist()).x, first.x)


def test_test_points_and_labelled_rows_are_embedded_as_the_pool(tmp_path: Path) -> None:
    frame = pd.DataFrame({"body": sentences(60), "size": np.linspace(0, 1, 60)})
    data = evgp.read_pool(frame)
    np.testing.assert_allclose(data.like(frame[10:20]), data.x[10:20], atol=1e-12)
    frame[10:20].to_csv(tmp_path / "labelled.csv", index=False)
    assert data.labelled(tmp_path / "labelled.csv").rows.tolist() == list(range(10, 20))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        picked = evgp.pick(frame, 4, x_test=frame[:30], labelled=[3])
    assert len(picked) == 4


def test_several_columns_are_joined() -> None:
    titles, bodies = sentences(50), sentences(50, seed=1)
    frame = pd.DataFrame({"title": titles, "body": bodies})
    with refused(DatasetError):
        evgp.read_pool(frame)
    both = [f"{title}\n{body}" for title, body in zip(titles, bodies, strict=True)]
    expected = evgp.read_pool(pd.DataFrame({"body": both}))
    for text in ("title,body", ["title", "body"]):
        data = evgp.read_pool(frame, text=text)
        np.testing.assert_array_equal(data.x, expected.x)
    printed("\n".join(data.notes))


def test_short_labels_can_be_taken_as_text() -> None:
    frame = pd.DataFrame({"kind": ["red car", "blue car", "red ship", "old ship"] * 5})
    assert evgp.read_pool(frame).features[0].startswith("kind=")
    assert evgp.read_pool(frame, text="kind").features[0] == "kind[0]"


def test_empty_texts_are_equal_and_are_reported() -> None:
    texts: list[str | None] = [*sentences(20), None, "", "  "]
    data = evgp.read_pool(pa.table({"body": texts}))
    assert data.x[20].tolist() == data.x[21].tolist() == data.x[22].tolist()
    printed("\n".join(note for note in data.notes if "no text" in note))


def test_one_text_many_times_is_embedded_once() -> None:
    seen: list[int] = []

    def embed(batch: list[str]) -> np.ndarray:
        seen.append(len(batch))
        return np.array([[len(text), text.count("e"), 1.5 * text.count("a")] for text in batch])

    data = evgp.read_pool(pa.table({"body": ["one and the same text"] * 50_000 + ["another one"]}),
                          text="body", embed=embed)  # fmt: skip
    assert len(data) == 50_001
    assert sum(seen) <= 4 + 2 + 2 + 1  # fixed texts and the batch of two, each with a second look


def test_a_column_of_one_text_is_dropped_with_a_note() -> None:
    frame = pd.DataFrame({"body": ["the same text in all"] * 20, "size": np.arange(20) * 0.5})
    data = evgp.read_pool(frame, text="body")
    assert data.features == ("size",)
    printed("\n".join(note for note in data.notes if "body" in note))


def test_texts_of_ten_megabytes_are_cut_and_reported(tmp_path: Path) -> None:
    pq.write_table(
        pa.table({"body": [*sentences(30), "lake " * 2_000_000]}), tmp_path / "pool.parquet"
    )
    data = evgp.read_pool(tmp_path / "pool.parquet", text="body")
    printed("\n".join(note for note in data.notes if "cut" in note))


def test_a_random_embedder_is_refused_before_anything_is_kept(tmp_path: Path) -> None:
    random = np.random.default_rng(0)
    with refused(EmbedderError, hide=r"[\d.]+(?=\))"):
        evgp.read_pool(sentences(20), embed=lambda batch: random.normal(size=(len(batch), 3)))
    assert not list(tmp_path.rglob("*.npy"))


@pytest.mark.parametrize(
    "options",
    [
        {"text": "size"},
        {"text": "bodi"},
        {"text": "body", "drop": "body"},
        {"drop": "body", "embed": "tfidf"},
    ],
)
def test_texts_that_are_not_there_are_refused(options: dict[str, str]) -> None:
    frame = pd.DataFrame({"body": sentences(20), "size": np.arange(20) * 0.5})
    with refused(DatasetError):
        evgp.read_pool(frame, **options)


def test_options_for_text_are_refused_for_arrays() -> None:
    with refused(DatasetError):
        evgp.read_pool(np.zeros((4, 3)), embed="evgp.embedders:embedder_of")


@pytest.mark.parametrize("empty", ["", " \t", None])
def test_rows_without_text_are_never_picked(tmp_path: Path, empty: str | None) -> None:
    texts: list[str | None] = [*sentences(30)]
    texts[4] = texts[9] = empty
    frame = pd.DataFrame({"body": texts})
    data = evgp.read_pool(frame)
    assert any("2 of 30 rows have no text (first: row 4)" in note for note in data.notes)
    picked = evgp.pick(data, 28)
    assert {*picked.indices.tolist()} == {*range(30)} - {4, 9}
    with refused(ValueError):
        evgp.pick(data, 29)
    pq.write_table(pa.Table.from_pandas(frame), tmp_path / "pool.parquet")
    campaign = Campaign.create(tmp_path / "a", tmp_path / "pool.parquet", classes=["a", "b"])
    assert any("cannot be picked" in note for note in campaign.notes)
    rows = [item.row for item in campaign.next(30)]
    campaign.close()
    assert {*rows} == {*range(30)} - {4, 9}


def test_a_column_without_any_text_is_refused(tmp_path: Path) -> None:
    (tmp_path / "pool.csv").write_text("body,kind\n" + ",x\n" * 20)
    frame = pd.read_csv(tmp_path / "pool.csv").astype({"body": "string"}).fillna(" ")
    with refused(DatasetError):
        evgp.read_pool(tmp_path / "pool.csv", text="body")
    with refused(DatasetError):
        evgp.read_pool(frame, text="body")


def test_an_embedder_that_raises_names_the_rows() -> None:
    texts = [*sentences(40), "this one is bad"]

    def fails(batch: list[str]) -> np.ndarray:
        if texts[40] in batch:
            raise OSError("no model")
        return np.array([[len(text), text.count("e")] for text in batch], dtype=float)

    with refused(EmbedderError) as caught:
        evgp.read_pool(pd.DataFrame({"body": texts}), text="body", embed=fails)
    assert "given row 40" in str(caught.value)


def test_an_interruption_says_what_is_kept() -> None:
    calls = []

    def slow(batch: list[str]) -> np.ndarray:
        calls.append(len(batch))
        if len(calls) > 3:
            raise KeyboardInterrupt
        return np.array([[len(text), text.count("e")] for text in batch], dtype=float)

    texts = [f"{text} {at}" for at, text in enumerate(sentences(200))]
    with pytest.raises(KeyboardInterrupt) as stopped:
        evgp.read_pool(pd.DataFrame({"body": texts}), text="body", embed=slow)
    assert str(stopped.value).endswith(" of 200 vectors are cached for the next run")


def test_tfidf_is_suggested() -> None:
    with refused(EmbedderError) as caught:
        evgp.read_pool(pd.DataFrame({"body": sentences(30)}), text="body", embed="tfdf")
    assert "did you mean 'tfidf'?" in str(caught.value)
