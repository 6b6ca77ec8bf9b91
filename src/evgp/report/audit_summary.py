"""The content of the page of an audit, as plain data, computed from the audit."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from math import sqrt
from unicodedata import category

import numpy as np
from jaxtyping import Float

from evgp._machine import own_version
from evgp.audits import Audit, Confirmation
from evgp.errors import PoolError
from evgp.report.summary import BINS, LONGEST, SHOWN, Column, highest_bin, plain_json
from evgp.report.summary import text as shortened


@dataclass(frozen=True)
class AuditRow:
    """A row of a table: its rank, its row number, its name and its cells."""

    rank: int
    row: int
    id: str
    cells: tuple[str, ...]


@dataclass(frozen=True)
class Risk:
    """A test row: the standard deviation of networks, its upper bound, and what was observed."""

    at: AuditRow
    deviation: float
    ceiling: float
    observed: float | None


@dataclass(frozen=True)
class Matter:
    """A training row, and the increase in variance without it, as a share."""

    at: AuditRow
    influence: float


@dataclass(frozen=True)
class Help:
    """A row of the pool, and the mean variance of trained networks once it is labelled too."""

    at: AuditRow
    left: float


@dataclass(frozen=True)
class Bars:
    """Test rows counted by standard deviation; the last bin includes all up to `highest`."""

    edges: tuple[float, ...]
    counts: tuple[int, ...]
    median: float
    highest: float


@dataclass(frozen=True)
class TrainedNetworks:
    """Predicted and observed standard deviation of test rows, for networks that were trained.

    `loss` is the training loss as a share of the label variance; `error` is the mean test error of
    a network and `together` that of their mean, if test labels are known.
    """

    points: tuple[tuple[float, float], ...]
    pearson: float
    spearman: float
    attainable: float
    ratio: float
    members: int
    loss: float
    error: float | None
    together: float | None


@dataclass(frozen=True)
class AuditSummary:
    """All content of the page of an audit, ready for JSON.

    Standard deviations are for targets with standard deviation 1, and `unit` converts them to that
    of the label; for classes it is None, and outputs are 1 for a class and 0 for the others.
    `inputs` is the number of features that the `sources`, columns of the table, became.
    `influence` is sorted, largest first, as shares of the mean NTKGP variance, and thinned if it is
    long; `places` are the ranks of what is left.
    """

    source: str
    test_source: str
    pool_source: str
    label: str
    unit: float | None
    network: str
    command: str
    version: str
    rows: int
    sources: int
    inputs: int
    test_rows: int
    pool_rows: int
    has_ids: bool
    variance: float
    prior: float
    bars: Bars
    risks: tuple[Risk, ...]
    influence: tuple[float, ...]
    places: tuple[int, ...]
    limit: float
    redundant: int
    redundant_ids: tuple[str, ...]
    matters: tuple[Matter, ...]
    helps: tuple[Help, ...]
    chance: tuple[tuple[float, ...], ...]
    random: tuple[float, ...]
    seen: TrainedNetworks | None
    columns: tuple[str, ...]
    train_columns: tuple[str, ...]
    left_out: int
    settings: tuple[tuple[str, str], ...]
    warnings: tuple[str, ...]

    @property
    def share(self) -> float | None:
        """The share of the variance without labels that is left."""
        return self.variance / self.prior if self.prior > 0 else None

    @property
    def after(self) -> tuple[float, ...]:
        """Mean variance now and after each additional label; empty without a pool."""
        return (self.variance, *(row.left for row in self.helps)) if self.helps else ()

    @property
    def fall(self) -> float | None:
        """The share of the variance that the additional labels remove."""
        return 1 - self.after[-1] / self.variance if self.after and self.variance > 0 else None

    @property
    def by_chance(self) -> float | None:
        """Mean variance after as many random labels."""
        ends = [draw[-1] for draw in self.chance if draw]
        return sum(ends) / len(ends) if ends else None

    @property
    def beaten(self) -> int:
        """How many random sets of the same size leave more variance than the training set."""
        return sum(variance > self.variance for variance in self.random)

    def as_dict(self) -> dict[str, object]:
        """The summary as dicts, lists, numbers and strings, ready for `json.dumps`."""
        return {key: plain_json(value) for key, value in asdict(self).items()}


DRAWN = 2_000  # test rows in the figure of predicted and observed
CURVE = 400  # training rows in the curve of influence
NAMED = 200  # redundant rows that are listed


def text(value: object, *, longest: int | None = LONGEST) -> str:
    r"""A value as text, shortened, and without control characters.

    >>> text("\x1b[31mred\n")
    '�[31mred\n'
    """
    shown = shortened(value, longest=longest)
    return "".join(
        "\ufffd" if category(sign) == "Cc" and sign not in "\t\n" else sign for sign in shown
    )


@dataclass(frozen=True)
class AuditRows:
    """A table of the audit: its source, the ids of its rows, and its columns."""

    source: str
    count: int
    ids: Sequence[object] | None = None
    columns: Mapping[str, Column] = field(default_factory=dict)

    def row(self, rank: int, row: int, columns: Sequence[str]) -> AuditRow:
        """A row with its cells in these columns; a column that the table lacks is empty."""
        cells = [text(self.columns[name][row]) if name in self.columns else "" for name in columns]
        return AuditRow(rank, row, self.name(row), tuple(cells))

    def name(self, row: int) -> str:
        """The id of a row, or its number."""
        return str(row) if self.ids is None else text(self.ids[row])


@dataclass(frozen=True)
class Trained:
    """Results of training: the confirmation, the loss and the errors; see `TrainedNetworks`."""

    confirmation: Confirmation
    loss: float
    error: float | None = None
    together: float | None = None


def summarise_audit(
    audit: Audit,
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
    """Collect the content of the page of an audit, as plain data.

    `inputs` are the columns whose cells are shown, up to 12 of them; only the rows that are listed
    are read. What is kept does not grow with the tables. O(n + m).

    >>> from evgp import audit
    >>> x = np.random.default_rng(0).normal(size=(60, 3))
    >>> audit = audit(x[:30], x[30:])
    >>> train, test = AuditRows("a.csv", 30), AuditRows("b.csv", 30)
    >>> summary = summarise_audit(audit, train=train, test=test, k=3)
    >>> [risk.at.row for risk in summary.risks] == audit.at_risk(3).tolist(), summary.redundant
    (True, 9)
    """
    _check(audit, train, test, pool)
    shown = list(inputs)[:SHOWN]
    mine = [*shown, *([label] if label in train.columns else [])]
    mean, order = float((audit.ceiling**2).mean()) or 1.0, audit.matter(len(audit.influence))
    places = np.unique(np.linspace(0, len(order) - 1, CURVE).round().astype(int))
    redundant = audit.redundant()
    ranked, weights = enumerate(order[:k].tolist(), 1), audit.influence / mean
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
        variance=audit.variance,
        prior=audit.prior[0],
        bars=_bars(audit.deviation),
        risks=_risks(audit, test, shown, k, trained),
        influence=tuple(weights[order[places]].tolist()),
        places=tuple((places + 1).tolist()),
        limit=audit.limit / mean,
        redundant=len(redundant),
        redundant_ids=tuple(train.name(row) for row in redundant[:NAMED].tolist()),
        matters=tuple(matters),
        helps=_helps(audit, pool, shown),
        chance=tuple(map(tuple, audit.chance.tolist())),
        random=tuple(audit.random.tolist()),
        seen=None if trained is None else _seen(trained),
        columns=tuple(map(text, shown)),
        train_columns=tuple(map(text, mine)),
        left_out=len(inputs) - len(shown),
        settings=_texts(settings or {}),
        warnings=tuple(dict.fromkeys(map(text, notes))),
    )


def _texts(settings: Mapping[str, object]) -> tuple[tuple[str, str], ...]:
    return tuple((text(key), text(item)) for key, item in settings.items() if item is not None)


def _check(audit: Audit, train: AuditRows, test: AuditRows, pool: AuditRows | None) -> None:
    for rows, count in ((train, len(audit.influence)), (test, len(audit.deviation))):
        if rows.count != count:
            raise PoolError(
                f"{rows.source}: expected the {count:,} rows of the audit, got {rows.count:,}"
            )
    picks = [] if audit.further is None else audit.further.indices.tolist()
    if picks and (pool is None or max(picks) >= pool.count):
        raise PoolError(
            "expected the pool from which the further labels were picked, got a different one"
        )


def _risks(
    audit: Audit, test: AuditRows, shown: Sequence[str], k: int, trained: Trained | None
) -> tuple[Risk, ...]:
    seen = None if trained is None else trained.confirmation.deviation
    return tuple(
        Risk(
            test.row(rank, row, shown),
            float(audit.deviation[row]),
            float(audit.ceiling[row]),
            None if seen is None else float(seen[row]),
        )
        for rank, row in enumerate(audit.at_risk(k).tolist(), 1)
    )


def _helps(audit: Audit, pool: AuditRows | None, shown: Sequence[str]) -> tuple[Help, ...]:
    if audit.further is None or pool is None:
        return ()
    picks = zip(audit.further.indices.tolist(), audit.after.tolist(), strict=True)
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
    confirmation = trained.confirmation
    rows = np.unique(np.linspace(0, len(confirmation.observed) - 1, DRAWN).round().astype(int))
    both = np.sqrt(np.stack([confirmation.predicted, confirmation.observed], 1)[rows])
    return TrainedNetworks(
        points=tuple((float(a), float(b)) for a, b in both),
        pearson=confirmation.pearson,
        spearman=confirmation.spearman,
        attainable=confirmation.attainable,
        ratio=confirmation.ratio,
        members=confirmation.members,
        loss=trained.loss,
        error=trained.error,
        together=trained.together,
    )
