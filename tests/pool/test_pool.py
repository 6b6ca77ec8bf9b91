"""A pool is checked when it is made."""

from inspect import unwrap

import pytest
import torch

from evgp import Pool
from evgp.errors import PoolError
from tests.messages import refused

X = torch.zeros(5, 2)


def check(**given: torch.Tensor) -> None:
    """As making a pool does; annotations, which tests check too, would come first."""
    pool = object.__new__(Pool)
    for name, value in {**Pool(X).__dict__, **given}.items():
        object.__setattr__(pool, name, value)
    unwrap(Pool.__post_init__)(pool)


@pytest.mark.parametrize("kind", [torch.uint8, torch.int8, torch.int16], ids=str)
@pytest.mark.parametrize("name", ["labelled", "test"])
def test_row_numbers_are_those_that_torch_takes(name, kind) -> None:
    with refused(PoolError):
        check(**{name: torch.tensor([3], dtype=kind)})
    check(**{name: torch.tensor([3], dtype=torch.int32)})


@pytest.mark.parametrize(
    ("given", "points"),
    [({}, 5), ({"x_test": X[:2]}, 2), ({"test": torch.tensor([1, 4])}, 2)],
)
def test_there_is_a_weight_for_each_test_point(given, points) -> None:
    with refused(PoolError):
        check(**given, weights=torch.full((3,), 1 / 3))
    check(**given, weights=torch.full((points,), 1 / points))
