# ---
# jupyter:
#   jupytext:
#     formats: ipynb,py:percent
#   kernelspec:
#     display_name: Python 3
#     name: python3
# ---

# %% [markdown]
# # Five minutes, in a notebook
#
# *Five minutes from a CSV* in Python: the rows to label first, how good they provably are, and
# which rows come next.
#
# `jupytext --to notebook examples/start.py` turns this file into a notebook.

# %%
import sys
from pathlib import Path

import matplotlib.pyplot as plt
from sklearn.datasets import load_digits

import evgp

digits = load_digits()
pool = digits.data
print(pool.shape)

# %% [markdown]
# Pick five rows. Each gain is given the rows before it, so the first three are a sensible batch of
# three.

# %%
picked = evgp.pick(pool, k=5)
for row, gain, left in zip(picked, picked.gains, picked.variance_left, strict=True):
    print(f"digit-{row:04d}  gain {gain:.4f}  variance left {left:.4f}")
print(picked)

# %% [markdown]
# Once these are labelled, pick the next five.

# %%
more = evgp.pick(pool, k=5, labelled=picked)
print(list(more), f"variance {more.start_variance:.3f} -> {more.variance_left[-1]:.3f}")

# %% [markdown]
# Show all ten.

# %%
figure, axes = plt.subplots(1, 10, figsize=(9, 1.3), layout="constrained")
for axis, row in zip(axes, [*picked, *more], strict=True):
    axis.imshow(digits.images[row], cmap="gray_r")
    axis.axis("off")
# As a script: python examples/start.py FOLDER
if len(sys.argv) == 2 and Path(sys.argv[1]).is_dir():
    figure.savefig(Path(sys.argv[1]) / "start.png", dpi=90)
