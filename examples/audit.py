"""Audit a labelled set: where will networks disagree, and what should be labelled next?

python examples/audit.py FOLDER
"""

import sys
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_diabetes

import evgp

folder = Path(sys.argv[1] if len(sys.argv) > 1 else ".")
data = load_diabetes()
x, y = data.data, (data.target - data.target.mean()) / data.target.std()
train, test, pool = np.split(np.random.default_rng(0).permutation(len(x))[:300], (60, 160))

found = evgp.audit(x[train], x[test], evgp.mlp(), pool=x[pool], k=10)
print(found)
print("test rows most at risk:", test[found.at_risk(5)].tolist())

# Was it right? Train twenty networks that differ only in their initialisation.
scaled = (x - x[train].mean(0)) / x[train].std(0)
recipe = evgp.training.Recipe(evgp.mlp(width=128), {"optimiser": "adam", "lr": 0.01, "steps": 300})
nets = recipe(scaled[train], y[train], members=20)
made = evgp.audits.confirm(found, nets.predict(scaled[test]))
print(f"predicted and observed standard deviation: Spearman {made.spearman:.2f}")

figure, both = plt.subplots(1, 2, figsize=(8.5, 3.8), layout="constrained")
observed = nets.predict(scaled[test])[:, :, 0].std(0)
both[0].plot(found.deviation, observed, "o", color="#3d4fd1", markersize=4, alpha=0.6)
both[0].set(xlabel="predicted standard deviation", ylabel="observed, twenty networks")
labels = np.arange(1, 11)
both[1].fill_between(
    labels, found.chance.min(0), found.chance.max(0), color="#d5d8e0", label="random"
)
both[1].plot(labels, found.after, color="#3d4fd1", label="picked")
both[1].set(xlabel="further labels", ylabel="mean variance at the test rows")
both[1].legend(frameon=False)
for axes in both:
    axes.spines[["top", "right"]].set_visible(False)
figure.savefig(folder / "audit.png", dpi=90)
