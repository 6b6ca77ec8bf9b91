"""Picks in feature space: against one read of the features, and against bmdal-reg's `bait`."""

import tempfile
import time
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from benchmarks.common import BMDAL, Options, Peer, Unavailable, record
from benchmarks.quiet import calm
from evgp import ExpectedVariance
from evgp.posterior import FeaturePosterior
from evgp.posterior.feature_rows import Stored, moment
from evgp.posterior.feature_sums import FeatureSums
from evgp.search.greedy import winner

NOISE = 1e-3


def run(options: Options) -> None:
    """Seconds a pick; all features are the test points too."""
    shrink = 10 if options.small else 1
    rows: list[dict[str, object]] = []
    notes = [*NOTES]
    for n, p, k, rival in ((200_000, 256, 50, True), (1_000_000, 512, 50, False)):
        phi = features(n // shrink, p)
        noise = NOISE * float(phi.square().sum(1).double().mean())
        theirs: dict[str, object] = {}
        if rival:
            theirs, note = bait(phi, noise, k)
            notes.append(note)
        ours, others = calm(lambda phi=phi, noise=noise, k=k: picks(phi, noise, k))
        same = theirs.pop("picks", None)
        row = {"n": len(phi), "p": p, "k": k, **ours, **theirs}
        chosen = row.pop("picks")
        if theirs:
            row["speedup"] = float(str(theirs["bait_s"])) / float(str(ours["pick_s"]))
            row["same_picks"] = same == chosen
        rows.append({**row, "others": others})
    record(options, "features", "A pick in feature space", rows, notes)


def features(n: int, p: int) -> Tensor:
    """Float32 rows with a falling spectrum, as kernels have."""
    generator = torch.Generator().manual_seed(0)
    out = torch.empty(n, p)
    scale = torch.arange(1, p + 1).float().pow(-0.5)
    for start in range(0, n, 100_000):
        part = out[start : start + 100_000]
        part.copy_(torch.randn(len(part), p, generator=generator) * scale)
    return out


def picks(phi: Tensor, noise: float, k: int) -> dict[str, object]:
    """Ours, with one product of the same matrix and a vector after every pick."""
    n = len(phi)
    began = time.perf_counter()
    total = moment(Stored(phi), torch.full((n,), 1 / n, dtype=torch.float64))
    noises = torch.full((n,), noise, dtype=torch.float64)
    posterior = FeaturePosterior(Stored(phi), FeatureSums.of(total), noise=noises)
    opened = time.perf_counter() - began
    free, rule = torch.ones(n, dtype=torch.bool), ExpectedVariance()
    array, vector = phi.numpy(), np.ones(phi.shape[1], dtype=np.float32)
    chosen, seconds, reads = [], [], []
    for _ in range(k):
        began = time.perf_counter()
        best = winner(posterior, rule, free)
        assert best is not None
        posterior.observe_(best[0])
        free[best[0]] = False
        seconds.append(time.perf_counter() - began)
        chosen.append(best[0])
        timed = []
        for product in (lambda: array @ vector, lambda: phi @ torch.from_numpy(vector)):
            began = time.perf_counter()
            product()
            timed.append(time.perf_counter() - began)
        reads.append(min(timed))
    pick, read = float(np.median(seconds[1:])), float(np.median(reads))
    return {
        "picks": chosen,
        "setup_s": opened,
        "pick_s": pick,
        "read_s": read,
        "ratio": pick / read,
    }


def bait(phi: Tensor, noise: float, k: int) -> tuple[dict[str, object], str]:
    """bmdal-reg's bait in feature space, with the same features, noise and test points."""
    with tempfile.TemporaryDirectory() as folder:
        data = Path(folder) / "features.npy"
        np.save(data, phi.numpy())
        try:
            peer = Peer("bmdal", BMDAL, data, noise**0.5)
        except Unavailable as why:
            return {}, f"bmdal-reg could not run: {why}"
        answer, _ = calm(lambda: peer("run", "features", k))
        text = str(peer.about["versions"])
        peer.close()
    if "error" in answer:
        return {}, f"bmdal-reg stopped: {answer['error']}"
    return {"bait_s": float(str(answer["select"])) / k, "picks": answer["picks"]}, text


NOTES = (
    "Float32 features with a falling spectrum; pool = test. pick_s: the median over the picks "
    "after the first, verification included. read_s: one product of the same matrix and a vector, "
    "the faster of NumPy's and torch's, after every pick of the same run.",
    "bait_s: bmdal-reg's bait in feature space on the same float32 features, noise and points; "
    "same_picks: all of its picks are ours, in order.",
)
