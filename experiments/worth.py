"""What picks are worth: EV-GP, its former scaling, and its rivals, on pixels and tables.

Cold starts: no labels, one batch. Pools of up to 1,000 points; 1 to 20 labels per class, or 10 to
160 labels for numbers; four learners on the same picks. Every strategy sees the pool as `evgp.pick`
scales it; a name with `@` names another scaling: `evgp@columns` is the scaling of version 0.1.

    python -m experiments.tables FOLDER
    python -m experiments worth FOLDER --seeds 20 --jobs 2

resumes where it stopped, and writes `experiments/results/worth`.
"""

import argparse
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import pyarrow.parquet as pq

from evgp.comparison import DatasetSource, Protocol, compare
from evgp.comparison.run import open_store
from experiments.tables import TABLES

NAME, TITLE = "worth", "What picks are worth, for four learners and few labels"
RESULTS = Path(__file__).parent / "results" / "worth"
NNGP = "experiments.kernels:nngp"
CENTRAL = ("random", "evgp", "evgp@columns", "kmeans", "typiclust", NNGP)
OTHERS = (
    "evgp-cells", "maxherding", "lcmd", "bait", "probcover", "farthest-first", "lcmd@columns",
    "typiclust@common",
)  # fmt: skip
# Images have one channel, which "columns" scales as a whole; rows of pixels were different in 0.1.
EACH_PIXEL = "experiments.kernels:each_pixel@common"
IMAGES = ("mnist", "emnist")
# What the rule would choose without rows of equal length, on tuning sets where it has them.
WITHOUT_UNIT_ROWS = "evgp@common"
UNIT_ROWS = ("satellite", "ionosphere", "digits", "optdigits", "mnist")
LEARNERS = ("1nn", "linear", "ntk", "trees")
# Used to develop the rule for scaling; all others only validate it.
TUNING = (
    "digits", "optdigits", "mnist", "kin8nm", "protein", "boston", "california", "naval",
    "spam", "satellite", "vehicle", "ionosphere", "concrete", "computers",
)  # fmt: skip
# Run before the others.
FIRST = (
    "digits", "optdigits", "mnist", "emnist",
    "kin8nm", "protein", "boston", "california", "naval",
    "spam", "letter", "vowel", "leaf", "diamonds", "ames", "chicago", "churn",
)  # fmt: skip
NAMED = {
    "optdigits": 10, "mnist": 10, "emnist": 47,
    "kin8nm": 0, "protein": 0, "boston": 0, "california": 0, "naval": 0,
}  # fmt: skip
_POOL = 1_000


@dataclass(frozen=True)
class Contender:
    """A dataset of the study: where it is, its classes (0 for numbers), its budgets."""

    name: str
    source: DatasetSource
    budgets: tuple[int, ...]

    @property
    def tuning(self) -> bool:
        """Whether the rule for scaling was developed on it."""
        return self.name in TUNING


def datasets(folder: Path) -> Iterator[Contender]:
    """All datasets of the study; those of packages are in the folder."""
    for name, classes in NAMED.items():
        task = "classification" if classes else "regression"
        small = name in ("boston",)
        source = DatasetSource(
            name, task=task, pool=None if small else _POOL, test=None if small else _POOL
        )
        yield Contender(name, source, budgets_for(classes, 250 if small else _POOL))
    for table in ("digits", *(table.name for table in TABLES)):
        path = folder / f"{table}.parquet"
        labels = pq.read_table(path, columns=["label"]).column("label")
        n = len(labels)
        words = str(labels.type) in ("string", "large_string") or table == "digits"
        classes = len(labels.unique()) if words else 0
        pool = min(_POOL, n // 2)
        source = DatasetSource(
            str(path),
            label="label",
            task="classification" if classes else "regression",
            pool=pool,
            test=min(_POOL, n - n // 2),
        )
        yield Contender(table, source, budgets_for(classes, pool))


def budgets_for(classes: int, pool: int) -> tuple[int, ...]:
    """1 to 20 labels per class, or 10 to 160 labels; no more than half the pool, or 400.

    >>> budgets_for(10, 1000), budgets_for(0, 250)
    ((10, 20, 40, 100, 200), (10, 20, 40, 80))
    """
    counts = [classes * each for each in (1, 2, 4, 10, 20)] if classes else [10, 20, 40, 80, 160]
    return tuple(count for count in counts if 2 <= count <= min(pool // 2, 400))


def run(folder: Path, seeds: int, jobs: int) -> None:
    """Run the missing cells, seed by seed, so that datasets grow alike; central ones first."""
    everything = list(datasets(folder))
    first = [item for item in everything if item.name in FIRST]
    others = [item for item in everything if item.name not in FIRST]
    turns = [*product((first, others), (CENTRAL, OTHERS))]
    for names, strategy in ((UNIT_ROWS, WITHOUT_UNIT_ROWS), (IMAGES, EACH_PIXEL)):
        turns += [([item for item in everything if item.name in names], (strategy,))]
    for (contenders, strategies), seed in product(turns, range(seeds)):
        for contender in contenders:
            protocol = Protocol(
                budgets=contender.budgets, learners=LEARNERS, search="exact", noise=1e-6,
                scale="auto",
            )  # fmt: skip
            out = RESULTS / contender.name
            rows = compare(
                contender.source, strategies, out=out, protocol=protocol, seeds=[seed], jobs=jobs
            )
            print(f"seed {seed}: {contender.name}, {len(rows):,} rows", flush=True)


def pack() -> int:
    """Put the finished cells of each dataset into one file; return how many there were."""
    return sum(open_store(folder).pack() for folder in sorted(RESULTS.glob("*/")))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--pack", action="store_true", help="only pack the finished cells")
    arguments = parser.parse_args()
    if arguments.pack:
        print(pack())
    else:
        run(arguments.folder, arguments.seeds, arguments.jobs)
