r"""Audit a labelled set before any training: how much will networks disagree, and where?

With $A = (\Theta_X + s I)^{-1}$ and $W = A \Theta_{XT}$ the NTKGP keeps
$\tilde\Theta_{TT'} = \Theta_{TT'} - \Theta_{TX} W'$, and trained networks differ by
$C_{TT'} = K_{TT'} - W^\top K_{XT'} - K_{TX} W' + W^\top K_X W'$, the covariance of the initial
outputs at T beyond those explained by X. An additional point changes both by its residual alone,
and leaving out training row i raises the NTKGP variance at t by $W_{it}^2 / A_{ii}$: neither needs
another factorisation.
"""

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor

from evgp._checks import integer, noise_of, points, seed_of, shown
from evgp._defaults import NOISE, TRAINING_SCALE
from evgp._executor import Progress
from evgp._linalg import CONSTANT, JITTER, safe_cholesky
from evgp._machine import available_memory
from evgp._progress import reporting
from evgp._typing import Array
from evgp.audits.results import Audit
from evgp.datasets import ReadOptions, from_array, read_columns
from evgp.datasets.scaling import scale_of
from evgp.errors import BadArgument, DataWarning, MemoryPlanError, PoolError, size
from evgp.kernels import NNGP, NTK
from evgp.nets import Network, mlp
from evgp.pool import Selection
from evgp.selection import pick

_LARGEST = 1e150  # larger values would overflow float64 when squared


def scaled(
    points: Float[Tensor, "n d"], others: dict[str, Float[Tensor, "m d"]], scale: str
) -> tuple[Float[Tensor, "n e"], dict[str, Float[Tensor, "m e"]]]:
    """Training rows and others, scaled by the training rows, without columns constant in training.

    A column that varies only in the others gives a `DataWarning`: networks cannot learn its effect,
    and the audit does not see it.
    """
    if len(points) < 2:
        raise PoolError(
            "expected at least two training rows to scale columns by, got 1; add rows, or scale "
            "the columns yourself and pass scale=None"
        )
    data = from_array(points, ReadOptions(scale=scale), "x_train")
    assert data.code is not None
    kept = torch.zeros(points.shape[1], dtype=torch.bool)
    kept[torch.from_numpy(data.code.kept)] = True
    for name, rows in others.items():
        columns = (~kept & varies(points, rows)).nonzero().squeeze(1).tolist()
        if columns:
            warnings.warn(unseen([str(i) for i in columns], name), DataWarning, stacklevel=3)
    return data.in_memory, {name: data.tensor_like(rows, name) for name, rows in others.items()}


def varies(points: Float[Tensor, "n d"], others: Float[Tensor, "m d"]) -> Bool[Tensor, " d"]:
    """Whether constant columns of the points have other values in the others, beyond rounding.

    >>> x = torch.ones(2, 2, dtype=torch.float64)
    >>> varies(x, torch.tensor([[1 + 1e-15, 2.0]], dtype=torch.float64))
    tensor([False,  True])
    """
    size = torch.maximum(points.abs().amax(0), others.abs().amax(0))
    return ((others - points[0]).abs() > CONSTANT * size).any(0)


def unseen(names: Sequence[str], where: str) -> str:
    """A sentence about columns that vary only in the test rows or the pool.

    >>> unseen(["'age'"], "test").partition(":")[0]
    "column 'age' is constant in the training rows but varies in the test rows"
    """
    shown = ", ".join(names[:8]) + (f" and {len(names) - 8} more" if len(names) > 8 else "")
    single = len(names) == 1
    return (
        f"column{'' if single else 's'} {shown} {'is' if single else 'are'} constant in the "
        f"training rows but {'varies' if single else 'vary'} in the {where} rows: the audit "
        f"ignores {'it' if single else 'them'}; label rows with other values, or do not trust "
        "the audit there"
    )


