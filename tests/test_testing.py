"""The public checks find what is wrong, and say which law it breaks."""

from dataclasses import dataclass, replace

import numpy as np
import pytest
import torch

import evgp
from evgp.strategies import Random
from evgp.testing import Truth, check_criterion, check_kernel, check_strategy
from tests.messages import refused


@dataclass(frozen=True)
class Broken:
    """The kernel of an mlp with one thing wrong."""

    how: str

    def __call__(self, x1, x2=None):  # noqa: PLR0912  one branch for each thing wrong
        same_size = x2 is not None and len(x1) == len(x2)
        alone = x2 is None or (self.how == "same size" and same_size)
        selection = evgp.NTK(evgp.mlp())(x1, None if alone else x2)
        if self.how == "squeezed":
            selection = selection.squeeze()
        if self.how == "in place" and x2 is None:
            x1 *= 2.0  # scaling its inputs scales later results alike
        if self.how == "skewed" and x2 is None:
            selection[0, 1] += 1e-9
        if self.how == "negative":
            selection = selection - 2.0
        if self.how == "chunks" and x2 is not None:
            selection = selection * (1 + 1e-3)
        if self.how == "double":
            selection = selection.double() if isinstance(selection, torch.Tensor) else selection
        if self.how == "torch" and not isinstance(selection, torch.Tensor):
            selection = torch.from_numpy(selection)
        if self.how == "numpy" and not isinstance(selection, torch.Tensor):
            selection = selection * 2
        if self.how == "small":
            selection = selection * (1e-10 if x2 is None else 5e-10)
        if self.how == "nan" or (self.how == "nan in parts" and x2 is not None):
            selection = selection * float("nan")
        if self.how == "infinite":
            selection = selection / 0.0
        if self.how == "raises" and len(x1) == 0:
            raise KeyError("no rows")
        if self.how == "list":
            return selection.tolist()
        return selection

    def diag(self, x):
        result = evgp.NTK(evgp.mlp()).diag(x)
        result = result - 2.0 if self.how == "negative" else result
        result = result * 1e-10 if self.how == "small" else result
        return result * 1.5 if self.how == "diagonal" else result


@pytest.mark.parametrize(
    "how",
    [
        "skewed",
        "diagonal",
        "negative",
        "chunks",
        "double",
        "torch",
        "numpy",
        "small",
        "nan",
        "nan in parts",
        "infinite",
        "raises",
        "list",
        "same size",
        "squeezed",
        "in place",
    ],
)
def test_a_broken_kernel_fails_its_check(how) -> None:
    check_kernel(Broken("nothing"))
    with refused(AssertionError):
        check_kernel(Broken(how))


@dataclass(frozen=True)
class Product:
    """The inner product, times a factor, with a diagonal of its own."""

    factor: float = 1.0

    def __call__(self, x1, x2=None):
        return self.factor * (x1 @ (x1 if x2 is None else x2).T)

    def diag(self, x):
        return self.factor * (x * x).sum(-1)


@pytest.mark.parametrize("factor", [1.0, 0.0, 1e-10, 1e10])
def test_equality_is_relative_to_the_scale_of_a_kernel(factor) -> None:
    check_kernel(Product(factor))
    x = np.random.default_rng(0).normal(size=(9, 2))
    for points in (x, x.astype(np.float32), torch.from_numpy(x).float()):
        check_kernel(Product(factor), points)


def test_a_kernel_is_checked_on_eight_points_or_more() -> None:
    with refused(AssertionError):
        check_kernel(Product(), torch.randn(7, 2).double())
    with refused(AssertionError):
        check_kernel(Product(), "points")
    with refused(AssertionError):
        check_kernel(lambda x1, x2=None: x1 @ x1.T)
    with refused(AssertionError):
        check_kernel(3)


@dataclass(frozen=True)
class Off:
    """The expected variance with one thing wrong."""

    how: str

    def gains(self, posterior, rows):
        if self.how == "raises":
            raise KeyError("gains")
        gains = evgp.ExpectedVariance().gains(posterior, rows)
        if self.how == "single":
            return gains.float()
        if self.how == "observes":
            posterior.observe_(int(rows[0]))
        if self.how == "test points":
            return gains * len(posterior.test_variance()) / len(posterior.variance())
        return gains * 1.01 if self.how == "value" else gains

    def ceilings(self, posterior):
        result = evgp.ExpectedVariance().ceilings(posterior)
        return result * 0.5 if self.how == "ceiling" else result


def lower(truth: Truth, picks: list[int]) -> float:
    return -truth.mean_variance(picks)


