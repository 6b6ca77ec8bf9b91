"""A cost per row: what 60 minutes of labelling buy, with and without knowing the costs.

python examples/budget.py FOLDER
"""

import sys
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

import evgp

folder = Path(sys.argv[1] if len(sys.argv) > 1 else ".")
pool = load_digits().data[:600]
minutes = np.where(pool.mean(1) > 5, 4.0, 1.0)  # digits with more ink take longer

cheap = evgp.pick(pool, budget=60, costs=minutes)
blind = evgp.pick(pool, k=60)  # ignores the costs

figure, axes = plt.subplots(figsize=(7, 4), layout="constrained")
for made, spent, name in (
    (cheap, cheap.costs, "costs are known"),
    (blind, minutes[blind.indices], "costs are not known"),
):
    minutes_spent = np.r_[0, spent.cumsum()]
    left = np.r_[1, made.variance_left / made.prior_variance]
    inside = minutes_spent <= 60
    axes.step(minutes_spent[inside], left[inside], where="post", label=name)
    print(f"{name}: {inside.sum() - 1} rows, {1 - left[inside][-1]:.0%} of the variance removed")
axes.set(xlabel="minutes spent", ylabel="share of the variance left", ylim=(0, 1))
axes.legend(frameon=False)
axes.spines[["top", "right"]].set_visible(False)
figure.savefig(folder / "budget.png", dpi=90)
