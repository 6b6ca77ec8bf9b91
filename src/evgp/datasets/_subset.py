"""The picked part of a dataset."""

from typing import Any, TypeVar, overload

import numpy as np
from torch.utils.data import DataLoader, Dataset, IterableDataset, Subset

from evgp._checks import shown
from evgp._errors import DatasetError
from evgp._typing import ArrayLike
from evgp.datasets.samples import Columned, one_split
from evgp.pool import Selection

Item = TypeVar("Item")


@overload
def subset(dataset: DataLoader[Item], selection: Selection | ArrayLike) -> Subset[Item]: ...
@overload
def subset(dataset: Dataset[Item], selection: Selection | ArrayLike) -> Subset[Item]: ...
@overload
def subset(dataset: Any, selection: Selection | ArrayLike) -> Any: ...
def subset(dataset: Any, selection: Selection | ArrayLike) -> Any:
    """The picked samples of a dataset, best first: a torch `Subset`, or Hugging Face's `select`.

    A loader gives the subset of its dataset. Nothing is copied.

    >>> import torch
    >>> numbers = torch.utils.data.TensorDataset(torch.arange(10))
    >>> part = subset(numbers, Selection(np.array([7, 2]), np.zeros(2)))
    >>> [int(number) for number, in part]
    [7, 2]
    """
    try:
        rows = np.asarray(selection)
    except Exception as error:  # somebody else's object may raise anything
        raise DatasetError(f"expected a selection, got {shown(selection)}") from error
    if isinstance(dataset, DataLoader):
        dataset = dataset.dataset
    if isinstance(dataset, IterableDataset) or not isinstance(dataset, Dataset | Columned):
        frame = hasattr(dataset, "iloc")
        raise DatasetError(
            "expected a torch Dataset with positions, or a Hugging Face dataset; got "
            f"{type(dataset).__name__}; of {'a frame' if frame else 'an array'} take "
            f"{'x.iloc' if frame else 'x'}[selection]"
        )
    one_split(dataset, "dataset")
    if rows.ndim != 1 or rows.dtype.kind not in "iu":
        raise DatasetError(
            f"expected a selection, or positions as whole numbers; got shape {rows.shape} of "
            f"{rows.dtype}"
        )
    count = len(dataset)  # type: ignore[arg-type]
    if len(rows) and not 0 <= rows.min() <= rows.max() < count:
        raise DatasetError(
            f"expected positions from 0 to {count - 1}, as the dataset has; got "
            f"{rows.min()} to {rows.max()}; is the selection from another dataset?"
        )
    if isinstance(dataset, Columned):
        return dataset.select(rows.tolist())  # type: ignore[attr-defined]
    return Subset(dataset, rows.tolist())
