"""The demo data are written, and replace no file."""

from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from pyarrow import parquet
from sklearn.datasets import load_digits, load_sample_image

from evgp.datasets import ids, load_csv, read_table
from evgp.datasets.demo import write
from evgp.errors import DatasetError
from tests.messages import refused


def test_the_digits_are_written(tmp_path: Path) -> None:
    write("digits", tmp_path / "new" / "digits.csv")
    table = read_table(tmp_path / "new" / "digits.csv", text=["image"])
    assert len(table) == 1797
    assert len(table.names) == 65
    assert ids(table, "image")[:2] == ["digit-0000", "digit-0001"]
    assert not any("target" in name for name in table.names)


def test_the_digits_are_written_as_arrays(tmp_path: Path) -> None:
    write("digits", tmp_path / "rows.npy")
    write("digits", tmp_path / "images.npz")
    rows = np.load(tmp_path / "rows.npy")
    assert np.array_equal(rows * 16, load_digits().data)
    with np.load(tmp_path / "images.npz") as images:
        assert images.files == ["x"]
        assert np.array_equal(images["x"] * 16, load_digits().images[:, None])


def test_the_diabetes_table_holds_what_is_to_be_predicted(tmp_path: Path) -> None:
    write("diabetes", tmp_path / "diabetes.csv")
    data = load_csv(tmp_path / "diabetes.csv", "progression", drop=["id"])
    assert len(data.x) + len(data.x_test) == 442
    assert data.x.shape[1] == 10


def test_several_files_share_the_rows(tmp_path: Path) -> None:
    files = [tmp_path / f"{name}.csv" for name in ("all", "train", "test", "pool")]
    write("diabetes", files[0])
    for part, file in enumerate(files[1:]):
        write("diabetes", file, part, 3)
    head, *rows = files[0].read_text().splitlines()
    parts = [file.read_text().splitlines() for file in files[1:]]
    assert [part[0] for part in parts] == [head] * 3
    assert sorted(row for part in parts for row in part[1:]) == sorted(rows)
    assert [len(part) - 1 for part in parts] == [148, 147, 147]
    assert parts[0][1:] != rows[:148]


def test_the_images_are_those_of_the_digits(tmp_path: Path) -> None:
    write("images", Path(f"{tmp_path}/images/"))
    files = sorted((tmp_path / "images").iterdir())
    assert [file.name for file in files] == [f"digit-{i:04d}.png" for i in range(500)]
    for i in (0, 499):
        with Image.open(files[i]) as image:
            grey = np.asarray(image).astype(float)
        assert np.abs(grey / 255 * 16 - load_digits().images[i]).max() < 0.05


def test_the_patches_are_those_of_the_photographs(tmp_path: Path) -> None:
    write("patches", tmp_path / "pool")
    files = sorted((tmp_path / "pool").iterdir())
    assert [file.name for file in files] == [f"part-{i}.parquet" for i in range(4)]
    table = parquet.read_table(files)
    keys = table["key"].to_pylist()
    assert len(keys) == len(set(keys)) == 33_390
    assert table.num_columns == 65
    seen = np.array([table.slice(keys.index("flower-008-100"), 1).to_pylist()[0][f"pixel_{y}_{x}"]
                     for y in range(8) for x in range(8)])  # fmt: skip
    photograph = load_sample_image("flower.jpg")[8:16, 100:108].mean(axis=2)
    assert np.allclose(seen, photograph.ravel(), atol=1e-3)


def test_the_texts_can_be_read_and_their_words_are_counted(tmp_path: Path) -> None:
    write("texts", tmp_path / "texts.parquet")
    columns = parquet.read_table(tmp_path / "texts.parquet").to_pydict()
    texts = dict(zip(columns["key"], columns["text"], strict=True))
    assert len(texts) == len(columns["key"]) > 150
    assert texts["KMeans"] == "K-Means clustering."
    assert not any("\n----" in text or ":ref:" in text for text in texts.values())
    assert all(text.strip() for text in texts.values())
    words = [name for name in columns if name.startswith("n_")]
    assert len(words) == 24
    for i, text in enumerate(columns["text"]):
        spoken = "".join(c if c.isascii() and c.isalpha() else " " for c in text.lower()).split()
        assert columns["n_regression"][i] == spoken.count("regression"), text


def test_the_same_again_is_harmless(tmp_path: Path) -> None:
    for name, path in (("digits", "a.csv"), ("images", "images"), ("digits", "a.npz")):
        assert write(name, tmp_path / path) == write(name, tmp_path / path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.csv", "a.npz", "images"]


def test_nothing_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "train.csv").write_text("mine")
    (tmp_path / "images").mkdir()
    (tmp_path / "images" / "mine.png").write_text("mine")
    for name, path in (("diabetes", "train.csv"), ("images", "images"), ("images", "train.csv")):
        with refused(DatasetError):
            write(name, tmp_path / path)
    assert (tmp_path / "train.csv").read_text() == "mine"
    assert [path.name for path in (tmp_path / "images").iterdir()] == ["mine.png"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["images", "train.csv"]


def test_a_changed_file_in_a_folder_is_kept(tmp_path: Path) -> None:
    write("images", tmp_path / "images")
    (tmp_path / "images" / "digit-0007.png").write_text("mine")
    with pytest.raises(DatasetError):
        write("images", tmp_path / "images")
    assert (tmp_path / "images" / "digit-0007.png").read_text() == "mine"


def test_an_empty_folder_is_filled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    write("images", Path())
    assert len(list(Path().iterdir())) == 500
