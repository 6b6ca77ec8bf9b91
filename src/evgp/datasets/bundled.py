"""Data that come with scikit-learn, to try things on; nothing is downloaded.

python -m evgp.datasets.bundled digits digits.csv
python -m evgp.datasets.bundled diabetes train.csv test.csv pool.csv
python -m evgp.datasets.bundled images images/
python -m evgp.datasets.bundled patches patches/
python -m evgp.datasets.bundled texts texts.parquet

Rows are shared out at random among several paths. What is there already is never replaced.
"""

import filecmp
import re
import shutil
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from inspect import getdoc
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from jaxtyping import Int, Shaped

from evgp._errors import DatasetError, DiskFull, EvgpError
from evgp.datasets.files import full, naming, write_rows

TABLES = (".csv", ".tsv", ".jsonl", ".parquet")
STEP = 4  # pixels from one patch of a photograph to the next


def write_digits(path: str | Path, part: int = 0, of: int = 1) -> int:
    """Write 1,797 handwritten digits, 64 pixels each, without their labels.

    A table, with names; as `.npy` a row of 64 numbers for each; as `.npz` images of 1 x 8 x 8.
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
    """Write 442 people, ten measurements each, with what is to be predicted: `progression`."""
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
    for i, some in enumerate(np.array_split(rows, 4)):
        columns = {"key": [keys[row] for row in some], **_columns(names, cells[some])}
        write_rows(Path(path, f"part-{i}.parquet"), columns)
    return len(rows)


def write_texts(path: str | Path, part: int = 0, of: int = 1) -> int:
    """Write what scikit-learn says of each of its models, in how many words, and which of them."""
    from sklearn.feature_extraction.text import CountVectorizer
    from sklearn.utils import all_estimators

    found = [(name, _opening(getdoc(model) or "")) for name, model in all_estimators()]
    rows = _share(len(found), part, of)
    texts = [found[row][1] for row in rows]
    words = CountVectorizer(stop_words="english", max_features=24, token_pattern=r"[a-z]{3,}")
    counts = words.fit([text for _, text in found]).transform(texts).toarray()
    columns: dict[str, list[object]] = {
        "key": [found[row][0] for row in rows],
        "text": list(texts),
        "words": [len(text.split()) for text in texts],
        **_columns([f"n_{word}" for word in words.get_feature_names_out()], counts),
    }
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    write_rows(path, columns)
    return len(rows)


def _opening(text: str) -> str:
    """What stands before the parameters, without the marks of the documentation."""
    said = re.split(r"\nParameters\n|\n\.\. |\n+Read more in|\n+For a[^\n]* example", text)[0]
    return re.sub(r":\w+:`~?([^`]*)`", r"\1", said).strip()


def _share(count: int, part: int, of: int) -> Int[np.ndarray, " n"]:
    """Some of the rows, in their order: all, or a random part.

    >>> _share(5, 0, 1), _share(5, 0, 2), _share(5, 1, 2)
    (array([0, 1, 2, 3, 4]), array([2, 3, 4]), array([0, 1]))
    """
    drawn = np.random.default_rng(0).permutation(count)
    return np.sort(np.array_split(drawn, of)[part])


def _columns(names: Sequence[str], cells: Shaped[np.ndarray, "n d"]) -> dict[str, list[object]]:
    return {name: cells[:, j].tolist() for j, name in enumerate(names)}


@dataclass(frozen=True)
class Bundle:
    """What writes some data, and how names of its files may end: none for a folder."""

    write: Callable[[str | Path, int, int], int]
    endings: tuple[str, ...] = ()


BUNDLES = {
    "digits": Bundle(write_digits, (*TABLES, ".npy", ".npz")),
    "diabetes": Bundle(write_diabetes, TABLES),
    "images": Bundle(write_images),
    "patches": Bundle(write_patches),
    "texts": Bundle(write_texts, TABLES),
}


def write(bundle: Bundle, path: Path, part: int = 0, of: int = 1) -> int:
    """Write to a new file or folder; the same data may be there already, and nothing else."""
    if bundle.endings and path.suffix.lower() not in bundle.endings:
        raise DatasetError(f"{path}: expected a name ending in {' or '.join(bundle.endings)}")
    target = path.resolve()
    target.parent.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(dir=target.parent, prefix=".evgp-") as folder:
        made = Path(folder, target.name)
        try:
            with naming(path):
                rows = bundle.write(made, part, of)
        except DiskFull as error:
            raise full(path) from error  # not by the name of the part
        if made.is_dir() and target.is_dir() and not any(target.iterdir()):
            for one in made.iterdir():
                shutil.move(one, target)
        elif not target.exists():
            made.replace(target)
        elif not _same(made, target):
            raise DatasetError(
                f"{path}: expected a new name, got one that is taken by something else; choose "
                "another, or work in an empty folder"
            )
    return rows


def _same(one: Path, other: Path) -> bool:
    if one.is_file():
        return other.is_file() and filecmp.cmp(one, other, shallow=False)
    names = [file.name for file in one.iterdir()]
    if not other.is_dir() or {file.name for file in other.iterdir()} != set(names):
        return False
    return len(filecmp.cmpfiles(one, other, names, shallow=False)[0]) == len(names)


def main(arguments: list[str]) -> int:
    """Write the named data to the given paths."""
    try:
        if {"-h", "--help"} & {*arguments}:
            print(__doc__)
            return 0
        if len(arguments) < 2 or arguments[0] not in BUNDLES:
            raise DatasetError(
                "expected: python -m evgp.datasets.bundled NAME PATH, where NAME PATH is digits "
                "FILE.csv, .npy or .npz, diabetes FILE.csv, images FOLDER, patches FOLDER or texts "
                "FILE.parquet; several paths share the rows"
            )
        name, *paths = arguments
        for part, path in enumerate(paths):
            rows = write(BUNDLES[name], Path(path), part, len(paths))
            print(f"{path}: {rows:,} rows", file=sys.stderr)
    except EvgpError as error:
        print(f"evgp: {error}", file=sys.stderr)
        return 1
    except OSError as error:
        print(f"evgp: {error.filename}: {error.strerror}; check the path", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
