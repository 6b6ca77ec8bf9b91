"""A selection as a table, a JSON document, a paragraph and a page."""

import os
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryFile

from evgp._errors import DatasetError
from evgp.cli._asked import PoolView
from evgp.cli._output import called, lines, percent
from evgp.datasets import check_writable, write_rows, written
from evgp.pool import Selection


@dataclass(frozen=True)
class PickOutput:
    """What was picked, from what, and what was noted on the way."""

    selection: Selection
    seen: PoolView
    notes: tuple[str, ...] = ()

    def columns(self) -> dict[str, list[object]]:
        """The picks in order: rank, id or row number, gain, variance left, cost."""
        rows = self.selection.indices.tolist()
        names, places = self.seen.names, self.seen.place(self.selection.indices).tolist()
        columns: dict[str, list[object]] = {"rank": list(range(1, len(rows) + 1))}
        if names is None:
            columns["index"] = rows
        else:
            columns["id"] = [names[place] for place in places]
        columns["gain"] = self.selection.gains.tolist()
        columns["variance_left"] = self.selection.variance_left.tolist() or [None] * len(rows)
        if self.selection.costs is not None:
            columns["cost"] = self.selection.costs.tolist()
        return columns

    def document(self) -> dict[str, object]:
        """Everything, for programs."""
        certificate, columns = self.selection.certificate, self.columns()
        columns["index"] = self.selection.indices.tolist()
        wanted = ("rank", "id", "index", "gain", "variance_left", "cost")
        absent: list[object] = [None] * len(self.selection)
        return {
            "source": self.seen.pool.source,
            "rows": self.seen.total,
            "features": list(self.seen.pool.features),
            "picks": lines({name: columns.get(name, absent) for name in wanted}),
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

    def told(self, output: Path | None, report: Path | None, rate: str = "") -> str:
        """The run in one paragraph."""
        k, certificate, costs = (
            len(self.selection),
            self.selection.certificate,
            self.selection.costs,
        )
        pool = self.seen.pool
        what = "rows" if pool.features or pool.pictures is None else "images"
        text = f"{k:,} of {self.seen.total:,} {what} picked"
        if len(self.selection.variance_left):
            start, left = self.selection.start_variance, float(self.selection.variance_left[-1])
            fall = f" ({percent(1 - left / start)} less)" if start > 0 else ""
            text += f": variance {start:.3g} -> {left:.3g}{fall}"
        if costs is not None:
            text += f", for a cost of {costs.sum():,.6g}"
        if certificate is not None and k:
            rivals = "the same money" if costs is not None else f"any {k:,} {what}"
            rivals = f"any other {what[:-1]}" if costs is None and k == 1 else rivals
            text += f", at least {percent(certificate.share[-1])} of what {rivals} could do. "
            prior = self.selection.prior_variance
            earlier = self.selection.start_variance < prior * (1 - 1e-9)
            further, of = ("Further labels", "prior ") if earlier else ("Labels", "")
            what_of = f"a share of the {of}variance" + (f" of {prior:.3g}" if earlier else "")
            shares = needed(certificate.needed, k, self.seen.total)
            text += f"{further} needed to remove {what_of}: {shares}"
        method, kind = (self.selection.settings.get(key) for key in ("method", "kernel_features"))
        if method != "dense":
            text += f". Method: {method} ({kind})" + (f", {rate}" if rate else "")
        files = [str(path) for path in (output, report) if path is not None]
        return text + "." + (f" Written: {', '.join(files)}." if files else "")

    def write(self, output: Path | None, report: Path | None, *, network: str) -> None:
        """Write what was asked for; the page is made before the first file is written."""
        page = None if report is None else self._page(network)
        write_both(output, self.columns(), report, page)

    def _page(self, network: str) -> str:
        from evgp.report import render, summarise

        seen, pool, names = self.seen, self.seen.pool, self.seen.names
        summary = summarise(
            replace(self.selection, indices=seen.place(self.selection.indices)),
            x=pool.in_memory.flatten(1).double().numpy(),
            ids=None if names is None else [str(name) for name in names],
            columns=pool.columns,
            network=network,
            source=Path(pool.source).name,
            command=called(),
            notes=self.notes,
            pictures=pool.pictures,
            numbers=seen.numbers,
            total=None if seen.numbers is None else seen.total,
        )
        return render(summary)


def needed(shares: Mapping[float, tuple[int, int | None]], k: int, rows: int) -> str:
    """How many labels each share of the variance needs, of the rows that there are.

    >>> needed({0.5: (4, 6), 0.8: (9, 9), 0.9: (15, None), 0.95: (60, None)}, k=40, rows=99)
    '4 to 6 for 50 %, 9 for 80 %, 15 or more (over 40 of these) for 90 %, 60 or more for 95 %'
    >>> needed({0.5: (4, 6), 0.8: (100, None), 0.9: (100, None)}, k=40, rows=99)
    '4 to 6 for 50 %; 80 %, 90 % are out of reach of this pool'
    """
    parts, beyond = [], []
    for share, (low, high) in sorted(shares.items()):
        if high is None and low > rows:
            beyond.append(f"{round(100 * share)} %")
            continue
        if high is None:
            many = f"{low:,} or more" + (f" (over {k:,} of these)" if low <= k else "")
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
    """Both files or none: a report that cannot be written leaves no table either."""
    with ExitStack() as both:
        if report is not None and page is not None:
            both.enter_context(written(report, page))
        if output is not None:
            write_rows(output, columns)


def check_paths(output: Path | None, report: Path | None, inputs: Sequence[Path | None]) -> None:
    """Refuse outputs that could not be written, or that would overwrite what is read."""
    if output is not None:
        check_writable(output)
    if report is not None:
        check_writable(report, (".html", ".htm"))
    taken = [path for path in inputs if path is not None]
    for out in (output, report):
        if out is None:
            continue
        for other in taken:
            if _same(out, other):
                raise DatasetError(f"{out}: would overwrite {other}; choose another name")
        taken.append(out)
        _check_folder(out)


def _check_folder(path: Path) -> None:
    """Refuse a folder that takes no new file, which its permissions need not tell, before work."""
    folder = Path(os.path.realpath(path)).parent
    try:
        TemporaryFile(dir=folder).close()
    except OSError as error:
        raise DatasetError(
            f"{path}: expected a folder that takes new files, got {folder} ({error.strerror}); "
            "write to another folder"
        ) from error


def _same(one: Path, other: Path) -> bool:
    if one.exists() and other.exists():
        return one.samefile(other)
    return os.path.realpath(one) == os.path.realpath(other)
