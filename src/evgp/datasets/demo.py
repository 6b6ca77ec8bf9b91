"""Data of scikit-learn to try `evgp` on; nothing is downloaded, and no file is replaced."""

import filecmp
import re
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from inspect import getdoc
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from jaxtyping import Int, Shaped

from evgp.datasets.files import full, naming, write_rows
from evgp.errors import DatasetError, DiskFull, UnknownName, WrongEnding

TABLES = (".csv", ".tsv", ".jsonl", ".parquet")
STEP = 4  # pixels from one patch of a photograph to the next


def write_digits(path: str | Path, part: int = 0, of: int = 1) -> int:
    """Write 1,797 handwritten digits, 64 pixels each, without their labels.

    A table has a column of names; `.npy` has one row of 64 numbers per digit, `.npz` images of
    1 x 8 x 8.
    """
    from sklearn.datasets import load_digits

    path, digits = Path(path), load_digits()
    rows = _share(len(digits.data), part, of)
    path.parent.mkdir(parents=True, exist_ok=True)
    pixels = (digits.images[rows, None] / 16).astype(np.float32)
    if path.suffix.lower() == ".npz":
        with path.open("wb") as file:
            np.savez(file, x=pixels)
    elif path.suffix.lower() == ".npy":
        with path.open("wb") as file:
            np.save(file, pixels.reshape(len(rows), -1))
    else:
        names = [f"digit-{row:04d}" for row in rows]
        cells = digits.data[rows].astype(int)
        write_rows(path, {"image": names, **_columns(digits.feature_names, cells)})
    return len(rows)


def write_diabetes(path: str | Path, part: int = 0, of: int = 1) -> int:
    """Write ten measurements of 442 people, and the column to predict, `progression`."""
    from sklearn.datasets import load_diabetes

    people = load_diabetes(scaled=False)
    rows = _share(len(people.data), part, of)
    columns: dict[str, list[object]] = {
        "id": [f"person-{row:03d}" for row in rows],
        **_columns(people.feature_names, people.data[rows]),
        "progression": people.target[rows].astype(int).tolist(),
    }
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    write_rows(path, columns)
    return len(rows)


def write_images(path: str | Path, part: int = 0, of: int = 1) -> int:
    """Write 500 of the digits as PNG files of 8 x 8 pixels, without their labels."""
    from PIL import Image
    from sklearn.datasets import load_digits

    images = load_digits().images[:500]
    rows = _share(len(images), part, of)
    Path(path).mkdir(parents=True, exist_ok=True)
    for row in rows:
        grey = np.rint(images[row] * (255 / 16)).astype(np.uint8)
        Image.fromarray(grey).save(Path(path, f"digit-{row:04d}.png"))
    return len(rows)


def write_patches(path: str | Path, part: int = 0, of: int = 1) -> int:
    """Write 33,390 patches of two photographs, 8 x 8 grey pixels each, in four Parquet files."""
    from sklearn.datasets import load_sample_images

    keys, patches = [], []
    for name, photograph in zip(("china", "flower"), load_sample_images().images, strict=True):
        grey = photograph.mean(axis=2).astype(np.float32)
        seen = np.lib.stride_tricks.sliding_window_view(grey, (8, 8))[::STEP, ::STEP]
        keys += [
            f"{name}-{y * STEP:03d}-{x * STEP:03d}"
            for y in range(seen.shape[0])
            for x in range(seen.shape[1])
        ]
        patches.append(seen.reshape(-1, 64))
    cells = np.concatenate(patches)
    names = [f"pixel_{y}_{x}" for y in range(8) for x in range(8)]
    rows = _share(len(keys), part, of)
    Path(path).mkdir(parents=True, exist_ok=True)
    for i, rows_of_part in enumerate(np.array_split(rows, 4)):
        columns = {
            "key": [keys[row] for row in rows_of_part],
            **_columns(names, cells[rows_of_part]),
        }
        write_rows(Path(path, f"part-{i}.parquet"), columns)
    return len(rows)


