"""Sentences of an audit, for its page and for the command."""

from collections.abc import Sequence
from math import isfinite, sqrt

from evgp.report.audit_summary import AuditRow, AuditSummary, Matter, TrainedNetworks
from evgp.report.words import column, number, percent, several

# A training loss above this share of the labels' variance is not that of networks at rest.
UNTRAINED = 0.05


def title(s: AuditSummary) -> str:
    """What it is about, in one line."""
    return f"What {several(s.rows, 'label')} leave{'s' if s.rows == 1 else ''} open"


def lead(s: AuditSummary) -> list[str]:
    """What was found, each in a sentence."""
    return [
        _spread(s),
        redundant(s),
        *([further(s)] if s.helps else []),
        *([random(s)] if s.random else []),
        *([_seen(s.seen), *training(s, s.seen)] if s.seen is not None else []),
    ]


def short(s: AuditSummary) -> list[str]:
    """What the page opens with; the other sentences stand beside their figures."""
    return [_spread(s), *([_seen(s.seen)] if s.seen is not None else [])]


def _spread(s: AuditSummary) -> str:
    share = "" if s.share is None else f", {percent(s.share)} of what it is before any label"
    rows = "this row" if s.rows == 1 else f"these {several(s.rows, 'row')}"
    return (
        f"Trained on {rows} from different random weights, wide networks will disagree by about "
        f"{deviation(s, sqrt(s.variance))} at {several(s.test_rows, 'test row')}: a mean variance "
        f"of {number(s.variance, 3)}{share}."
    )


def inputs(s: AuditSummary) -> str:
    """How many columns there are, and what became of them where words were encoded."""
    if not s.sources or s.sources == s.inputs:
        return several(s.inputs, "input")
    return f"{several(s.sources, 'column')} as {several(s.inputs, 'input')}"


def deviation(s: AuditSummary, value: float) -> str:
    """A deviation in words: of the label where it is a number, of an output for classes."""
    if s.unit is None:
        return f"{number(value, 3)} in each output, where a class is 1 and the others are 0,"
    return f"{number(value * s.unit, 3)} in {s.label} ({number(value, 3)} of its deviation)"


def redundant(s: AuditSummary) -> str:
    """How many training rows could go."""
    if not s.redundant:
        return "No training row is redundant."
    which = "All of" if s.redundant == s.rows else f"{s.redundant:,} of"
    are = "is" if s.redundant == 1 else "are"
    return (
        f"{which} the {several(s.rows, 'training row')} {are} redundant: without "
        f"{'it' if s.redundant == 1 else 'any one of them'} hardly anything would change."
    )


def further(s: AuditSummary) -> str:
    """What the best further labels would do, beside random ones."""
    k = len(s.helps)
    by_chance = "" if s.by_chance is None else f"; drawn at random, to {number(s.by_chance, 3)}"
    fall = s.fall or 0.0
    change = f"{percent(abs(fall))} {'less' if fall >= 0 else 'more'}"
    return (
        f"The best {several(k, 'further label')} from {s.pool_source or 'the pool'} would bring "
        f"the variance to {number(s.after[-1], 3)} ({change}){by_chance}."
    )


def random(s: AuditSummary) -> str:
    """How the set stands among random ones."""
    return (
        f"Of {len(s.random)} random sets of as many rows, drawn from "
        f"{s.source or 'the training rows'} and {s.pool_source or 'the pool'} together, {s.beaten} "
        "would leave more variance than this set."
    )


def _seen(seen: TrainedNetworks) -> str:
    correlated = (
        f", Pearson {seen.pearson:.2f} and Spearman {seen.spearman:.2f} row by row"
        if isfinite(seen.pearson)
        else ""
    )
    return (
        f"{seen.members} networks that were trained show {number(seen.ratio, 3)} times the "
        f"predicted variance{correlated}."
    )


def training(s: AuditSummary, seen: TrainedNetworks) -> list[str]:
    """How far training got, and what the networks are worth."""
    loss = f"under {percent(0.001)}" if seen.loss < 0.001 else percent(seen.loss)
    said = [f"Their training loss is {loss} of the variance of the labels."]
    if seen.loss > UNTRAINED:
        said.append(
            "That is not small: these networks had not come to rest, and the prediction is for "
            "such as have. Take more steps."
        )
    if seen.error is not None and seen.together is not None:
        said.append(
            f"One network misses the labels of the test rows by {error(s, seen.error)}, the mean "
            f"of all {seen.members} by {error(s, seen.together)}: the difference is what "
            "disagreement costs."
            if s.unit is not None
            else f"One network is wrong on {error(s, seen.error)} of the test rows, the mean of "
            f"all {seen.members} on {error(s, seen.together)}."
        )
    return said


def error(s: AuditSummary, value: float) -> str:
    """A test error: root mean square in the label's unit, or a share of wrong classes."""
    return percent(value) if s.unit is None else number(value * s.unit, 3)


def noise(seen: TrainedNetworks) -> str:
    """How good a correlation could be at all."""
    if not isfinite(seen.pearson) or not isfinite(seen.attainable):
        return "There are too few test rows, or they are too alike, for a correlation."
    return (
        f"Pearson {seen.pearson:.2f}, Spearman {seen.spearman:.2f} of the variances. A variance "
        f"observed in {seen.members} networks is itself noisy: an exact prediction would reach a "
        f"Pearson of about {seen.attainable:.2f}."
    )


def percents(matters: Sequence[Matter]) -> list[str]:
    """Influences in percent, with decimals that align."""
    return column([100 * one.influence for one in matters])


def numeric(rows: Sequence[AuditRow]) -> list[bool]:
    """Which columns hold numbers alone, to be set flush right.

    >>> numeric([AuditRow(1, 0, "a", ("3.5", "x")), AuditRow(2, 1, "b", ("", "7"))])
    [True, False]
    """
    columns = zip(*(row.cells for row in rows), strict=True)
    return [all(_is_number(cell) for cell in cells if cell) for cells in columns]


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


LIMITS = (
    "The prediction is for wide networks in the NTK parametrisation, trained to a small loss on "
    "squared error. In practice its size is a lower figure: networks that are narrow, or must fit "
    "labels that are noisy or change abruptly, disagree by more, often several times the "
    "variance, mostly at the same rows. Early stopping, strong weight decay, dropout and "
    "cross-entropy are not in it.",
    "It knows the inputs, not the labels. It says where networks will differ, not where all of "
    "them are wrong: noise in the labels, and what the inputs do not tell, come on top.",
)
