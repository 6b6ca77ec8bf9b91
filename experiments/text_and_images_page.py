"""Write docs/text-and-images.md from the committed rows of `experiments.text_and_images`.

    python -m experiments.text_and_images_page

Differences are in points of accuracy, between two strategies on the same splits with the same
number of labels; intervals are Student's t over splits. The labels that a strategy needs for what
200 random ones reach are read off its mean curve, by straight lines over the logarithm of the
number of labels; their intervals are percentiles of 2,000 bootstrap samples of the splits.
"""

import json
from collections.abc import Collection, Iterable, Sequence
from functools import cache
from pathlib import Path

import numpy as np
from jaxtyping import Float

from evgp.comparison import Row
from evgp.comparison.statistics import interval
from evgp.comparison.suite import recorded_rows
from experiments.text_and_images import BUDGETS, CLASSES, POOLS, RESULTS, SPLITS, TESTS
from experiments.vectors import IMAGES
from experiments.worth_page import Difference, losses, table

PAGE = Path(__file__).parents[1] / "docs" / "text-and-images.md"
TIMES = RESULTS / "times.json"
TITLES = {
    "mails-tfidf": "Mails, tfidf",
    "mails-minilm": "Mails, MiniLM",
    "svhn": "SVHN, EfficientNet-Lite0",
    "cifar100": "CIFAR-100, EfficientNet-Lite0",
}
NAMES = {
    "random": "random",
    "evgp": "EV-GP",
    "evgp-cells": "EV-GP, cells",
    "kmeans": "k-means",
    "typiclust": "TypiClust",
    "maxherding": "MaxHerding",
}
REFERENCE = 200
_SAMPLES = 2_000


@cache
def _rows() -> tuple[Row, ...]:
    return recorded_rows(RESULTS)


class Curves:
    """Percent accuracy on one dataset: strategy by split by number of labels."""

    def __init__(self, dataset: str) -> None:
        self.dataset, self.budgets = dataset, BUDGETS[dataset]
        rows = [row for row in _rows() if row.dataset == dataset]
        scores = {(row.strategy, row.seed, row.labels): 100 * row.accuracy for row in rows}
        # Only splits that all strategies have finished, so that all are compared on the same ones.
        self.seeds = [
            seed
            for seed in sorted({row.seed for row in rows})
            if all((name, seed, count) in scores for name in NAMES for count in self.budgets)
        ]
        self.accuracy: dict[str, Float[np.ndarray, "s b"]] = {
            name: np.array([[scores[name, s, b] for b in self.budgets] for s in self.seeds])
            for name in NAMES
        }

    def differences(self, strategy: str, base: str) -> list[Difference]:
        """How much better one strategy is than another, with each number of labels."""
        gaps = (self.accuracy[strategy] - self.accuracy[base]).T
        return [
            Difference(self.dataset, count, step, tuple(map(float, values)))
            for step, (count, values) in enumerate(zip(self.budgets, gaps, strict=True))
        ]

    def needed(self, strategy: str) -> str:
        """Return how many labels reach what 200 random ones do, with an interval."""
        own, target = self.accuracy[strategy], self._target()
        random = np.random.default_rng(0)
        samples = random.integers(0, len(own), (_SAMPLES, len(own)))
        counts = [labels_for(self.budgets, own[s].mean(0), target[s].mean()) for s in samples]
        # Values of the sample itself, because infinity cannot be interpolated.
        low, high = np.quantile(counts, (0.025, 0.975), method="closest_observation")
        mean = labels_for(self.budgets, own.mean(0), target.mean())
        return f"{self._count(mean)} ({self._count(low)} to {self._count(high)})"

    def _target(self) -> Float[np.ndarray, " s"]:
        return self.accuracy["random"][:, self.budgets.index(REFERENCE)]

    def _count(self, labels: float) -> str:
        return f"{labels:.0f}" if np.isfinite(labels) else f"over {self.budgets[-1]}"


def labels_for(budgets: Sequence[int], accuracy: Float[np.ndarray, " b"], target: float) -> float:
    """Return how many labels first reach a target; infinity if none do.

    >>> round(labels_for((10, 100), np.array([50.0, 70.0]), 60.0), 1)
    31.6
    """
    if accuracy[0] >= target:
        return budgets[0]
    for step in range(1, len(budgets)):
        if accuracy[step] >= target:
            low, high = accuracy[step - 1 : step + 1]
            share = (target - low) / (high - low)
            return float(budgets[step - 1] * (budgets[step] / budgets[step - 1]) ** share)
    return float("inf")


