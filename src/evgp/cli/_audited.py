"""The files of an audit as arrays, and what was found as a table, a document and a page."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn.functional import one_hot

from evgp._errors import DatasetError
from evgp._linalg import CONSTANT
from evgp.audits import Audit
from evgp.audits.columns import unseen
from evgp.cli._output import called, in_flags, lines, noted
from evgp.datasets import (
    Dataset,
    PoolData,
    ReadOptions,
    Table,
    from_table,
    ids,
    load_csv,
    plain,
    read_table,
    split,
)
from evgp.report import AuditRows, AuditSummary, Trained, summarise_audit
from evgp.report.summary import plain_json


@dataclass(frozen=True)
class AuditCall:
    """What the command line says of the files to read."""

    train: Path
    test: Path
    pool: Path | None
    label: str
    task: str | None = None
    id: str | None = None
    drop: Sequence[str] = ()
    impute: bool = False
    delimiter: str | None = None

    @property
    def files(self) -> tuple[Path | None, ...]:
        """All that are read."""
        return (self.train, self.test, self.pool)


@dataclass(frozen=True)
class AuditPart:
    """One of the tables, its rows as numbers and by name."""

    table: Table
    x: Float[np.ndarray, "n d"]
    names: Sequence[object] | None

    @property
    def rows(self) -> AuditRows:
        """The same for the page."""
        cells = {name: self.table.cells(name) for name in self.table.names}
        return AuditRows(Path(self.table.source).name, len(self.x), self.names, cells)


@dataclass(frozen=True)
class Sets:
    """Training rows with targets, test rows, and the pool where there is one.

    `y` has mean 0: one column of deviation 1, or a column for each class, whose `means` were taken
    off. `y_test` are targets or classes (-1 for one that training did not see), or None where the
    file has none.
    """

    train: AuditPart
    test: AuditPart
    pool: AuditPart | None
    data: Dataset
    inputs: tuple[str, ...]
    y: Float[Tensor, "n o"]
    means: Float[Tensor, " o"]
    y_test: Float[Tensor, "m 1"] | Int[Tensor, " m"] | None
    notes: list[str] = field(default_factory=list)

    @property
    def unit(self) -> float | None:
        """The deviation of the labels; None for classes."""
        return None if self.data.classes else self.data.y_std

    def guesses(self, outputs: Float[Tensor, " *e m o"]) -> Int[Tensor, " *e m"]:
        """The class of the largest output, on the scale on which a class is 1 and others are 0."""
        return (outputs + self.means).argmax(-1)

    def taken(self, task: str | None) -> str:
        """What the labels were taken for, and how to say otherwise."""
        names = self.data.class_names
        if not self.data.classes:
            other = "" if task else "; --task classification takes them as classes"
            return f"Labels were taken as numbers{other}."
        shown = ", ".join(names[:5]) + (", ..." if len(names) > 5 else "")
        numbers = not task and all(map(_is_number, names))
        other = "; --task regression takes them as numbers" if numbers else ""
        return f"Labels were taken as {len(names)} classes ({shown}){other}."


def load_sets(wanted: AuditCall) -> Sets:
    """Read the three files; test and pool are encoded as the training rows are."""
    id, label = wanted.id, wanted.label
    table, notes = noted(lambda: _read(wanted, wanted.train, ()))
    table.column(label)
    dropped = split(wanted.drop, table.names)
    out = [name for name in dropped if name != label]
    options = ReadOptions(id=id, drop=(label, *out), impute=wanted.impute)
    read = from_table(table, options)
    encoder = read.encoder
    constant = [name for name in encoder.ignored if name not in (id, label, *out)]
    notes += map(in_flags, read.notes)
    # Its own notes are those of the encoder again.
    data, _ = noted(lambda: _labelled(wanted, dropped, table.source))
    train = AuditPart(table, read.in_memory.numpy(), read.ids)
    test, more = noted(lambda: _part(_read(wanted, wanted.test, encoder.words), read))
    notes += more
    alone = _unseen(table, test.table, constant, "test")
    pool = None
    if (path := wanted.pool) is not None:
        pool, more = noted(lambda: _part(_read(wanted, path, encoder.words), read))
        notes += more
        alone += _unseen(table, pool.table, constant, "pool")
    y_test, more = _test_labels(test.table, label, data)
    notes = [*(_of_training(note, table.source) for note in notes + more), *alone]
    y, means = _targets(data)
    return Sets(train, test, pool, data, encoder.sources, y, means, y_test, notes)


def _labelled(wanted: AuditCall, dropped: Sequence[str], source: str) -> Dataset:
    """The labels of all rows; nothing is held back for a test."""
    try:
        return load_csv(
            wanted.train, wanted.label, task=wanted.task or "auto", test=0, id=wanted.id,
            drop=dropped, impute=wanted.impute, delimiter=wanted.delimiter,
        )  # fmt: skip
    except DatasetError as error:
        raise DatasetError(_of_training(str(error), source)) from error


def _of_training(said: str, source: str) -> str:
    """What readers of tables say of a pool, said of training rows.

    >>> _of_training("a.csv (pool): filled 1 cell with the pool's median", "a.csv")
    "a.csv: filled 1 cell with the training rows' median"
    """
    said = said.replace(f"{source} (pool)", source).replace("the pool's", "the training rows'")
    said = said.replace(", which must not steer the picks", ", which is no input")
    return said.replace(" in the pool", " in the training rows")


def _unseen(train: Table, other: Table, constant: Sequence[str], where: str) -> list[str]:
    """A note on columns that training rows do not tell apart, and others do."""
    found = []
    for name in constant:
        if name not in other.names:
            continue
        known, cells = (_values(table, name) for table in (train, other))
        if any(all(_differ(cell, one) for one in known) for cell in cells):
            found.append(repr(name))
    return [unseen(found, where)] if found else []


def _values(table: Table, name: str) -> list[object]:
    return [cell for cell in plain(table.column(name)).unique().to_pylist() if cell is not None]


def _differ(one: object, other: object) -> bool:
    """More than rounding does.

    >>> _differ(0.3, 0.1 + 0.2), _differ(1, 2), _differ("a", "a"), _differ("a", 1)
    (False, True, False, True)
    """
    if isinstance(one, int | float) and isinstance(other, int | float):
        return abs(one - other) > CONSTANT * max(abs(one), abs(other))
    return str(one) != str(other)


def _is_number(name: str) -> bool:
    try:
        float(name)
    except ValueError:
        return False
    return True


def _read(wanted: AuditCall, path: Path, words: Sequence[str]) -> Table:
    names = (*words, *(() if wanted.id is None else (wanted.id,)))
    return read_table(path, delimiter=wanted.delimiter, text=names)


def _part(table: Table, training: PoolData) -> AuditPart:
    id = training.options.id
    return AuditPart(
        table, training.tensor_like(table).numpy(), None if id is None else ids(table, id)
    )


def _targets(data: Dataset) -> tuple[Float[Tensor, "n o"], Float[Tensor, " o"]]:
    """In the order of the file, less the means, which come too; classes as a column each."""
    assert data.rows is not None
    y = torch.empty_like(data.y)
    y[data.rows] = data.y
    if not data.classes:
        return y, torch.zeros(1, dtype=torch.float64)  # scaled already
    made = one_hot(y, data.classes).double()
    return made - made.mean(0), made.mean(0)


def _test_labels(
    table: Table, label: str, data: Dataset
) -> tuple[Float[Tensor, "m 1"] | Int[Tensor, " m"] | None, list[str]]:
    """What the test rows are labelled with, if all of them are; a note where that is in doubt."""
    if label not in table.names:
        return None, []
    cells = plain(table.column(label)).to_pylist()
    if any(cell is None for cell in cells):
        return None, [f"{table.source}: labels are missing in column {label!r}; no test error"]
    if data.classes:
        known = {name: code for code, name in enumerate(data.class_names)}
        codes = torch.tensor([known.get(_word(cell), -1) for cell in cells])
        unseen = int((codes < 0).sum())
        said = f"{table.source}: {unseen:,} labels of classes that training has not seen"
        return codes, [said] if unseen else []
    values = np.array([cell if isinstance(cell, int | float) else np.nan for cell in cells])
    good: Bool[np.ndarray, " m"] = np.isfinite(values.astype(np.float64))
    if not good.all():
        return None, [f"{table.source}: not all labels are numbers in {label!r}; no test error"]
    made = (torch.from_numpy(values.astype(np.float64)) - data.y_mean) / data.y_std
    return made[:, None], []


def _word(value: object) -> str:
    """A class as `load_csv` names it.

    >>> _word(3.0), _word(True), _word("a")
    ('3', 'true', 'a')
    """
    if isinstance(value, bool):
        return str(value).lower()
    whole = isinstance(value, float) and value.is_integer() and abs(value) < 2**53
    return f"{value:.0f}" if whole else str(value)


@dataclass(frozen=True)
class Audited:
    """What was found, in which files, and what training showed."""

    found: Audit
    sets: Sets
    label: str
    k: int
    trained: Trained | None = None
    settings: dict[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    def columns(self, rows: Int[np.ndarray, " k"] | None = None) -> dict[str, list[object]]:
        """Both deviations at test rows, all of them or these, and what was observed there."""
        at = np.arange(len(self.found.deviation)) if rows is None else rows
        names = self.sets.test.names
        made: dict[str, list[object]] = {}
        if names is None:
            made["index"] = list(at.tolist())
        else:
            made["id"] = [names[row] for row in at.tolist()]
        made["deviation"] = self.found.deviation[at].tolist()
        made["ceiling"] = self.found.ceiling[at].tolist()
        if self.sets.unit is not None:
            made["in_label_unit"] = (self.sets.unit * self.found.deviation[at]).tolist()
        if self.trained is not None:
            made["observed"] = self.trained.confirmation.deviation[at].tolist()
        return made

    def at_risk(self) -> dict[str, list[object]]:
        """The test rows where networks will differ most, worst first."""
        rows = self.found.at_risk(self.k)
        return {"rank": list(range(1, len(rows) + 1)), **self.columns(rows)}

    def summary(self, *, network: str) -> AuditSummary:
        """Everything that the page says."""
        sets = self.sets
        return summarise_audit(
            self.found,
            train=sets.train.rows,
            test=sets.test.rows,
            pool=None if sets.pool is None else sets.pool.rows,
            label=self.label,
            unit=sets.unit,
            inputs=sets.inputs,
            features=sets.train.x.shape[1],
            trained=self.trained,
            k=self.k,
            network=network,
            command=called(),
            settings=self.settings,
            notes=self.notes,
        )

    def document(self) -> dict[str, object]:
        """Everything, for programs: deviations as of labels with deviation 1, or of an output."""
        found, sets = self.found, self.sets
        pool = sets.pool
        made: dict[str, object] = {
            "source": sets.train.table.source,
            "test": sets.test.table.source,
            "pool": None if pool is None else pool.table.source,
            "label": self.label,
            "kind": sets.data.kind,
            "label_deviation": sets.unit,
            "training_rows": len(found.influence),
            "variance": found.variance,
            "prior_variance": found.prior[0],
            "share_left": found.share,
            "process_variance": float((found.ceiling**2).mean()),
            "process_prior_variance": found.prior[1],
            "test_rows": lines(self.columns()),
            "at_risk": lines(self.at_risk()),
            "influence": found.influence,
            "matter": _named(sets.train, found.matter(self.k)),
            "redundant": _named(sets.train, found.redundant()),
            "further": None,
            "random_sets": None,
            "trained": None if self.trained is None else _told(self.trained, sets),
            "settings": self.settings,
            "warnings": list(self.notes),
        }
        if found.further is not None and pool is not None:
            made["further"] = {
                "rows": _named(pool, found.further.indices),
                "variance_left": found.after,
                "variance_left_by_chance": found.chance,
            }
            made["random_sets"] = found.random
        return made


def _named(part: AuditPart, rows: Int[np.ndarray, " k"]) -> list[object]:
    return [row if part.names is None else part.names[row] for row in rows.tolist()]


def _told(trained: Trained, sets: Sets) -> object:
    """Errors in the label's unit; of classes, shares that are wrong."""
    made, unit = trained.confirmation, sets.unit or 1.0
    return plain_json(
        {
            "members": made.members,
            "pearson": made.pearson,
            "spearman": made.spearman,
            "pearson_attainable": made.attainable,
            "variance_ratio": made.ratio,
            "training_loss": trained.loss,
            "test_error": None if trained.error is None else unit * trained.error,
            "test_error_of_mean": None if trained.together is None else unit * trained.together,
        }
    )
