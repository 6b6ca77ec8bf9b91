"""From an audit to the plain data of its page."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import sqrt
from unicodedata import category

import numpy as np
from jaxtyping import Float

from evgp._errors import PoolError
from evgp._machine import own_version
from evgp.audits import Audit, Confirmation
from evgp.report.audit_summary import (
    AuditRow,
    AuditSummary,
    Bars,
    Help,
    Matter,
    Risk,
    TrainedNetworks,
)
from evgp.report.summarise import BINS, LONGEST, SHOWN, Column, highest_bin
from evgp.report.summarise import text as shortened

DRAWN = 2_000  # test rows in the figure of predicted and observed
CURVE = 400  # training rows in the curve of influence
NAMED = 200  # redundant rows that are listed


def text(value: object, *, longest: int | None = LONGEST) -> str:
    r"""A value as it is written, unless it is long, without control characters.

    >>> text("\x1b[31mred\n")
    '�[31mred\n'
    """
    made = shortened(value, longest=longest)
    return "".join("\ufffd" if category(one) == "Cc" and one not in "\t\n" else one for one in made)


@dataclass(frozen=True)
class AuditRows:
    """One of the tables: where it came from, how its rows are named, and its columns."""

    source: str
    count: int
    ids: Sequence[object] | None = None
    columns: Mapping[str, Column] = field(default_factory=dict)

    def row(self, rank: int, row: int, columns: Sequence[str]) -> AuditRow:
        """A row of it, with its cells in these columns; empty where it has none of that name."""
        cells = [text(self.columns[one][row]) if one in self.columns else "" for one in columns]
        return AuditRow(rank, row, self.name(row), tuple(cells))

    def name(self, row: int) -> str:
        """The id of a row, or its number."""
        return str(row) if self.ids is None else text(self.ids[row])


@dataclass(frozen=True)
class Trained:
    """What training showed: the confirmation, the loss and the errors; see `Seen`."""

    confirmation: Confirmation
    loss: float
    error: float | None = None
    together: float | None = None


def summarise_audit(
    found: Audit,
    *,
    train: AuditRows,
    test: AuditRows,
    pool: AuditRows | None = None,
    label: str = "",
    unit: float | None = None,
    inputs: Sequence[str] = (),
    features: int = 0,
    trained: Trained | None = None,
    k: int = 10,
    network: str = "",
    command: str = "",
    settings: Mapping[str, object] | None = None,
    notes: Sequence[str] = (),
) -> AuditSummary:
    """Everything the page of an audit says, as plain data.

    `inputs` are the columns whose cells are shown, up to 12 of them; only the rows that are listed
    are read. What is kept does not grow with the tables. O(n + m).

    >>> from evgp import audit
    >>> x = np.random.default_rng(0).normal(size=(60, 3))
    >>> found = audit(x[:30], x[30:])
    >>> train, test = AuditRows("a.csv", 30), AuditRows("b.csv", 30)
    >>> made = summarise_audit(found, train=train, test=test, k=3)
    >>> [one.at.row for one in made.risks] == found.at_risk(3).tolist(), made.redundant
    (True, 9)
    """
    _check(found, train, test, pool)
    shown = list(inputs)[:SHOWN]
    mine = [*shown, *([label] if label in train.columns else [])]
    mean, order = float((found.ceiling**2).mean()) or 1.0, found.matter(len(found.influence))
    places = np.unique(np.linspace(0, len(order) - 1, CURVE).round().astype(int))
    redundant = found.redundant()
    ranked, weights = enumerate(order[:k].tolist(), 1), found.influence / mean
    matters = (Matter(train.row(rank, row, mine), float(weights[row])) for rank, row in ranked)
    return AuditSummary(
        source=text(train.source),
        test_source=text(test.source),
        pool_source="" if pool is None else text(pool.source),
        label=text(label),
        unit=unit,
        network=text(network),
        command=text(command, longest=None),
        version=own_version(),
        rows=train.count,
        sources=len(inputs),
        inputs=features or len(inputs),
        test_rows=test.count,
        pool_rows=0 if pool is None else pool.count,
        has_ids=train.ids is not None,
        variance=found.variance,
        prior=found.prior[0],
        bars=_bars(found.deviation),
        risks=_risks(found, test, shown, k, trained),
        influence=tuple(weights[order[places]].tolist()),
        places=tuple((places + 1).tolist()),
        limit=found.limit / mean,
        redundant=len(redundant),
        redundant_ids=tuple(train.name(row) for row in redundant[:NAMED].tolist()),
        matters=tuple(matters),
        helps=_helps(found, pool, shown),
        chance=tuple(tuple(one) for one in found.chance.tolist()),
        random=tuple(found.random.tolist()),
        seen=None if trained is None else _seen(trained),
        columns=tuple(map(text, shown)),
        train_columns=tuple(map(text, mine)),
        left_out=len(inputs) - len(shown),
        settings=_texts(settings or {}),
        warnings=tuple(dict.fromkeys(map(text, notes))),
    )


def _texts(settings: Mapping[str, object]) -> tuple[tuple[str, str], ...]:
    return tuple((text(key), text(item)) for key, item in settings.items() if item is not None)


def _check(found: Audit, train: AuditRows, test: AuditRows, pool: AuditRows | None) -> None:
    for rows, count in ((train, len(found.influence)), (test, len(found.deviation))):
        if rows.count != count:
            raise PoolError(
                f"{rows.source}: expected the {count:,} rows of the audit, got {rows.count:,}"
            )
    picks = [] if found.further is None else found.further.indices.tolist()
    if picks and (pool is None or max(picks) >= pool.count):
        raise PoolError("expected the pool that the further labels were picked from, got another")


def _risks(
    found: Audit, test: AuditRows, shown: Sequence[str], k: int, trained: Trained | None
) -> tuple[Risk, ...]:
    seen = None if trained is None else trained.confirmation.deviation
    return tuple(
        Risk(
            test.row(rank, row, shown),
            float(found.deviation[row]),
            float(found.ceiling[row]),
            None if seen is None else float(seen[row]),
        )
        for rank, row in enumerate(found.at_risk(k).tolist(), 1)
    )


def _helps(found: Audit, pool: AuditRows | None, shown: Sequence[str]) -> tuple[Help, ...]:
    if found.further is None or pool is None:
        return ()
    picks = zip(found.further.indices.tolist(), found.after.tolist(), strict=True)
    return tuple(
        Help(pool.row(rank, row, shown), left) for rank, (row, left) in enumerate(picks, 1)
    )


def _bars(deviation: Float[np.ndarray, " m"]) -> Bars:
    high, highest = highest_bin(deviation), float(deviation.max())
    bins = int(min(BINS, max(8, 2 * sqrt(len(deviation)))))
    edges = np.linspace(0.0, high, bins + 1)
    counts = np.histogram(deviation.clip(0, high), edges)[0]
    return Bars(tuple(edges.tolist()), tuple(counts.tolist()), float(np.median(deviation)), highest)


def _seen(trained: Trained) -> TrainedNetworks:
    made = trained.confirmation
    rows = np.unique(np.linspace(0, len(made.observed) - 1, DRAWN).round().astype(int))
    both = np.sqrt(np.stack([made.predicted, made.observed], 1)[rows])
    return TrainedNetworks(
        points=tuple((float(a), float(b)) for a, b in both),
        pearson=made.pearson,
        spearman=made.spearman,
        attainable=made.attainable,
        ratio=made.ratio,
        members=made.members,
        loss=trained.loss,
        error=trained.error,
        together=trained.together,
    )
