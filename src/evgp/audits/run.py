r"""A labelled set looked at before any training: how much will networks disagree, where, and why?

With $A = (\Theta_X + s I)^{-1}$ and $W = A \Theta_{XT}$, leaving out training row i raises the
NTKGP variance at t by $W_{it}^2 / A_{ii}$: every row at once, without another factorisation.
"""

import warnings

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor

from evgp._checks import flag, integer, noise_of, points, seed_of, shown
from evgp._errors import DataWarning, PoolError
from evgp._executor import Progress
from evgp._progress import reporting
from evgp._typing import Array
from evgp.audits.columns import check_size, known_rows, scaled
from evgp.audits.findings import Audit
from evgp.audits.fit import Fit, Further, blocks, check_room
from evgp.datasets import is_table, read_pool
from evgp.kernels import NNGP, NTK
from evgp.nets import Network, mlp
from evgp.pool import Selection
from evgp.selection import pick

_DRAWS = 20
# Labels of all random draws together, so that many further labels are drawn less often.
_DRAWN = 4000


def audit(
    x_train: Array,
    x_test: Array,
    network: Network = mlp(),
    *,
    pool: Array | None = None,
    k: int = 10,
    noise: float = 1e-6,
    standardise: bool = True,
    seed: int = 0,
    progress: Progress | bool | None = None,
) -> Audit:
    """How much networks trained on a set will disagree at test points, before any is trained.

    With a `pool` of unlabelled points the k of them that would help most are picked, and compared
    with k drawn at random; random sets of the training set's size, drawn from it and the training
    set together, say how good the set itself is. Columns are scaled by the training set; those that
    are constant in it are left out, with a `DataWarning` if they vary elsewhere. `noise` is a
    fraction of the mean prior variance. O(n³ + n² m) time, twenty times that where random sets are
    drawn, and the cost of `pick` for the pool; O(n²) memory, however many test points there are.

    >>> x = np.random.default_rng(0).normal(size=(60, 3))
    >>> audit(x[:30], x[30:])
    Audit(30 training rows remove 98% of the spread at 30 test rows; 9 are redundant)
    """
    if not isinstance(network, Network):
        raise PoolError(
            f"expected a network with exact kernels, such as evgp.mlp(), got {shown(network)}"
        )
    noise, seed, k = noise_of(noise), seed_of(seed), integer(k, "k", 1)
    train, others, same = _parts(x_train, x_test, pool, standardise=standardise)
    test, more = others["test"], others.get("pool")
    further, sets = None, []
    with reporting(progress) as report:
        if more is not None:
            further = pick(
                more,
                min(k, len(more)),
                x_test=test,
                x_labelled=train,
                network=network,
                noise=noise,
                standardise=False,
                seed=seed,
                progress=report,
            )
            sets = _sets(more, further, seed)
            known = known_rows(train, more) | same
            _note_known(known, further)
        made = _looked(network, train, test, sets, noise=noise, progress=report)
        spread, ceiling, influence, after = made
        drawn = np.empty(0)
        if more is not None:
            fresh = more[torch.from_numpy(~known)]
            drawn = _random(network, train, fresh, test, noise=noise, seed=seed, progress=report)
    return Audit(
        spread.sqrt().numpy(),
        ceiling.sqrt().numpy(),
        _prior(network, test),
        influence.numpy(),
        drawn,
        further,
        after[0] if sets else np.empty(0),
        np.stack(after[1:]) if sets else np.empty((0, 0)),
    )


