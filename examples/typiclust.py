"""EV-GP, its "cells", scikit-activeml's TypiClust and random picks, with trained networks.

python examples/typiclust.py FOLDER          (pip install scikit-activeml)
"""

import sys
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from skactiveml.pool import TypiClust
from sklearn.datasets import load_digits

import evgp

folder = Path(sys.argv[1] if len(sys.argv) > 1 else ".")
digits = load_digits()
sizes, seeds = (10, 20, 40, 60), 3
scores: dict[str, list[list[float]]] = {}
for seed in range(seeds):
    order = np.random.default_rng(seed).permutation(len(digits.data))
    pool, test = order[:500], order[500:1300]
    x = digits.data[pool]
    centre, scale = x.mean(0), np.where(x.std(0) > 0, x.std(0), 1)
    none = np.full(len(x), np.nan)
    lists = {
        "evgp": [evgp.pick(x, k=sizes[-1]).indices] * len(sizes),  # nested: one list for all
        # Clusters depend on the number of picks, so these two are run for each size.
        "cells": [evgp.pick(x, k=k, criterion="cells").indices for k in sizes],
        "typiclust": [TypiClust(random_state=seed).query(x, none, batch_size=k) for k in sizes],
        "random": [np.arange(len(x))] * len(sizes),
    }
    for name, made in lists.items():
        line = []
        for k, rows in zip(sizes, made, strict=True):
            chosen = pool[rows[:k]]
            net = evgp.train(
                evgp.mlp(width=64, outputs=10), (digits.data[chosen] - centre) / scale,
                digits.target[chosen], members=5, loss="cross_entropy", optimiser="adam", lr=0.01,
                steps=100,
            )  # fmt: skip
            outputs = net.predict((digits.data[test] - centre) / scale)
            line.append(evgp.metrics.accuracy(outputs, digits.target[test]))
        scores.setdefault(name, []).append(line)

table = [
    f"{name:9} " + " ".join(f"{k}: {v:.3f}" for k, v in zip(sizes, np.mean(lines, 0), strict=True))
    for name, lines in scores.items()
]
print(*table, sep="\n")
(folder / "typiclust.txt").write_text("\n".join(table) + "\n")

figure, axes = plt.subplots(figsize=(7, 4), layout="constrained")
for name, lines in scores.items():
    axes.errorbar(sizes, np.mean(lines, 0), np.std(lines, 0), marker="o", capsize=3, label=name)
axes.set(xlabel="labels", ylabel="accuracy", title="500 digits, three splits, five networks each")
axes.legend(frameon=False)
figure.savefig(folder / "typiclust.png", dpi=90)
