"""The datasets of the paper, by name.

Hemachandra et al., Training-Free Neural Active Learning with Initialization-Robustness
Guarantees, ICML 2023, appendix on the experiments.
"""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
from jaxtyping import Int, Shaped
from torch import Tensor

from evgp._errors import DatasetError
from evgp._reading import check_memory
from evgp.datasets import _parts
from evgp.datasets._archive import find, read_known
from evgp.datasets.dataset import Dataset, Kind
from evgp.datasets.known import Known, known

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
    """A dataset of the paper, from `$EVGP_DATA` or the user's cache; `names` lists them.

    A regression is split in half by the seed: pool and test. A classification has a pool that the
    seed draws from its train part (10,000 of MNIST, 20,000 of other images, all of optdigits), and
    the given test part. `pool` and `test` take fewer, always the same first ones of a seed.

    Columns, channels of images, and targets of a regression have mean 0 and deviation 1 over the
    pool. `optdigits` is a regression on the digit, as in the paper, unless
    `task="classification"`. `verify=False` takes a file with another checksum, if its layout is
    right.
    """
    about = known(name)
    kind = _kind(about, task)
    _parts.generator(seed)
    arrays = read_known(about, verify=verify)
    if not verify:
        about = replace(about, about=f"{about.about}; from a file that was not verified")
    if kind == "regression":
        return _halved(about, arrays, seed, pool, test)
    return _drawn(about, arrays, seed, pool, test)


def locate(name: str) -> Path:
    """Where the file of a dataset lies; what is missing says how to get it."""
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
    """One half of the rows, drawn at random, is the pool; the other is the test."""
    parts = ("_train", "_test") if about.classes else ("",)
    x = np.concatenate([arrays[f"X{part}"] for part in parts])
    y = np.concatenate([arrays[f"y{part}"] for part in parts]).astype(np.float64)
    order = _parts.generator(seed).permutation(len(x))
    half = len(x) // 2
    rows = _parts.taken(order[:half], pool, "pool", 2)
    rows_test = _parts.taken(order[half:], test, "test", 1)
    x_pool, x_test = _parts.scaled_columns(x[rows], x[rows_test])
    y_pool, y_test, mean, std = _parts.scaled_targets(y[rows], y[rows_test], about.name)
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
    )


def _drawn(about: Known, arrays: Arrays, seed: int, pool: int | None, test: int | None) -> Dataset:
    """A part of the train part is the pool; the images become float64 only once drawn."""
    x, x_given = arrays["X_train"], arrays["X_test"]
    random = _parts.generator(seed)
    order, order_test = random.permutation(len(x)), random.permutation(len(x_given))
    usual = order[: about.pool] if pool is None else order
    rows = _parts.taken(usual, pool, "pool", 2)
    # The whole test part stays as it was given.
    rows_test = np.arange(len(x_given))
    if test is not None:
        rows_test = _parts.taken(order_test, test, "test", 1)
    check_memory(8 * (len(rows) + len(rows_test)) * x[0].size, about.name)
    images = x.ndim == 4
    scaled = _parts.scaled_images if images else _parts.scaled_columns
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
    )


def _rows(numbers: Int[np.ndarray, " n"]) -> Int[Tensor, " n"]:
    return torch.from_numpy(numbers.astype(np.int64))
