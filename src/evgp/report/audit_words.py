"""Sentences about an audit, for its page and the command line."""

from collections.abc import Sequence
from math import isfinite, sqrt

from evgp._repr import several
from evgp.report.audit_summary import AuditRow, AuditSummary, Matter, TrainedNetworks
from evgp.report.words import column, number, percent

# With a training loss above this share of the label variance, networks have not converged.
UNCONVERGED = 0.05


def title(s: AuditSummary) -> str:
    """The title of the page."""
    return f"What {several(s.rows, 'label')} leave{'s' if s.rows == 1 else ''} uncertain"


def lead(s: AuditSummary) -> list[str]:
    """All findings, one sentence each."""
    return [
        _spread(s),
        redundant(s),
        *([further(s)] if s.helps else []),
        *([random(s)] if s.random else []),
        *([_seen(s.seen), *training(s, s.seen)] if s.seen is not None else []),
    ]


def short(s: AuditSummary) -> list[str]:
    """The findings at the top of the page; the others are next to their figures."""
    return [_spread(s), *([_seen(s.seen)] if s.seen is not None else [])]


def _spread(s: AuditSummary) -> str:
    share = "" if s.share is None else f", {percent(s.share)} of the variance without labels"
    rows = "this row" if s.rows == 1 else f"these {several(s.rows, 'row')}"
    return (
        f"Wide networks trained on {rows} from random initialisations will disagree by about "
        f"{deviation(s, sqrt(s.variance))} at {several(s.test_rows, 'test row')} (mean variance "
        f"{number(s.variance, 3)}{share})."
    )


def inputs(s: AuditSummary) -> str:
    """How many columns there are, and how many inputs they became."""
    if not s.sources or s.sources == s.inputs:
        return several(s.inputs, "input")
    return f"{several(s.sources, 'column')} as {several(s.inputs, 'input')}"


def deviation(s: AuditSummary, value: float) -> str:
    """A standard deviation in words: of the label, or of an output for classes."""
    if s.unit is None:
        return f"{number(value, 3)} in each output (1 for a class, 0 for the others)"
    return (
        f"{number(value * s.unit, 3)} in {s.label} ({number(value, 3)} of its standard deviation)"
    )


def redundant(s: AuditSummary) -> str:
    """How many training rows are redundant."""
    if not s.redundant:
        return "No training row is redundant."
    which = "All of" if s.redundant == s.rows else f"{s.redundant:,} of"
    are = "is" if s.redundant == 1 else "are"
    return (
        f"{which} the {several(s.rows, 'training row')} {are} redundant: without "
        f"{'it' if s.redundant == 1 else 'any one of them'}, hardly anything would change."
    )


def further(s: AuditSummary) -> str:
    """Compare the effect of the best additional labels with that of random ones."""
    k = len(s.helps)
    by_chance = "" if s.by_chance is None else f"; random ones, to {number(s.by_chance, 3)}"
    fall = s.fall or 0.0
    change = f"{percent(abs(fall))} {'less' if fall >= 0 else 'more'}"
    return (
        f"The best {several(k, 'more label')} from {s.pool_source or 'the pool'} would bring the "
        f"variance to {number(s.after[-1], 3)} ({change}){by_chance}."
    )


def random(s: AuditSummary) -> str:
    """How the training set compares with random ones."""
    return (
        f"Of {len(s.random)} random sets of the same size, drawn from "
        f"{s.source or 'the training rows'} and {s.pool_source or 'the pool'} together, {s.beaten} "
        "would leave more variance than this training set."
    )


def _seen(seen: TrainedNetworks) -> str:
    correlated = (
        f" (row by row: Pearson {seen.pearson:.2f}, Spearman {seen.spearman:.2f})"
        if isfinite(seen.pearson)
        else ""
    )
    return (
        f"{seen.members} trained networks have {number(seen.ratio, 3)} times the predicted "
        f"variance{correlated}."
    )


def training(s: AuditSummary, seen: TrainedNetworks) -> list[str]:
    """How far training got, and how good the networks are."""
    loss = f"under {percent(0.001)}" if seen.loss < 0.001 else percent(seen.loss)
    sentences = [f"Their training loss is {loss} of the label variance."]
    if seen.loss > UNCONVERGED:
        sentences.append(
            "These networks have not converged, and the prediction assumes convergence; train for "
            "more steps."
        )
    if seen.error is not None and seen.together is not None:
        sentences.append(
            f"The root mean square error on the test rows is {error(s, seen.error)} for one "
            f"network and {error(s, seen.together)} for the mean of all {seen.members}; "
            "disagreement accounts for the difference."
            if s.unit is not None
            else f"One network is wrong on {error(s, seen.error)} of the test rows, the mean of "
            f"all {seen.members} on {error(s, seen.together)}."
        )
    return sentences


def error(s: AuditSummary, value: float) -> str:
    """A test error: root mean square in units of the label, or the share of wrong classes."""
    return percent(value) if s.unit is None else number(value * s.unit, 3)


def noise(seen: TrainedNetworks) -> str:
    """The correlation, and the best one that is possible."""
    if not isfinite(seen.pearson) or not isfinite(seen.attainable):
        return "There are too few test rows, or they are too similar, for a correlation."
    return (
        f"Correlation of the variances: Pearson {seen.pearson:.2f}, Spearman "
        f"{seen.spearman:.2f}. A variance observed in {seen.members} networks is itself noisy: "
        "even an exact prediction would only reach a Pearson correlation of about "
        f"{seen.attainable:.2f}."
    )


def percents(matters: Sequence[Matter]) -> list[str]:
    """Influences in percent, with aligned decimals."""
    return column([100 * matter.influence for matter in matters])


def numeric(rows: Sequence[AuditRow]) -> list[bool]:
    """Which columns contain only numbers, to be right-aligned.

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
    "The prediction is for wide networks in the NTK parametrisation, trained to a small squared "
    "error. In practice, expect more disagreement: networks that are narrow, or that must fit "
    "noisy or abruptly changing labels, often have several times the predicted variance, mostly "
    "at the same rows. Early stopping, strong weight decay, dropout and cross-entropy are not "
    "modelled.",
    "The prediction uses the inputs, not the labels. It shows where networks will disagree, not "
    "where all of them are wrong: noisy labels and missing inputs add further error.",
)
