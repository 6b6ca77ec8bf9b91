"""A pool that stays on disk: the same picks as in memory, within 1 GB.

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
    options = {"k": 60, "features": "nystrom-128"}
    picked = evgp.pick(str(file), method="sharded", memory="1GB", cache=place, **options)
in_memory = evgp.pick(x, **options)
print(picked)
print("the same picks as in memory:", picked.indices.tolist() == in_memory.indices.tolist())

figure, axes = plt.subplots(figsize=(7, 4), layout="constrained")
labels = np.arange(len(picked) + 1)
axes.plot(labels, np.r_[1, picked.variance_left / picked.prior_variance], label="these picks")
axes.plot(
    labels,
    np.r_[1, picked.certificate.lowest / picked.prior_variance],
    "--",
    label="lower bound for any choice",
)
axes.set(
    xlabel="labels",
    ylabel="share of the variance left",
    ylim=(0, 1),
    title="20,000 rows on disk",
)
axes.legend(frameon=False)
axes.spines[["top", "right"]].set_visible(False)
figure.savefig(folder / "large_pool.png", dpi=90)
