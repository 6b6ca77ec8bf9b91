"""What picks with an empirical kernel are worth: against random and k-means++, and as it widens."""

import numpy as np
import torch
from sklearn.cluster import kmeans_plusplus
from torch import Tensor

from benchmarks.common import Options, record, variance_left
from benchmarks.data import images
from evgp import EVGP, NTK, EmpiricalNTK, Pool, mlp
from evgp.kernels import Tabulated
from evgp.nets import wide_resnet
from evgp.search import Exchange

NOISE = 1e-6
WIDTHS = (128, 256, 512, 1024, 2048, 4096)


def run(options: Options) -> None:
    """Mean variance left, as a share of the prior one, for every seed."""
    n, k, seeds = (200, 20, 2) if options.small else (1000, 50, 5)
    rows: list[dict[str, object]] = []
    mnist = torch.from_numpy(images("mnist", n))
    svhn = torch.from_numpy(images("svhn", n))
    networks = (("mnist", mnist, mlp(2, 512)), ("svhn", svhn, wide_resnet(10, 1)))
    for name, x, network in networks:
        for seed in range(seeds):
            kernel = EmpiricalNTK(network, seed=seed)
            matrix = kernel(x).double()
            ours = left(matrix, picks(matrix, k))
            values = {"evgp": ours, **rivals(matrix, x, k, seed)}
            rows.append({"study": "rivals", "pool": name, "seed": seed, **values})
    for name, x in (("mnist", mnist), ("svhn", svhn)):
        analytic = NTK(mlp())(x.flatten(1))
        best = left(analytic, picks(analytic, k))
        for width in WIDTHS[:3] if options.small else WIDTHS:
            for seed in range(seeds):
                matrix = EmpiricalNTK(mlp(2, width), seed=seed)(x).double()
                values = {"evgp": left(analytic, picks(matrix, k)), **rivals(analytic, x, k, seed)}
                rows.append(
                    {"study": "width", "pool": name, "width": width, "seed": seed, **values}
                    | {"analytic": best}
                )
    record(
        options,
        "quality",
        f"{k} picks of {n} images: share of the prior variance left",
        rows,
        [
            "rivals: picks with the kernel of one initialisation (MNIST: MLP of width 512; SVHN: "
            "WRN-10-1), and the variance left under the same kernel. `seed` is that of the "
            "initialisation, of the random set and of k-means++; all seeds tried are here.",
            "width: picks with the kernel of an MLP of that width, judged under the analytic "
            "kernel of infinite width; `analytic` are its own picks.",
            "The first images of the training sets, standardised by channel.",
        ],
    )


def picks(matrix: Tensor, k: int) -> list[int]:
    """EV-GP's picks for a kernel matrix over pool = test, exchanged."""
    rows = torch.arange(len(matrix), dtype=torch.float64)[:, None]
    strategy = EVGP(Tabulated(matrix), greedy=Exchange(), noise=NOISE)
    return strategy(Pool(rows), k, generator=torch.Generator()).indices.tolist()


def rivals(matrix: Tensor, x: Tensor, k: int, seed: int) -> dict[str, float]:
    """Random picks, and k-means++ on the pixels."""
    flat = x.reshape(len(x), -1).numpy()
    random = np.random.default_rng(seed).choice(len(x), k, replace=False).tolist()
    spread = kmeans_plusplus(flat, k, random_state=seed)[1].tolist()
    return {"random": left(matrix, random), "kmeans": left(matrix, spread)}


def left(matrix: Tensor, chosen: list[int]) -> float:
    """The share of the prior variance that the picks leave."""
    prior = float(matrix.diagonal().mean())
    return variance_left(matrix, chosen, NOISE * prior) / prior
