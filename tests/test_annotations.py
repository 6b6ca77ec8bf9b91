"""While tests run, every annotation of the package and the experiments is checked."""

from collections.abc import Callable

import numpy as np
import pytest
import torch
from beartype.roar import BeartypeCallHintViolation
from jaxtyping import TypeCheckError

from evgp._checks import can
from evgp.doctor import Threads
from evgp.metrics import mse, variances
from experiments.data import random_model
from experiments.initialisation_illustration import spread


@pytest.mark.parametrize(
    "call",
    [
        lambda: mse(torch.zeros(2, 3, 1), torch.zeros(4)),
        lambda: variances(torch.zeros(2, 3)),
        lambda: spread(np.zeros(3)),
    ],
    ids=["sizes that differ", "an axis too few", "experiments"],
)
def test_shapes_are_checked(call: Callable[[], object]) -> None:
    with pytest.raises(TypeCheckError):
        call()


@pytest.mark.parametrize(
    "call",
    [lambda: can(object(), 3), lambda: random_model("7", 2)],
    ids=["evgp", "experiments"],
)
def test_other_types_are_checked(call: Callable[[], object]) -> None:
    with pytest.raises(BeartypeCallHintViolation):
        call()


def test_fields_are_checked() -> None:
    with pytest.raises(TypeCheckError):
        Threads("two", None)
