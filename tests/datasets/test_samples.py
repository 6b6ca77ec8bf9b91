"""Datasets and loaders as pools: the same points as the array behind them, labels aside."""

from importlib import import_module

import numpy as np
import pytest
import torch
from PIL import Image
from torch.utils.data import (
    BatchSampler,
    DataLoader,
    Dataset,
    IterableDataset,
    RandomSampler,
    Subset,
    SubsetRandomSampler,
    TensorDataset,
)

import evgp
from evgp.datasets import is_samples, stack
from evgp.errors import DatasetError
from tests.messages import refused

X = torch.arange(24.0).reshape(6, 4)
Y = torch.arange(6)


class Items(Dataset):
    """Whatever items it was given."""

    def __init__(self, items) -> None:
        self.items = items

    def __len__(self) -> int:
        return len(self.items)

    def __getitem__(self, row: int):
        return self.items[row]


class Stream(IterableDataset):
    def __iter__(self):
        return iter(zip(X, Y, strict=True))


class Endless(Dataset):
    """Without a length."""

    def __getitem__(self, row: int):
        return X[row % 6]


class HuggingFace:
    """The part of `datasets.Dataset` that matters here."""

    def __init__(self, columns) -> None:
        self.columns = columns
        self.column_names = list(columns)
        self.read = set()

    def __len__(self) -> int:
        return len(self.columns[self.column_names[0]])

    def __getitem__(self, key):
        self.read |= set(self.column_names)
        return {name: values[key] for name, values in self.columns.items()}

    def select_columns(self, names):
        return HuggingFace({name: self.columns[name] for name in names})


def pictures():
    return [Image.fromarray(np.full((2, 3, 3), value, np.uint8)) for value in range(6)]


@pytest.mark.parametrize(
    "source",
    [
        TensorDataset(X, Y),
        TensorDataset(X),
        Items([(row, 3) for row in X]),
        Items([[row.numpy(), "cat"] for row in X]),
        Items([{"x": row, "label": 1} for row in X]),
        Items([{"anything": row.tolist(), "label": 1, "name": "a"} for row in X]),
        Items(X.tolist()),
        Stream(),
        DataLoader(TensorDataset(X, Y), batch_size=4),
        DataLoader(TensorDataset(X, Y), batch_size=4, shuffle=True, drop_last=True),
        DataLoader(TensorDataset(X, Y), batch_size=None),
        DataLoader(Stream(), batch_size=4),
        DataLoader(Items([{"vectors": row, "y": 0} for row in X]), batch_size=5),
        HuggingFace({"label": Y.tolist(), "vectors": X.tolist(), "text": list("abcdef")}),
        HuggingFace({"label": Y.tolist(), "embedding": X.numpy(), "mask": X.tolist()}),
    ],
    ids=lambda source: type(source).__name__,
)
def test_inputs_come_out_in_the_order_of_the_dataset(source) -> None:
    assert is_samples(source)
    assert torch.equal(stack(source).float(), X)


def test_a_subset_counts_its_own_positions() -> None:
    assert torch.equal(stack(Subset(TensorDataset(X, Y), [4, 1])), X[[4, 1]])


def test_pictures_come_out_channels_first() -> None:
    colour = stack(HuggingFace({"image": pictures(), "label": [0] * 6}))
    assert colour.shape == (6, 3, 2, 3) and colour.dtype == torch.uint8
    assert colour[5].unique().tolist() == [5]
    grey = stack(Items([(picture.convert("L"), 0) for picture in pictures()]))
    assert grey.shape == (6, 1, 2, 3)


def test_only_the_inputs_of_a_hugging_face_dataset_are_read_whole() -> None:
    source = HuggingFace({"embedding": X.tolist(), "audio": [None] * 6})
    chosen = source.select_columns(["embedding"])
    source.select_columns = lambda names: chosen
    stack(source)
    assert chosen.read == {"embedding"}


def test_picks_from_a_dataset_are_those_from_its_array() -> None:
    x = torch.randn(40, 3, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    whole = evgp.pick(x, 5)
    loader = DataLoader(TensorDataset(x, torch.zeros(40)), batch_size=7, shuffle=True)
    picked = evgp.pick(loader, 5, x_test=TensorDataset(x))
    assert picked.indices.tolist() == whole.indices.tolist()
    assert picked.variance_left == pytest.approx(whole.variance_left, rel=1e-9)


@pytest.mark.parametrize(
    ("source", "words"),
    [
        (Items([]), "expected samples in x, got an empty Items"),
        (Endless(), "dataset with a length"),
        (Items([X[0], X[0, :3]]), r"of one shape, got \(4,\) first and \(3,\) at sample 1"),
        (Items(["a cat", "a dog"]), "numbers or pictures as inputs of x, got str"),
        (Items([{"a": X[0], "b": X[0]}]), "one column of inputs in x, got 2 among 'a', 'b'"),
        (HuggingFace({"text": ["a"], "label": [0]}), "one column of inputs in x, got 0"),
        (Items([[[1, 2], [3]]]), None),
    ],
)
def test_what_cannot_be_stacked_is_refused_clearly(source, words) -> None:
    if words is None:  # a list of lists starts with its input
        assert stack(source).tolist() == [[1, 2]]
        return
    with refused(DatasetError):
        stack(source)


def test_an_empty_hugging_face_dataset_is_refused_clearly() -> None:
    hugging = import_module("datasets")
    with refused(DatasetError):
        stack(hugging.Dataset.from_dict({"x": []}))


def test_a_loader_with_a_batch_sampler_keeps_its_own_way_to_make_batches() -> None:
    items = Items([{"point": row, "note": object()} for row in X])
    loader = DataLoader(
        items,
        batch_sampler=BatchSampler(RandomSampler(items), 4, drop_last=True),
        collate_fn=lambda batch: torch.stack([item["point"] for item in batch]),
    )
    assert torch.equal(stack(loader), X)


def test_a_loader_of_some_rows_is_refused() -> None:
    """Picks would come from rows that were held back."""
    whole = TensorDataset(X)
    data_loader = DataLoader(whole, sampler=SubsetRandomSampler([3, 1, 4, 1]))
    with refused(DatasetError):
        stack(data_loader)
    every = DataLoader(whole, sampler=SubsetRandomSampler(range(len(X))))
    assert torch.equal(stack(every), X)
