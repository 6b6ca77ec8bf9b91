r"""Data of the paper by name, and synthetic data: targets from a random network, and a sine wave.
Synthetic points are uniform in a ball. The paper does not state its radius, so the columns are
scaled to mean 0 and standard deviation 1 over the pool, like those of all its datasets, before
targets are computed: the network behind them is then exactly adequate. Targets are scaled in the
same way.

Hemachandra et al., Training-Free Neural Active Learning with Initialization-Robustness
Guarantees, ICML 2023, appendix on the experiments.
"""

from collections.abc import Callable
from math import pi, sqrt

import numpy as np
import torch
from jaxtyping import Float
from torch import Generator, Tensor

from evgp._checks import integer, number, seed_of, shown
from evgp._reading import check_memory
from evgp.datasets import Dataset, load
from evgp.datasets.dataset import scaled_columns, scaled_targets
from evgp.errors import DatasetError
from evgp.nets import Buildable, mlp

_CITED = "Hemachandra et al., ICML 2023"
# Number of points that go through a network at a time.
_BLOCK = 4096
# Their names in figures.
TITLES = {
    "boston": "Boston",
    "naval": "Naval",
    "protein": "Protein",
    "kin8nm": "Robot Kinematics",
    "california": "California",
    "optdigits": "Handwritten Digits",
    "mnist": "MNIST",
    "emnist": "EMNIST",
    "svhn": "SVHN",
    "cifar100": "CIFAR-100",
    "sinusoidal": "Sinusoidal",
    "random-model": "Random Model",
}
_MADE_POOL = 2000


def dataset(
    name: str,
    seed: int,
    *,
    pool: int | None = None,
    test: int | None = None,
    task: str | None = None,
) -> Dataset:
    """One random split of a dataset, with at most `pool` and `test` points.

    >>> dataset("sinusoidal", 0, pool=50, test=20)
    Dataset('sinusoidal', regression, pool 50 x 3, test 20)
    """
    if name in ("sinusoidal", "random-model"):
        size, rest = pool or _MADE_POOL, test or _MADE_POOL
        if name == "sinusoidal":
            return sinusoidal(size, 3, seed=seed, test=rest)
        return random_model(size, 8, seed=seed, test=rest)
    whole = load(name, seed=seed, task=task)
    n = None if pool is None or pool >= len(whole.x) else pool
    m = None if test is None or test >= len(whole.x_test) else test
    return whole if n is None and m is None else load(name, seed=seed, task=task, pool=n, test=m)


def random_model(
    n: int,
    d: int,
    network: Buildable = mlp(),
    *,
    noise: float = 0.0,
    seed: int = 0,
    test: int | None = None,
) -> Dataset:
    r"""Targets from a randomly initialised network: n points for the pool, and as many to test.

    $y = (f(x) - \mu) / \sigma + \epsilon$, with mean and standard deviation of $f$ over the pool,
    and `noise` the variance of $\epsilon$.

    >>> random_model(100, 3)
    Dataset('random_model', regression, pool 100 x 3, test 100)
    """

    def targets(x: Float[Tensor, "n d"], generator: Generator) -> Float[Tensor, " n"]:
        module = network.build((d,), generator=generator).double().eval()
        with torch.no_grad():
            starts = range(0, len(x), _BLOCK)
            y = torch.cat([module(x[start : start + _BLOCK]) for start in starts])
        if y.shape != (len(x), 1):
            shape = " x ".join(map(str, y.shape[1:])) or "none"
            raise DatasetError(
                f"expected a network with one output, got {shape}; build it with outputs=1"
            )
        return y[:, 0]

    if isinstance(network, type) or not isinstance(network, Buildable):
        raise DatasetError(f"expected a network such as evgp.mlp(), got {shown(network)}")
    about = f"targets of {network}"
    return _made("random_model", about, targets, n, d, noise=noise, seed=seed, test=test)


def sinusoidal(
    n: int,
    d: int,
    *,
    frequency: float = 2.0,
    noise: float = 0.0,
    seed: int = 0,
    test: int | None = None,
) -> Dataset:
    r"""A sine wave in a random direction, $y = \sin(\omega^\top x + b)$, scaled, plus noise.

    The paper only says that $\omega$ and $b$ are random. Here $\omega$ is normal with variance
    `frequency`² / d, so that the wave is as steep in any number of dimensions, and $b$ is uniform.

    >>> sinusoidal(100, 3, test=20)
    Dataset('sinusoidal', regression, pool 100 x 3, test 20)
    """
    frequency = number(frequency, "frequency", 0, 1e6, above=True, error=DatasetError)

    def targets(x: Float[Tensor, "n d"], generator: Generator) -> Float[Tensor, " n"]:
        omega = torch.randn(d, generator=generator, dtype=torch.float64) * frequency / sqrt(d)
        b = 2 * pi * torch.rand(1, generator=generator, dtype=torch.float64)
        return torch.sin((x * omega).sum(1) + b)

    return _made("sinusoidal", "a sine wave", targets, n, d, noise=noise, seed=seed, test=test)


def _made(
    name: str,
    what: str,
    targets: Callable[[Float[Tensor, "n d"], Generator], Float[Tensor, " n"]],
    n: int,
    d: int,
    *,
    noise: float,
    seed: int,
    test: int | None,
) -> Dataset:
    n, d = integer(n, "n", 2, error=DatasetError), integer(d, "d", 1, error=DatasetError)
    m = n if test is None else integer(test, "test", 1, error=DatasetError)
    noise = number(noise, "noise", 0, 1e100, why="a variance", error=DatasetError)
    seed = seed_of(seed, error=DatasetError)
    check_memory(16 * (n + m) * d, name)
    # Separate random streams, so that the pool does not depend on the test set.
    streams = [np.random.RandomState(state.generate_state(4)) for state in _spawned(seed)]
    x, x_test = scaled_columns(_ball(n, d, streams[0]), _ball(m, d, streams[1]))
    y = targets(torch.cat([x, x_test]), torch.Generator().manual_seed(seed)).numpy()
    y_pool, y_test, mean, std = scaled_targets(y[:n], y[n:], name)
    if noise:
        y_pool = y_pool + sqrt(noise) * torch.from_numpy(streams[2].standard_normal((n, 1)))
        y_test = y_test + sqrt(noise) * torch.from_numpy(streams[3].standard_normal((m, 1)))
    about = f"{what} at points in a ball" + (f", with noise of variance {noise:g}" if noise else "")
    return Dataset(
        name,
        "regression",
        x,
        y_pool,
        x_test,
        y_test,
        about=about,
        citation=_CITED,
        y_mean=mean,
        y_std=std,
    )


def _spawned(seed: int) -> list[np.random.SeedSequence]:
    return np.random.SeedSequence(seed).spawn(4)


def _ball(n: int, d: int, random: np.random.RandomState) -> Float[np.ndarray, "n d"]:
    r"""Points uniform in the unit ball: a random direction, times $u^{1/d}$."""
    x = random.standard_normal((n, d))
    radius = random.random_sample((n, 1)) ** (1 / d)
    return x * (radius / np.linalg.norm(x, axis=1, keepdims=True))
