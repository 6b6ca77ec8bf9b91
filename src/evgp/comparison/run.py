"""Run a comparison: every strategy on every dataset with every seed, each once."""

import hashlib
import json
import os
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from math import nan
from pathlib import Path
from time import perf_counter
from typing import Any

import torch
from jaxtyping import Int
from torch import Tensor

from evgp import metrics
from evgp._checks import instance, integer, path_of, seed_of, words
from evgp._executor import Progress
from evgp._progress import check_progress, reporting
from evgp._reading import read_json
from evgp.comparison.cells import CELLS, Cell, Outcome, Store, finite, run_cells, step
from evgp.comparison.learners import fit, learner_named
from evgp.comparison.protocol import DatasetSource, Protocol
from evgp.comparison.rows import NETWORK, Record, Records, Row, record_of, row_of
from evgp.datasets import Dataset, atomic, check_document
from evgp.errors import DamageWarning, DatasetError, EvgpError, PoolError, Stopped, WrongFormat
from evgp.loop import Round
from evgp.loop import run as run_rounds
from evgp.pool import Pool
from evgp.strategies import Setting, Strategy, is_ahead
from evgp.training import Ensemble

WORK = "evgp.arena:play_cell"  # part of the names of recorded cells
_TABLES = "tables.json"
_SOURCE = tuple(part.name for part in fields(DatasetSource) if part.name != "source")
# Settings in which cells of one dataset in a folder may differ.
_FREE = ("strategy", "seed", "members", "learners")


@dataclass(frozen=True)
class Played:
    """The rows of one strategy, and the pool rows in the order in which they were labelled.

    `anew` has the picks of each budget if they were made separately; else these are prefixes of
    `picks`.
    """

    rows: tuple[Row, ...]
    picks: Int[Tensor, " k"]
    anew: Mapping[int, Int[Tensor, " l"]] = field(default_factory=dict)


@dataclass(frozen=True)
class RoundLabels:
    """The labelled rows after a round, and how long picking took in it."""

    number: int
    rows: Int[Tensor, " l"]
    seconds: float


def play(
    source: DatasetSource, strategy: str, seed: int, protocol: Protocol, *, last_only: bool = False
) -> Played:
    """Pick, fit and measure on the test set, until the budget is spent. With `last_only`, measure
    only at the end. The seed decides the split, the strategy's draws and the networks, which start
    from the same weights whatever the strategy, so that strategies are compared in pairs. All
    learners have the same labels.
    """
    data = source.load(seed)
    parts = data.scaled(protocol.scale)
    setting = protocol.setting(data, seed)
    chosen = protocol.strategy(strategy, data, seed)
    rows: list[Row] = []
    anew: dict[int, Tensor] = {}
    for labelled in _labelled(chosen, strategy, data, seed, protocol):
        if protocol.budgets and not is_ahead(chosen):
            anew[len(labelled.rows)] = labelled.rows
        if last_only and labelled.number < protocol.rounds - 1:
            continue
        for learner in protocol.learners:
            begun = perf_counter()
            results = _results(
                learner, labelled.rows, data, setting, parts=parts, members=protocol.members
            )
            rows.append(
                Row(
                    dataset=source.name,
                    kind=data.kind,
                    strategy=strategy,
                    seed=seed,
                    round=labelled.number,
                    labels=len(labelled.rows),
                    batch=0 if protocol.budgets else protocol.batch,
                    pick_seconds=labelled.seconds,
                    train_seconds=perf_counter() - begun,
                    learner=learner,
                    **results,
                )
            )
        step()
    return Played(tuple(rows), labelled.rows, anew)


def _labelled(
    strategy: Strategy, name: str, data: Dataset, seed: int, protocol: Protocol
) -> Iterator[RoundLabels]:
    """The labelled rows after each round, or for each budget on its own.

    A strategy with nested picks picks once, for the largest budget; others start over for each.
    """
    pool = _start(data, protocol.inputs(data, name), protocol.start, seed)
    if not protocol.budgets:
        for played in _rounds(pool, strategy, data, protocol, name=name, seed=seed):
            yield RoundLabels(played.number, played.pool.labelled, played.seconds)
        return
    nested = is_ahead(strategy)
    rows, seconds = pool.labelled, 0.0
    for number, budget in enumerate(protocol.budgets):
        if number == 0 or not nested:
            cold = protocol.cold(protocol.budget if nested else budget)
            fresh = strategy if nested else cold.strategy(name, data, seed)
            (played,) = _rounds(pool, fresh, data, cold, name=name, seed=seed)
            rows, seconds = played.pool.labelled, played.seconds
        yield RoundLabels(number, rows[:budget], seconds if number == 0 or not nested else 0.0)


