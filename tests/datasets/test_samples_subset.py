"""The picked part of real datasets."""

import datasets
import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader, IterableDataset, Subset, TensorDataset

import evgp
from evgp.errors import DatasetError
from tests.messages import refused

X = torch.randn(30, 3, generator=torch.Generator().manual_seed(0))
DATA = TensorDataset(X, torch.arange(30))


def test_a_torch_dataset_or_its_loader_gives_a_subset_in_the_order_of_the_picks() -> None:
    selection = evgp.pick(DATA, 5)
    for source in (DATA, DataLoader(DATA, batch_size=7, shuffle=True)):
        part = evgp.datasets.subset(source, selection)
        assert isinstance(part, Subset) and len(part) == 5
        assert [int(label) for _, label in part] == selection.indices.tolist()
    batch, labels = next(iter(DataLoader(part, batch_size=5)))
    assert (
        torch.equal(batch, X[selection.indices]) and labels.tolist() == selection.indices.tolist()
    )


def test_a_hugging_face_dataset_is_selected() -> None:
    source = datasets.Dataset.from_dict({"embedding": X.tolist(), "label": list(range(30))})
    selection = evgp.pick(source, 5)
    assert selection.indices.tolist() == evgp.pick(X, 5).indices.tolist()
    for part in (evgp.datasets.subset(source, selection), source.select(selection.indices)):
        assert isinstance(part, datasets.Dataset) and part.shape == (5, 2)
        assert part["label"][:] == selection.indices.tolist()


def test_positions_do_as_well() -> None:
    assert [int(label) for _, label in evgp.datasets.subset(DATA, [4, 2])] == [4, 2]
    assert [int(label) for _, label in evgp.datasets.subset(DATA, torch.tensor([4, 2]))] == [4, 2]


class Stream(IterableDataset):
    def __iter__(self):
        return iter(X)


@pytest.mark.parametrize(
    ("source", "rows"),
    [
        (Stream(), [1]),
        (X, [1]),
        (DATA, [30]),
        (DATA, [-1, 3]),
        (DATA, [0.5]),
        (DATA, np.ones(30, dtype=bool)),
    ],
)
def test_what_is_wrong_is_reported(source, rows) -> None:
    with refused(DatasetError):
        evgp.datasets.subset(source, rows)
