"""Kernels of somebody else's that are wrong are named and refused; right ones pass unchanged."""

import sys
from dataclasses import dataclass

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from sklearn.gaussian_process.kernels import RBF
from typer.testing import CliRunner

import evgp
from evgp.cli.main import app
from evgp.errors import PluginError
from evgp.integrations.skactiveml import EVGPQuery
from evgp.kernels import EmpiricalNTK, Features, Tabulated, checked
from tests.messages import refused

X = np.random.default_rng(0).normal(size=(40, 2))


class Gauss:
    """exp(-|x - y|^2 / 2), and so are those below, but for what is wrong with them."""

    def __call__(self, x1, x2=None):
        return torch.exp(-torch.cdist(x1, x1 if x2 is None else x2).square() / 2)

    def diag(self, x):
        return x.new_ones(len(x))


class NoNumbers(Gauss):
    def __call__(self, x1, x2=None):
        return super().__call__(x1, x2) * torch.nan


class FarAway(Gauss):
    """inf between the first point of the pool and the last, which no first block shows."""

    def __call__(self, x1, x2=None):
        result = super().__call__(x1, x2)
        return result / (result > result.min()) if len(result) > 32 else result


class Flat(Gauss):
    def __call__(self, x1, x2=None):
        return super().__call__(x1, x2).sum(1)


class Square(Gauss):
    """x2 is forgotten."""

    def __call__(self, x1, x2=None):
        return super().__call__(x1)


class Negative(Gauss):
    def __call__(self, x1, x2=None):
        return -super().__call__(x1, x2)

    def diag(self, x):
        return -super().diag(x)


class WholeDiagonal(Gauss):
    def diag(self, x):
        return self(x)


class OtherDiagonal(Gauss):
    def diag(self, x):
        return 2 * super().diag(x)


class Whole(Gauss):
    def __call__(self, x1, x2=None):
        return super().__call__(x1, x2).round().long()


class Fails(Gauss):
    def __call__(self, x1, x2=None):
        raise RuntimeError("not today")


class Indefinite(Gauss):
    """The sigmoid "kernel", which is not a covariance."""

    def __call__(self, x1, x2=None):
        return torch.tanh(x1 @ (x1 if x2 is None else x2).T - 1) + 1

    def diag(self, x):
        return self(x).diagonal()


class Lopsided(Gauss):
    def __call__(self, x1, x2=None):
        result = super().__call__(x1, x2)
        return result * (1 + 0.1 * (x1[:, :1] - (x1 if x2 is None else x2)[:, 0]).sign())


class TwoWays(Gauss):
    def __call__(self, x1, x2=None):
        return super().__call__(x1, x2) * (1 if x2 is None else 0.5)


WRONG = [
    NoNumbers(),
    FarAway(),
    Flat(),
    Square(),
    Negative(),
    WholeDiagonal(),
    OtherDiagonal(),
    Indefinite(),
    Lopsided(),
    TwoWays(),
    Whole(),
    Fails(),
]


@pytest.mark.parametrize("kernel", WRONG, ids=lambda value: type(value).__name__)
def test_the_error_names_a_wrong_kernel(kernel) -> None:
    with refused(PluginError):
        evgp.pick(X, 3, kernel=kernel)


@pytest.mark.parametrize("features", ["nystrom-6", None])
@pytest.mark.parametrize("kernel", [NoNumbers(), Negative(), Fails()])
def test_so_it_is_with_features_and_labelled_rows(kernel, features) -> None:
    with refused(PluginError):
        evgp.pick(X, 3, kernel=kernel, features=features, labelled=[0, 1])


def test_so_it_is_in_another_loop() -> None:
    with refused(PluginError):
        EVGPQuery(kernel=Negative()).query(X, np.full(40, np.nan), batch_size=2)


def test_a_kernel_of_arrays_is_refused() -> None:
    with refused(PluginError):
        evgp.pick(X, 3, kernel=RBF())


@pytest.mark.parametrize(
    "kernel",
    [
        Gauss,
        7,
        torch.nn.Linear(2, 1),
    ],
)
def test_anything_but_a_kernel_is_refused(kernel) -> None:
    with refused(PluginError):
        checked(kernel)


def test_the_command_names_it(tmp_path, monkeypatch) -> None:
    rows = "\n".join(f"{a:.6f},{b:.6f}" for a, b in X)
    (tmp_path / "pool.csv").write_text(f"a,b\n{rows}\n")
    (tmp_path / "wrong_kernels.py").write_text(
        "import torch\n\n\nclass Nan:\n    def __call__(self, x1, x2=None):\n"
        "        return x1 @ (x1 if x2 is None else x2).T * torch.nan\n\n"
        "    def diag(self, x):\n        return x.square().sum(1)\n"
    )
    monkeypatch.chdir(tmp_path)
    asked = ["pick", "pool.csv", "-k", "3", "--kernel", "wrong_kernels:Nan"]
    ran = CliRunner().invoke(app, asked)
    sys.modules.pop("wrong_kernels", None)
    assert isinstance(ran.exception, SystemExit) and ran.exit_code == 1
    assert "finite values from the kernel Nan" in " ".join(ran.stderr.split())


def test_a_right_kernel_keeps_its_name() -> None:
    right, name = Gauss(), "tests.kernels.test_kernel.Gauss"
    assert repr(checked(right)) == name
    assert evgp.pick(X, 3, kernel=right).settings["network"] == name


@settings(max_examples=25, deadline=None)
@given(points=arrays(np.float64, (12, 2), elements=st.floats(-5, 5, width=32)))
def test_values_are_those_of_the_kernel(points) -> None:
    x = torch.from_numpy(points)
    result = checked(Gauss())
    assert torch.equal(result(x), Gauss()(x)) and torch.equal(result.diag(x), Gauss().diag(x))
    assert torch.equal(result(x[:3], x), Gauss()(x[:3], x))
    assert result(x[:0], x).shape == (0, 12) and result.diag(x[:0]).shape == (0,)


@dataclass(frozen=True)
class Stored(Gauss):
    """One that rounds what it stores."""

    storage: torch.dtype | None = torch.float32

    def __call__(self, x1, x2=None):
        return super().__call__(x1, x2).to(self.storage or x1.dtype)


def test_what_a_kernel_would_store_rounds_no_posterior() -> None:
    first, other = (evgp.pick(X, 5, kernel=kernel) for kernel in (Stored(), Gauss()))
    assert first.variance_left.tolist() == other.variance_left.tolist()


def test_ours_pass_as_they_are() -> None:
    ours = [evgp.NTK(evgp.mlp()), evgp.NNGP(evgp.mlp()), Tabulated(torch.eye(2)),
            EmpiricalNTK(torch.nn.Linear(2, 1))]  # fmt: skip
    assert all(checked(item) is item for item in ours)
    assert checked(checked(Gauss())).kernel.__class__ is Gauss
    assert not isinstance(checked(Gauss()), Features)