def _results(
    learner: str,
    labelled: Int[Tensor, " l"],
    data: Dataset,
    setting: Setting,
    *,
    parts: tuple[Tensor, Tensor],
    members: int,
) -> dict[str, Any]:
    """Fit a learner to the labels, and return its metrics on the test set.

    Networks have standardised columns as inputs, others the `parts`, scaled as in `evgp.pick`.
    """
    x, x_test = parts
    y, seed = data.y[labelled], setting.seed
    if learner == NETWORK:
        ensemble = setting.recipe(data.x[labelled], y, members=members, seed=seed)
        loss = float(ensemble.losses.mean())
        trained = {"members": members, "train_loss": loss, "lr": ensemble.lr}
        return {**trained, **measured(ensemble, data)}
    flat = y if data.classes else y[:, 0]
    predict = fit(learner_named(learner, setting), x[labelled], flat, data.classes, seed)
    predicted = predict(x_test)
    if data.classes:
        score = {"accuracy": float((predicted == data.y_test).double().mean())}
    else:
        score = {"mse": metrics.mse(predicted[None, :, None], data.y_test)}
    return {"members": 1, "train_loss": nan, **score}


def play_cell(
    *,
    dataset: str,
    strategy: str,
    seed: int,
    source: str | None = None,
    last_only: bool = False,
    **settings: Any,
) -> Outcome:
    """Do the same with the settings of a cell, as made by `cell_of`.

    `dataset` is the name of the data in the rows, and `source` the path of a table.
    """
    own = {name: settings.pop(name) for name in _SOURCE if name in settings}
    own |= {name: tuple(own[name]) for name in ("drop", "text") if name in own}
    data = DatasetSource(source or dataset, **own)
    settings.setdefault("scale", "columns")  # of all cells before there was a choice
    settings |= {
        name: tuple(settings[name]) for name in ("learners", "budgets") if name in settings
    }
    played = play(data, strategy, seed, Protocol(**settings), last_only=last_only)
    extra: dict[str, Any] = {"picks": played.picks.tolist()}
    if played.anew:
        extra["anew"] = {str(count): picks.tolist() for count, picks in played.anew.items()}
    return Outcome([record_of(row) for row in played.rows], extra)


def cell_of(source: DatasetSource, strategy: str, seed: int, protocol: Protocol) -> Cell:
    """The cell of one strategy on one dataset with one seed; defaults are left out.

    >>> cell = cell_of(DatasetSource("kin8nm"), "evgp", 0, Protocol(budget=40))
    >>> cell.settings  # doctest: +NORMALIZE_WHITESPACE
    {'dataset': 'kin8nm', 'strategy': 'evgp', 'seed': 0, 'budget': 40, 'batch': 20, 'members': 10,
    'scale': 'auto'}
    """
    changed = {
        field.name: getattr(part, field.name)
        for part in (source, protocol)
        for field in fields(part)
        if getattr(part, field.name) != field.default
    }
    if protocol.scale != "columns":
        changed["scale"] = protocol.scale
    else:
        changed.pop("scale")
    if changed["source"] == source.name:
        del changed["source"]
    settings = {
        "dataset": source.name,
        "strategy": strategy,
        "seed": seed,
        "budget": protocol.budget,
        "batch": protocol.batch,
        "members": protocol.members,
        **changed,
    }
    if NETWORK not in protocol.learners:  # no other learner has members
        del settings["members"]
    return Cell(WORK, json.loads(json.dumps(settings)))


