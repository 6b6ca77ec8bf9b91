"""`python -m benchmarks.page` writes docs/benchmarks.md from the recorded rows."""

import csv
from collections.abc import Callable
from pathlib import Path

from benchmarks import said
from benchmarks.common import RESULTS, ROOT, markdown
from benchmarks.said import Rows

PAGE = ROOT / "docs" / "benchmarks.md"


def main() -> None:
    """Write the page."""
    PAGE.parent.mkdir(exist_ok=True)
    PAGE.write_text(page(RESULTS))
    print(f"wrote {PAGE.relative_to(ROOT)}")


def page(folder: Path) -> str:
    """The page, from the records in a folder; benchmarks without a record are left out."""
    parts = [HEAD]
    for name, (title, say, columns) in SECTIONS.items():
        file = folder / f"{name}.csv"
        if not file.exists():
            continue
        rows = list(csv.DictReader(file.read_text().splitlines()))
        kept = [{head: row.get(key, "") for key, head in columns.items()} for row in rows]
        table = "\n".join(markdown(list(columns.values()), kept))
        setting = (folder / f"{name}.md").read_text().splitlines()[2]
        parts.append(f"## {title}\n\n{say(rows)}\n\n{table}\n\n{setting}")
    return "\n\n".join(parts) + "\n"


HEAD = """# Benchmarks

Written by `python -m benchmarks.page` from the rows in `benchmarks/results/`; do not edit.
To repeat all of them, run `make bench`; to repeat some, run, for example, `python -m benchmarks
kernel picks`. Set `EVGP_DATA` to the folder that contains the datasets. Ratios are measured
alternately in one run and are more reliable than seconds."""