def check_size(parts: dict[str, Float[Tensor, "n d"]]) -> None:
    """Raise if squaring a value would overflow."""
    for name, rows in parts.items():
        largest = float(rows.abs().max())
        if not largest < _LARGEST:
            raise PoolError(
                f"expected scaled values below {_LARGEST:.0e} in {name}, got {largest:.3g}; "
                "check the data for outliers"
            )


def known_rows(points: Float[Tensor, "n d"], pool: Float[Tensor, "p d"]) -> Bool[np.ndarray, " p"]:
    """Which rows of the pool are exact copies of training rows.

    >>> x = torch.eye(3, dtype=torch.float64)
    >>> known_rows(x[:2], x)
    array([ True,  True, False])
    """
    # Adding zero makes -0.0 and 0.0 the same bytes.
    known = {row.tobytes() for row in points.numpy() + 0.0}
    return np.array([row.tobytes() in known for row in pool.numpy() + 0.0])


_DRAWS = 20
_MAX_DRAWN = 4000  # labels in all random draws together; with a large k there are fewer draws


def audit(
    x_train: Any,
    x_test: Any,
    network: Network = mlp(),
    *,
    pool: Any = None,
    k: int = 10,
    noise: float = NOISE,
    scale: str | None = TRAINING_SCALE,
    standardise: bool | None = None,
    column: str | None = None,
    text: str | Sequence[str] = (),
    embed: object = None,
    seed: int = 0,
    progress: Progress | bool | None = None,
) -> Audit:
    """Predict how much networks trained on a set will disagree at test points, without training.

    O(n³ + n² m) time, twenty times that with a pool (random sets are drawn from it), plus the cost
    of `evgp.pick`; O(n²) memory, for any number of test points.

    Parameters
    ----------
    x_train : array or tensor, shape (n, d), frame, or list of texts
        The labelled points; their labels are not needed.
    x_test : array, tensor or frame, shape (m, d)
        Where predictions should be good.
    network : Network
        The architecture, an `evgp.mlp()`.
    pool : array, tensor or frame, shape (p, d), optional
        Unlabelled points. The k most helpful ones are picked and compared with k random ones; and
        the training set is compared with random sets of its size, drawn from both together.
    k : int
        Number of points to pick from the pool.
    noise : float
        Variance of a label, as a fraction of the mean prior variance.
    scale : str, optional
        How columns are scaled, as in `evgp.pick`, here by the training set. The default is how
        networks are usually trained: each column to mean 0 and standard deviation 1, embeddings as
        in `evgp.pick`. Columns that are constant in the training set are dropped, with a
        `DataWarning` if they vary elsewhere.
    standardise : bool, optional
        The former name: True is scale="columns", False is scale=None.
    column, text, embed
        The only column to use, columns of text, and what embeds them, as for `evgp.read_pool`.
    seed : int
        Seed of the random sets.
    progress : callable or bool, optional
        True shows a bar; a function is called with (stage, done, total).

    Returns
    -------
    evgp.audits.Audit

    Examples
    --------
    >>> x = np.random.default_rng(0).normal(size=(60, 3))
    >>> audit(x[:30], x[30:])
    Audit(30 training rows remove 98% of the spread at 30 test rows; 9 are redundant)
    """
    if not isinstance(network, Network):
        raise PoolError(
            f"expected a network with exact kernels, such as evgp.mlp(), got {shown(network)}"
        )
    noise, seed, k = noise_of(noise), seed_of(seed), integer(k, "k", 1)
    scale = scale_of(scale, standardise, TRAINING_SCALE)
    reading = ReadOptions(column=column, text=text, embed=embed, scale=scale)
    train, others, copies = _parts(x_train, x_test, pool, reading)
    test, unlabelled = others["test"], others.get("pool")
    further, sets = None, []
    with reporting(progress) as report:
        if unlabelled is not None:
            further = pick(
                unlabelled,
                min(k, len(unlabelled)),
                x_test=test,
                x_labelled=train,
                network=network,
                noise=noise,
                scale=None,
                seed=seed,
                progress=report,
            )
            sets = _sets(unlabelled, further, seed)
            known = known_rows(train, unlabelled) | copies
            _warn_of_known_rows(known, further)
        spread, ceiling, influence, after = _predict(
            network, train, test, sets, noise=noise, progress=report
        )
        random = np.empty(0)
        if unlabelled is not None:
            new = unlabelled[torch.from_numpy(~known)]
            random = _random(network, train, new, test, noise=noise, seed=seed, progress=report)
    return Audit(
        spread.sqrt().numpy(),
        ceiling.sqrt().numpy(),
        _prior(network, test),
        influence.numpy(),
        random,
        further,
        after[0] if sets else np.empty(0),
        np.stack(after[1:]) if sets else np.empty((0, 0)),
    )