def _losses(curves: Iterable[Curves], base: str) -> str:
    """Return where EV-GP is worse than another strategy."""
    differences = [difference for own in curves for difference in own.differences("evgp", base)]
    below, kept = losses(differences)
    text = (
        f"**Against {NAMES[base]}**: worse in {len(below)} of {len(differences)} comparisons at "
        f"the level of 5 %, each taken alone; {len(kept)} remain with Holm's correction."
    )
    if not below:
        return text
    rows = [
        (
            TITLES[item.dataset],
            str(item.labels),
            str(item),
            "worse" if item in kept else "not clear",
        )
        for item in sorted(below, key=lambda value: value.mean)
    ]
    head = ("dataset", "labels", "difference", "with Holm's correction")
    return f"{text}\n\n{table(head, rows)}"


def _section(own: Curves) -> str:
    """Return the accuracy of random picks, and the difference of every other strategy to it."""
    budgets = [
        f"{count} ({count // CLASSES[own.dataset]} per class)"
        if count <= 10 * CLASSES[own.dataset]
        else str(count)
        for count in own.budgets
    ]
    random = [
        f"{values.mean():.1f} ({low:.1f} to {high:.1f})"
        for values in own.accuracy["random"].T
        for low, high in (interval(values.tolist()),)
    ]
    rows = [("random, % correct", *random)]
    for name in list(NAMES)[1:]:
        rows.append((f"{NAMES[name]}, points", *map(str, own.differences(name, "random"))))
    return (
        f"### {TITLES[own.dataset]}\n\nPool {POOLS[own.dataset]:,}, test {TESTS[own.dataset]:,}, "
        f"{CLASSES[own.dataset]} classes, {len(own.seeds)} splits.\n\n"
        f"{table(('labels', *budgets), rows)}"
    )


def _times() -> str:
    times = json.loads(TIMES.read_text(encoding="utf-8"))
    rows = [
        (run["embedder"], f"{run['first']:.0f} s", run["first_goal"],
         f"{run['second']:.1f} s", run["second_goal"])
        for run in times["runs"]
    ]  # fmt: skip
    head = ("embedder", "first time", "goal", "second time", "goal")
    return f"{times['machine']}\n\n{table(head, rows)}"


def _counted(splits: Collection[int]) -> str:
    """The number of splits of all datasets, or the largest.

    >>> _counted([20, 20]), _counted([20, 4])
    ('20', 'Up to 20')
    """
    return f"{max(splits)}" if len(set(splits)) == 1 else f"Up to {max(splits)}"


def page() -> str:
    """Return the page."""
    there = {row.dataset for row in _rows()}
    every = [Curves(name) for name in POOLS if name in there]
    rivals = [name for name in NAMES if name != "evgp"]
    worse = "\n\n".join(_losses(every, name) for name in rivals)
    sections = "\n\n".join(map(_section, every))
    needed = table(
        ("labels needed", *(TITLES[own.dataset] for own in every)),
        [(NAMES[name], *(own.needed(name) for own in every)) for name in list(NAMES)[1:]],
    )
    splits = {TITLES[own.dataset]: len(own.seeds) for own in every}
    short = "".join(
        f" {name} has {count} of the {SPLITS} planned splits, for lack of time."
        for name, count in splits.items()
        if count < SPLITS
    )
    return f"""# Text and photographs: what picks are worth

6,046 mails of SpamAssassin (spam or not, by subject and body) as vectors of
[tfidf](text.md) and of the language model all-MiniLM-L6-v2, and {IMAGES:,} images each of SVHN and
CIFAR-100 (a fixed random sample, 32 x 32 pixels enlarged to 224 x 224) as vectors of
EfficientNet-Lite0 with ImageNet weights. No labels at the start, one batch, then a linear probe
(logistic regression) on the labelled vectors. {_counted(splits.values())} random splits, the same
for all strategies, which see the pool as `evgp.pick` scales it.{short} Intervals are 95 %, over
splits, which share rows, so that they are somewhat too narrow. tfidf learns its
words from all mails, without labels.

## Losses first

Where EV-GP (the default) is worse, in points of accuracy.

{worse}

## Accuracy by number of labels

The first row has the accuracy of random picks, the others the difference to it. Positive is better.

{sections}

## Labels needed for what {REFERENCE} random ones reach

Read off the mean curve; intervals by bootstrap over splits. "Over" means not reached within the
largest number of labels that was tried.

{needed}

## How long it takes

`evgp pick mails.csv --id id --drop label --text subject,body --embed NAME -k 100`, all 6,046 mails.
{_times()}

## Run it

```bash
python -m experiments.vectors FOLDER
python -m experiments.text_and_images FOLDER --seeds 20
python -m experiments.text_and_images_page
```

The first command fetches the mails and embeds everything; the models are those that
`make test-models` installs. The second resumes where it stopped; its rows are in
`experiments/results/text-and-images`.
"""


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
