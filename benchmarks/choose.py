"""Architectures ranked: all folds of a candidate at once, against a plain loop over folds."""

from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor

from benchmarks.common import Options, in_turns, record, timed
from benchmarks.data import half
from evgp import Network, candidates, choose
from evgp.architectures.folds import split
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
            "loop: for each candidate and fold the kernels of the points kept and left out, one "
            "solve for the predictions, as it is written in the paper; nothing is trained in "
            "either.",
            "difference: the largest relative one between scores of both.",
        ],
    )


def at_once(nets: dict[str, Network], x: Tensor, y: Tensor, folds: int) -> list[float]:
    """Every score, all folds of a candidate at once."""
    made = choose(nets, x, y, folds=folds, standardise=False)
    return [next(one.score for one in made.ranked if one.name == name) for name in nets]


def one_by_one(nets: dict[str, Network], x: Tensor, y: Tensor, folds: int) -> list[float]:
    """Every score, fold by fold."""
    return [plain(network, x, y, folds) for network in nets.values()]


def plain(network: Network, x: Tensor, y: Tensor, folds: int) -> float:
    """The score of one candidate, fold by fold."""
    n, found = len(x), []
    out = max(1, round(0.3 * n))
    ntk, nngp = NTK(network), NNGP(network)
    scale = float(ntk.diag(x).mean())
    for order in split(n, folds, 0.3, 0):
        kept, left = x[order[:-out]], x[order[-out:]]
        inner = ntk(kept) + 1e-4 * scale * torch.eye(len(kept), dtype=torch.float64)
        weights = torch.linalg.solve(inner, ntk(kept, left))
        fit = (y[order[-out:]] - weights.T @ y[order[:-out]]).square().mean()
        spread = (
            nngp(left).diagonal()
            + (weights * (nngp(kept) @ weights)).sum(0)
            - 2 * (weights * nngp(kept, left)).sum(0)
        )
        found.append(float(fit + spread.mean()))
    return sum(found) / len(found)