def compare(
    data: str | DatasetSource | Sequence[str | DatasetSource],
    strategies: str | Sequence[str],
    *,
    out: str | Path,
    protocol: Protocol = Protocol(),
    seeds: int | Sequence[int] = 5,
    jobs: int | None = None,
    progress: Progress | bool | None = None,
    terms: Protocol | None = None,
) -> tuple[Row, ...]:
    """Compare strategies on datasets, by networks or other learners that are fitted to the picks of
    each.

    Each strategy runs on every dataset with every seed. All arguments are checked before anything
    runs. Cells (one strategy, dataset and seed) that are finished in the folder are not run again,
    so an interrupted run resumes, and a comparison can grow by strategies, seeds, members and
    learners.

    Parameters
    ----------
    data : str, DatasetSource, or a sequence of them
        Names of datasets, or your own tables: `evgp.comparison.DatasetSource("file.csv", "label")`.
    strategies : str or sequence of str
        Names of strategies, such as "random" and "evgp"; `evgp.strategies.strategy_named` has them.
    out : str or Path
        Folder for the results.
    protocol : Protocol
        Budget, batches, learners, networks and training.
    seeds : int or sequence of int
        How many seeds, or which.
    jobs : int, optional
        Number of processes, by default one for each core as far as memory allows.
    progress : callable or bool, optional
        True shows a bar; a function is called with (stage, done, total).
    terms : Protocol, optional
        The former name of `protocol`, for one release.

    Returns
    -------
    tuple of Row
        All results in the folder, for `evgp.comparison.summarise`.

    Examples
    --------
    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> lines = [f"{i / 2},{i % 13},{i % 7}" for i in range(60)]
    >>> _ = (folder / "data.csv").write_text("\\n".join(["a,b,y", *lines]))
    >>> source = DatasetSource(str(folder / "data.csv"), label="y")
    >>> quick = Protocol(budget=4, batch=2, members=2, width=8, steps=5)
    >>> rows = compare(source, ["random"], out=folder / "out", protocol=quick, seeds=1, jobs=1)
    >>> [row.labels for row in rows]
    [2, 4]
    """
    if terms is not None:
        warnings.warn("terms= is now protocol=", DeprecationWarning, stacklevel=2)
        protocol = terms
    listed = [data] if isinstance(data, str | DatasetSource) else data
    instance(listed, "data", Sequence, "a name, a DatasetSource, or a list of them")
    sources = [item if isinstance(item, DatasetSource) else DatasetSource(item) for item in listed]
    names = tuple(dict.fromkeys(words(strategies, "strategies")))
    if not isinstance(seeds, Sequence) or isinstance(seeds, str | bytes):
        seeds = range(integer(seeds, "seeds", 1, 1_000_000))
    seeds = tuple(dict.fromkeys(seed_of(seed) for seed in seeds))
    instance(protocol, "protocol", Protocol, "evgp.comparison.Protocol(budget=100)")
    jobs = None if jobs is None else integer(jobs, "jobs", 1)
    check_progress(progress)
    check(sources, names, seeds, protocol)
    store = open_store(path_of(out, "out", error=DatasetError))
    _check_same_protocol(store, sources, protocol)
    cells = [
        cell_of(source, name, seed, protocol)
        for source in sources for seed in seeds for name in names
    ]  # fmt: skip
    left = _lacking(store, cells)
    warn_of_damage(store, left)
    _check_writable(store)
    _check_same_tables(store, sources)
    with reporting(progress) as report:
        meter = _Meter(report, len(cells) - len(left), len(cells), protocol.rounds)
        meter(0)
        memory = max(_bytes(source.load(seeds[0])) for source in sources) if left else 0
        run_cells(store, left, jobs=jobs, memory=memory, steps=meter)
    return finished_rows(store)


def _lacking(store: Store, cells: Sequence[Cell]) -> list[Cell]:
    """Cells that are still to run, each with the learners that no finished cell has.

    Picks depend only on the seed, so they are the same again. Members matter for networks only.
    """
    finished: dict[str, set[str]] = {}
    for cell, _ in store.every():
        for learner in _learners(cell):
            finished.setdefault(_alike(cell, learner), set()).add(learner)
    left = []
    for cell in cells:
        lacking = [
            name for name in _learners(cell) if name not in finished.get(_alike(cell, name), ())
        ]
        if lacking:
            left.append(_with_learners(cell, lacking))
    return left


def _learners(cell: Cell) -> list[str]:
    return list(cell.settings.get("learners", [NETWORK]))


