"""The datasets of the paper, by name: what each holds, where its file is, and how it is read.

Hemachandra et al., Training-Free Neural Active Learning with Initialization-Robustness Guarantees,
ICML 2023, appendix on the experiments. The files are NumPy archives. A regression has `X` (n x d)
and `y` (n); a classification has `X_train`, `y_train`, `X_test`, `y_test`, with classes from 0 and
images as channels x height x width. The checksums are those of the files behind the recorded
results.
"""

import hashlib
import os
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass, replace
from io import BufferedReader
from pathlib import Path

import numpy as np
import torch
from jaxtyping import Int, Shaped
from torch import Tensor

from evgp._checks import word
from evgp._reading import check_memory
from evgp._reading import opened as plain_file
from evgp.datasets.arrays import DAMAGED, NpyHeader, opened, read_header
from evgp.datasets.cache import cache_folder
from evgp.datasets.dataset import (
    Dataset,
    Kind,
    RawParts,
    generator,
    scaled_columns,
    scaled_images,
    scaled_targets,
    taken,
)
from evgp.datasets.tables import check_file
from evgp.errors import DatasetError, EvgpError, UnknownName, WrongFormat

_UCI = "CC BY 4.0, as the UCI Machine Learning Repository lists it"
_NONE = "none known"


@dataclass(frozen=True)
class Known:
    """A named dataset: the layout of its file, and what to cite.

    `rows` and `rows_test` count its parts; a regression has one part, which `load` halves. `pool`
    is the number of training points in the pool, and `source` is where the data are public.

    >>> print(KNOWN["kin8nm"])
    kin8nm: regression, 8,192 x 8; DELVE, University of Toronto, through the collection of L. Torgo
    """

    name: str
    file: str
    sha256: str
    kinds: tuple[Kind, ...]
    shape: tuple[int, ...]
    rows: int
    about: str
    citation: str
    licence: str
    source: str
    rows_test: int = 0
    classes: int = 0
    pool: int | None = None

    def __str__(self) -> str:
        rows = f"{self.rows:,}" + (f" + {self.rows_test:,}" if self.rows_test else "")
        shape = " x ".join((rows, *map(str, self.shape)))
        return f"{self.name}: {' or '.join(self.kinds)}, {shape}; {self.citation}"

    @property
    def layout(self) -> str:
        """Describe the arrays that the file must hold."""
        shape = " x ".join(map(str, self.shape))
        if not self.classes:
            return f"X (n x {shape}) and y (n) in float64"
        return (
            f"X_train and X_test (n x {shape}) in uint8, y_train and y_test (n) from 0 to "
            f"{self.classes - 1} in int64"
        )


def names() -> dict[str, Known]:
    """Return every named dataset with its kind, size and citation.

    >>> for name, known in names().items():
    ...     print(name, *known.kinds, sep=", ")
    boston, regression
    naval, regression
    protein, regression
    kin8nm, regression
    california, regression
    optdigits, regression, classification
    mnist, classification
    emnist, classification
    svhn, classification
    cifar100, classification
    """
    return dict(KNOWN)


def known(name: str) -> Known:
    """Return the dataset of this name; the error for another name lists all of them."""
    if word(name, "the name of a dataset", error=DatasetError) in KNOWN:
        return KNOWN[name]
    advice = "for a table of your own use load_csv"
    raise UnknownName.of(DatasetError)("a dataset", name, tuple(KNOWN), advice=advice)


