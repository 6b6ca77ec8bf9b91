"""Texts of pools in files are the vectors that they would be in memory, and kept block by block."""

import pickle
import warnings
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import evgp
from evgp.datasets import embedded_files
from evgp.datasets.pool_data import FileData
from evgp.errors import DamageWarning, DatasetError, EmbedderError
from tests.datasets.test_text import sentences
from tests.messages import refused

N = 60
pytestmark = pytest.mark.filterwarnings("ignore::evgp.errors.DataWarning")


@pytest.fixture(autouse=True)
def small_blocks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EVGP_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(embedded_files, "_ROWS", 8)


@pytest.fixture
def table() -> pa.Table:
    return pa.table(
        {
            "key": [f"row {at}" for at in range(N)],
            "title": sentences(N, seed=1),
            "body": [*sentences(N - 2), "", None],
            "size": np.arange(N) % 7 * 0.5,
        }
    )


@pytest.fixture
def folder(table: pa.Table, tmp_path: Path) -> Path:
    (tmp_path / "pool").mkdir()
    for at in range(3):
        pq.write_table(table[20 * at : 20 * at + 20], tmp_path / "pool" / f"{at}.parquet")
    return tmp_path / "pool"


class Letters:
    """Counts letters, and the texts that it was given; stops at the first with a word."""

    def __init__(self, stop: str = "\0") -> None:
        self.texts, self.stop = 0, stop

    def __call__(self, texts: Sequence[str]) -> np.ndarray:
        if any(self.stop in text for text in texts):
            raise KeyboardInterrupt
        self.texts += len(texts)
        return np.array([[text.count(sign) for sign in "aeiou"] for text in texts], float)


def numbers(data: evgp.PoolData) -> np.ndarray:
    n = len(data.x)
    fitted = data.x.fitted(data.x.survey(0, n, rows=np.arange(0)))
    return np.concatenate([x for _, x in fitted.blocks(0, n, size=11)])


@pytest.mark.parametrize(
    "how",
    [
        {"text": "body", "drop": ["title"]},
        {"text": "title,body"},
        {"text": "body", "drop": ["title", "size"]},
        {"drop": ["body"]},
        {"text": "title", "embed": Letters()},
    ],
    ids=["one", "joined", "alone", "recognised", "own"],
)
def test_numbers_are_those_of_the_pool_in_memory(folder: Path, table: pa.Table, how) -> None:
    data = evgp.read_pool(folder, id="key", **how)
    memory = evgp.read_pool(table, id="key", **how)
    np.testing.assert_array_equal(numbers(data), memory.in_memory.numpy())
    assert data.notes[0] == memory.notes[0] and data.without_text == memory.without_text
    picks, expected = evgp.pick(data, 4), evgp.pick(memory, 4)
    np.testing.assert_array_equal(picks.indices, expected.indices)
    again = pickle.loads(pickle.dumps(data.x))
    rows = np.array([40, 3, 3, 12])
    for columns in (["size"], data.x.layout.used, [data.x.texts[0]]):
        assert again.raw_at(rows, columns).equals(data.x.raw_at(rows, columns))


def test_picks_and_reports_show_the_texts(folder: Path, table: pa.Table, tmp_path: Path) -> None:
    picks = evgp.pick(folder, 3, id="key", text="title,body", method="sharded")
    frame = picks.to_frame()
    assert frame["title"].tolist() == table["title"].take(picks.indices).to_pylist()
    assert list(picks.ids) == table["key"].take(picks.indices).to_pylist()
    data = evgp.read_pool(folder, id="key", text="title,body")
    assert isinstance(data, FileData)
    part = data.part(np.arange(5))
    assert part.columns["title"][2] == table["title"][2].as_py()
    picks.report(tmp_path / "r.html")
    assert frame["title"][0] in (tmp_path / "r.html").read_text()


