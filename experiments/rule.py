"""When are cells the better choice? Plain rules, chosen on tuning pools and tested on the others.

A rule says, from what is known before any label, where `evgp-cells` takes the place of the default.
The one that needs the fewest labels on the tuning pools is tested on the validation pools, as a
strategy of its own: at each number of labels its picks are those of the strategy that it names.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from evgp.comparison.judge import PoolScores, Savings, pool_scores, rivals
from evgp.comparison.rows import Row
from evgp.comparison.suite import SuitePool, suite_pools
from experiments.worth import TUNING

DEFAULT, CELLS, RULE = "evgp", "evgp-cells", "the rule"
# Whether cells are used, from the pool and the number of labels.
RULES: Mapping[str, Callable[[SuitePool, int], bool]] = {
    "always": lambda pool, labels: True,
    "if labels are classes": lambda pool, labels: pool.classes > 0,
    "if labels are classes, up to four labels for each": (
        lambda pool, labels: labels <= 4 * pool.classes
    ),
    "if labels are numbers": lambda pool, labels: pool.classes == 0,
    "with up to 20 labels": lambda pool, labels: labels <= 20,
    "if labels are classes, or with up to 20 labels": (
        lambda pool, labels: pool.classes > 0 or labels <= 20
    ),
}


@dataclass(frozen=True)
class Trial:
    """Labels needed by a rule as a share of the default's, on the two groups of pools."""

    words: str
    tuning: Savings
    validation: Savings


def trials(rows: Sequence[Row]) -> list[Trial]:
    """All rules, best on the tuning pools first."""
    about = {pool.name: pool for pool in suite_pools()}
    every = pool_scores([row for row in rows if row.strategy in (DEFAULT, CELLS)])
    groups = [[pool for pool in every if (pool.name in TUNING) == tuned] for tuned in (True, False)]
    results = []
    for words, rule in RULES.items():
        values = [
            rivals([ruled(pool, about[pool.name], rule) for pool in group], RULE, [DEFAULT])
            for group in groups
        ]
        results.append(Trial(words, *(value[DEFAULT] for value in values)))
    return sorted(results, key=lambda trial: trial.tuning.ratio)


def ruled(pool: PoolScores, about: SuitePool, rule: Callable[[SuitePool, int], bool]) -> PoolScores:
    """The scores of a pool, with those of a rule."""
    cells = np.array([rule(about, labels) for labels in pool.labels])
    both = np.where(cells, pool.scores[CELLS], pool.scores[DEFAULT])
    return replace(pool, scores={**pool.scores, RULE: both})
