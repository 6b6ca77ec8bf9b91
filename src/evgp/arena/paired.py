r"""Paired tests over seeds, and what is left of them when there are many."""

from collections.abc import Sequence

import numpy as np
from scipy import stats

from evgp.arena.summary import Paired

_DUST = 1e-12


def interval(values: Sequence[float]) -> tuple[float, float]:
    r"""The 95 % interval of a mean, $\bar v \pm t_{0.975, s-1}\, \sigma_v / \sqrt s$.

    >>> low, high = interval([1.0, 2.0, 3.0])
    >>> round(low, 3), round(high, 3)
    (-0.484, 4.484)
    """
    given = np.asarray(values, dtype=np.float64)
    reach = stats.t.ppf(0.975, len(given) - 1) * given.std(ddof=1) / np.sqrt(len(given))
    return float(given.mean() - reach), float(given.mean() + reach)


def paired(first: Sequence[float], second: Sequence[float], *, lower: bool) -> Paired:
    """The paired t-test of values that belong together, two pairs at least.

    Where the difference does not vary there is nothing to test it against: p is one where it is
    zero, and None otherwise.

    >>> made = paired([1.0, 2.0, 3.0], [2.0, 4.0, 4.0], lower=True)
    >>> made.wins, round(made.difference, 3), round(made.p, 3)
    (3, -1.333, 0.057)
    """
    a, b = np.asarray(first, dtype=np.float64), np.asarray(second, dtype=np.float64)
    gaps = a - b
    mean = float(gaps.mean())
    wins = int((gaps < 0).sum() if lower else (gaps > 0).sum())
    better = mean < 0 if lower else mean > 0
    dust = _DUST * float(max(np.abs(a).max(), np.abs(b).max()))
    if gaps.std() > dust:
        low, high = interval(gaps.tolist())
        p = float(stats.ttest_rel(a, b).pvalue)
        return Paired(len(gaps), wins, mean, low, high, p, better)
    if abs(mean) <= dust:
        return Paired(len(gaps), 0, 0.0, 0.0, 0.0, 1.0, better=False)
    return Paired(len(gaps), wins, mean, None, None, None, better)


def holm(values: Sequence[float]) -> list[float]:
    r"""P-values adjusted by Holm: the i-th smallest of m becomes $\max_{j \le i} (m - j + 1) p_j$.

    Below a level, the chance that any of them is there by luck is below it too.

    >>> [round(p, 3) for p in holm([0.01, 0.04, 0.03, 0.005])]
    [0.03, 0.06, 0.06, 0.02]
    """
    adjusted, most = [0.0] * len(values), 0.0
    for place, i in enumerate(sorted(range(len(values)), key=values.__getitem__)):
        most = max(most, min(1.0, (len(values) - place) * values[i]))
        adjusted[i] = most
    return adjusted
