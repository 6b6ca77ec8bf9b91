"""Architectures ranked: all folds of a candidate at once, against a plain loop over folds."""

from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor

from benchmarks.common import Options, in_turns, record, timed
from benchmarks.data import half
from evgp import Network, choose
from evgp.architectures import candidates
from evgp.architectures.cross_validation import split
from evgp.kernels import NNGP, NTK

CASES = ((20, 100), (200, 100), (500, 100))


def run(options: Options) -> None:
    """Seconds for the paper's 16 candidates, in turns with the loop that anyone would write."""
    rows: list[dict[str, object]] = []
    for n, folds in CASES[:2] if options.small else CASES:
        x = torch.from_numpy(half("kin8nm"))[:n]
        x = (x - x.mean(0)) / x.std(0)
        y = torch.sin(x.sum(1, keepdim=True))
        nets = candidates()

        ours, theirs = partial(at_once, nets, x, y, folds), partial(one_by_one, nets, x, y, folds)
        works: dict[str, Callable[[], float]] = {
            "evgp_s": partial(timed, ours),
            "loop_s": partial(timed, theirs),
            "kernels_once_s": partial(timed, partial(theirs, once=True)),
        }
        best, others = in_turns(works, options.repeats)
        gap = max(abs(a - b) / b for a, b in zip(ours(), theirs(), strict=True))
        rows.append(
            {
                "n": n,
                "candidates": len(nets),
                "folds": folds,
                **best,
                "speedup": best["loop_s"] / best["evgp_s"],
                "speedup_once": best["kernels_once_s"] / best["evgp_s"],
                "difference": f"{gap:.0e}",
                "others": others,
            }
        )
    record(
        options,
        "choose",
        "Sixteen architectures ranked by 100 folds",
        rows,
        [
            "loop: for each candidate and fold the kernels of its points and one solve, as it is "
            "written in the paper. kernels_once: the same with each candidate's kernels made once, "
            "as we do, but fold by fold. Nothing is trained in any.",
            "difference: the largest relative one between scores of both.",
        ],
    )


def at_once(nets: dict[str, Network], x: Tensor, y: Tensor, folds: int) -> list[float]:
    """Every score, all folds of a candidate at once."""
    result = choose(nets, x, y, folds=folds, scale=None)
    return [next(entry.score for entry in result.ranked if entry.name == name) for name in nets]


def one_by_one(
    nets: dict[str, Network], x: Tensor, y: Tensor, folds: int, *, once: bool = False
) -> list[float]:
    """Every score, fold by fold."""
    return [plain(network, x, y, folds, once=once) for network in nets.values()]


def plain(network: Network, x: Tensor, y: Tensor, folds: int, *, once: bool = False) -> float:
    """The score of one candidate, fold by fold; with `once` its kernels are made once."""
    n, values = len(x), []
    out = max(1, round(0.3 * n))
    ntk, nngp = NTK(network), NNGP(network)
    scale = float(ntk.diag(x).mean())
    whole = (ntk(x), nngp(x)) if once else None
    for order in split(n, folds, 0.3, 0):
        kept, left = order[:-out], order[-out:]
        if whole is None:
            theta, k = ntk(x[order]), nngp(x[order])
        else:
            theta, k = (item[order][:, order] for item in whole)
        size = n - out
        inner = theta[:size, :size] + 1e-4 * scale * torch.eye(size, dtype=torch.float64)
        weights = torch.linalg.solve(inner, theta[:size, size:])
        fit = (y[left] - weights.T @ y[kept]).square().mean()
        spread = (
            k.diagonal()[size:]
            + (weights * (k[:size, :size] @ weights)).sum(0)
            - 2 * (weights * k[:size, size:]).sum(0)
        )
        values.append(float(fit + spread.mean()))
    return sum(values) / len(values)