_LISTED = (
    Known(
        name="boston",
        file="boston.npz",
        sha256="361c187f632591c7853055ded9a3d6c65bfac430ee656c9782537f1278d799b0",
        kinds=("regression",),
        shape=(13,),
        rows=506,
        about="median home values around Boston; column B encodes the racial make-up of a town, so "
        "use it only to compare with published results",
        citation="Harrison & Rubinfeld, J. Environ. Econ. Manage. 5, 1978",
        licence=_NONE,
        source="OpenML 531",
    ),
    Known(
        name="naval",
        file="naval.npz",
        sha256="154ebf8af8595ff98e3fd319258a822a3b9861608c00e7f09e9093563b4690c0",
        kinds=("regression",),
        shape=(16,),
        rows=11_934,
        about="decay of a gas turbine compressor in naval propulsion plants",
        citation="Coraddu et al., Proc. IMechE Part M, 2014",
        licence=_UCI,
        source="UCI 316 (OpenML 44969) without the turbine decay",
    ),
    Known(
        name="protein",
        file="protein.npz",
        sha256="ff895e611dfb198ac51bfd1167064c4fbd9b81b8108775dba241152e54af4007",
        kinds=("regression",),
        shape=(9,),
        rows=45_730,
        about="RMSD of protein tertiary structure from physicochemical properties (CASP 5-9)",
        citation="Rana, UCI Machine Learning Repository, 2013",
        licence=_UCI,
        source="UCI 265",
    ),
    Known(
        name="kin8nm",
        file="kin8nm.npz",
        sha256="d318674db828680d01fcf553c515c35437709b1315fdae991dcfab4b7301e759",
        kinds=("regression",),
        shape=(8,),
        rows=8_192,
        about="forward kinematics of an 8-link robot arm, highly non-linear, medium noise",
        citation="DELVE, University of Toronto, through the collection of L. Torgo",
        licence=_NONE,
        source="OpenML 189",
    ),
    Known(
        name="california",
        file="california_housing.npz",
        sha256="3747e86043293ce0f2f2c90af9d0b59f2a61da707dd1c358d3830ba6be9ec405",
        kinds=("regression",),
        shape=(8,),
        rows=20_640,
        about="median house values of Californian block groups, 1990 census",
        citation="Pace & Barry, Stat. Probab. Lett. 33, 1997",
        licence=_NONE,
        source="sklearn.datasets.fetch_california_housing",
    ),
    Known(
        name="optdigits",
        file="optdigits.npz",
        sha256="6d74499c40a3efddeef7d1df335bbb3e5a648801f2e5847e5634dd1aa973a668",
        kinds=("regression", "classification"),
        shape=(64,),
        rows=3_823,
        rows_test=1_797,
        classes=10,
        about="handwritten digits as counts on an 8 x 8 grid",
        citation="Alpaydin & Kaynak, UCI Machine Learning Repository, 1998",
        licence=_UCI,
        source="UCI 80",
    ),
    Known(
        name="mnist",
        file="mnist.npz",
        sha256="c679edfa5d0216501efa8521708fcda011fe7e9429d6d9cffe33c1593c0efb8c",
        kinds=("classification",),
        shape=(1, 28, 28),
        rows=60_000,
        rows_test=10_000,
        classes=10,
        pool=10_000,
        about="handwritten digits",
        citation="LeCun, Bottou, Bengio & Haffner, Proc. IEEE 86(11), 1998",
        licence="commonly given as CC BY-SA 3.0",
        source="torchvision.datasets.MNIST",
    ),
    Known(
        name="emnist",
        file="emnist_balanced.npz",
        sha256="77d9f8f3e9f5786f6775f8018bad0e7da6b8b1665e73d7041525145fbc795432",
        kinds=("classification",),
        shape=(1, 28, 28),
        rows=21_996,
        rows_test=4_982,
        classes=47,
        pool=20_000,
        about="handwritten letters and digits, upright: the 47 classes of EMNIST Balanced, a part "
        "of them from ByMerge",
        citation="Cohen, Afshar, Tapson & van Schaik, EMNIST: an extension of MNIST to handwritten "
        "letters, 2017",
        licence="published by NIST; none known",
        source="torchvision.datasets.EMNIST, split 'balanced'",
    ),
    Known(
        name="svhn",
        file="svhn.npz",
        sha256="31fcb5633769952471e5b47a953865f020f9ff63df113bc40f5237c36071506e",
        kinds=("classification",),
        shape=(3, 32, 32),
        rows=22_000,
        rows_test=5_000,
        classes=10,
        pool=20_000,
        about="house numbers in street view, cropped digits; a random part of the published set",
        citation="Netzer et al., Reading digits in natural images with unsupervised feature "
        "learning, NIPS Workshop 2011",
        licence="for non-commercial use only, says the source",
        source="torchvision.datasets.SVHN",
    ),
    Known(
        name="cifar100",
        file="cifar100.npz",
        sha256="8f871d60aa6dcc69b24238c55f09ad8774c52cace5e955ace933d4a868686d9c",
        kinds=("classification",),
        shape=(3, 32, 32),
        rows=22_000,
        rows_test=5_000,
        classes=100,
        pool=20_000,
        about="small images of 100 kinds of objects; a random part of the published set",
        citation="Krizhevsky, Learning multiple layers of features from tiny images, 2009",
        licence="none known; the source asks that the report be cited",
        source="torchvision.datasets.CIFAR100",
    ),
)
KNOWN = {known.name: known for known in _LISTED}


_PARTS = ("train", "test")
# Maximum number of characters in the names of classes.
_LONGEST = 2**20


