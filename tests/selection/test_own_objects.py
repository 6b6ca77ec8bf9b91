"""Criteria, kernels, searches and networks that a user wrote."""

from dataclasses import dataclass, replace

import numpy as np
import pytest
import torch

import evgp
from evgp.criteria import ExpectedVariance
from evgp.errors import NotFiniteGain, PluginError, PoolError
from evgp.search import Exact, Sharded
from tests.messages import refused

X = np.random.default_rng(0).normal(size=(40, 3))


class Broken(ExpectedVariance):
    """Has no gain for a few rows, after some picks."""

    def __init__(self, value=float("nan"), after=2, in_ceilings=False) -> None:
        values = {"value": value, "after": after, "in_ceilings": in_ceilings}
        self.__dict__.update(values)

    def spoil(self, posterior, gains, rows):
        wrong = rows >= (7 if len(posterior.observed()) >= self.after else 99)
        return torch.where(wrong, self.value, gains)

    def gains(self, posterior, rows):
        return self.spoil(posterior, super().gains(posterior, rows), rows)

    def ceilings(self, posterior):
        gains = super().ceilings(posterior)
        if not self.in_ceilings:
            return gains
        return self.spoil(posterior, gains, torch.arange(len(gains)))


@pytest.mark.parametrize("in_ceilings", [False, True])
@pytest.mark.parametrize("greedy", ["exact", "lazy", "stochastic", "exchange"])
def test_gains_that_are_not_numbers_are_refused(greedy, in_ceilings) -> None:
    after = 0 if greedy == "lazy" else 2
    with pytest.raises(NotFiniteGain) as raised:
        evgp.pick(X, 5, criterion=Broken(after=after, in_ceilings=in_ceilings), greedy=greedy)
    assert raised.value.step == after + 1 and np.isnan(raised.value.gain)


def test_infinite_gains_are_refused() -> None:
    with refused(NotFiniteGain):
        evgp.pick(X, 5, criterion=Broken(float("inf"), after=0, in_ceilings=True))


@pytest.mark.parametrize("method", ["dense", "features", "sharded"])
def test_the_first_wrong_row_is_named_by_its_number_in_the_pool(method, tmp_path) -> None:
    labelled = [0, 1, 2]
    broken = Broken(after=0, in_ceilings=True)
    with refused(NotFiniteGain) as raised:
        evgp.pick(X, 5, criterion=broken, method=method, labelled=labelled, cache=tmp_path)
    # Shards count rows of the pool, the others count candidates.
    assert raised.value.row == (7 if method == "sharded" else 10) and raised.value.step == 1


class Plain:
    """An object without a repr."""

    by_features = certifiable = True
    degree = 1

    def gains(self, posterior, rows):
        return ExpectedVariance().gains(posterior, rows)

    def ceilings(self, posterior):
        return ExpectedVariance().ceilings(posterior)


class Dots:
    def __call__(self, x1, x2=None):
        return x1 @ (x1 if x2 is None else x2).T + 1

    def diag(self, x):
        return x.square().sum(1) + 1


class Search:
    def __call__(self, start, criterion, candidates, budget, **others):
        return Exact()(start, criterion, candidates, budget, **others)


@dataclass(frozen=True)
class Tuned(Plain):
    power: int = 2


class Linear(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = torch.nn.Linear(3, 1)

    def forward(self, x):
        return self.layer(x)


def linear() -> Linear:
    return Linear()


def test_own_objects_are_recorded_without_their_addresses() -> None:
    home = Plain.__module__
    runs = [
        evgp.pick(X, 2, criterion=Plain(), kernel=Dots(), greedy=Search()).settings
        for _ in range(2)
    ]
    assert runs[0] == runs[1]
    names = [runs[0][name] for name in ("criterion", "network", "greedy")]
    assert names == [f"{home}.Plain", f"{home}.Dots", f"{home}.Search"]
    assert evgp.pick(X, 2, criterion=Tuned(3)).settings["criterion"] == "Tuned(power=3)"
    assert evgp.pick(X, 2, network=linear).settings["network"] == "<function linear>"
    assert f"{home}.Search" in str(evgp.plan(X, 2, greedy=Search()))


@dataclass(frozen=True)
class Backwards:
    """Picks as `Sharded` does, in the reverse order."""

    shards: int = 0

    def __call__(self, start, criterion, candidates, budget, **others):
        return Exact()(start, criterion, candidates, budget, **others)

    def over_shards(self, executor):
        return self

    def take(self, shards, start, *, progress):
        picks = Sharded().take(shards, start, progress=progress)
        return replace(picks, rows=picks.rows[::-1], phi=picks.phi.flip(0))


def test_an_own_search_runs_over_shards(tmp_path) -> None:
    arguments = {"method": "sharded", "cache": tmp_path}
    usual = evgp.pick(X, 4, **arguments)
    picks = evgp.pick(X, 4, greedy=Backwards(), **arguments)
    assert picks.indices.tolist() == usual.indices.tolist()[::-1]
    assert picks.settings["greedy"] == "Backwards(shards=0)"
    assert usual.settings["greedy"] == "Sharded()"


def test_a_search_that_cannot_run_over_shards_is_refused(tmp_path) -> None:
    with refused(PoolError):
        evgp.pick(X, 4, greedy=Search(), method="sharded", cache=tmp_path)


def test_an_own_search_must_return_picks(tmp_path) -> None:
    class Empty(Backwards):
        def take(self, shards, start, *, progress):
            return [1, 2]

    with refused(PluginError):
        evgp.pick(X, 4, greedy=Empty(), method="sharded", cache=tmp_path)


class Short(Plain):
    """A criterion that gives too few numbers, or none that are tensors."""

    def __init__(self, of_gains=None, of_ceilings=None) -> None:
        self.of_gains, self.of_ceilings = of_gains or (lambda x: x), of_ceilings or (lambda x: x)

    def gains(self, posterior, rows):
        return self.of_gains(super().gains(posterior, rows))

    def ceilings(self, posterior):
        return self.of_ceilings(super().ceilings(posterior))


@pytest.mark.parametrize("greedy", ["exact", "lazy", "exchange"])
@pytest.mark.parametrize("wrong", [lambda x: x[:-1], lambda x: x[:, None], lambda x: x.numpy()])
@pytest.mark.parametrize("part", ["of_gains", "of_ceilings"])
def test_a_criterion_must_give_one_number_for_each_candidate(greedy, wrong, part) -> None:
    with refused(PluginError):
        evgp.pick(X, 3, criterion=Short(**{part: wrong}), greedy=greedy)


@pytest.mark.parametrize("picked", [[0, 0], [0, 99], [-1], [0, 1, 2, 3]])
def test_an_own_search_must_return_candidates_once(picked) -> None:
    def search(start, criterion, candidates, budget, **others):
        return evgp.Selection(np.array(picked), np.zeros(len(picked)))

    with refused(PluginError):
        evgp.pick(X, 3, candidates=range(5), greedy=search)
