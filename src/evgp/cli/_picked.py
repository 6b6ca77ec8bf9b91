"""Turn the options of a pick into a request, and its selection into a table and a report."""

import os
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, fields, replace
from inspect import signature
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any, cast

import numpy as np

from evgp._checks import bytes_of
from evgp._executor import Executor, Progress
from evgp._reading import reading_within
from evgp.cli._options import PickOptions
from evgp.cli._output import called, in_flags, lines, noted, percent
from evgp.datasets import (
    FileData,
    Images,
    PoolData,
    check_new,
    check_writable,
    copy_files,
    write_rows,
    written,
)
from evgp.datasets.scaling import described
from evgp.errors import CannotWrite, DatasetError
from evgp.kernels import OF_NETWORKS
from evgp.nets import Network
from evgp.nets.named import Named
from evgp.pool import Selection
from evgp.selection import Request
from evgp.selection.request import Model

# Parameters of `evgp.pick`.
_ARGUMENTS = signature(Request.of).parameters

# Number of unpicked rows that a report's map shows if the pool is on disk.
_MAP = 5_000


def read_request(
    options: PickOptions, executor: Executor | None, progress: Progress
) -> tuple[Named, Request, list[str]]:
    """Read the files that the options name; return the network, the request and any notes."""
    network, kernel = model_of(vars(options)).network_and_kernel(options.seed)
    arguments = {name: value for name, value in vars(options).items() if name in _ARGUMENTS} | {
        "drop": tuple(options.drop or ()),
        "text": tuple(options.text or ()),
        "x_test": options.test,
        "network": network,
        "kernel": kernel,
    }
    request, notes = noted(
        lambda: Request.of(options.pool, **arguments, executor=executor, progress=progress)
    )
    # `evgp plan` has no executor, but must plan for the sharded run that --dask starts.
    if options.dask is not None and executor is None:
        request = replace(request, method="sharded")
    return network, request, list(dict.fromkeys((*map(in_flags, request.pool.notes), *notes)))


def model_of(options: Mapping[str, Any]) -> Model:
    """Return the network, or the kernel in its place, that the options describe."""
    names = {part.name for part in fields(Model)}
    return Model(**{name: value for name, value in options.items() if name in names})


def name_of(network: Named, options: PickOptions) -> str:
    """Return the name of the network, or of the kernel that replaces it, for reports."""
    if options.kernel != "ntk":
        of_network = f" of {network}" if options.kernel in OF_NETWORKS else ""
        return f"kernel {options.kernel}{of_network}"
    return str(network) if isinstance(network, Network) else options.network