def read_known(known: Known, *, verify: bool) -> dict[str, Shaped[np.ndarray, "..."]]:
    """Read the arrays of a dataset: `X` and `y`, or those of a training and a test set. The
    checksum covers exactly the bytes that are read. Without `verify`, only the layout must be
    right.
    """
    path = find(known)
    check_file(path)
    try:
        with plain_file(path) as stream:
            if verify:
                _verify(stream, known, path)
            with zipfile.ZipFile(stream) as archive:
                arrays = _read(archive, known, path)
    except DatasetError:
        raise
    except (*DAMAGED, OSError) as error:  # bzip2 reports damage as an OSError
        raise _foreign(path, known, f"a damaged or foreign file ({error})") from error
    _check(arrays, known, path)
    return arrays


def find(known: Known) -> Path:
    """Find the file of a dataset in `$EVGP_DATA`, or else in the user's cache."""
    folder = os.environ.get("EVGP_DATA")
    places = [Path(folder)] if folder else []
    places.append(cache_folder() / "data")
    for place in places:
        if (place / known.file).exists():
            return place / known.file
    shown = " or ".join(map(str, places)) + ("" if folder else " ($EVGP_DATA is not set)")
    raise DatasetError(
        f"{known.name}: expected {known.file} in {shown}, got no such file; put it there, or make "
        f"one with numpy.savez from {known.source}, with {known.layout}, and load it with "
        "verify=False"
    )


def _verify(stream: BufferedReader, known: Known, path: Path) -> None:
    digest = hashlib.file_digest(stream, "sha256").hexdigest()
    if digest != known.sha256:
        raise WrongFormat.of(DatasetError)(
            str(path),
            f"SHA-256 {known.sha256[:12]}...",
            f"{digest[:12]}...",
            "copy the file again, or load it with verify=False if you made it yourself",
        )
    stream.seek(0)


def _read(
    archive: zipfile.ZipFile, known: Known, path: Path
) -> dict[str, Shaped[np.ndarray, "..."]]:
    members = {info.filename.removesuffix(".npy"): info for info in archive.infolist()}
    suffixes = [f"_{part}" for part in _PARTS] if known.classes else [""]
    expected = [f"{letter}{suffix}" for letter in "Xy" for suffix in suffixes]
    if absent := [name for name in expected if name not in members]:
        raise _foreign(path, known, f"none named {', '.join(absent)}")
    if known.classes and "class_names" in members:
        expected.append("class_names")
    arrays = {}
    for name in expected:
        with opened(archive, members[name], str(path)) as stream:
            header = read_header(stream, f"{path}[{name}]")
            _check_header(header, name, known, path)
            check_memory(header.nbytes(), f"{path}[{name}]")
            data = stream.read(header.nbytes())
            if len(data) < header.nbytes():
                raise _foreign(path, known, f"{name} cut short")
            order = "F" if header.columns_first else "C"
            flat = np.frombuffer(data, dtype=header.dtype)
            arrays[name] = flat.reshape(header.shape, order=order)  # type: ignore[call-overload]
    return arrays


def _check_header(header: NpyHeader, name: str, known: Known, path: Path) -> None:
    """Refuse an array before it is read, if it holds objects or does not match the layout."""
    if header.dtype.hasobject:
        raise _foreign(path, known, f"Python objects in {name}, which are never unpickled here")
    if name == "class_names":
        good = header.dtype.kind == "U" and header.shape == (known.classes,)
        good = good and header.nbytes() <= _LONGEST
    elif name.startswith("y"):
        good = header.dtype.kind in ("iu" if known.classes else "fiu") and len(header.shape) == 1
    else:
        images = len(known.shape) > 1
        good = header.dtype == np.uint8 if images else header.dtype.kind in "fiu"
        good = good and header.shape[1:] == known.shape
    if not good or any(size < 1 for size in header.shape):
        shape = " x ".join(map(str, header.shape)) or "a scalar"
        raise _foreign(path, known, f"{name} ({shape}) in {header.dtype}")


def _check(arrays: dict[str, Shaped[np.ndarray, "..."]], known: Known, path: Path) -> None:
    """Refuse arrays whose lengths differ, or whose values cannot be used."""
    for name in [name for name in arrays if name.startswith("X")]:
        x, y = arrays[name], arrays["y" + name[1:]]
        if len(x) != len(y):
            raise _foreign(path, known, f"{len(x):,} rows of {name} and {len(y):,} labels")
        if len(x) < 4:
            raise _foreign(path, known, f"{len(x)} rows of {name}, too few to split")
        if not all(np.isfinite(part).all() for part in (x, y) if part.dtype.kind == "f"):
            raise _foreign(path, known, f"missing or infinite numbers in {name} or its labels")
        if known.classes and not (0 <= int(y.min()) and int(y.max()) < known.classes):
            raise _foreign(path, known, f"labels from {y.min()} to {y.max()}")


