"""Photographs: twelve tiles of two photographs, compared by what a function sees in them.

A folder of images and an embedder; here a function that counts colours and edges stands in for a
network with trained weights (`embed="timm:resnet50@weights.pt"`). The photographs are those that
scikit-learn brings.

python examples/photographs.py FOLDER
"""

import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import matplotlib.pyplot as plt
import numpy as np
from PIL import Image
from sklearn.datasets import load_sample_images

import evgp

folder = Path(sys.argv[1] if len(sys.argv) > 1 else ".")


def colours_and_edges(batch: np.ndarray) -> np.ndarray:
    """Histograms of the three channels, and of brightness steps to the right and down."""
    x = batch.astype(float)
    grey = x.mean(1)
    steps = [np.abs(np.diff(grey, axis=axis)) for axis in (1, 2)]
    parts = [(x[:, channel], 256) for channel in range(3)] + [(step, 64) for step in steps]
    return np.stack(
        [
            np.concatenate([np.histogram(part[row], 8, (0, top))[0] for part, top in parts])
            for row in range(len(batch))
        ]
    ) / x[0, 0].size  # fmt: skip


with TemporaryDirectory() as tiles:
    for name, photograph in zip(("temple", "flower"), load_sample_images().images, strict=True):
        for top in range(0, 384, 64):
            for left in range(0, 640, 64):
                tile = Image.fromarray(photograph[top : top + 64, left : left + 64])
                tile.save(Path(tiles, f"{name}-{top // 64}-{left // 64}.png"))
    picked = evgp.pick(evgp.read_pool(tiles, embed=colours_and_edges), k=12)
    print(picked)
    shown = [Image.open(Path(tiles, name)).copy() for name in picked.ids]

figure, axes = plt.subplots(2, 6, figsize=(6, 2.4), layout="constrained")
for axis, name, tile in zip(axes.flat, picked.ids, shown, strict=True):
    axis.imshow(tile)
    axis.set_title(name.removesuffix(".png"), fontsize=8)
    axis.axis("off")
figure.savefig(folder / "photographs.png", dpi=80)
