"""What picks are worth on mails and photographs, as vectors of pretrained models.

Cold starts: no labels, one batch, a linear probe (logistic regression) on the labels. Pools of
1,000 rows (1,200 of CIFAR-100); 1, 2, 5 and 10 labels per class (1, 2 and 5 of CIFAR-100), and up
to 200 labels, so that the labels needed for what 200 random ones reach can be read off. Every
strategy sees the pool as `evgp.pick` scales it.

    python -m experiments.vectors FOLDER
    python -m experiments.text_and_images FOLDER --seeds 20

resumes where it stopped, and writes `experiments/results/text-and-images/rows.parquet`.
"""

import argparse
from itertools import product
from pathlib import Path

from evgp.comparison import DatasetSource, Protocol
from evgp.comparison.run import cell_of
from evgp.comparison.suite import run_recorded
from experiments.vectors import IMAGES, MAIL_COUNT

RESULTS = Path(__file__).parent / "results" / "text-and-images"
STRATEGIES = ("random", "evgp", "evgp-cells", "kmeans", "typiclust", "maxherding")
LEARNER = "linear"
SPLITS = 20
POOLS = {"mails-tfidf": 1_000, "mails-minilm": 1_000, "svhn": 1_000, "cifar100": 1_200}
BUDGETS = {
    "mails-tfidf": (2, 4, 10, 20, 50, 100, 200),
    "mails-minilm": (2, 4, 10, 20, 50, 100, 200),
    "svhn": (10, 20, 50, 100, 200),
    "cifar100": (100, 200, 500),
}
CLASSES = {"mails-tfidf": 2, "mails-minilm": 2, "svhn": 10, "cifar100": 100}
TESTS = {
    name: (MAIL_COUNT if name.startswith("mails") else IMAGES) - pool
    for name, pool in POOLS.items()
}


def source(folder: Path, name: str) -> DatasetSource:
    """Return the vectors and labels of a dataset; rows outside the pool are the test set."""
    path = str(folder / f"{name}.parquet")
    return DatasetSource(
        path, label="label", task="classification", pool=POOLS[name], test=TESTS[name]
    )


def run(folder: Path, names: tuple[str, ...], seeds: int, jobs: int) -> None:
    """Run the missing cells, seed by seed, so that all datasets have equally many."""
    cells = []
    for seed, name in product(range(seeds), names):
        protocol = Protocol(
            budgets=BUDGETS[name], learners=(LEARNER,), search="exact", noise=1e-6, scale="auto"
        )
        where = source(folder, name)
        cells += [cell_of(where, strategy, seed, protocol) for strategy in STRATEGIES]
    run_recorded(
        RESULTS, cells, jobs=jobs, watch=lambda done, total, left: print(done, total, flush=True)
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("names", nargs="*", help="only these datasets", default=tuple(POOLS))
    parser.add_argument("--seeds", type=int, default=SPLITS)
    parser.add_argument("--jobs", type=int, default=1)
    arguments = parser.parse_args()
    run(arguments.folder, tuple(arguments.names), arguments.seeds, arguments.jobs)