@dataclass(frozen=True)
class PickOutput:
    """A selection, the pool that it was made from, and the notes of the run."""

    selection: Selection
    pool: PoolData
    notes: tuple[str, ...] = ()
    features: Sequence[str] = ()  # as they were used

    def columns(self) -> dict[str, list[object]]:
        """Return the picks in order: rank, id or row number, gain, variance left, cost."""
        rows, ids = self.selection.indices.tolist(), self.selection.ids
        columns: dict[str, list[object]] = {"rank": list(range(1, len(rows) + 1))}
        columns |= {"id": list(ids)} if ids else {"index": rows}
        columns["gain"] = self.selection.gains.tolist()
        columns["variance_left"] = self.selection.variance_left.tolist() or [None] * len(rows)
        if self.selection.costs is not None:
            columns["cost"] = self.selection.costs.tolist()
        return columns

    def table(self) -> dict[str, Sequence[object]]:
        """Return the picks for a file: rank, row number, id, and the pool's columns as they were.

        The id has its own name.
        """
        id, rows = self.pool.options.id, self.selection.indices
        ours: dict[str, Sequence[object]] = {}
        for name, cells in self.columns().items():
            if name != "id":
                ours |= {name: cells}
            if name == "rank":
                ours["index"] = rows.tolist()
        ours = {f"pick_{name}" if name == id else name: cells for name, cells in ours.items()}
        if self.selection.ids:
            names = list(ours)
            ours |= {id or "id": list(self.selection.ids)}
            ours = {name: ours[name] for name in (*names[:2], id or "id", *names[2:])}
        source_rows = self.pool.rows_of(rows)
        columns = (
            ()
            if source_rows is None
            else zip(source_rows.column_names, source_rows.columns, strict=True)
        )
        theirs = {
            f"{name}_pool" if name in ours else name: cells for name, cells in columns if name != id
        }
        return {**ours, **theirs}

    def document(self) -> dict[str, object]:
        """Return the whole result as plain values, for `--json`."""
        certificate, columns = self.selection.certificate, self.columns()
        columns["index"] = self.selection.indices.tolist()
        names = ("rank", "id", "index", "gain", "variance_left", "cost")
        absent: list[object] = [None] * len(self.selection)
        return {
            "source": self.pool.source,
            "rows": len(self.pool),
            "features": list(self.features),
            "picks": lines({name: columns.get(name, absent) for name in names}),
            "prior_variance": self.selection.prior_variance,
            "start_variance": self.selection.start_variance,
            "certificate": certificate
            and {"share": certificate.share, "lowest": certificate.lowest},
            "needed": certificate
            and [
                {"share": share, "at_least": low, "enough": high}
                for share, (low, high) in sorted(certificate.needed.items())
            ],
            "settings": self.selection.settings,
            "warnings": list(self.notes),
        }

    def summary(
        self,
        output: Path | None,
        report: Path | None,
        rate: str = "",
        copy_to: Path | None = None,
    ) -> str:
        """Summarise the run in one paragraph."""
        k, certificate, costs = (
            len(self.selection),
            self.selection.certificate,
            self.selection.costs,
        )
        pool = self.pool
        what = "rows" if pool.features or pool.pictures is None else "images"
        text = f"{k:,} of {len(pool):,} {what} picked"
        if len(self.selection.variance_left):
            start, left = self.selection.start_variance, float(self.selection.variance_left[-1])
            fall = f" ({percent(1 - left / start)} less)" if start > 0 else ""
            text += f": variance {start:.3g} -> {left:.3g}{fall}"
        if costs is not None:
            text += f", for a cost of {costs.sum():,.6g}"
        if certificate is not None and k:
            rivals = "the same money" if costs is not None else f"any {k:,} {what}"
            rivals = f"any other {what[:-1]}" if costs is None and k == 1 else rivals
            share = percent(certificate.share[-1])
            text += f", at least {share} of the largest reduction {rivals} could achieve. "
            prior = self.selection.prior_variance
            earlier = self.selection.start_variance < prior * (1 - 1e-9)
            further, of = ("Further labels", "prior ") if earlier else ("Labels", "")
            what_of = f"a share of the {of}variance" + (f" of {prior:.3g}" if earlier else "")
            shares = needed(certificate.needed, k, len(pool))
            text += f"{further} needed to remove {what_of}: {shares}"
        settings: Mapping[str, Any] = self.selection.settings
        if "final_gain" in settings:
            text += (
                f". Exchanging picks removed {100 * settings['final_gain']:.2g} % of what was left"
            )
        text += f". Scale: {described(settings.get('scale'))}"
        method, kind = (settings.get(key) for key in ("method", "kernel_features"))
        if method != "dense":
            text += f". Method: {method} ({kind})" + (f", {rate}" if rate else "")
        files = [str(path) for path in (output, report, copy_to) if path is not None]
        return text + "." + (f" Written: {', '.join(files)}." if files else "")

    def write(
        self,
        output: Path | None,
        report: Path | None,
        memory: str | None,
        copy_to: Path | None = None,
    ) -> None:
        """Write the requested files; the report is rendered before the first file is written."""
        page = None
        if report is not None:
            with reading_within(None if memory is None else bytes_of(memory)):
                page = self._page()
        columns = {} if output is None else self.table()
        if copy_to is not None:
            copy_files(copy_to, self._images())
        write_both(output, columns, report, page)

    def _images(self) -> dict[str, Path]:
        """Return the picked images by their new names: the rank, and the old name."""
        pictures = self.pool.pictures
        assert isinstance(pictures, Images)
        digits = len(str(len(self.selection)))
        return {
            f"{rank:0{digits}d}_{'_'.join(Path(pictures.names[row]).parts)}": pictures.folder
            / pictures.names[row]
            for rank, row in enumerate(self.selection.indices.tolist(), 1)
        }

    def _page(self) -> str:
        from evgp.report import render, summarise

        selection, pool, rows = self.selection, self.pool, None
        if pool.in_files:
            pool = cast(FileData, pool)
            n = len(pool)
            others = np.random.default_rng(0).choice(n, min(_MAP, n), replace=False)
            rows = np.union1d(selection.indices, others)
            pool = replace(pool.part(rows), ids=pool.ids_of(rows) or None)
            selection = replace(selection, indices=np.searchsorted(rows, selection.indices))
        summary = summarise(
            selection,
            x=pool.in_memory.flatten(1).double().numpy(),
            ids=None if pool.ids is None else [str(name) for name in pool.ids],
            columns=pool.columns,
            network=str(selection.settings["network"]),
            source=Path(pool.source).name,
            command=called(),
            notes=self.notes,
            pictures=pool.pictures,
            numbers=rows,
            total=None if rows is None else len(self.pool),
        )
        return render(summary)