def test_a_broken_criterion_fails_its_check() -> None:
    for picks in ([], [0, 7, 3]):
        check_criterion(Off("nothing"), lower, picks=picks)
        with refused(AssertionError):
            check_criterion(Off("value"), lower, picks=picks)
        with refused(AssertionError):
            check_criterion(Off("ceiling"), lower, picks=picks)
    for how in ("raises", "single", "observes", "test points"):
        with refused(AssertionError):
            check_criterion(Off(how), lower)
    with refused(AssertionError):
        check_criterion(Off("nothing"), lower, picks=[1, 99])
    with refused(AssertionError):
        check_criterion(print, lower)


class Frozen(evgp.ExpectedVariance):
    """Keeps its first gains."""

    def gains(self, posterior, rows):
        if "kept" not in self.__dict__:
            every = torch.arange(len(posterior.variance()))
            self.__dict__["kept"] = super().gains(posterior, every)
        return self.__dict__["kept"][rows]


def test_a_criterion_is_called_before_and_after_picks() -> None:
    with refused(AssertionError):
        check_criterion(Frozen(), lower)


def spread(truth: Truth, picks: list[int]) -> float:
    return -float(truth.pool.test_weights() @ truth.test_variance(picks).clamp(min=0).sqrt())


class Root:
    """Reduction of the mean standard deviation."""

    def gains(self, posterior, rows):
        before, cross = posterior.test_variance(), posterior.covariance(rows)
        known = (posterior.variance() + posterior.noise())[rows, None]
        after = (before - cross.square() / known).clamp(min=0)
        return (before.clamp(min=0).sqrt() - after.sqrt()) @ posterior.weights()

    def ceilings(self, posterior):
        return self.gains(posterior, torch.arange(len(posterior.variance())))


@pytest.mark.parametrize(
    "claims",
    [
        {"certifiable": True},
        {"by_features": True},
        {"ignores_weights": True},
        {"degree": 1},
        {"own_search": "nearest"},
    ],
    ids=lambda claims: next(iter(claims)),
)
def test_what_a_criterion_declares_is_checked(claims) -> None:
    class Claims(Root):
        pass

    Claims.degree = 0.5
    check_criterion(Claims(), spread)
    for name, value in claims.items():
        setattr(Claims, name, value)
    with refused(AssertionError):
        check_criterion(Claims(), spread)


class Fee(Root):
    """Less a fee for each label, so that late gains are negative."""

    def gains(self, posterior, rows):
        return super().gains(posterior, rows) - 0.05


def test_gains_that_cannot_be_negative_are_checked() -> None:
    def value(truth: Truth, picks: list[int]) -> float:
        return spread(truth, picks) - 0.05 * len(picks)

    check_criterion(Fee(), value)
    Fee.monotone = True
    with refused(AssertionError):
        check_criterion(Fee(), value)


@dataclass(frozen=True)
class OnlyOnce(evgp.ExpectedVariance):
    """Ignores that a label was taken back."""

    def gains(self, posterior, rows):
        gains = super().gains(posterior, rows)
        return gains * 2 if getattr(posterior, "was_asked", None) else gains


def test_swaps_are_checked(monkeypatch) -> None:
    from evgp.posterior import DensePosterior

    forget = DensePosterior.forget_

    def noted(self, row):
        self.was_asked = True
        forget(self, row)

    check_criterion(OnlyOnce(), lower)
    monkeypatch.setattr(DensePosterior, "forget_", noted)
    with refused(AssertionError):
        check_criterion(OnlyOnce(), lower)


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
        if self.how == "other error" and not 1 <= k <= 38:
            raise KeyError(k)
        if self.how == "other words" and not 1 <= k <= 38:
            raise evgp.errors.PoolError("too many, or too few")
        selection = Random()(pool, k, generator=generator)
        if self.how == "twice" and k > 1:
            return replace(selection, indices=selection.indices[[0, *range(k - 1)]])
        if self.how == "labelled":
            return replace(selection, indices=selection.indices * 0 + 3) if k == 1 else selection
        if self.how == "labels" and pool.y is not None and pool.y.sum() > 0:
            return replace(selection, indices=selection.indices[::-1].copy())
        if self.how == "pool":
            pool.x[0, 0] += 1
        return selection.indices.tolist() if self.how == "list" else selection


@pytest.mark.parametrize(
    "how",
    [
        "seed",
        "twice",
        "pool",
        "any k",
        "list",
        "labels",
        "other error",
    ],
)
def test_a_broken_strategy_fails_its_check(how) -> None:
    check_strategy(Odd("nothing"))
    check_strategy(Odd("other words"))
    with refused(AssertionError):
        check_strategy(Odd(how))
    with refused(AssertionError):
        check_strategy(Odd("labelled"), k=1)
