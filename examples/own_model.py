"""Your own torch module: where it is uncertain before any label, and after twelve.

python examples/own_model.py FOLDER
"""

import sys
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import torch
from sklearn.datasets import make_moons
from torch import nn

import evgp

folder = Path(sys.argv[1] if len(sys.argv) > 1 else ".")
pool, _ = make_moons(300, noise=0.08, random_state=0)
pool = (pool - pool.mean(0)) / pool.std(0)
side = np.linspace(-2.4, 2.4, 40)
grid = np.stack(np.meshgrid(side, side), -1).reshape(-1, 2)

torch.manual_seed(0)
module = nn.Sequential(
    nn.Linear(2, 256), nn.Tanh(), nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 1)
)
kernel = evgp.EmpiricalNTK(module)
picked = evgp.pick(pool, k=12, kernel=kernel, scale=None)
print(picked)

x, where = torch.from_numpy(pool[picked.indices]).float(), torch.from_numpy(grid).float()
before = kernel.diag(where).sqrt()
after = evgp.posterior.ntkgp(kernel, x, torch.zeros(12), where, noise=1e-4).variance.sqrt()

figure, both = plt.subplots(1, 2, figsize=(8, 3.8), layout="constrained", sharey=True)
for axes, values, title in (
    (both[0], before, "before any label"),
    (both[1], after, "after twelve"),
):
    shape = values.numpy().reshape(40, 40)
    drawn = axes.contourf(side, side, shape, np.linspace(0, float(before.max()), 12), cmap="Blues")
    axes.plot(*pool.T, ".", color="#888888", markersize=2)
    axes.set(title=title, xticks=[], yticks=[])
both[1].plot(*pool[picked.indices].T, "o", color="#b8265e", markersize=6)
figure.colorbar(drawn, ax=both, label="standard deviation of the output")
figure.savefig(folder / "own_model.png", dpi=90)