def _parts(
    x_train: Any, x_test: Any, pool: Any, reading: ReadOptions
) -> tuple[Float[Tensor, "n d"], dict[str, Float[Tensor, "_ d"]], Bool[np.ndarray, " p"] | None]:
    """Training rows; test rows and pool on the same scale; which pool rows are training rows.

    Copies are found before scaling, which may round a row and its copy differently.
    """
    data, scale = read_columns(x_train, reading, "x_train"), reading.scale
    if data is not None:
        x_train, x_test = data.in_memory, data.tensor_like(x_test)
        pool = None if pool is None else data.tensor_like(pool, "pool")
        scale = None
    train, test = (_points(part, name) for part, name in ((x_train, "x_train"), (x_test, "x_test")))
    unlabelled = None if pool is None else _points(pool, "pool")
    for name, part in (("x_test", test), ("pool", unlabelled)):
        if part is not None and part.shape[1:] != train.shape[1:]:
            raise BadArgument.of(PoolError)(
                name, f"with {train.shape[1]} columns, like x_train", str(part.shape[1])
            )
    check_room(len(train))
    others = {"test": test} if unlabelled is None else {"test": test, "pool": unlabelled}
    copies = None if unlabelled is None else known_rows(train, unlabelled)
    if scale is not None:
        train, others = scaled(train, others, scale)
    check_size(
        {"the training rows": train, **{f"the {name} rows": x for name, x in others.items()}}
    )
    return train, others, copies


def _predict(
    network: Network,
    points: Float[Tensor, "n d"],
    test: Float[Tensor, "m d"],
    sets: list[Float[Tensor, "k d"]],
    *,
    noise: float,
    progress: Progress,
) -> tuple[
    Float[Tensor, " m"], Float[Tensor, " m"], Float[Tensor, " n"], list[Float[np.ndarray, " k"]]
]:
    """Variances of networks and of the NTKGP, influence, and means after each set of labels."""
    fit = Fit.of(network, points, test, noise)
    further = [Further.of(fit, labels) for labels in sets]
    squares = torch.zeros(len(points), dtype=torch.float64)
    changes = [torch.zeros(len(labels), dtype=torch.float64) for labels in sets]
    networks, process, done = [], [], 0
    for block in blocks(test, len(points)):
        progress("test rows", done, len(test))
        variances = fit.variances(block)
        squares += variances.weights.square().sum(1)
        for total, labels in zip(changes, further, strict=True):
            total.add_(labels.change(variances))
        networks.append(variances.networks)
        process.append(variances.process)
        done += len(block)
    progress("test rows", done, len(test))
    spread = torch.cat(networks)
    after = [((spread.sum() + change) / len(test)).clamp(min=0).numpy() for change in changes]
    influence = squares / len(test) / fit.inverse_diagonal()
    return spread, torch.cat(process), influence, after


