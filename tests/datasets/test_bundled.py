"""The data to try things on are there, and take the place of nothing."""

from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from pyarrow import parquet
from sklearn.datasets import load_digits, load_sample_image

from evgp.datasets import ids, load_csv, read_table
from evgp.datasets.bundled import main


def test_the_digits_are_written(tmp_path: Path) -> None:
    assert main(["digits", str(tmp_path / "new" / "digits.csv")]) == 0
    table = read_table(tmp_path / "new" / "digits.csv", text=["image"])
    assert len(table) == 1797
    assert len(table.names) == 65
    assert ids(table, "image")[:2] == ["digit-0000", "digit-0001"]
    assert not any("target" in name for name in table.names)


def test_the_digits_are_written_as_arrays(tmp_path: Path) -> None:
    assert main(["digits", str(tmp_path / "rows.npy")]) == 0
    assert main(["digits", str(tmp_path / "images.npz")]) == 0
    rows = np.load(tmp_path / "rows.npy")
    assert np.array_equal(rows * 16, load_digits().data)
    with np.load(tmp_path / "images.npz") as images:
        assert images.files == ["x"]
        assert np.array_equal(images["x"] * 16, load_digits().images[:, None])


def test_the_diabetes_table_holds_what_is_to_be_predicted(tmp_path: Path) -> None:
    assert main(["diabetes", str(tmp_path / "diabetes.csv")]) == 0
    data = load_csv(tmp_path / "diabetes.csv", "progression", drop=["id"])
    assert len(data.x) + len(data.x_test) == 442
    assert data.x.shape[1] == 10


def test_several_files_share_the_rows(tmp_path: Path) -> None:
    files = [tmp_path / f"{name}.csv" for name in ("all", "train", "test", "pool")]
    assert main(["diabetes", str(files[0])]) == 0
    assert main(["diabetes", *map(str, files[1:])]) == 0
    head, *rows = files[0].read_text().splitlines()
    parts = [file.read_text().splitlines() for file in files[1:]]
    assert [part[0] for part in parts] == [head] * 3
    assert sorted(row for part in parts for row in part[1:]) == sorted(rows)
    assert [len(part) - 1 for part in parts] == [148, 147, 147]
    assert parts[0][1:] != rows[:148]


def test_the_images_are_those_of_the_digits(tmp_path: Path) -> None:
    assert main(["images", f"{tmp_path}/images/"]) == 0
    files = sorted((tmp_path / "images").iterdir())
    assert [file.name for file in files] == [f"digit-{i:04d}.png" for i in range(500)]
    for i in (0, 499):
        with Image.open(files[i]) as image:
            grey = np.asarray(image).astype(float)
        assert np.abs(grey / 255 * 16 - load_digits().images[i]).max() < 0.05


def test_the_patches_are_those_of_the_photographs(tmp_path: Path) -> None:
    assert main(["patches", str(tmp_path / "pool")]) == 0
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
    assert main(["texts", str(tmp_path / "texts.parquet")]) == 0
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
    for arguments in (["digits", "a.csv"], ["images", "images"], ["digits", "a.npz"]):
        call = [arguments[0], str(tmp_path / arguments[1])]
        assert main(call) == main(call) == 0
    assert sorted(one.name for one in tmp_path.iterdir()) == ["a.csv", "a.npz", "images"]


def test_nothing_is_replaced(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "train.csv").write_text("mine")
    (tmp_path / "images").mkdir()
    (tmp_path / "images" / "mine.png").write_text("mine")
    for name, path in (("diabetes", "train.csv"), ("images", "images"), ("images", "train.csv")):
        assert main([name, str(tmp_path / path)]) == 1
        assert f"{path}: expected a new name, got one that is taken" in capsys.readouterr().err
    assert (tmp_path / "train.csv").read_text() == "mine"
    assert [one.name for one in (tmp_path / "images").iterdir()] == ["mine.png"]
    assert sorted(one.name for one in tmp_path.iterdir()) == ["images", "train.csv"]


def test_a_changed_file_in_a_folder_is_kept(tmp_path: Path) -> None:
    assert main(["images", str(tmp_path / "images")]) == 0
    (tmp_path / "images" / "digit-0007.png").write_text("mine")
    assert main(["images", str(tmp_path / "images")]) == 1
    assert (tmp_path / "images" / "digit-0007.png").read_text() == "mine"


def test_an_empty_folder_is_filled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    assert main(["images", "."]) == 0
    assert len(list(Path().iterdir())) == 500


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["letters"], "evgp: expected: python -m evgp.datasets.bundled NAME PATH"),
        (["digits"], "evgp: expected: python -m evgp.datasets.bundled NAME PATH"),
        (["letters", "a.csv"], "evgp: expected: python -m evgp.datasets.bundled NAME PATH"),
        (["digits", "new/a.txt"], "a.txt: expected a name ending in .csv"),
        (["diabetes", "a.npz"], "a.npz: expected a name ending in .csv"),
        (["diabetes", "file/a.csv"], "check the path"),
    ],
)
def test_a_wrong_call_is_said(arguments, said, tmp_path, monkeypatch, capsys) -> None:
    monkeypatch.chdir(tmp_path)
    Path("file").write_text("not a folder")
    assert main(arguments) == 1
    err = capsys.readouterr().err
    assert said in err
    assert err.count("\n") == 1
    assert [one.name for one in tmp_path.iterdir()] == ["file"]
