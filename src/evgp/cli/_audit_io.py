"""Reading the tables of an audit, and writing its result as a table, JSON and a page."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, cast

import numpy as np
import pyarrow as pa
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn.functional import one_hot

from evgp._linalg import CONSTANT
from evgp.audits import Audit
from evgp.audits.run import unseen
from evgp.cli._output import called, in_flags, lines, noted
from evgp.datasets import (
    Dataset,
    PoolData,
    ReadOptions,
    Table,
    TableData,
    ids,
    load_csv,
    plain,
    read_for_network,
    read_table,
    split,
)
from evgp.datasets.options import split_all
from evgp.datasets.own import class_name
from evgp.errors import DatasetError
from evgp.report import AuditRows, AuditSummary, Trained, summarise_audit
from evgp.report.summary import plain_json


@dataclass(frozen=True)
class AuditPart:
    """One of the tables, with its rows as numbers and their ids."""

    table: Table
    x: Float[np.ndarray, "n d"]
    names: Sequence[object] | None

    @property
    def rows(self) -> AuditRows:
        """The rows for the page."""
        cells = {name: self.table.cells(name) for name in self.table.names}
        return AuditRows(Path(self.table.source).name, len(self.x), self.names, cells)


@dataclass(frozen=True)
class AuditTables:
    """Training rows with targets, test rows, and the pool if there is one.

    `y` has mean 0: one column with standard deviation 1, or a column for each class, whose `means`
    were subtracted. `y_test` are targets or classes (-1 for a class that is not in the training
    rows), or None if the file has no labels.
    """

    train: AuditPart
    test: AuditPart
    pool: AuditPart | None
    data: Dataset
    inputs: tuple[str, ...]
    scale: str | None
    y: Float[Tensor, "n o"]
    means: Float[Tensor, " o"]
    y_test: Float[Tensor, "m 1"] | Int[Tensor, " m"] | None
    notes: list[str] = field(default_factory=list)

    @property
    def unit(self) -> float | None:
        """The standard deviation of the labels; None for classes."""
        return None if self.data.classes else self.data.y_std

    def predicted_classes(self, outputs: Float[Tensor, " *e m o"]) -> Int[Tensor, " *e m"]:
        """The class with the largest output, with the class means added back."""
        return (outputs + self.means).argmax(-1)

    def how_labels_were_read(self, task: str | None) -> str:
        """Whether labels were read as numbers or classes, and how to change that."""
        names = self.data.class_names
        if not self.data.classes:
            other = "" if task else "; use --task classification to read them as classes"
            return f"Labels were read as numbers{other}."
        shown = ", ".join(names[:5]) + (", ..." if len(names) > 5 else "")
        numbers = not task and all(map(_is_number, names))
        other = "; use --task regression to read them as numbers" if numbers else ""
        return f"Labels were read as {len(names)} classes ({shown}){other}."


def read_tables(
    files: tuple[Path, Path, Path | None], label: str, how: ReadOptions, task: str | None = None
) -> AuditTables:
    """Read the three files; test rows and pool are encoded like the training rows."""
    train_file, test_file, pool_file = files
    table, notes = noted(lambda: _read(train_file, how, split_all(how.text)))
    table.column(label)
    how = replace(how, drop=split(how.drop, table.names))
    drop = tuple(dict.fromkeys((label, *how.drop)))
    training = cast(TableData, read_for_network(table, replace(how, drop=drop)))
    encoder = training.encoder
    constant = [name for name in encoder.ignored if name not in (how.id, *drop)]
    notes += map(in_flags, training.notes)
    # The notes of the pool would repeat those of the encoder.
    data, _ = noted(lambda: _labelled(train_file, label, how, task))
    train = AuditPart(table, training.in_memory.numpy(), training.ids)
    test, more = noted(lambda: _part(_read(test_file, how, encoder.words), training))
    notes += more
    unseen_columns = _unseen(table, test.table, constant, "test")
    pool = None
    if pool_file is not None:
        pool, more = noted(lambda: _part(_read(pool_file, how, encoder.words), training))
        notes += more
        unseen_columns += _unseen(table, pool.table, constant, "pool")
    y_test, more = _test_labels(test.table, label, data)
    notes = [*(_of_training(note, table.source) for note in notes + more), *unseen_columns]
    y, means = _targets(data)
    return AuditTables(
        train, test, pool, data, encoder.sources, training.scale, y, means, y_test, notes
    )


def _labelled(file: Path, label: str, how: ReadOptions, task: str | None) -> Dataset:
    """The labels of all rows, without a test split."""
    try:
        return load_csv(
            file, label, task=task or "auto", test=0, id=how.id, column=how.column, drop=how.drop,
            impute=how.impute, text=how.text, embed=how.embed, **how.dialect,
        )  # fmt: skip
    except DatasetError as error:
        raise DatasetError(_of_training(str(error), str(file))) from error


def _of_training(message: str, source: str) -> str:
    """A message about a pool, reworded for training rows.

    >>> _of_training("a.csv (pool): filled 1 cell with the pool's median", "a.csv")
    "a.csv: filled 1 cell with the training rows' median"
    """
    message = message.replace(f"{source} (pool)", source)
    message = message.replace("the pool's", "the training rows'")
    message = message.replace(", which should not influence the picks", ", which is not an input")
    return message.replace(" in the pool", " in the training rows")


def _unseen(train: Table, other: Table, constant: Sequence[str], where: str) -> list[str]:
    """A note on columns that are constant in the training rows, and vary in the others."""
    columns = []
    for name in constant:
        if name not in other.names or pa.types.is_nested(other.column(name).type):
            continue
        known, cells = (_values(table, name) for table in (train, other))
        if any(all(_differ(cell, value) for value in known) for cell in cells):
            columns.append(repr(name))
    return [unseen(columns, where)] if columns else []


def _values(table: Table, name: str) -> list[object]:
    return [cell for cell in plain(table.column(name)).unique().to_pylist() if cell is not None]


def _differ(a: object, b: object) -> bool:
    """Whether two values differ by more than rounding.

    >>> _differ(0.3, 0.1 + 0.2), _differ(1, 2), _differ("a", "a"), _differ("a", 1)
    (False, True, False, True)
    """
    if isinstance(a, int | float) and isinstance(b, int | float):
        return abs(a - b) > CONSTANT * max(abs(a), abs(b))
    return str(a) != str(b)


def _is_number(name: str) -> bool:
    try:
        float(name)
    except ValueError:
        return False
    return True


def _read(path: Path, how: ReadOptions, words: Sequence[str]) -> Table:
    names = (*words, *(() if how.id is None else (how.id,)))
    return read_table(path, **how.dialect, text=names)


def _part(table: Table, training: PoolData) -> AuditPart:
    id = training.options.id
    return AuditPart(
        table, training.tensor_like(table).numpy(), None if id is None else ids(table, id)
    )


def _targets(data: Dataset) -> tuple[Float[Tensor, "n o"], Float[Tensor, " o"]]:
    """Centred targets in the order of the file (a column for each class), and their means."""
    assert data.rows is not None
    y = torch.empty_like(data.y)
    y[data.rows] = data.y
    if not data.classes:
        return y, torch.zeros(1, dtype=torch.float64)  # scaled already
    hot = one_hot(y, data.classes).double()
    return hot - hot.mean(0), hot.mean(0)


def _test_labels(
    table: Table, label: str, data: Dataset
) -> tuple[Float[Tensor, "m 1"] | Int[Tensor, " m"] | None, list[str]]:
    """The labels of the test rows if all have one, and notes on missing or unknown ones."""
    if label not in table.names:
        return None, []
    cells = plain(table.column(label)).to_pylist()
    if any(cell is None for cell in cells):
        return None, [
            f"{table.source}: column {label!r} has missing labels, so there is no test error"
        ]
    if data.classes:
        known = {name: code for code, name in enumerate(data.class_names)}
        codes = torch.tensor([known.get(class_name(cell), -1) for cell in cells])
        unseen = int((codes < 0).sum())
        message = f"{table.source}: {unseen:,} labels are of classes not in the training rows"
        return codes, [message] if unseen else []
    values = np.array([cell if isinstance(cell, int | float) else np.nan for cell in cells])
    good: Bool[np.ndarray, " m"] = np.isfinite(values.astype(np.float64))
    if not good.all():
        return None, [
            f"{table.source}: column {label!r} has non-numeric labels, so there is no test error"
        ]
    scaled = (torch.from_numpy(values.astype(np.float64)) - data.y_mean) / data.y_std
    return scaled[:, None], []


@dataclass(frozen=True)
class AuditResult:
    """The prediction, its tables, and the results of training."""

    prediction: Audit
    tables: AuditTables
    label: str
    k: int
    trained: Trained | None = None
    settings: dict[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    def columns(self, rows: Int[np.ndarray, " k"] | None = None) -> dict[str, list[object]]:
        """Predicted and observed standard deviations at these test rows, or at all of them."""
        prediction, unit, names = self.prediction, self.tables.unit, self.tables.test.names
        at = np.arange(len(prediction.deviation)) if rows is None else rows
        columns: dict[str, list[object]] = {}
        if names is None:
            columns["index"] = list(at.tolist())
        else:
            columns["id"] = [names[row] for row in at.tolist()]
        columns["standard_deviation"] = prediction.deviation[at].tolist()
        columns["ceiling"] = prediction.ceiling[at].tolist()
        if unit is not None:
            columns["in_label_unit"] = (unit * prediction.deviation[at]).tolist()
        if self.trained is not None:
            columns["observed"] = self.trained.confirmation.deviation[at].tolist()
        return columns

    def at_risk(self) -> dict[str, list[object]]:
        """The test rows where networks will disagree most, worst first."""
        rows = self.prediction.at_risk(self.k)
        return {"rank": list(range(1, len(rows) + 1)), **self.columns(rows)}

    def summary(self, *, network: str) -> AuditSummary:
        """Return the summary for the page."""
        tables = self.tables
        return summarise_audit(
            self.prediction,
            train=tables.train.rows,
            test=tables.test.rows,
            pool=None if tables.pool is None else tables.pool.rows,
            label=self.label,
            unit=tables.unit,
            inputs=tables.inputs,
            features=tables.train.x.shape[1],
            trained=self.trained,
            k=self.k,
            network=network,
            command=called(),
            settings=self.settings,
            notes=self.notes,
        )

    def document(self) -> dict[str, object]:
        """Everything as JSON; standard deviations are for standardised labels, or for outputs."""
        prediction, tables = self.prediction, self.tables
        pool = tables.pool
        document: dict[str, object] = {
            "source": tables.train.table.source,
            "test": tables.test.table.source,
            "pool": None if pool is None else pool.table.source,
            "label": self.label,
            "kind": tables.data.kind,
            "label_standard_deviation": tables.unit,
            "training_rows": len(prediction.influence),
            "variance": prediction.variance,
            "prior_variance": prediction.prior[0],
            "share_left": prediction.share,
            "process_variance": float((prediction.ceiling**2).mean()),
            "process_prior_variance": prediction.prior[1],
            "test_rows": lines(self.columns()),
            "at_risk": lines(self.at_risk()),
            "influence": prediction.influence,
            "matter": _named(tables.train, prediction.matter(self.k)),
            "redundant": _named(tables.train, prediction.redundant()),
            "further": None,
            "random_sets": None,
            "trained": None if self.trained is None else _training(self.trained, tables),
            "settings": self.settings,
            "warnings": list(self.notes),
        }
        if prediction.further is not None and pool is not None:
            document["further"] = {
                "rows": _named(pool, prediction.further.indices),
                "variance_left": prediction.after,
                "variance_left_by_chance": prediction.chance,
            }
            document["random_sets"] = prediction.random
        return document


def _named(part: AuditPart, rows: Int[np.ndarray, " k"]) -> list[object]:
    return [row if part.names is None else part.names[row] for row in rows.tolist()]


def _training(trained: Trained, tables: AuditTables) -> object:
    """Results of training; errors are in the unit of the label, or shares of wrong classes."""
    confirmation, unit = trained.confirmation, tables.unit or 1.0
    return plain_json(
        {
            "members": confirmation.members,
            "pearson": confirmation.pearson,
            "spearman": confirmation.spearman,
            "pearson_attainable": confirmation.attainable,
            "variance_ratio": confirmation.ratio,
            "training_loss": trained.loss,
            "test_error": None if trained.error is None else unit * trained.error,
            "test_error_of_mean": None if trained.together is None else unit * trained.together,
        }
    )
