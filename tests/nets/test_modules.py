"""Networks tried before they are trusted."""

import pytest
import torch
from torch import nn

from evgp.errors import NetworkError
from evgp.nets import deterministic_outputs
from tests.messages import refused

X = torch.randn(2, 3, generator=torch.Generator().manual_seed(0))


class Dropped(nn.Module):
    """Dropout that no layer shows, on so few outputs that two masks are often alike."""

    def __init__(self, p: float) -> None:
        super().__init__()
        self.p, self.linear = p, nn.Linear(3, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return nn.functional.dropout(self.linear(x), self.p)


class Drifting(nn.Module):
    """Another output each time, without torch's generator."""

    def __init__(self) -> None:
        super().__init__()
        self.linear, self.calls = nn.Linear(3, 2), 0

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.calls += 1
        return self.linear(x) * self.calls


@pytest.mark.parametrize("seed", range(100))
def test_a_random_network_is_refused_whatever_it_draws(seed: int) -> None:
    torch.manual_seed(seed)
    with pytest.raises(NetworkError):
        deterministic_outputs(Dropped(0.5), X)


def test_one_that_changes_by_itself_is_refused_too() -> None:
    with refused(NetworkError):
        deterministic_outputs(Drifting(), X)


def test_draws_that_change_nothing_are_allowed_and_leave_the_generator() -> None:
    network = Dropped(0.0)
    state = torch.get_rng_state()
    assert torch.equal(deterministic_outputs(network, X), network.linear(X))
    assert torch.equal(state, torch.get_rng_state())


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_nan_is_not_called_random(value: float) -> None:
    linear = nn.Linear(3, 2)
    with torch.no_grad():
        linear.bias[0] = value
    assert not torch.isfinite(deterministic_outputs(linear, X)).all()