def _parts(
    x_train: Array, x_test: Array, pool: Array | None, *, standardise: bool
) -> tuple[Float[Tensor, "n d"], dict[str, Float[Tensor, "_ d"]], Bool[np.ndarray, " p"] | None]:
    """Training rows, test rows and the pool by name, on one scale; which of the pool are training.

    The last before scaling, which may round the last digit of a row and of its copy differently.
    """
    if is_table(x_train):  # words and dates as well
        data = read_pool(x_train, standardise=flag(standardise, "standardise"))
        x_train, x_test = data.in_memory, data.tensor_like(x_test)
        pool = None if pool is None else data.tensor_like(pool, "pool")
        standardise = False
    train, test = (_points(one, name) for one, name in ((x_train, "x_train"), (x_test, "x_test")))
    more = None if pool is None else _points(pool, "pool")
    for name, part in (("x_test", test), ("pool", more)):
        if part is not None and part.shape[1:] != train.shape[1:]:
            raise PoolError(
                f"expected {name} with {train.shape[1]} columns, as x_train; got {part.shape[1]}"
            )
    check_room(len(train))
    others = {"test": test} if more is None else {"test": test, "pool": more}
    same = None if more is None else known_rows(train, more)
    if flag(standardise, "standardise"):
        train, others = scaled(train, others)
    check_size({"the training rows": train, **{f"the {one} rows": x for one, x in others.items()}})
    return train, others, same


def _looked(
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
    more = [Further.of(fit, one) for one in sets]
    squares = torch.zeros(len(points), dtype=torch.float64)
    changes = [torch.zeros(len(one), dtype=torch.float64) for one in sets]
    networks, process, done = [], [], 0
    for block in blocks(test, len(points)):
        progress("test rows", done, len(test))
        found = fit.variances(block)
        squares += found.weights.square().sum(1)
        for total, one in zip(changes, more, strict=True):
            total.add_(one.change(found))
        networks.append(found.networks)
        process.append(found.process)
        done += len(block)
    progress("test rows", done, len(test))
    spread = torch.cat(networks)
    after = [((spread.sum() + one) / len(test)).clamp(min=0).numpy() for one in changes]
    influence = squares / len(test) / fit.inverse_diagonal()
    return spread, torch.cat(process), influence, after


def _sets(pool: Float[Tensor, "p d"], further: Selection, seed: int) -> list[Float[Tensor, "k d"]]:
    """The picks, and as many rows drawn at random, again and again."""
    k = len(further)
    generator = torch.Generator().manual_seed(seed)
    draws = max(2, min(_DRAWS, _DRAWN // max(1, k)))
    rows = [torch.randperm(len(pool), generator=generator)[:k] for _ in range(draws)]
    return [pool[torch.from_numpy(further.indices)], *(pool[one] for one in rows)]


def _note_known(known: Bool[np.ndarray, " p"], further: Selection) -> None:
    """A pool that holds training rows is said, and how many of these were picked again."""
    count, again = int(known.sum()), int(known[further.indices].sum())
    if count:
        warnings.warn(
            f"{count:,} of {len(known):,} rows of the pool {'is' if count == 1 else 'are'} in the "
            f"training rows already, and {again:,} of the {len(further):,} that would help most: "
            "a second label there adds little; leave them out of the pool",
            DataWarning,
            stacklevel=3,
        )


def _random(
    network: Network,
    points: Float[Tensor, "n d"],
    fresh: Float[Tensor, "p d"],
    test: Float[Tensor, "m d"],
    *,
    noise: float,
    seed: int,
    progress: Progress,
) -> Float[np.ndarray, " r"]:
    """Mean variances of networks trained on random sets, from training rows and the fresh ones.

    From both together: then a training set that was itself drawn at random is one of them, and its
    place among them is any with the same chance. From the pool alone all would share its quirks.
    """
    if not len(fresh):
        return np.empty(0)
    count, whole = len(points), torch.cat([points, fresh])
    generator = torch.Generator().manual_seed(seed)
    found = []
    for draw in range(_DRAWS):
        progress("random sets", draw, _DRAWS)
        rows = torch.randperm(len(whole), generator=generator)[:count]
        fit = Fit.of(network, whole[rows], test, noise)
        total = sum(float(fit.variances(one).networks.sum()) for one in blocks(test, count))
        found.append(total / len(test))
        del fit
    progress("random sets", _DRAWS, _DRAWS)
    return np.array(found)


def _prior(network: Network, test: Float[Tensor, "m d"]) -> tuple[float, float]:
    """Mean variances before any label: of networks at initialisation, and of the NTKGP."""
    return float(NNGP(network).diag(test).mean()), float(NTK(network).diag(test).mean())


def _points(x: Array, name: str) -> Float[Tensor, "n d"]:
    return points(x, name).flatten(1)
