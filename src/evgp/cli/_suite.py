"""`evgp compare --suite`: print the estimated cost, run the suite, and print its result."""

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING

from evgp.cli import _options as options
from evgp.cli._output import called, fail, note, progress, show, show_json, tell
from evgp.errors import DataWarning, PoolError

if TYPE_CHECKING:
    from evgp.cli.compare import CompareOptions
    from evgp.comparison.suite_page import Part

COLUMNS = ("part", "strategy", "rank", "labels_needed", "low", "high", "p_holm", "verdict")


def run_and_show(call: "CompareOptions") -> None:
    """Run the unfinished cells of a suite, and print how many labels each strategy needs."""
    from evgp import __version__
    from evgp.comparison.suite import SEEDS, plan_suite, run_suite
    from evgp.comparison.suite_page import PAGE, publish_suite

    suite, data, out, quiet = call.suite, call.data, call.out, call.quiet
    if suite is None:
        raise PoolError("expected DATA, such as kin8nm or prices.csv, or --suite tables; got none")
    if data:
        raise PoolError(f"expected DATA or --suite, got {' '.join(data)} and --suite {suite}")
    count = SEEDS if call.seeds is None else call.seeds
    names = None if call.strategies is None else options.parts(call.strategies)
    left = plan_suite(suite, out, count, names)
    if call.plan or not quiet:
        tell(str(left))
    if call.plan:
        return
    note([f"{pool.name}: not on this machine, left out" for pool in left.absent], quiet=quiet)
    remaining: list[float | None] = [None]
    with progress(quiet, lines=True, left=lambda: remaining[0]) as bar, warnings.catch_warnings():
        # Notes on the pools of a suite are known, and would be repeated for every cell.
        warnings.simplefilter("ignore", DataWarning)

        def watch(done: int, total: int, seconds: float | None) -> None:
            remaining[0] = seconds
            bar("cells", done, total)

        try:
            run_suite(suite, out=out, seeds=count, strategies=names, jobs=call.jobs, watch=watch)
        except KeyboardInterrupt:
            fail(f"stopped; finished cells are kept in {out}; run the same command to go on", 130)
    parts = publish_suite(suite, out, command=called(), version=__version__)
    if call.json:
        show_json({part.title: _record(part) for part in parts})
    else:
        show(table(parts))
    if not quiet:
        for part in parts:
            tell(f"{part.title}: {part.headline}. {part.against}".rstrip())
        tell(f"wrote {out / 'rows.parquet'} and {out / PAGE}")


def _record(part: "Part") -> dict[str, object]:
    return {
        "ranks": dict(part.judgement.ranks),
        "savings": {name: asdict(saving) for name, saving in part.judgement.savings.items()},
        "pairs": [asdict(duel) for duel in part.judgement.duels],
    }


def table(parts: Sequence["Part"]) -> Mapping[str, Sequence[object]]:
    """Return a line for each strategy: its rank, and its labels as a share of random ones."""
    lines: list[tuple[object, ...]] = []
    for part in parts:
        for name in part.judgement.strategies:
            rank = part.judgement.ranks.get(name, "")
            saved = part.judgement.savings.get(name)
            about: tuple[object, ...] = ("", "", "", "", "")
            if saved is not None:
                about = (saved.ratio, saved.low, saved.high, saved.holm, saved.verdict)
            lines.append((part.title.split(":")[0].lower(), name, rank, *about))
    return dict(zip(COLUMNS, zip(*lines, strict=True), strict=True)) if lines else {}