SECTIONS: dict[str, tuple[str, Callable[[Rows], str], dict[str, str]]] = {
    "kernel": (
        "The kernel",
        said.kernel,
        {
            "d": "d",
            "dtype": "stored as",
            "gram_s": "Gram, s",
            "evgp_s": "evgp, s",
            "nt_s": "neural-tangents, s",
            "gram_ratio": "evgp / Gram",
            "speedup": "speed-up",
            "extra_mb": "evgp, MB besides the result",
            "nt_extra_mb": "neural-tangents, MB",
            "difference": "largest relative difference",
        },
    ),
    "picks": (
        "400 picks from 10,000 MNIST images",
        said.picks,
        {
            "storage": "storage",
            "total_s": "kernel and picks, s",
            "kernel_s": "kernel, s",
            "pick_s": "per pick, s",
            "product_s": "one product, s",
            "ratio": "ratio",
            "certificate_s": "certificate, s",
            "peak_mb": "peak, MB",
            "variance_left": "variance left",
            "paper_s": "paper, s",
        },
    ),
    "growth": (
        "Growth",
        said.growth,
        {
            "grows": "what grows",
            "n": "n",
            "m": "m",
            "k": "k",
            "pick_s": "per pick, s",
            "ratio": "ratio to a product",
            "ns_a_pair": "ns per pair",
        },
    ),
    "exchange": (
        "Exchange",
        said.exchange,
        {
            "pool": "pool",
            "greedy": "greedy",
            "seconds": "seconds",
            "cost": "cost",
            "certificate_s": "certificate, s",
            "variance_left": "variance left",
            "floor": "floor",
            "certified_percent": "certified, %",
        },
    ),
    "bait": (
        "bmdal-reg's bait",
        said.bait,
        {
            "pool": "pool",
            "method": "method",
            "setup": "set-up, s",
            "pick_s": "per pick, s",
            "variance_left": "variance left",
            "note": "note",
        },
    ),
    "empirical": (
        "The empirical NTK",
        said.empirical,
        {
            "network": "network",
            "parameters": "parameters",
            "n": "n",
            "evgp_s": "evgp, s",
            "torch_func_s": "torch.func, s",
            "speedup": "speed-up",
            "extra_mb": "MB",
            "difference": "largest difference",
        },
    ),
    "models": (
        "Picks with convolutional networks",
        said.models,
        {
            "network": "network",
            "n": "n",
            "k": "k",
            "total_s": "total, s",
            "kernel_s": "kernel, s",
            "planned_s": "planned, s",
            "peak_mb": "peak, MB",
            "planned_mb": "planned, MB",
            "paper_s": "paper (ResNet18), s",
        },
    ),
    "features": (
        "In feature space",
        said.features,
        {
            "n": "n",
            "p": "p",
            "setup_s": "set-up, s",
            "pick_s": "per pick, s",
            "read_s": "one read, s",
            "ratio": "ratio",
            "bait_s": "bait, s",
            "same_picks": "same picks",
        },
    ),
    "sparse": (
        "Through inducing points",
        said.sparse,
        {
            "pool": "pool",
            "method": "method",
            "k": "k",
            "variance_left": "variance left",
            "seconds": "seconds",
        },
    ),
    "rank": (
        "Many picks: the rank of features follows k",
        said.rank,
        {
            "pool": "pool",
            "n": "n",
            "method": "method",
            "features": "features",
            "left_at_100": "left after 100",
            "left_at_500": "left after 500",
            "left_at_1000": "left after 1,000",
            "seconds": "CPU, s",
        },
    ),
    "scale": (
        "Pools in files",
        said.scale,
        {
            "n": "rows",
            "k": "k",
            "how": "how",
            "reading_s": "reading, s",
            "features_s": "features, s",
            "opening_s": "opening, s",
            "pick_s": "per pick, s",
            "read_s": "one read, s",
            "ratio": "ratio",
            "total_s": "total, s",
            "anon_mb": "MB",
            "left": "variance left",
        },
    ),
    "checksums": (
        "Verifying a cache",
        said.checksums,
        {
            "n": "rows",
            "p": "p",
            "k": "k",
            "with_s": "verified, s",
            "without_s": "not verified, s",
            "ratio": "ratio",
            "alone_s": "verifying alone, s",
            "gb": "features, GB",
            "gb_per_s": "GB per second",
            "others": "others",
        },
    ),
    "rounds": (
        "Two rounds",
        said.rounds,
        {
            "pool": "pool",
            "n": "rows",
            "k": "k",
            "how": "how",
            "variance_left": "variance left",
            "more_percent": "more, %",
        },
    ),
    "choose": (
        "Architectures ranked without training",
        said.choose,
        {
            "n": "labels",
            "evgp_s": "evgp, s",
            "kernels_once_s": "loop, kernels once, s",
            "loop_s": "loop, s",
            "speedup_once": "speed-up, kernels once",
            "speedup": "speed-up",
            "difference": "difference",
            "others": "others",
        },
    ),
    "labelling": (
        "Eight people label at once",
        said.labelling,
        {
            "people": "people",
            "answers": "answers",
            "lost": "lost",
            "doubled": "duplicated",
            "p50_ms": "median, ms",
            "p95_ms": "95 %, ms",
            "p99_ms": "99 %, ms",
            "max_ms": "longest, ms",
            "answers_a_second": "answers per second",
        },
    ),
    "command": (
        "Before anything is computed",
        said.command,
        {
            "what": "what",
            "runs": "runs",
            "cpu_s": "CPU, s",
            "wall_s": "wall, s",
            "size": "bytes",
            "files": "files",
        },
    ),
    "busy": (
        "On a busy machine",
        said.busy,
        {
            "what": "what",
            "others": "other processes",
            "spinning_s": "threads that spin, s",
            "evgp_s": "evgp, s",
            "ratio": "ratio",
        },
    ),
    "ensembles": (
        "Fifty networks at once",
        said.ensembles,
        {
            "width": "width",
            "n": "points",
            "steps": "steps",
            "evgp_s": "evgp, s",
            "one_by_one_s": "one by one, s",
            "speedup": "speed-up",
            "step_ms": "per step, ms",
            "peak_percent": "of peak, %",
            "difference": "largest relative difference",
        },
    ),
}


if __name__ == "__main__":
    main()
