"""The pictures of the README and the docs, drawn from bundled data and recorded rows.

Run by `make figures`.
"""

import csv
from pathlib import Path

import matplotlib
import matplotlib.pyplot as plt
import numpy as np
import torch
from sklearn.datasets import load_digits

import evgp
from evgp.report import plot_selection, summarise

HERE = Path(__file__).parent
RECORDS = HERE.parent.parent / "benchmarks" / "results"


def main() -> None:
    """All of them."""
    matplotlib.use("Agg")
    torch.set_num_threads(2)
    digits()
    empirical()


def digits() -> None:
    """The budget curve and the map of forty picks among 1,797 digits."""
    pool = load_digits().data
    selection = evgp.pick(pool, k=40)
    scaled = (pool - pool.mean(0)) / pool.std(0).clip(min=1e-12)
    figure = plot_selection(summarise(selection, x=scaled, network=repr(evgp.mlp())))
    # Without dates, so that the same run gives the same file.
    figure.savefig(HERE / "digits.png", dpi=150, bbox_inches="tight", metadata={"Software": None})
    print(f"{HERE / 'digits.png'}: {selection!r}")


def empirical() -> None:
    """What picks with a finite network's kernel leave, against its width, on two pools."""
    with (RECORDS / "quality.csv").open(newline="") as file:
        every = [row for row in csv.DictReader(file) if row["study"] == "width"]
    figure, both = plt.subplots(1, 2, figsize=(9.5, 3.6), layout="constrained")
    for axes, pool in zip(both, ("mnist", "svhn"), strict=True):
        _widths(axes, [row for row in every if row["pool"] == pool], pool.upper())
    both[0].set_ylabel("share of prior variance left")
    both[0].legend(frameon=False, fontsize=8, loc="upper right", bbox_to_anchor=(1, 0.8))
    figure.savefig(HERE / "empirical.png", dpi=150, metadata={"Software": None})
    print(f"{HERE / 'empirical.png'}")


def _widths(axes: plt.Axes, rows: list[dict[str, str]], title: str) -> None:
    widths = sorted({int(row["width"]) for row in rows})

    def over(name: str) -> np.ndarray:
        """Widths x seeds."""
        return np.array([[float(r[name]) for r in rows if int(r["width"]) == w] for w in widths])

    ours = over("evgp")
    axes.plot(widths, ours, "o", color="#2a6fbb", markersize=4, alpha=0.55)
    axes.plot(widths, ours.mean(1), color="#2a6fbb", label="picks with the kernel of that width")
    best = over("analytic").mean()
    axes.axhline(
        best, color="#222222", linestyle="--", label="picks with the infinite-width kernel"
    )
    for name, colour, label in (
        ("kmeans", "#b35900", "k-means++"),
        ("random", "#888888", "random"),
    ):
        found = over(name)
        low, high = found.min(), found.max()
        axes.axhspan(low, high, color=colour, alpha=0.18, linewidth=0)
        axes.text(widths[0], (low + high) / 2, f"  {label}", color=colour, va="center", fontsize=9)
    axes.set_xscale("log", base=2)
    axes.set_xticks(widths, [f"{width:,}" for width in widths])
    axes.set_xlabel("width of both hidden layers")
    axes.set_title(title, fontsize=10)
    axes.spines[["top", "right"]].set_visible(False)
    print(f"{title}: widths {widths}, mean {ours.mean(1).round(4).tolist()}, infinite {best:.4f}")


if __name__ == "__main__":
    main()
