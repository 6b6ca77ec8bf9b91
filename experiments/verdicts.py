"""Decide whether a claim of the paper holds: differences over seeds and their standard errors."""

from collections.abc import Iterable, Sequence
from typing import TypeAlias

import numpy as np

from evgp.comparison import MEASURES
from evgp.comparison.rows import Records, distinct
from evgp.comparison.statistics import areas, mean_and_error
from experiments.contests import NAMES, averages, panels
from experiments.study import Verdict

# A mean over seeds, above zero where the sentence is right, and its standard error.
Gap: TypeAlias = tuple[float, float]

LARGE = 0.5
"""A correlation is called large from here on (Cohen 1988)."""

HIGH = "above 0.5 (Cohen's large)"


def clear(gap: Gap) -> bool:
    """Whether a difference exceeds its standard error; never with one seed.

    >>> clear((2.0, 1.0)), clear((2.0, float("nan")))
    (True, False)
    """
    return gap[0] > gap[1]


def graded(datasets: Iterable[Sequence[Gap]]) -> Verdict:
    """Holds: every difference is clear on every dataset. In part: on one all means have the sign.

    >>> graded([[(2.0, 1.0)], [(2.0, 3.0)]])
    'holds in part'
    """
    measured = [gaps for gaps in datasets if gaps]
    if not any(np.isfinite(mean) for gaps in measured for mean, _ in gaps):
        return "not measured"
    if all(clear(gap) for gaps in measured for gap in gaps):
        return "holds"
    partly = any(all(mean > 0 for mean, _ in gaps) for gaps in measured)
    return "holds in part" if partly else "does not hold"


def rule(what: str, rows: Records, *, each: str = "dataset") -> str:
    """Describe the rule of `graded` for the page; one seed can only show the second half.

    >>> rule("it falls", [{"seed": 0}])
    'One seed, so it holds in part at most: if it falls, by the mean, on some dataset.'
    """
    if len(distinct(rows, "seed")) < 2:
        return f"One seed, so it holds in part at most: if {what}, by the mean, on some {each}."
    return (
        f"Holds if {what}, by more than one standard error over seeds, on every {each}; in part "
        f"if so by the mean on some {each}."
    )


def little(pairs: Iterable[tuple[Gap, Gap]]) -> Verdict:
    """A change is small if it is less than a quarter of another, in absolute values.

    On every dataset; in part if less than half on some, the most that one seed can show.

    >>> [little([((mine, 0.01), (-0.5, 0.1))]) for mine in (0.1, 0.2, 0.3)]
    ['holds', 'holds in part', 'does not hold']
    """
    known = [pair for pair in pairs if all(np.isfinite(mean) for mean, _ in pair)]
    if not known:
        return "not measured"
    shares = [
        0.0 if not mine else abs(mine / other) if other else np.inf
        for (mine, _), (other, _) in known
    ]
    if max(shares) < 0.25 and not any(np.isnan(error) for pair in known for _, error in pair):
        return "holds"
    return "holds in part" if min(shares) < 0.5 else "does not hold"


def at_most_in_part(found: Verdict) -> Verdict:
    """Limit a verdict to what one seed can show.

    >>> at_most_in_part("holds")
    'holds in part'
    """
    return "holds in part" if found == "holds" else found


def lead(rows: Records, metric: str, ours: str, theirs: str) -> Gap:
    """Log ratio of two strategies' curves, paired by seeds; positive if the first is better.

    Logarithms keep a seed with large values from dominating.
    """
    first, second = areas(rows, metric, ours), areas(rows, metric, theirs)
    both = [(first[seed], second[seed]) for seed in first if seed in second]
    if not all(min(pair) > 0 for pair in both):
        return float("nan"), float("nan")
    sign = 1.0 if MEASURES[metric].lower else -1.0
    return mean_and_error(sign * float(np.log(b / a)) for a, b in both)


def leads(rows: Records, metric: str, ours: str, others: Sequence[str]) -> dict[str, Gap]:
    """The lead over each of the other strategies among the rows."""
    ways = distinct(rows, "strategy")
    there = [way for way in others if way in ways] if ours in ways else []
    return {way: lead(rows, metric, ours, way) for way in there}