def _sets(pool: Float[Tensor, "p d"], further: Selection, seed: int) -> list[Float[Tensor, "k d"]]:
    """The picks, and several random draws of as many rows."""
    k = len(further)
    generator = torch.Generator().manual_seed(seed)
    draws = max(2, min(_DRAWS, _MAX_DRAWN // max(1, k)))
    rows = [torch.randperm(len(pool), generator=generator)[:k] for _ in range(draws)]
    return [pool[torch.from_numpy(further.indices)], *(pool[draw] for draw in rows)]


def _warn_of_known_rows(known: Bool[np.ndarray, " p"], further: Selection) -> None:
    """Warn if the pool contains training rows."""
    count, again = int(known.sum()), int(known[further.indices].sum())
    if count:
        warnings.warn(
            f"{count:,} of {len(known):,} rows of the pool, and {again:,} of the {len(further):,} "
            "picked ones, are training rows already; a second label for the same row adds little, "
            "so leave them out of the pool",
            DataWarning,
            stacklevel=3,
        )


def _random(
    network: Network,
    points: Float[Tensor, "n d"],
    new: Float[Tensor, "p d"],
    test: Float[Tensor, "m d"],
    *,
    noise: float,
    seed: int,
    progress: Progress,
) -> Float[np.ndarray, " r"]:
    """Mean variances of networks trained on random sets, drawn from training rows and new ones.

    They are drawn from both together, so that a training set that was itself drawn at random takes
    any rank among them with equal probability.
    """
    if not len(new):
        return np.empty(0)
    count, whole = len(points), torch.cat([points, new])
    generator = torch.Generator().manual_seed(seed)
    means = []
    for draw in range(_DRAWS):
        progress("random sets", draw, _DRAWS)
        rows = torch.randperm(len(whole), generator=generator)[:count]
        fit = Fit.of(network, whole[rows], test, noise)
        total = sum(float(fit.variances(block).networks.sum()) for block in blocks(test, count))
        means.append(total / len(test))
        del fit
    progress("random sets", _DRAWS, _DRAWS)
    return np.array(means)


def _prior(network: Network, test: Float[Tensor, "m d"]) -> tuple[float, float]:
    """Mean variances before any label: of networks at initialisation, and of the NTKGP."""
    return float(NNGP(network).diag(test).mean()), float(NTK(network).diag(test).mean())


def _points(x: Array, name: str) -> Float[Tensor, "n d"]:
    return points(x, name).flatten(1)


CELLS = 2**22  # training rows times test rows of a block
_SQUARES = 4  # matrices of training rows times training rows in memory
_SHARE = 0.8  # of the free memory that they may take


@dataclass(frozen=True, eq=False)
class Fit:
    """The factor of $\\Theta_X + s I$, with s a fraction of the mean prior over the test points.

    >>> from evgp import mlp
    >>> x = torch.eye(3, dtype=torch.float64)
    >>> fit = Fit.of(mlp(), x[:2], x, noise=1e-6)
    >>> (fit.variances(x).networks > 0.01).tolist()
    [False, False, True]
    """

    ntk: NTK
    nngp: NNGP
    points: Float[Tensor, "n d"]
    factor: Float[Tensor, "n n"]
    initial: Float[Tensor, "n n"]
    noise: float

    @classmethod
    def of(
        cls,
        network: Network,
        points: Float[Tensor, "n d"],
        test: Float[Tensor, "m d"],
        noise: float,
    ) -> "Fit":
        """Factorise; O(n³) time and O(n²) memory. Raises if that is not free."""
        check_room(len(points))
        ntk, nngp = NTK(network), NNGP(network)
        added = max(noise, JITTER) * float(ntk.diag(test).mean())
        matrix = ntk(points)
        matrix.diagonal().add_(added)
        factor = safe_cholesky(matrix)
        del matrix
        return cls(ntk, nngp, points, factor, nngp(points), added)

    def variances(self, test: Float[Tensor, "m d"]) -> "BlockVariances":
        """The variances at a block of test points; O(n² m) time, O(n m) memory."""
        half, weights = self.solved(test)
        cross = self.nngp(self.points, test)
        process = self.ntk.diag(test) - half.square().sum(0)
        networks = self.nngp.diag(test) + (weights * (self.initial @ weights - 2 * cross)).sum(0)
        return BlockVariances(
            test, half, weights, cross, networks.clamp(min=0), process.clamp(min=0)
        )

    def solved(self, at: Float[Tensor, "m d"]) -> tuple[Float[Tensor, "n m"], Float[Tensor, "n m"]]:
        """$L^{-1} \\Theta_{XT}$ and W."""
        half = torch.linalg.solve_triangular(self.factor, self.ntk(self.points, at), upper=False)
        return half, torch.linalg.solve_triangular(self.factor.T, half, upper=True)

    def inverse_diagonal(self) -> Float[Tensor, " n"]:
        """The diagonal of A, which the effect of leaving out a row is divided by."""
        return torch.cholesky_inverse(self.factor).diagonal().clone()


@dataclass(frozen=True, eq=False)
class BlockVariances:
    """Variances of a block of test points, and what is needed to update them for more labels."""

    test: Float[Tensor, "m d"]
    half: Float[Tensor, "n m"]
    weights: Float[Tensor, "n m"]
    cross: Float[Tensor, "n m"]
    networks: Float[Tensor, " m"]
    process: Float[Tensor, " m"]


@dataclass(frozen=True, eq=False)
class Further:
    r"""Additional points, labelled one after the other.

    With $L L^\top = \tilde\Theta_S + s I$, $z = L^{-1} \tilde\Theta_{ST}$, $E = L^{-1} C_{ST}$ and
    $F = L^{-1} C_S L^{-\top}$, the first j labels change the variance of trained networks at t by
    $\sum_{i \le j} z_{it} (z_{it} F_{ii} + 2 \sum_{h < i} F_{ih} z_{ht} - 2 E_{it})$.
    """

    fit: Fit
    points: Float[Tensor, "k d"]
    half: Float[Tensor, "n k"]
    weights: Float[Tensor, "n k"]
    rest: Float[Tensor, "n k"]  # K_X W - K_XS
    factor: Float[Tensor, "k k"]
    inner: Float[Tensor, "k k"]

    @classmethod
    def of(cls, fit: Fit, points: Float[Tensor, "k d"]) -> "Further":
        """Prepare additional points; O(n² k + k³)."""
        half, weights = fit.solved(points)
        cross = fit.nngp(fit.points, points)
        rest = fit.initial @ weights - cross
        left = fit.ntk(points) - half.T @ half
        left.diagonal().add_(fit.noise)
        factor = safe_cholesky((left + left.T) / 2)
        differ = fit.nngp(points) + weights.T @ rest - cross.T @ weights
        inner = torch.linalg.solve_triangular(factor, (differ + differ.T) / 2, upper=False)
        inner = torch.linalg.solve_triangular(factor, inner.T.contiguous(), upper=False)
        return cls(fit, points, half, weights, rest, factor, inner)

    def change(self, at: BlockVariances) -> Float[Tensor, " k"]:
        """Change in the summed variance of a block after the first, the first two, ... labels."""
        left = self.fit.ntk(self.points, at.test) - self.half.T @ at.half
        differ = self.fit.nngp(self.points, at.test) + self.rest.T @ at.weights
        differ -= self.weights.T @ at.cross
        z = torch.linalg.solve_triangular(self.factor, left, upper=False)
        moved = torch.linalg.solve_triangular(self.factor, differ, upper=False)
        earlier = self.inner.tril(-1) @ z
        each = z * (self.inner.diagonal()[:, None] * z + 2 * earlier - 2 * moved)
        return each.sum(1).cumsum(0)


def blocks(test: Float[Tensor, "m d"], n: int) -> Iterator[Float[Tensor, "b d"]]:
    """Test points in blocks, so that n x b matrices have a limited size."""
    yield from torch.split(test, max(1, CELLS // max(1, n)))


def check_room(n: int) -> None:
    """Raise if the matrices of a training set do not fit in memory, and say how many rows would."""
    needed, free = 8 * _SQUARES * n * n, available_memory()
    if needed > _SHARE * free:
        most = int((_SHARE * free / (8 * _SQUARES)) ** 0.5)
        raise MemoryPlanError(
            f"{n:,} training rows need {size(needed)}, but {size(free)} are free; "
            f"audit at most {most:,} of them, drawn at random or picked by `evgp pick`"
        )
