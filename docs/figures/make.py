"""The pictures of the README and the docs, drawn from runs on bundled data.

Run by `make figures`.
"""

from pathlib import Path

import matplotlib
import torch
from sklearn.datasets import load_digits

import evgp
from evgp.report import plot_selection, summarise

HERE = Path(__file__).parent


def main() -> None:
    """The budget curve and the map of forty picks among 1,797 digits."""
    matplotlib.use("Agg")
    torch.set_num_threads(2)
    pool = load_digits().data
    selection = evgp.pick(pool, k=40)
    scaled = (pool - pool.mean(0)) / pool.std(0).clip(min=1e-12)
    figure = plot_selection(summarise(selection, x=scaled, network=repr(evgp.mlp())))
    # Without dates, so that the same run gives the same file.
    figure.savefig(HERE / "digits.png", dpi=150, bbox_inches="tight", metadata={"Software": None})
    print(f"{HERE / 'digits.png'}: {selection!r}")


if __name__ == "__main__":
    main()