def _foreign(path: Path, known: Known, got: str) -> EvgpError:
    return WrongFormat.of(DatasetError)(
        str(path), f"an npz archive with {known.layout}", str(got), "save it again with numpy.savez"
    )


Arrays = Mapping[str, Shaped[np.ndarray, "..."]]


def load(
    name: str,
    *,
    seed: int = 0,
    pool: int | None = None,
    test: int | None = None,
    task: str | None = None,
    verify: bool = True,
) -> Dataset:
    """Load a dataset of the paper from `$EVGP_DATA` or the user's cache; `names` lists them.

    A regression is split in half by the seed: pool and test. A classification has a pool that the
    seed draws from its training set (10,000 of MNIST, 20,000 of other images, all of optdigits),
    and the published test set. `pool` and `test` limit their sizes; a smaller one is always the
    beginning of a larger one.

    Columns, channels of images, and targets of a regression have mean 0 and standard deviation 1
    over the pool. `optdigits` is a regression on the digit, as in the paper, unless
    `task="classification"`. `verify=False` accepts a file with another checksum if its
    layout is right.
    """
    about = known(name)
    kind = _kind(about, task)
    generator(seed)
    arrays = read_known(about, verify=verify)
    if not verify:
        about = replace(about, about=f"{about.about}; from a file that was not verified")
    if kind == "regression":
        return _halved(about, arrays, seed, pool, test)
    return _drawn(about, arrays, seed, pool, test)


def locate(name: str) -> Path:
    """Return the path of a dataset's file; the error for a missing one says how to get it."""
    return find(known(name))


def _kind(about: Known, task: str | None) -> Kind:
    if task is None:
        return about.kinds[0]
    for kind in about.kinds:
        if kind == task:
            return kind
    raise DatasetError(
        f"{about.name}: expected task {' or '.join(map(repr, about.kinds))}, got {task!r}; leave "
        "it out"
    )


def _halved(about: Known, arrays: Arrays, seed: int, pool: int | None, test: int | None) -> Dataset:
    """Use one half of the rows, drawn at random, as the pool and the other as the test set."""
    parts = ("_train", "_test") if about.classes else ("",)
    x = np.concatenate([arrays[f"X{part}"] for part in parts])
    y = np.concatenate([arrays[f"y{part}"] for part in parts]).astype(np.float64)
    order = generator(seed).permutation(len(x))
    half = len(x) // 2
    rows = taken(order[:half], pool, "pool", 2)
    rows_test = taken(order[half:], test, "test", 1)
    x_pool, x_test = scaled_columns(x[rows], x[rows_test])
    y_pool, y_test, mean, std = scaled_targets(y[rows], y[rows_test], about.name)
    return Dataset(
        about.name,
        "regression",
        x_pool,
        y_pool,
        x_test,
        y_test,
        about=about.about,
        citation=about.citation,
        licence=about.licence,
        rows=_rows(rows),
        rows_test=_rows(rows_test),
        y_mean=mean,
        y_std=std,
        raw=RawParts(x[rows].astype(np.float64), x[rows_test].astype(np.float64)),
    )


def _drawn(about: Known, arrays: Arrays, seed: int, pool: int | None, test: int | None) -> Dataset:
    """Draw the pool from the training set; images become float64 only after they are drawn."""
    x, x_given = arrays["X_train"], arrays["X_test"]
    random = generator(seed)
    order, order_test = random.permutation(len(x)), random.permutation(len(x_given))
    usual = order[: about.pool] if pool is None else order
    rows = taken(usual, pool, "pool", 2)
    # The published test set is used unchanged.
    rows_test = np.arange(len(x_given))
    if test is not None:
        rows_test = taken(order_test, test, "test", 1)
    check_memory(8 * (len(rows) + len(rows_test)) * x[0].size, about.name)
    images = x.ndim == 4
    scaled = scaled_images if images else scaled_columns
    x_pool, x_test = scaled(x[rows], x_given[rows_test])
    labels = [str(name) for name in arrays.get("class_names", np.arange(about.classes))]
    return Dataset(
        about.name,
        "classification",
        x_pool,
        _rows(arrays["y_train"][rows]),
        x_test,
        _rows(arrays["y_test"][rows_test]),
        classes=about.classes,
        about=about.about,
        citation=about.citation,
        licence=about.licence,
        class_names=tuple(labels),
        rows=_rows(rows),
        rows_test=_rows(rows_test),
        raw=RawParts(x[rows], x_given[rows_test]),
    )


def _rows(numbers: Int[np.ndarray, " n"]) -> Int[Tensor, " n"]:
    return torch.from_numpy(numbers.astype(np.int64))