def write_texts(path: str | Path, part: int = 0, of: int = 1) -> int:
    """Write the descriptions of scikit-learn's models, with counts of their most common words."""
    from sklearn.feature_extraction.text import CountVectorizer
    from sklearn.utils import all_estimators

    models = [(name, _opening(getdoc(model) or "")) for name, model in all_estimators()]
    rows = _share(len(models), part, of)
    texts = [models[row][1] for row in rows]
    words = CountVectorizer(stop_words="english", max_features=24, token_pattern=r"[a-z]{3,}")
    counts = words.fit([text for _, text in models]).transform(texts).toarray()
    columns: dict[str, list[object]] = {
        "key": [models[row][0] for row in rows],
        "text": list(texts),
        "words": [len(text.split()) for text in texts],
        **_columns([f"n_{word}" for word in words.get_feature_names_out()], counts),
    }
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    write_rows(path, columns)
    return len(rows)


def _opening(text: str) -> str:
    """Return the part of a docstring before its parameters, without markup."""
    opening = re.split(r"\nParameters\n|\n\.\. |\n+Read more in|\n+For a[^\n]* example", text)[0]
    return re.sub(r":\w+:`~?([^`]*)`", r"\1", opening).strip()


def _share(count: int, part: int, of: int) -> Int[np.ndarray, " n"]:
    """Return the row numbers of one part, in order; the parts are drawn at random.

    >>> _share(5, 0, 1), _share(5, 0, 2), _share(5, 1, 2)
    (array([0, 1, 2, 3, 4]), array([2, 3, 4]), array([0, 1]))
    """
    drawn = np.random.default_rng(0).permutation(count)
    return np.sort(np.array_split(drawn, of)[part])


def _columns(names: Sequence[str], cells: Shaped[np.ndarray, "n d"]) -> dict[str, list[object]]:
    return {name: cells[:, j].tolist() for j, name in enumerate(names)}


@dataclass(frozen=True)
class Demo:
    """One dataset to try things on."""

    about: str
    write: Callable[[str | Path, int, int], int]
    endings: tuple[str, ...] = ()  # none for a folder


DEMOS = {
    "digits": Demo(
        "1,797 handwritten digits, 64 pixels each", write_digits, (*TABLES, ".npy", ".npz")
    ),
    "diabetes": Demo("442 people, 10 measurements, and a label", write_diabetes, TABLES),
    "images": Demo("500 handwritten digits as PNG files", write_images),
    "patches": Demo("33,390 patches of photographs in 4 Parquet files", write_patches),
    "texts": Demo(
        "descriptions of scikit-learn's models, and counts of words", write_texts, TABLES
    ),
}


def write(name: str, path: Path, part: int = 0, of: int = 1) -> int:
    """Write a dataset, or one part of it, to a new file or folder; return its number of rows.

    A path that already holds exactly these data is left unchanged.
    """
    if name not in DEMOS:
        raise UnknownName.of(DatasetError)("a dataset", name, tuple(DEMOS))
    demo = DEMOS[name]
    if demo.endings and path.suffix.lower() not in demo.endings:
        raise WrongEnding(str(path), demo.endings)
    target = path.resolve()
    target.parent.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(dir=target.parent, prefix=".evgp-") as folder:
        new = Path(folder, target.name)
        try:
            with naming(path):
                rows = demo.write(new, part, of)
        except DiskFull as error:
            raise full(path) from error  # name the path, not the temporary file
        if new.is_dir() and target.is_dir() and not any(target.iterdir()):
            for file in new.iterdir():
                shutil.move(file, target)
        elif not target.exists():
            new.replace(target)
        elif not _same(new, target):
            raise DatasetError(
                f"{path} exists and holds other data; choose another name, or an empty folder"
            )
    return rows


def _same(new: Path, old: Path) -> bool:
    """Whether two files, or two folders of files, have the same contents."""
    if new.is_file():
        return old.is_file() and filecmp.cmp(new, old, shallow=False)
    names = [file.name for file in new.iterdir()]
    if not old.is_dir() or {file.name for file in old.iterdir()} != set(names):
        return False
    return len(filecmp.cmpfiles(new, old, names, shallow=False)[0]) == len(names)