def needed(shares: Mapping[float, tuple[int, int | None]], k: int, rows: int) -> str:
    """Format how many labels are needed to remove each share of the variance.

    >>> needed({0.5: (4, 6), 0.8: (9, 9), 0.9: (15, None)}, k=40, rows=99)
    '4 to 6 for 50 %, 9 for 80 %, at least 15 (these 40 are not enough) for 90 %'
    >>> needed({0.5: (4, 6), 0.8: (100, None), 0.9: (100, None)}, k=40, rows=99)
    '4 to 6 for 50 %; 80 %, 90 % are out of reach of this pool'
    """
    parts, beyond = [], []
    for share, (low, high) in sorted(shares.items()):
        if high is None and low > rows:
            beyond.append(f"{round(100 * share)} %")
            continue
        if high is None:
            many = f"at least {low:,}" + (f" (these {k:,} are not enough)" if low <= k else "")
        else:
            many = f"{high:,}" if low == high else f"{low:,} to {high:,}"
        parts.append(f"{many} for {round(100 * share)} %")
    never = f"{', '.join(beyond)} {'are' if len(beyond) > 1 else 'is'} out of reach of this pool"
    return "; ".join([", ".join(parts)] * bool(parts) + [never] * bool(beyond))


def write_both(
    output: Path | None,
    columns: Mapping[str, Sequence[object]],
    report: Path | None,
    page: str | None,
) -> None:
    """Write the table and the report, or neither if one of them cannot be written."""
    with ExitStack() as both:
        if report is not None and page is not None:
            both.enter_context(written(report, page))
        if output is not None:
            write_rows(output, columns)


def check_paths(output: Path | None, report: Path | None, inputs: Sequence[Path | None]) -> None:
    """Refuse outputs that cannot be written, or that would overwrite an input."""
    if output is not None:
        check_writable(output)
    if report is not None:
        check_writable(report, (".html", ".htm"))
    used = [path for path in inputs if path is not None]
    for out in (output, report):
        if out is None:
            continue
        for other in used:
            both = out.exists() and other.exists()
            if out.samefile(other) if both else os.path.realpath(out) == os.path.realpath(other):
                raise CannotWrite(str(out), f"would overwrite {other}", "choose another name")
        used.append(out)
        folder = Path(os.path.realpath(out)).parent
        try:  # permissions alone do not show whether a file can be created
            TemporaryFile(dir=folder).close()
        except OSError as error:
            why = f"the folder {folder} does not take new files ({error.strerror})"
            raise CannotWrite(str(out), why, "write to another folder") from error


def check_copies(folder: Path, pool: PoolData | Path) -> None:
    """Refuse to copy the picks of a pool without image files, or into a folder that is used."""
    if isinstance(pool, Path):
        check_new(folder)
        if pool.is_dir() and Path(os.path.realpath(folder)).is_relative_to(os.path.realpath(pool)):
            why = f"this folder is inside the pool {pool}, which would grow"
            raise CannotWrite(str(folder), why, "choose another one")
    elif not isinstance(pool.pictures, Images):
        raise DatasetError(f"{pool.source}: copy_to= is for a folder of images; leave it out")
