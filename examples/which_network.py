"""Which network? Rank architectures by a few labels, before any is trained.

python examples/which_network.py FOLDER
"""

import sys
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_diabetes

import evgp

folder = Path(sys.argv[1] if len(sys.argv) > 1 else ".")
data = load_diabetes()
rows = evgp.pick(data.data, k=60).indices  # label these first
choice = evgp.choose(evgp.architectures.candidates(), data.data[rows], data.target[rows])

ranked = choice.ranked
for one in ranked[:3]:
    print(f"{one.name}: expected loss {one.score:.3f}, behind the best by {one.lead:.3f}")

figure, axes = plt.subplots(figsize=(7, 4.4), layout="constrained")
place = np.arange(len(ranked))
axes.barh(place, [one.fit for one in ranked], color="#3d4fd1", label="error of the mean")
axes.barh(
    place, [one.spread for one in ranked], left=[one.fit for one in ranked], color="#b9bdc9",
    label="spread over initialisations",
)  # fmt: skip
axes.set_yticks(place, [one.name for one in ranked], fontsize=8)
axes.invert_yaxis()
axes.set(xlabel="cross-validated loss", title="60 labels of the diabetes data")
axes.legend(frameon=False, loc="upper right")
axes.spines[["top", "right"]].set_visible(False)
figure.savefig(folder / "which_network.png", dpi=90)