def outperforms(
    rows: Records, metrics: Sequence[str], others: Sequence[str], ours: str = "evgp"
) -> Verdict:
    """Whether ours is ahead of all others, by each metric, on every dataset."""
    return graded(
        [gap for metric in metrics for gap in leads(panel, metric, ours, others).values()]
        for panel in panels(rows).values()
    )


def sometimes(gaps: Sequence[Gap]) -> Verdict:
    """Holds if one difference is clear, in part if one mean has the sign.

    >>> sometimes([(-1.0, 0.5), (2.0, 1.0)]), sometimes([(2.0, 3.0)])
    ('holds', 'holds in part')
    """
    known = [gap for gap in gaps if np.isfinite(gap[0])]
    if not known:
        return "not measured"
    if any(map(clear, known)):
        return "holds"
    return "holds in part" if any(mean > 0 for mean, _ in known) else "does not hold"


def least_clear(rows: Records, metric: str, others: Sequence[str], ours: str = "evgp") -> str:
    """The rival with the least clear lead on each dataset, and that lead in percent."""
    parts = []
    for title, subset in panels(rows).items():
        gaps = leads(subset, metric, ours, others)
        if gaps:
            way = min(gaps, key=lambda value: gaps[value][0] - np.nan_to_num(gaps[value][1]))
            parts.append(f"{title} {percent(gaps[way])} on {NAMES.get(way, way)}")
    return ", ".join(parts)


def compared(rows: Records, metric: str, others: Sequence[str], more: str = "") -> str:
    """Whether EV-GP outperforms the others, and the rule for it, in words."""
    return (
        f"mean over the curve: {averages(rows, metric)}. Lead on the rival on whom it is least "
        "clear, in percent of the larger of the two, ± standard error over seeds, paired: "
        f"{least_clear(rows, metric, others)}. {more}"
        + rule("EV-GP is better than each other strategy", rows)
    )


def between(rows: Records, metric: str, ours: str, theirs: str) -> str:
    """The lead of one strategy over another on each dataset with both."""
    values = {
        title: lead(subset, metric, ours, theirs)
        for title, subset in panels(rows).items()
        if {ours, theirs} <= {*distinct(subset, "strategy")}
    }
    return ", ".join(f"{percent(gap)} ({title})" for title, gap in values.items()) or "not run"


def percent(gap: Gap) -> str:
    """A lead in percent of the larger: 50 % is half the error, or twice the accuracy.

    >>> percent((0.7, 0.1)), percent((-0.7, float("nan")))
    ('+50.3 % ± 5.0', '-50.3 %')
    """
    mean, error = gap
    rest = float(np.exp(-abs(mean)))
    size, spread = 100 * (1 - rest), 100 * rest * error
    digits = 0 if spread >= 10 else 1
    shown = f"{'+' if mean >= 0 else '-'}{size:.{digits}f} %"
    return shown + (f" ± {spread:.{digits}f}" if np.isfinite(error) else "")


def signed(gap: Gap) -> str:
    """A difference with its sign and its standard error.

    >>> signed((0.0034, 0.0006)), signed((-0.5, float("nan")))
    ('+0.0034 ± 0.0006', '-0.5000')
    """
    return f"{gap[0]:+.4f}" + (f" ± {gap[1]:.4f}" if np.isfinite(gap[1]) else "")


def short(value: float) -> str:
    """Format with two digits, without powers of ten.

    >>> short(0.0123), short(363.4)
    ('0.012', '363')
    """
    return f"{value:.0f}" if abs(value) >= 100 else f"{value:.2g}"


def hundredths(gap: Gap) -> str:
    """A correlation with its standard error.

    >>> hundredths((0.678, 0.04)), hundredths((-0.5, float("nan")))
    ('0.68 ± 0.04', '-0.50')
    """
    return f"{gap[0]:.2f}" + (f" ± {gap[1]:.2f}" if np.isfinite(gap[1]) else "")
