"""bmdal-reg's `bait`, in its own environment: `bmdal.py features.npy sigma`, then a command a line.

`run HOW K` answers with picks and seconds. HOW is `features` (all of them), `top-P` (the first P,
which are the largest), `sketch-P` (its own random projection to P features), `backward` (twice as
many picks, half of them taken back) or `kernel` (its own ReLU NTK, which has no features).
"""

import json
import sys
import time

import numpy as np
import torch

if not hasattr(np, "Inf"):
    np.Inf = np.inf  # bmdal-reg 3.0.2 was written for NumPy 1

from bmdal_reg.bmdal.feature_data import TensorFeatureData
from bmdal_reg.bmdal.feature_maps import IdentityFeatureMap, ReLUNTKFeatureMap
from bmdal_reg.bmdal.features import Features
from bmdal_reg.bmdal.selection import BaitFeatureSpaceSelectionMethod


def main(data: str, sigma: str) -> None:
    """Answer on stdout, one line of JSON a command."""
    phi = torch.from_numpy(np.load(data))
    _say({"versions": f"bmdal-reg 3.0.2, torch {torch.__version__}, NumPy {np.__version__}"})
    for line in sys.stdin:
        _, how, k = line.split()
        try:
            _say(run(phi, float(sigma), how, int(k)))
        except Exception as error:
            _say({"error": f"{type(error).__name__}: {error}".removesuffix(": ")})


def run(phi: torch.Tensor, sigma: float, how: str, k: int) -> dict[str, object]:
    """k picks with no training points: the seconds to set up and to select."""
    if how.startswith("top-"):
        phi = phi[:, : int(how.removeprefix("top-"))].contiguous()
    began = time.perf_counter()
    feature_map = (
        ReLUNTKFeatureMap(n_layers=3) if how == "kernel" else IdentityFeatureMap(phi.shape[1])
    )
    pool = Features(feature_map, TensorFeatureData(phi))
    train = Features(feature_map, TensorFeatureData(phi[:0]))
    if how.startswith("sketch-"):
        torch.manual_seed(0)
        sketch = pool.sketch_tfm(int(how.removeprefix("sketch-")))
        pool, train = sketch(pool).precompute().simplify(), sketch(train).precompute().simplify()
    method = BaitFeatureSpaceSelectionMethod(
        pool,
        train,
        noise_sigma=sigma,
        overselection_factor=2.0 if how == "backward" else 1.0,
        verbosity=0,
    )
    ready = time.perf_counter()
    picks = method.select(k)
    done = time.perf_counter()
    return {
        "picks": picks.tolist(),
        "setup": ready - began,
        "select": done - ready,
        "status": method.get_status() or "",
    }


def _say(answer: dict[str, object]) -> None:
    print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
