"""What swapping picks costs on top of the exact greedy, and how much variance it saves."""

import time
from dataclasses import dataclass, field
from math import inf

import torch

from benchmarks.common import Options, in_turns, record
from benchmarks.data import half
from evgp import EVGP, NTK, Pool, Selection, mlp
from evgp.search import Exact, Exchange, Greedy

GREEDIES = {"exact": Exact(), "exchange": Exchange()}


def run(options: Options) -> None:
    """Exact against exchange to convergence, k = 100, and the certificate's floor."""
    k = 20 if options.small else 100
    rows = []
    for name in ("kin8nm", "optdigits"):
        pool = Pool(torch.from_numpy(half(name)))
        runs = {key: _Run(pool, k, greedy) for key, greedy in GREEDIES.items()}
        best, others = in_turns(runs, options.repeats)
        plain = float(runs["exact"].made.variance_left[-1])
        for key, item in runs.items():
            certificate = item.made.certificate
            left = float(item.made.variance_left[-1])
            rows.append(
                {
                    "pool": name,
                    "n": len(pool),
                    "k": k,
                    "greedy": key,
                    "seconds": best[key],
                    "certificate_s": item.certificate,
                    "cost": best[key] / best["exact"],
                    "variance_left": f"{left:.5f}",
                    "saved_percent": 100 * (1 - left / plain),
                    "floor": f"{certificate.lowest[-1]:.5f}" if certificate else "",
                    "certified_percent": 100 * float(certificate.share[-1]) if certificate else "",
                    "others": others,
                }
            )
    record(
        options,
        "exchange",
        "Exchange on top of exact greedy",
        rows,
        [
            "seconds: the whole run in float64, kernel included, without the certificate, which "
            "has its own column. cost: seconds to those of exact.",
            "floor: no k points at all can leave less. certified_percent: of the best possible "
            "fall, at least this much is reached.",
        ],
    )


@dataclass
class _Run:
    """One way to pick, the seconds it takes up to the certificate, and what came out last."""

    pool: Pool
    k: int
    greedy: Greedy
    made: Selection = field(init=False)
    certificate: float = inf

    def __call__(self) -> float:
        certifying = inf

        def progress(stage: str, done: int, total: int) -> None:
            nonlocal certifying
            if stage == "certifying" and done == 0:
                certifying = time.perf_counter()

        strategy = EVGP(NTK(mlp()), greedy=self.greedy)
        began = time.perf_counter()
        self.made = strategy(self.pool, self.k, generator=torch.Generator(), progress=progress)
        self.certificate = min(self.certificate, time.perf_counter() - certifying)
        return certifying - began
