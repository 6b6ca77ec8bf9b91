"""The public checks find what is wrong, and say which law it breaks."""

from dataclasses import dataclass, replace

import pytest
import torch

import evgp
from evgp.strategies import Random
from evgp.testing import Truth, check_criterion, check_kernel, check_strategy


@dataclass(frozen=True)
class Broken:
    """The kernel of an mlp with one thing wrong."""

    how: str

    def __call__(self, x1, x2=None):
        made = evgp.NTK(evgp.mlp())(x1, x2)
        if self.how == "skewed" and x2 is None:
            made[0, 1] += 1e-9
        if self.how == "negative":
            made = made - 2.0
        if self.how == "chunks" and x2 is not None:
            made = made * (1 + 1e-3)
        if self.how == "double":
            made = made.double() if isinstance(made, torch.Tensor) else made
        if self.how == "torch" and not isinstance(made, torch.Tensor):
            made = torch.from_numpy(made)
        return made

    def diag(self, x):
        made = evgp.NTK(evgp.mlp()).diag(x)
        made = made - 2.0 if self.how == "negative" else made
        return made * 1.5 if self.how == "diagonal" else made


@pytest.mark.parametrize(
    ("how", "law"),
    [
        ("skewed", "symmetric to the bit"),
        ("diagonal", "is the diagonal"),
        ("negative", "positive semidefinite"),
        ("chunks", "equal the whole"),
        ("double", "float32 points give a float32 matrix"),
        ("torch", "NumPy arrays give a NumPy array"),
    ],
)
def test_a_broken_kernel_is_found(how, law) -> None:
    check_kernel(Broken("nothing"))
    with pytest.raises(AssertionError, match=f"expected that .*{law}"):
        check_kernel(Broken(how))


@dataclass(frozen=True)
class Off:
    """The expected variance with one thing wrong."""

    how: str

    def gains(self, posterior, rows):
        made = evgp.ExpectedVariance().gains(posterior, rows)
        return made * 1.01 if self.how == "value" else made

    def ceilings(self, posterior):
        made = evgp.ExpectedVariance().ceilings(posterior)
        return made * 0.5 if self.how == "ceiling" else made


def lower(truth: Truth, picks: list[int]) -> float:
    return -truth.mean_variance(picks)


def test_a_broken_criterion_is_found() -> None:
    for picks in ([], [0, 7, 3]):
        check_criterion(Off("nothing"), lower, picks=picks)
        with pytest.raises(AssertionError, match="differences of the value"):
            check_criterion(Off("value"), lower, picks=picks)
        with pytest.raises(AssertionError, match="no gain is above its ceiling"):
            check_criterion(Off("ceiling"), lower, picks=picks)


@dataclass(frozen=True)
class Odd:
    """Random picks with one thing wrong."""

    how: str

    @property
    def learns(self):
        return False

    def __call__(self, pool, k, *, generator):
        if self.how == "seed":
            generator = torch.Generator().manual_seed(torch.seed() % 2**31)
        if self.how == "any k" and k == 0:
            k = 1
        made = Random()(pool, k, generator=generator)
        if self.how == "twice" and k > 1:
            return replace(made, indices=made.indices[[0, *range(k - 1)]])
        if self.how == "labelled":
            return replace(made, indices=made.indices * 0 + 3) if k == 1 else made
        if self.how == "pool":
            pool.x[0, 0] += 1
        return made


@pytest.mark.parametrize(
    ("how", "law"),
    [
        ("seed", "the same seed gives the same picks"),
        ("twice", "distinct picks"),
        ("pool", "the pool's x is unchanged"),
        ("any k", "k = 0 of 38 rows is refused"),
    ],
)
def test_a_broken_strategy_is_found(how, law) -> None:
    check_strategy(Odd("nothing"))
    with pytest.raises((AssertionError, evgp.EvgpError), match=law):
        check_strategy(Odd(how))
    with pytest.raises(AssertionError, match="picks have no label yet"):
        check_strategy(Odd("labelled"), k=1)
