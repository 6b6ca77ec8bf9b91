"""Draw the figures of the README and the docs from bundled data and recorded rows.

Run it with `make figures`.
"""

import csv
from pathlib import Path

import matplotlib
import matplotlib.pyplot as plt
import numpy as np
import torch
from matplotlib.offsetbox import AnnotationBbox, OffsetImage
from scipy.linalg import solve_triangular
from sklearn.datasets import load_digits
from sklearn.manifold import TSNE
from sklearn.utils import Bunch

import evgp

HERE = Path(__file__).parent
OURS, FLOOR, CHANCE = "#3d4fd1", "#0f766e", "#b9bdc9"
RECORDS = HERE.parent.parent / "benchmarks" / "results"


def main() -> None:
    """Draw all figures."""
    matplotlib.use("Agg")
    torch.set_num_threads(2)
    digits()
    budget()
    empirical()


def digits() -> None:
    """Budget curve and map of forty picks from 1,797 digits."""
    pool = load_digits()
    selection = evgp.pick(pool.data, k=40)
    figure, (left, right) = plt.subplots(
        1, 2, figsize=(12, 4.8), width_ratios=(1, 1.5), layout="constrained"
    )
    _budget(left, pool.data, selection)
    left.set_title("variance left by 40 labels, known before labelling", fontsize=11, loc="left")
    _map(right, pool, selection)
    right.set_title("which 40 of 1,797 digits to label, in order", fontsize=11, loc="left")
    _save(figure, "digits")
    print(selection)


def budget() -> None:
    """Budget curve of 150 picks."""
    pool = load_digits().data
    figure, axes = plt.subplots(figsize=(7.5, 4), layout="constrained")
    _budget(axes, pool, evgp.pick(pool, k=150))
    _save(figure, "budget")


def _budget(axes: plt.Axes, x: np.ndarray, made: evgp.Selection) -> None:
    """Share of the variance left by random rows and by the picks, and the lower bound."""
    labels, prior = np.arange(len(made) + 1), made.prior_variance
    drawn = _random(x, len(made)) / prior
    axes.fill_between(labels, drawn.min(0), drawn.max(0), color=CHANCE, alpha=0.35, linewidth=0)
    ours = np.r_[1, made.variance_left / prior]
    floor = np.r_[1, made.certificate.lowest / prior]
    axes.plot(labels, ours, color=OURS, linewidth=2.4)
    axes.plot(labels, floor, "--", color=FLOOR, linewidth=1.4)
    axes.fill_between(labels, 0, floor, color=FLOOR, alpha=0.07, linewidth=0)
    at = len(made) * 45 // 100
    for line, gap, words, colour in (
        (drawn.max(0), 0.03, "random rows, twenty draws", "#6b6f7b"),
        (ours, -0.07, "these picks", OURS),
        (floor, -0.16, "lower bound for any choice", FLOOR),
    ):
        axes.text(at, line[at] + gap, words, color=colour, fontsize=10)
    axes.set(xlim=(0, len(made)), ylim=(0, 1), xlabel="labels", ylabel="share of the variance left")
    axes.yaxis.set_major_formatter("{x:.0%}")
    axes.spines[["top", "right"]].set_visible(False)


def _random(x: np.ndarray, k: int, draws: int = 20) -> np.ndarray:
    """Mean variance left by the first rows of random orders: draws x (k + 1)."""
    kernel = evgp.NTK(evgp.mlp())(evgp.read_pool(x).in_memory).double().numpy()  # scaled as in pick
    prior = kernel.diagonal().mean()
    results = []
    for seed in range(draws):
        rows = np.random.default_rng(seed).permutation(len(x))[:k]
        root = np.linalg.cholesky(kernel[np.ix_(rows, rows)] + 1e-6 * prior * np.eye(k))
        falls = solve_triangular(root, kernel[rows], lower=True) ** 2
        results.append(prior - np.r_[0, falls.mean(1).cumsum()])
    return np.array(results)


def _map(axes: plt.Axes, pool: Bunch, made: evgp.Selection) -> None:
    """t-SNE map of the pool, coloured by the unused labels, with the picks as pictures."""
    place = TSNE(init="pca", perplexity=40, random_state=0).fit_transform(pool.data)
    axes.scatter(*place.T, c=pool.target, cmap="tab10", s=7, alpha=0.45, linewidths=0)
    for rank, row in reversed(list(enumerate(made.indices, 1))):
        ink = OffsetImage(pool.images[row], zoom=1.45, cmap="gray_r")
        frame = {"edgecolor": OURS, "linewidth": 0.9, "boxstyle": "round,pad=0.06"}
        axes.add_artist(AnnotationBbox(ink, place[row], pad=0.08, bboxprops=frame))
        if rank <= 12:
            axes.annotate(
                str(rank), place[row], (7, 6), textcoords="offset points", fontsize=5.5,
                color="white", ha="center", va="center", zorder=9,
                bbox={"boxstyle": "circle,pad=0.15", "facecolor": OURS, "edgecolor": "none"},
            )  # fmt: skip
    axes.set(xticks=[], yticks=[])
    axes.margins(0.03)
    axes.spines[:].set_visible(False)
    axes.text(
        0.5, -0.02, "colours show the labels, which evgp does not use",
        transform=axes.transAxes, ha="center", va="top", fontsize=9, color="#6b6f7b",
    )  # fmt: skip


def _save(figure: plt.Figure, name: str) -> None:
    # No metadata, so that the same run gives the same file.
    figure.savefig(HERE / f"{name}.png", dpi=150, metadata={"Software": None})
    print(HERE / f"{name}.png")


def empirical() -> None:
    """Variance left by picks with the kernel of a finite network, by its width, on two pools."""
    with (RECORDS / "quality.csv").open(newline="") as file:
        every = [row for row in csv.DictReader(file) if row["study"] == "width"]
    figure, both = plt.subplots(1, 2, figsize=(9.5, 3.6), layout="constrained")
    for axes, pool in zip(both, ("mnist", "svhn"), strict=True):
        _widths(axes, [row for row in every if row["pool"] == pool], pool.upper())
    both[0].set_ylabel("share of prior variance left")
    both[0].legend(frameon=False, fontsize=8, loc="upper right", bbox_to_anchor=(1, 0.8))
    _save(figure, "empirical")


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
        values = over(name)
        low, high = values.min(), values.max()
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