def _with_learners(cell: Cell, learners: list[str]) -> Cell:
    """Return the cell with some of its learners, named as if the others had not been requested."""
    settings = {name: value for name, value in cell.settings.items() if name != "learners"}
    if learners != [NETWORK]:
        settings["learners"] = learners
    if NETWORK not in learners:
        settings.pop("members", None)
    return Cell(cell.work, settings)


def _alike(cell: Cell, learner: str) -> str:
    return json.dumps([cell.work, _with_learners(cell, [learner]).settings], sort_keys=True)


def check(
    sources: Sequence[DatasetSource],
    strategies: tuple[str, ...],
    seeds: Sequence[int],
    protocol: Protocol,
) -> None:
    """Raise if something cannot run on a dataset, before anything runs."""
    for what, values in (("datasets", sources), ("strategies", strategies), ("seeds", seeds)):
        if not values:
            raise PoolError(f"expected {what} to compare, got none")
    names = [source.name for source in sources]
    if len(set(names)) < len(names):
        raise PoolError(f"expected datasets with different names, got {', '.join(names)}")
    for source in sources:
        protocol.check(source.load(seeds[0]), strategies, seeds[0])
    for source in sources:
        for seed in seeds[1:] if source.varies else ():
            try:
                protocol.fits(source.load(seed))
            except EvgpError as error:
                raise DatasetError(f"with seed {seed}: {error}") from error


def open_store(folder: Path) -> Store:
    """Open the finished cells of a comparison."""
    store = Store(folder, check=check_rows)
    _upgrade(store)
    return store


def finished_rows(store: Store) -> tuple[Row, ...]:
    """The rows of all finished cells of a folder."""
    return tuple(row_of(row) for _, finished in store.every() for row in finished.rows)


def warn_of_damage(store: Store, cells: Sequence[Cell] = ()) -> None:
    """Warn of damaged files: cells that will run again, and all others."""
    again = {str(store.path(cell)) for cell in cells}
    for error in store.damage():
        done = "is run again" if error.path in again else "is left out: delete it"
        warnings.warn(
            f"{error.path} was damaged ({error.why}) and {done}", DamageWarning, stacklevel=3
        )


def check_rows(rows: Records) -> None:
    """Raise if records are not rows of a comparison."""
    for row in rows:
        row_of(row)


def _upgrade(store: Store) -> None:
    """Convert cells of version 0.1; to be removed after one release."""
    for path in sorted((store.folder / CELLS).glob("*.json")):
        try:
            former = check_document(path, read_json(path, "a cell"), ("cell", "rows", "picks"))
            cell, rows = former["cell"], finite(former["rows"])
            named = path.stem.endswith(f"-{_former_key(cell)}")
            free = {name: cell[name] for name in ("strategy", "seed", "members")}
            settings = {"dataset": cell["name"], **free}
            settings |= cell["terms"]
            if settings["source"] == settings["dataset"]:
                del settings["source"]
            check_rows(rows)
            seconds = sum(float(row["pick_seconds"] + row["train_seconds"]) for row in rows)
            extra = {"picks": list(former["picks"])}
        except (DatasetError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
            continue  # a cell of today, or damaged, which is reported where cells are read
        if named and rows:
            store.add(Cell(WORK, settings), rows, seconds, extra=extra)
            path.unlink()


def _former_key(cell: Record) -> str:
    return hashlib.sha256(json.dumps(cell, sort_keys=True).encode()).hexdigest()[:12]


def _check_same_protocol(
    store: Store, sources: Sequence[DatasetSource], protocol: Protocol
) -> None:
    """Raise if the folder has results for the same data with another protocol."""
    settings_of = {source.name: _shared(cell_of(source, "", 0, protocol)) for source in sources}
    for cell, _ in store.every():
        there, asked = _shared(cell), settings_of.get(str(cell.settings.get("dataset")))
        if asked is None or asked == there:
            continue
        named = ("budgets", *there, *asked)  # which decide the budget and the batch
        name = next(name for name in named if asked.get(name) != there.get(name))
        before, now = _setting(name, there), _setting(name, asked)
        again = f"pass {before}" if name in there or name in _UNSAID else f"leave out {name}="
        raise DatasetError(
            f"{store.folder}: the rows of {there['dataset']} in this folder were computed with "
            f"{before}, not {now}; {again}, or choose another out="
        )


# Settings of cells that do not record them, where today's default is another.
_UNSAID = {"scale": "columns"}


def _setting(name: str, settings: Mapping[str, Any]) -> str:
    """A setting of a cell, as an argument.

    >>> _setting("scale", {}), _setting("budgets", {"budgets": [3, 6]}), _setting("lr", {})
    ("scale='columns'", 'budgets=3,6', 'the default lr=')
    """
    if name not in settings and name not in _UNSAID:
        return f"the default {name}="
    value = settings.get(name, _UNSAID.get(name))
    value = ",".join(map(str, value)) if isinstance(value, list) else repr(value)
    return f"{name}={value}"


def _shared(cell: Cell) -> dict[str, Any]:
    return {name: value for name, value in cell.settings.items() if name not in _FREE}


def _check_same_tables(store: Store, sources: Sequence[DatasetSource]) -> None:
    """Save the checksums of the user's tables; raise if one has changed since."""
    path = store.folder / _TABLES
    try:
        kept: Any = read_json(path, "checksums of tables") if path.exists() else {}
        known = dict(kept)
    except (ValueError, TypeError) as error:
        raise WrongFormat.of(DatasetError)(
            str(path), "checksums of tables", "a damaged file", "delete it, or choose another out="
        ) from error
    for source in sources:
        digest = source.checksum()
        if digest is not None and known.setdefault(source.name, digest) != digest:
            raise DatasetError(
                f"{store.folder}: the table {source.source} has changed since the rows there were "
                "computed; choose another out="
            )
    if known:
        with atomic(path) as part:
            part.write_text(json.dumps(known), encoding="utf-8")


def _check_writable(store: Store) -> None:
    """Create the folder, or raise if it cannot be written, before anything runs."""
    cells = store.folder / CELLS
    try:
        cells.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError) as error:
        raise DatasetError(f"{store.folder}: out= is a file; choose a folder") from error
    for folder in (store.folder, cells):
        if not os.access(folder, os.W_OK | os.X_OK):
            raise DatasetError(f"{folder}: the folder may not be written to")


