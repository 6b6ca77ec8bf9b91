"""Numbers and sentences for people: all prose of the page of a selection."""

from math import floor, isfinite, log10

from evgp._repr import several
from evgp.report.summary import Need, Summary

THIN = "\u202f"


def number(value: float | None, digits: int = 4) -> str:
    """A number with a few significant digits.

    >>> number(1234.5678), number(0.0123), number(3e-7), number(None)
    ('1,235', '0.01230', '3e-7', '–')
    """
    if value is None or not isfinite(value):
        return "–"
    if value == 0:
        return "0"
    if not 1e-4 <= abs(value) < 1e7:
        mantissa, power = f"{value:.{digits - 1}e}".split("e")
        return f"{mantissa.rstrip('0').rstrip('.')}e{int(power)}"
    return f"{value:,.{max(0, digits - 1 - floor(log10(abs(value))))}f}"


def amount(value: float | None) -> str:
    """An amount of money, without rounding errors from summing.

    >>> amount(0.1 + 0.2), amount(1250.0), amount(None)
    ('0.3', '1,250', '–')
    """
    return "–" if value is None else f"{value:,.6g}"


def percent(share: float | None, *, down: bool = False) -> str:
    """A share in percent; rounded down if it is a guarantee, and never up to 100.

    >>> percent(0.8876), percent(0.8876, down=True), percent(0.9996), percent(1.0)
    ('88.8\u202f%', '88.7\u202f%', '99.9\u202f%', '100\u202f%')
    """
    if share is None or not isfinite(share):
        return "–"
    tenths = floor(1000 * share + 1e-9) if down or 0.999 < share < 1 else round(1000 * share)
    return (f"{tenths // 10}" if tenths % 10 == 0 else f"{tenths / 10:.1f}") + f"{THIN}%"


def noun(summary: Summary) -> str:
    """The noun for a row of the pool: "image" or "row"."""
    return "image" if summary.pictured else "row"


def title(summary: Summary) -> str:
    """The title of the page."""
    k, name = len(summary.picks), noun(summary)
    return f"Label this {name} first" if k == 1 else f"Label these {k:,} {name}s first"


def lead(summary: Summary) -> list[str]:
    """Say which rows were chosen, why, and how good the choice provably is."""
    k = len(summary.picks)
    where = f" of {summary.source}" if summary.source else ""
    these = "this one" if k == 1 else f"these {k:,}"
    many = f"Of the {several(summary.rows, noun(summary))}{where}, {these}"
    only = f"The only {noun(summary)}{where}"
    return [
        f"{only if summary.rows == 1 else many} {_why(summary, k)}.",
        *([_reduction(summary)] if summary.removed is not None else []),
        *([_guarantee(summary, k)] if summary.reached is not None else []),
    ]


def _why(summary: Summary, k: int) -> str:
    if summary.share is None and summary.criterion:
        return f"{'was' if k == 1 else 'were'} chosen by the criterion {summary.criterion}"
    chosen = "was chosen" if k == 1 else "were chosen"
    points = f" at the {several(summary.test_points, 'test point')}" if summary.test_points else ""
    return f"{chosen} to make a network as certain as possible of its predictions{points}"


def _reduction(summary: Summary) -> str:
    start = " with the earlier labels" if summary.had_labels else " without labels"
    return (
        f"The mean variance falls from {number(summary.start)}{start} to {number(summary.end)}, by "
        f"{percent(summary.removed, down=True)}."
    )


def _guarantee(summary: Summary, k: int) -> str:
    rivals = (
        "any choice at the same cost"
        if summary.cost is not None
        else f"any {several(k, noun(summary))}"
    )
    share = percent(summary.reached, down=True)
    return (
        f"That is provably at least {share} of the largest reduction that {rivals} could achieve."
    )


def answer(need: Need, k: int, rows: int) -> str:
    """How many rows of a pool must be labelled, when k are picked.

    >>> answer(Need(0.5, 12, 17), 40, 99), answer(Need(0.9, 31, None), 40, 99)
    ('between 12 and 17', 'at least 31; these 40 are not enough')
    >>> answer(Need(0.5, 9, 9), 40, 99), answer(Need(0.95, 52, None), 40, 99)
    ('9, the fewest possible', 'at least 52')
    >>> answer(Need(0.5, 0, 0), 40, 99), answer(Need(0.95, 100, None), 40, 99)
    ('none, already reached', 'not possible with this pool')
    """
    if need.enough is None:
        return _not_yet(need, k, rows)
    if need.enough == 0:
        return "none, already reached"
    if need.fewest is None:
        return f"{need.enough:,} of these picks"
    if need.fewest == need.enough:
        return f"{need.enough:,}, the fewest possible"
    return f"between {need.fewest:,} and {need.enough:,}"


def _not_yet(need: Need, k: int, rows: int) -> str:
    if need.fewest is None:
        return f"more than {k:,} of these picks"
    if need.fewest > rows:
        return "not possible with this pool"
    if need.fewest > k:
        return f"at least {need.fewest:,}"
    return f"at least {need.fewest:,}; these {k:,} are not enough"


def gain(summary: Summary) -> str:
    """Explain the gain of a pick."""
    if summary.share is None and summary.criterion:
        what = f"the value of a pick by the criterion {summary.criterion}"
    else:
        what = "how much a pick reduces the mean variance"
    return (
        f"Gain is {what} when all picks before it are labelled, so the first few make a sensible "
        "smaller batch."
    )


def guarantee(summary: Summary) -> list[str]:
    """Say what the certificate guarantees and what it does not."""
    if summary.share is None:
        return [
            "There is no certificate: it exists only for the criterion of expected variance, and "
            "these picks were chosen by another criterion or without it.",
            _LIMITS.format(points=_points(summary)),
        ]
    rivals = (
        "whatever you choose at the same cost"
        if summary.cost is not None
        else f"whatever {noun(summary)}s you choose"
    )
    return [
        f"Labels can remove at most the sum of the largest eigenvalues of the test covariance, one "
        f"for each label, {rivals}. These picks reach at least "
        f"{percent(summary.reached, down=True)} of that limit, which may itself not be attainable.",
        _LIMITS.format(points=_points(summary)),
    ]


_LIMITS = (
    "Variances and bounds hold only for this kernel and {points}. They say nothing about noise in "
    "the labels, how well the kernel suits your data, or the error of a trained network."
)


def _points(summary: Summary) -> str:
    count = summary.test_points
    return (
        "the test points used"
        if not count
        else f"th{'is' if count == 1 else 'ese'} {several(count, 'test point')}"
    )


def column(values: list[float]) -> list[str]:
    """Numbers of a column, with as many decimals as give the largest of them four digits.

    >>> column([0.0831, 0.002]), column([250.0, 3.0]), column([3e-9])
    (['0.08310', '0.00200'], ['250.0', '3.0'], ['3e-9'])
    """
    high = max((abs(value) for value in values if isfinite(value)), default=0.0)
    if not 1e-4 <= high < 1e7:
        return [number(value) for value in values]
    places = max(0, 3 - floor(log10(high)))
    return [f"{value:,.{places}f}" if isfinite(value) else "–" for value in values]
