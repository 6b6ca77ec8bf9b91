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
from evgp._errors import PluginError
from evgp.cli.main import app
from evgp.integrations.skactiveml import EVGPQuery
from evgp.kernels import EmpiricalNTK, Features, Tabulated, checked

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
        made = super().__call__(x1, x2)
        return made / (made > made.min()) if len(made) > 32 else made


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
    """The sigmoid "kernel", which is none."""

    def __call__(self, x1, x2=None):
        return torch.tanh(x1 @ (x1 if x2 is None else x2).T - 1) + 1

    def diag(self, x):
        return self(x).diagonal()


class Lopsided(Gauss):
    def __call__(self, x1, x2=None):
        made = super().__call__(x1, x2)
        return made * (1 + 0.1 * (x1[:, :1] - (x1 if x2 is None else x2)[:, 0]).sign())


class TwoWays(Gauss):
    def __call__(self, x1, x2=None):
        return super().__call__(x1, x2) * (1 if x2 is None else 0.5)


WRONG = [
    (NoNumbers(), "finite values from the kernel NoNumbers, got 1024 NaN or inf"),
    (FarAway(), "finite values from the kernel FarAway, got . NaN or inf in a matrix of 1600"),
    (Flat(), r"a matrix of shape \(32, 32\) from the kernel Flat for 32 points, got \(32,\)"),
    (Square(), r"of shape \(3, 40\) from the kernel Square for 3 and 40 points, got \(3, 3\)"),
    (Negative(), r"at least 0 in diag\(x\) from the kernel Negative, got -1"),
    (WholeDiagonal(), r"of shape \(40,\) from the kernel WholeDiagonal .*got \(40, 40\)"),
    (OtherDiagonal(), r"diag\(x\) as the diagonal .* kernel OtherDiagonal, got .* 1 apart"),
    (Indefinite(), "a covariance from the kernel Indefinite, got .* 32 points .* eigenvalue -"),
    (Lopsided(), "a symmetric matrix from the kernel Lopsided, got values that are"),
    (TwoWays(), r"the same matrix for \(x\) and \(x, x\) from the kernel TwoWays"),
    (Whole(), "from the kernel Whole as a torch tensor of floats, got torch.int64"),
    (Fails(), "the kernel Fails stopped: RuntimeError: not today"),
]


@pytest.mark.parametrize(("kernel", "match"), WRONG, ids=lambda one: type(one).__name__)
def test_a_wrong_kernel_is_named_in_a_sentence(kernel, match) -> None:
    with pytest.raises(PluginError, match=match) as told:
        evgp.pick(X, 3, kernel=kernel)
    assert "\n" not in str(told.value)


@pytest.mark.parametrize("features", ["nystrom-6", None])
@pytest.mark.parametrize("kernel", [NoNumbers(), Negative(), Fails()])
def test_so_it_is_with_features_and_labelled_rows(kernel, features) -> None:
    with pytest.raises(PluginError, match=f"kernel {type(kernel).__name__}"):
        evgp.pick(X, 3, kernel=kernel, features=features, labelled=[0, 1])


def test_so_it_is_in_another_loop() -> None:
    with pytest.raises(PluginError, match="the kernel Negative"):
        EVGPQuery(kernel=Negative()).query(X, np.full(40, np.nan), batch_size=2)


def test_a_kernel_of_arrays_is_refused() -> None:
    with pytest.raises(PluginError, match="the kernel RBF"):
        evgp.pick(X, 3, kernel=RBF())


@pytest.mark.parametrize(
    ("kernel", "match"),
    [
        (Gauss, "got the class Gauss"),
        (7, "an object with __call__.*got int"),
        (torch.nn.Linear(2, 1), "got Linear"),
    ],
)
def test_what_is_no_kernel_is_refused(kernel, match) -> None:
    with pytest.raises(PluginError, match=match) as told:
        checked(kernel)
    assert "\n" not in str(told.value)


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
    right = Gauss()
    assert repr(checked(right)) == repr(right)
    assert evgp.pick(X, 3, kernel=right).settings["network"] == repr(right)


@settings(max_examples=25, deadline=None)
@given(points=arrays(np.float64, (12, 2), elements=st.floats(-5, 5, width=32)))
def test_values_are_those_of_the_kernel(points) -> None:
    x = torch.from_numpy(points)
    made = checked(Gauss())
    assert torch.equal(made(x), Gauss()(x)) and torch.equal(made.diag(x), Gauss().diag(x))
    assert torch.equal(made(x[:3], x), Gauss()(x[:3], x))
    assert made(x[:0], x).shape == (0, 12) and made.diag(x[:0]).shape == (0,)


@dataclass(frozen=True)
class Stored(Gauss):
    """One that rounds what it stores."""

    storage: torch.dtype | None = torch.float32

    def __call__(self, x1, x2=None):
        return super().__call__(x1, x2).to(self.storage or x1.dtype)


def test_what_a_kernel_would_store_rounds_no_posterior() -> None:
    one, other = (evgp.pick(X, 5, kernel=kernel) for kernel in (Stored(), Gauss()))
    assert one.variance_left.tolist() == other.variance_left.tolist()


def test_ours_pass_as_they_are() -> None:
    ours = [evgp.NTK(evgp.mlp()), evgp.NNGP(evgp.mlp()), Tabulated(torch.eye(2)),
            EmpiricalNTK(torch.nn.Linear(2, 1))]  # fmt: skip
    assert all(checked(one) is one for one in ours)
    assert checked(checked(Gauss())).kernel.__class__ is Gauss
    assert not isinstance(checked(Gauss()), Features)
