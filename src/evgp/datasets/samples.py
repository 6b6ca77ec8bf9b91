"""Stack the inputs of torch datasets and loaders, and of Hugging Face datasets."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol, TypeAlias, TypeGuard, TypeVar, overload, runtime_checkable

import numpy as np
import torch
from jaxtyping import Shaped
from torch import Tensor
from torch.utils.data import (
    DataLoader,
    Dataset,
    IterableDataset,
    Subset,
    SubsetRandomSampler,
    default_collate,
)

from evgp._checks import shown
from evgp._reading import check_memory
from evgp._typing import ArrayLike
from evgp.errors import BadArgument, DatasetError
from evgp.pool import Selection

# Usual names of the inputs, in order of preference.
_NAMES = "pixel_values image img images input_ids embedding embeddings features x inputs".split()
_SLICE = 256


@runtime_checkable
class Columned(Protocol):
    """A Hugging Face dataset, recognised by its methods."""

    column_names: list[str]

    def __len__(self) -> int: ...
    def __getitem__(self, key: Any, /) -> Any: ...
    def select_columns(self, names: Any, /) -> Any: ...


Samples: TypeAlias = Dataset[Any] | DataLoader[Any] | Columned


def is_samples(source: object) -> TypeGuard[Samples]:
    """Whether an object is a dataset or a loader.

    >>> is_samples(torch.utils.data.TensorDataset(torch.eye(2))), is_samples(np.eye(2))
    (True, False)
    """
    return isinstance(source, Dataset | DataLoader | Columned)


def stack(source: Samples, name: str = "x") -> Shaped[Tensor, " n *d"]:
    """Stack the inputs of a dataset in its own order, one per row; labels are ignored.

    An item is an input, a tuple or list that starts with one, or a mapping with one among its
    values. A loader is read in the order of its dataset, whatever its sampler, so that picks are
    positions in the dataset. Needs twice the memory of the inputs.

    >>> stack(torch.utils.data.TensorDataset(torch.eye(2), torch.tensor([0, 1])))
    tensor([[1., 0.],
            [0., 1.]])
    """
    if isinstance(source, Columned):
        one_split(source, name)
        n = _length(source, name)
        column = _column(source[0], name, source.column_names)
        chosen = source.select_columns([column])
        starts = range(0, n, _SLICE)
        items = (item for start in starts for item in chosen[start : start + _SLICE][column])
        return _joined((_plain(item, name)[None] for item in items), name, n)
    if isinstance(source, DataLoader):
        batches = _in_order(source)
        return _joined((_input(batch, name, batched=True) for batch in batches), name, None)
    if isinstance(source, IterableDataset):
        return _joined((_input(item, name)[None] for item in source), name, None)
    n = _length(source, name)
    return _joined((_input(source[row], name)[None] for row in range(n)), name, n)


def one_split(source: object, name: str) -> None:
    """Refuse a Hugging Face dictionary of splits, in which positions would be ambiguous.

    >>> one_split(torch.utils.data.TensorDataset(torch.eye(2)), "x")
    """
    if isinstance(source, Mapping):
        split = "train" if "train" in source else next(iter(source), "train")
        raise BadArgument.of(DatasetError)(
            name,
            "as one dataset",
            f"{type(source).__name__} of {', '.join(map(str, source)) or 'no splits'}",
            f"give one split, such as dataset[{split!r}]",
        )


def _in_order(loader: DataLoader[Any]) -> Iterable[object]:
    """Yield a loader's batches in the dataset's order, ignoring its sampler."""
    if isinstance(loader.dataset, IterableDataset):
        return loader
    if isinstance(loader.sampler, SubsetRandomSampler):
        chosen, rows = len(set(loader.sampler.indices)), len(loader.dataset)  # type: ignore[arg-type]
        if chosen < rows:
            raise DatasetError(
                f"expected a loader of all {rows} rows of its dataset, got a SubsetRandomSampler "
                f"of {chosen}; give Subset(dataset, indices), or the dataset and candidates=indices"
            )
    collate = loader.collate_fn if loader.batch_sampler is not None else default_collate
    return DataLoader(
        loader.dataset,
        batch_size=loader.batch_size or _SLICE,
        num_workers=loader.num_workers,
        collate_fn=collate,
    )


def _length(source: Any, name: str) -> int:
    try:
        n = len(source)
    except TypeError as error:
        raise BadArgument.of(DatasetError)(
            name,
            "as a dataset with a length",
            f"{type(source).__name__} without one",
            "wrap it in a torch IterableDataset or a list",
        ) from error
    if n == 0:
        raise DatasetError(f"expected samples in {name}, got an empty {type(source).__name__}")
    return n


def _input(item: Any, name: str, *, batched: bool = False) -> Tensor:
    """Return the input of an item or batch: itself, its first part, or that with a usual name."""
    if isinstance(item, Mapping):
        item = item[_column(item, name, list(item), batched=batched)]
    elif isinstance(item, tuple | list) and item and not _is_number(item[0]):
        item = item[0]
    return _plain(item, name)


def _column(item: Mapping[str, Any], name: str, names: Sequence[str], batched: bool = False) -> str:
    """Return the key of the inputs: a usual name, or the only value that is not a scalar."""
    for known in _NAMES:
        if known in names:
            return known
    many = [key for key in names if _axes(item[key]) > (1 if batched else 0)]
    if len(many) == 1:
        return many[0]
    listed = ", ".join(map(repr, names))
    raise DatasetError(
        f"expected one column of inputs in {name}, got {len(many)} among {listed}; keep the right "
        "one, for example with dataset.select_columns([...]), or pass its values as an array"
    )


def _axes(value: Any) -> int:
    try:
        return _plain(value, "x").ndim
    except DatasetError:
        return -1


def _plain(value: Any, name: str) -> Tensor:
    """Convert a tensor, an array, numbers, or an image (channels first) to a tensor."""
    if isinstance(value, Tensor):
        return value.detach().cpu()
    picture = hasattr(value, "getbands")  # a Pillow image
    try:
        array = np.asarray(value)
    except ValueError as error:
        raise BadArgument.of(DatasetError)(name, "with samples of one shape", str(error)) from error
    if array.dtype.kind not in "biuf":
        raise DatasetError(
            f"expected numbers or images as inputs of {name}, got {type(value).__name__}; add a "
            "transform that makes tensors"
        )
    if picture:
        array = array[None] if array.ndim == 2 else np.moveaxis(array, -1, 0)
    return torch.from_numpy(np.array(array))


def _is_number(value: object) -> bool:
    return isinstance(value, int | float | np.number)


def _joined(parts: Iterable[Tensor], name: str, n: int | None) -> Shaped[Tensor, " n *d"]:
    kept: list[Tensor] = []
    rows = 0
    for part in parts:
        if kept and part.shape[1:] != kept[0].shape[1:]:
            raise BadArgument.of(DatasetError)(
                name,
                "with samples of one shape",
                f"{tuple(kept[0].shape[1:])} first and {tuple(part.shape[1:])} at sample {rows}",
                "resize or pad them in the dataset",
            )
        if not kept and n is not None:
            check_memory(2 * n * part[0].numel() * part.element_size(), name)
        kept.append(part)
        rows += len(part)
    if not kept:
        raise DatasetError(f"expected samples in {name}, got none")
    return torch.cat(kept)


Item = TypeVar("Item")


@overload
def subset(dataset: DataLoader[Item], selection: Selection | ArrayLike) -> Subset[Item]: ...
@overload
def subset(dataset: Dataset[Item], selection: Selection | ArrayLike) -> Subset[Item]: ...
@overload
def subset(dataset: Any, selection: Selection | ArrayLike) -> Any: ...
def subset(dataset: Any, selection: Selection | ArrayLike) -> Any:
    """Return the picked samples of a dataset, best first, without copying.

    The result is a torch `Subset`, or the `select` of a Hugging Face dataset. For a loader, it is
    the subset of its dataset.

    >>> import torch
    >>> numbers = torch.utils.data.TensorDataset(torch.arange(10))
    >>> part = subset(numbers, Selection(np.array([7, 2]), np.zeros(2)))
    >>> [int(number) for number, in part]
    [7, 2]
    """
    try:
        rows = np.asarray(selection)
    except Exception as error:  # a user's object may raise anything
        raise DatasetError(f"expected a selection, got {shown(selection)}") from error
    if isinstance(dataset, DataLoader):
        dataset = dataset.dataset
    if isinstance(dataset, IterableDataset) or not isinstance(dataset, Dataset | Columned):
        frame = hasattr(dataset, "iloc")
        raise DatasetError(
            "expected an indexable torch Dataset or a Hugging Face dataset, got "
            f"{type(dataset).__name__}; for {'a frame' if frame else 'an array'} use "
            f"{'x.iloc' if frame else 'x'}[selection]"
        )
    one_split(dataset, "dataset")
    if rows.ndim != 1 or rows.dtype.kind not in "iu":
        raise DatasetError(
            f"expected a selection, or positions as integers; got shape {rows.shape} of "
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
