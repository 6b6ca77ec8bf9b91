"""bmdal-reg's `bait` on the same kernel: seconds a pick, and the variance that both leave."""

import tempfile
from functools import partial
from pathlib import Path

import numpy as np
import torch

from benchmarks.clock import Clock
from benchmarks.common import BMDAL, Options, Peer, Unavailable, record, variance_left
from benchmarks.data import half
from benchmarks.quiet import calm
from evgp import EVGP, NTK, Pool, mlp
from evgp.search import Exact, Exchange, Greedy

THEIRS = ("features", "backward", "top-512", "sketch-512", "kernel")
OURS: dict[str, Greedy] = {"exact": Exact(), "exchange": Exchange()}
NOISE = 1e-6


def run(options: Options) -> None:
    """The same criterion, noise and matrix for everyone, in turns."""
    k = 20 if options.small else 100
    rows: list[dict[str, object]] = []
    notes = []
    for name in ("kin8nm", "optdigits"):
        x = torch.from_numpy(half(name))
        matrix = NTK(mlp())(x)
        noise = NOISE * float(matrix.diagonal().mean())
        with tempfile.TemporaryDirectory() as folder:
            data = Path(folder) / "features.npy"
            np.save(data, _features(matrix).numpy())
            try:
                peer = Peer("bmdal", BMDAL, data, noise**0.5)
            except Unavailable as why:
                notes.append(f"bmdal-reg could not run: {why}")
                values = _turns(x, k, None, options.repeats)
            else:
                notes.append(str(peer.about["versions"]))
                values = _turns(x, k, peer, options.repeats)
                peer.close()
        for method, row in values.items():
            picks = row.pop("picks", None)
            left = "" if picks is None else f"{variance_left(matrix, picks, noise):.5f}"
            shared = {"pool": name, "n": len(x), "k": k, "method": method}
            rows.append({**shared, "variance_left": left, **row})
    record(
        options, "bait", "bmdal-reg's bait on the same kernel", rows, [*NOTES, *sorted(set(notes))]
    )


def _turns(
    x: torch.Tensor, k: int, peer: Peer | None, repeats: int
) -> dict[str, dict[str, object]]:
    entries: dict[str, dict[str, object]] = {}
    for _ in range(repeats):
        for name, greedy in OURS.items():
            row, others = calm(partial(_ours, x, k, greedy))
            _keep(entries, f"evgp {name}", {**row, "others": others})
        for how in THEIRS if peer is not None else ():
            assert peer is not None
            answer, others = calm(partial(peer, "run", how, k))
            if "error" in answer:
                entries[f"bait {how}"] = {"note": answer["error"]}
            else:
                seconds = float(str(answer["select"]))
                row = {key: answer[key] for key in ("picks", "setup")} | {"others": others}
                _keep(
                    entries, f"bait {how}", {**row, "pick_s": seconds / k, "note": answer["status"]}
                )
    return entries


def _ours(x: torch.Tensor, k: int, greedy: Greedy) -> dict[str, object]:
    """As a user would run it; the first pick waits for the kernel, so it counts as set-up."""
    clock = Clock(torch.ones(1, 1), every=k + 1)
    strategy = EVGP(NTK(mlp()), greedy=greedy, noise=NOISE)
    selection = strategy(Pool(x), k, generator=torch.Generator(), progress=clock)
    picks = sum(clock.picks[1:]) + sum(clock.swaps)
    return {"picks": selection.indices.tolist(), "setup": clock.picks[0], "pick_s": picks / (k - 1)}


def _keep(found: dict[str, dict[str, object]], name: str, row: dict[str, object]) -> None:
    """The best seconds so far, part by part."""
    known = found.setdefault(name, row)
    for part, pick in (("setup", min), ("pick_s", min), ("others", max)):
        known[part] = pick(float(str(known[part])), float(str(row[part])))


def _features(matrix: torch.Tensor) -> torch.Tensor:
    """Phi with Phi Phi' = the matrix: as many features as points."""
    values, vectors = torch.linalg.eigh(matrix)
    return (vectors * values.clamp(min=0).sqrt()).flip(1).contiguous()


NOTES = (
    "Both minimise the mean posterior variance of the same NTK matrix over pool = test, with the "
    "same noise and no labelled points. variance_left is one direct float64 solve for every set.",
    "bait features: Phi from an eigendecomposition of the matrix, as many features as points, "
    "float64; its time is not counted. setup is the product Phi' Phi for bait, kernel and opening "
    "for evgp (whose first pick counts as set-up).",
    "bait backward: it selects twice as many and takes half of them back; the nearest thing to "
    "exchange. pick_s is the time of the selection divided by k, for everyone.",
    "bait top-512: the 512 largest eigenvectors, the best features of that number. sketch-512: "
    "its own random projection of Phi to 512 features, as its authors use it.",
    "bait kernel: bmdal-reg 3.0.2 has bait in feature space only; on a kernel without features "
    "(its own ReLU NTK) it stops with the error shown.",
    "bait adds 1e-8 to the denominator of its scores; evgp verifies each winner and breaks ties.",
)