def test_rows_without_text_are_never_picked(folder: Path) -> None:
    data = evgp.read_pool(folder, text="body", drop=["title", "key"])
    assert data.without_text == (N - 2, N - 1)
    picks = evgp.pick(data, N - 2, method="sharded")
    assert not {*picks.indices.tolist()} & {N - 2, N - 1}


def test_a_run_that_was_stopped_goes_on_where_it_was(folder: Path, table: pa.Table) -> None:
    how = {"text": "title", "drop": ["body"], "id": "key"}
    stopped = Letters(stop=table["title"][30].as_py())
    with pytest.raises(KeyboardInterrupt):
        evgp.read_pool(folder, embed=stopped, **how)
    resumed, again = Letters(), Letters()
    data = evgp.read_pool(folder, embed=resumed, **how)
    done = 3 * 8  # rows of complete blocks before row 30
    assert 0 < resumed.texts <= 1.6 * (N - done) + 8  # half of each first batch twice
    evgp.read_pool(folder, embed=again, **how)
    assert again.texts <= 8  # to see what it computes
    whole = evgp.read_pool(table, embed=Letters(), **how)
    np.testing.assert_array_equal(numbers(data), whole.in_memory.numpy())


def test_a_changed_text_a_damaged_and_a_lost_file(folder: Path, table: pa.Table) -> None:
    how = {"text": "title", "drop": ["body"], "id": "key"}
    data = evgp.read_pool(folder, **how)
    expected = numbers(data)
    path = data.x.folder / f"{data.x.blocks[2]}.npy"
    with path.open("r+b") as stream:
        stream.seek(200)
        stream.write(b"damaged!")
    with pytest.warns(DamageWarning):
        np.testing.assert_array_equal(numbers(evgp.read_pool(folder, **how)), expected)
    path.unlink()
    with refused(DatasetError, hide=r"/.*\.npy"):
        numbers(data)
    changed = table.set_column(1, "title", [["other words here", *sentences(N, 1)[1:]]])
    pq.write_table(changed[:20], folder / "0.parquet")
    other = evgp.read_pool(folder, embed=Letters(), **how)
    memory = evgp.read_pool(changed, embed=Letters(), **how)
    np.testing.assert_array_equal(numbers(other), memory.in_memory.numpy())
    assert other.x.digest(other.x.files[1]) != data.x.digest(data.x.files[1])


def test_test_points_and_labelled_rows_are_embedded_alike(
    folder: Path, table: pa.Table, tmp_path: Path
) -> None:
    test = table[5:15].set_column(1, "title", [sentences(10, seed=5)])
    pq.write_table(test, tmp_path / "test.parquet")
    how = {"text": "title", "drop": ["body"]}
    path = tmp_path / "test.parquet"
    picks = evgp.pick(folder, 3, x_test=path, labelled=path, id="key", **how)
    expected = evgp.pick(table, 3, x_test=path, labelled=path, id="key", **how)
    np.testing.assert_array_equal(picks.indices, expected.indices)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        evgp.pick(folder, 3, x_test=folder, text="body", drop=["title", "key"])
    assert any("2 of 60 rows have no text" in str(item.message) for item in caught)


def test_what_cannot_be_embedded_is_refused(folder: Path, tmp_path: Path) -> None:
    for how in ({"text": "size"}, {"text": "nothing"}, {}, {"text": "body", "encoding": "utf-8"}):
        with refused(DatasetError):
            evgp.read_pool(folder, **how)
    with refused(EmbedderError):
        evgp.read_pool(folder, text="body", embed=lambda texts: [[1.0]] * (len(texts) - 1))
    np.save(tmp_path / "x.npy", np.eye(4))
    with refused(DatasetError):
        evgp.pick(tmp_path / "x.npy", 1, text="body", method="sharded")
    opened = evgp.open_pool(folder, drop=["title", "body", "key"])
    with refused(DatasetError):
        evgp.pick(opened, 2, text="body")
