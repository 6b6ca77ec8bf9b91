"""Rows with a price: what 60 minutes of labelling buy, and what the prices change.

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
minutes = np.where(pool.mean(1) > 5, 4.0, 1.0)  # digits with much ink take longer

cheap = evgp.pick(pool, budget=60, costs=minutes)
blind = evgp.pick(pool, k=60)  # prices are not known: the best rows first

figure, axes = plt.subplots(figsize=(7, 4), layout="constrained")
for made, spent, name in (
    (cheap, cheap.costs, "prices are known"),
    (blind, minutes[blind.indices], "prices are not known"),
):
    money = np.r_[0, spent.cumsum()]
    left = np.r_[1, made.variance_left / made.prior_variance]
    inside = money <= 60
    axes.step(money[inside], left[inside], where="post", label=name)
    print(f"{name}: {inside.sum() - 1} rows, {1 - left[inside][-1]:.0%} of the variance removed")
axes.set(xlabel="minutes spent", ylabel="share of the variance left", ylim=(0, 1))
axes.legend(frameon=False)
axes.spines[["top", "right"]].set_visible(False)
figure.savefig(folder / "budget.png", dpi=90)
