"""Images: the thirty digits that a small CNN should see first.

python examples/images.py FOLDER
"""

import sys
from pathlib import Path

import matplotlib.pyplot as plt
import torch
from sklearn.datasets import load_digits
from torch import nn

import evgp

folder = Path(sys.argv[1] if len(sys.argv) > 1 else ".")
images = load_digits().images[:500]
pool = torch.from_numpy(images[:, None]).float()  # samples x channels x height x width


def build() -> nn.Module:
    """The network that will be trained; `evgp` needs only its initialisation."""
    return nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(), nn.Flatten(), nn.Linear(512, 10),
    )  # fmt: skip


picked = evgp.pick(pool, k=30, network=build)
print(picked)

figure, axes = plt.subplots(3, 10, figsize=(8, 3), layout="constrained")
for rank, (axis, row) in enumerate(zip(axes.flat, picked.indices, strict=True), 1):
    axis.imshow(images[row], cmap="gray_r")
    axis.set_title(rank, fontsize=7)
    axis.axis("off")
figure.savefig(folder / "images.png", dpi=90)