@dataclass
class _Meter:
    """Counts the rounds of all cells."""

    progress: Progress
    finished: int
    cells: int
    rounds: int
    more: int = 0

    def __call__(self, more: int) -> None:
        self.more += more
        done = self.finished * self.rounds + self.more
        self.progress("rounds", done, self.cells * self.rounds)


def _rounds(
    pool: Pool, strategy: Strategy, data: Dataset, protocol: Protocol, *, name: str, seed: int
) -> Iterator[Round]:
    """The rounds of the loop; a user's own strategy may raise anything."""
    try:
        yield from run_rounds(
            pool, strategy, lambda rows: data.y[rows], protocol.rounds, protocol.batch, seed=seed
        )
    except EvgpError:
        raise
    except Exception as error:
        if ":" not in name:
            raise
        raise Stopped.of(PoolError)(name, f"{type(error).__name__}: {error}") from error


def measured(members: Ensemble, data: Dataset) -> dict[str, float]:
    """All metrics that apply, on the test set."""
    outputs = members.predict(data.x_test)
    if data.kind == "regression":
        return {
            "mse": metrics.mse(outputs, data.y_test),
            "output_variance_p90": metrics.output_variance(outputs, 90),
            "output_variance": metrics.output_variance(outputs),
            "bias": metrics.bias(outputs, data.y_test),
        }
    return {
        "accuracy": metrics.accuracy(outputs, data.y_test),
        "output_entropy": metrics.output_entropy(outputs),
        "disagreement": metrics.disagreement(outputs),
        "nll": metrics.nll(outputs, data.y_test),
        "calibration_error": metrics.calibration_error(outputs, data.y_test),
    }


def _start(data: Dataset, x: Tensor, count: int, seed: int) -> Pool:
    if count == 0:
        return Pool(x)
    generator = torch.Generator().manual_seed(seed)
    rows = torch.randperm(len(x), generator=generator)[:count]
    return Pool(x, labelled=rows, y=data.y[rows])


def _bytes(data: Dataset) -> int:
    """Estimated memory of a cell: the data, its kernel matrix, and networks."""
    points = sum(part.numel() * part.element_size() for part in (data.x, data.x_test))
    n = len(data.x)
    return int(1.5 * (n * min(n, 25_000) * (4 if n > 10_000 else 8)) + 3 * points + 1.5e9)
