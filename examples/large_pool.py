"""A pool that stays on the disk: the same picks as in memory, whatever the memory.

python examples/large_pool.py FOLDER
"""

import sys
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import evgp

folder = Path(sys.argv[1] if len(sys.argv) > 1 else ".")
random = np.random.default_rng(0)
centres = random.normal(size=(30, 12)) * 2
x = centres[random.integers(30, size=20_000)] + random.normal(size=(20_000, 12))

with tempfile.TemporaryDirectory() as place:
    file = Path(place) / "pool.npy"
    np.save(file, x)
    asked = {"k": 60, "features": "nystrom-128"}
    filed = evgp.pick(str(file), method="sharded", memory="1GB", cache=place, **asked)
inside = evgp.pick(x, greedy="exact", **asked)
print(filed)
print("the same picks as in memory:", filed.indices.tolist() == inside.indices.tolist())

figure, axes = plt.subplots(figsize=(7, 4), layout="constrained")
labels = np.arange(len(filed) + 1)
axes.plot(labels, np.r_[1, filed.variance_left / filed.prior_variance], label="these picks")
axes.plot(
    labels,
    np.r_[1, filed.certificate.lowest / filed.prior_variance],
    "--",
    label="no choice does better",
)
axes.set(
    xlabel="labels",
    ylabel="share of the variance left",
    ylim=(0, 1),
    title="20,000 rows on the disk",
)
axes.legend(frameon=False)
axes.spines[["top", "right"]].set_visible(False)
figure.savefig(folder / "large_pool.png", dpi=90)
