"""`python -m benchmarks.page`: docs/benchmarks.md from the recorded rows, so that they agree."""

import csv
from collections.abc import Callable, Sequence
from pathlib import Path

from benchmarks.common import RESULTS, ROOT, markdown

PAGE = ROOT / "docs" / "benchmarks.md"
Rows = list[dict[str, str]]


def main() -> None:
    """Write the page."""
    PAGE.parent.mkdir(exist_ok=True)
    PAGE.write_text(page(RESULTS))
    print(f"wrote {PAGE.relative_to(ROOT)}")


def page(folder: Path) -> str:
    """The page, from the records in a folder; a benchmark without a record is left out."""
    parts = [HEAD]
    for name, (title, say, columns) in SECTIONS.items():
        file = folder / f"{name}.csv"
        if not file.exists():
            continue
        rows = list(csv.DictReader(file.open(newline="")))
        kept = [{head: row.get(key, "") for key, head in columns.items()} for row in rows]
        table = "\n".join(markdown(list(columns.values()), kept))
        setting = (folder / f"{name}.md").read_text().splitlines()[2]
        parts.append(f"## {title}\n\n{say(rows)}\n\n{table}\n\n{setting}")
    return "\n\n".join(parts) + "\n"


def _kernel(rows: Rows) -> str:
    wide = [row for row in rows if row["d"] == "784"]
    speedups = " and ".join(f"{float(row['speedup']):.1f}" for row in wide if row.get("speedup"))
    ratios = " and ".join(f"{float(row['gram_ratio']):.2f}" for row in wide)
    text = f"At d = 784 the kernel takes {ratios} times the bare product `x @ x.T` (goal: 1.7)"
    if speedups:
        text += f" and is {speedups} times as fast as neural-tangents (goal: 2)"
    return (
        f"{text}, stored as float64 and float32. evgp computes in float64 in every row and only "
        "stores float32; neural-tangents computes in the type named, which is why it is nearer "
        "there."
    )


def _picks(rows: Rows) -> str:
    small = next(row for row in rows if row["storage"] == "float32")
    return (
        f"{small['k']} exact picks of {int(small['n']):,} images take "
        f"{float(small['total_s']):.0f} s, kernel included; the paper reports "
        f"{float(small['paper_s']):,.0f} s on other hardware. A pick costs "
        f"{float(small['ratio']):.2f} float32 matrix-vector products (goal: 1.5)."
    )


def _growth(rows: Rows) -> str:
    pairs = [row["ns_a_pair"] for row in rows if row["grows"] == "n = m"]
    return (
        f"The time a pick takes for each pair of candidate and test point is {_span(pairs)} ns as "
        "n = m grows eightfold: it is linear in n m, with overheads that fade."
    )


def _exchange(rows: Rows) -> str:
    swapped = [row for row in rows if row["greedy"] == "exchange"]
    return " ".join(
        f"On {row['pool']} swapping costs {float(row['cost']):.1f} times the exact run, leaves "
        f"{float(row['saved_percent']):.1f} % less variance, and is certainly within "
        f"{100 - float(row['certified_percent']):.1f} % of the best possible fall."
        for row in swapped
    )


def _bait(rows: Rows) -> str:
    told = []
    for name in dict.fromkeys(row["pool"] for row in rows):
        ours = _find(rows, name, "evgp exact")
        theirs = _find(rows, name, "bait features")
        if theirs is not None and ours is not None and theirs["pick_s"]:
            times = float(theirs["pick_s"]) / float(ours["pick_s"])
            told.append(
                f"On {name} an exact pick is {times:.0f} times as fast as one of bait with all "
                f"features, and leaves {ours['variance_left']} against {theirs['variance_left']}."
            )
        sketch = _find(rows, name, "bait sketch-512")
        if sketch is not None and ours is not None and sketch["pick_s"]:
            times = float(sketch["pick_s"]) / float(ours["pick_s"])
            more = 100 * (float(sketch["variance_left"]) / float(ours["variance_left"]) - 1)
            told.append(
                f"With 512 sketched features bait takes {times:.1f} times our time a pick and "
                f"leaves {more:.1f} % more variance."
            )
    return " ".join([*told, "What differs is in benchmarks/results/bait.md."])


def _empirical(rows: Rows) -> str:
    compared = [row for row in rows if row["speedup"]]
    told = ", ".join(
        f"{float(row['speedup']):.0f} times on the {row['network']} with {row['n']} samples (goal: "
        f"{float(row['goal']):.0f})"
        for row in compared
    )
    large = next(row for row in rows if row["extra_mb"])
    return (
        f"As fast as vmap(grad) and a product {told}. {int(large['n']):,} samples of the MLP take "
        f"{float(large['evgp_s']):.1f} s and {float(large['extra_mb']):.0f} MB, result included "
        "(goal: 700 MB)."
    )


def _models(rows: Rows) -> str:
    return " ".join(
        f"{row['k']} of {int(row['n']):,} SVHN images with {row['network']}: "
        f"{float(row['total_s']):,.0f} s, of which {float(row['kernel_s']):,.0f} s for the kernel; "
        f"planned {float(row['planned_s']):,.0f} s and {float(row['planned_mb']):,.0f} MB, and "
        f"{float(row['peak_mb']):,.0f} MB were used."
        for row in rows
    )


def _find(rows: Rows, pool: str, method: str) -> dict[str, str] | None:
    return next((r for r in rows if r["pool"] == pool and r["method"] == method), None)


def _span(values: Sequence[str]) -> str:
    low, high = min(map(float, values)), max(map(float, values))
    return f"{low:.2g} to {high:.2g}"


HEAD = """# Benchmarks

Written by `python -m benchmarks.page` from the rows in `benchmarks/results/`; do not edit.
To repeat them: `make bench`, or `python -m benchmarks kernel picks` for some, with `EVGP_DATA`
naming the folder of the data. Trust the ratios, taken in turns in one run, more than seconds."""


def _features(rows: Rows) -> str:
    told = [
        f"{int(row['n']):,} rows of {row['p']} features: a pick costs {float(row['ratio']):.2f} "
        "reads of them (goal: 1.5)"
        for row in rows
    ]
    rival = next((row for row in rows if row.get("speedup")), None)
    if rival is not None:
        picks = "the same" if rival["same_picks"] == "True" else "other"
        told.append(
            f"{float(rival['speedup']):.1f} times as fast as bait of bmdal-reg at "
            f"{int(rival['n']):,} x {rival['p']} (goal: 3.5), with {picks} picks"
        )
    return "; ".join(told) + "."


def _sparse(rows: Rows) -> str:
    return "Variance left under the exact kernel by picks that were chosen with less."


def _rounds(rows: Rows) -> str:
    lost = [float(row["more_percent"]) for row in rows if row["how"] != "exact"]
    return (
        f"A greedy in every shard and one over the finalists leave {min(lost):+.1f} to "
        f"{max(lost):+.1f} % more variance than exact picks, with 4 to 64 shards."
    )


def _scale(rows: Rows) -> str:
    alone = [row for row in rows if row["how"] == "one process"]
    large = max(alone, key=lambda row: (int(row["n"]), int(row["k"])))
    said = (
        f"{int(large['k']):,} picks of a Parquet table of {int(large['n']):,} rows x 64 columns, "
        f"with 512 features: {float(large['total_s']):.0f} s and "
        f"{float(large['anon_mb']) / 1000:.1f} GB (goal: 6), a pick "
        f"{float(large['ratio']):.2f} times one read of the features (goal: 1.5)."
    )
    for row in rows:
        same = [one for one in alone if (one["n"], one["k"]) == (row["n"], row["k"])]
        if row["how"] == "two rounds" and same:
            share = 100 * (float(row["left"]) / float(same[0]["left"]) - 1)
            word = "more" if share > 0 else "less"
            said += f" Two rounds leave {abs(share):.1f} % {word} variance than exact picks."
    return said


def _choose(rows: Rows) -> str:
    paper = next(row for row in rows if row["n"] == "200")
    once, each = float(paper["speedup_once"]), float(paper["speedup"])
    return (
        f"{paper['candidates']} architectures are ranked by {paper['folds']} folds of 200 labels "
        f"in {float(paper['evgp_s']):.1f} s: {once:.1f} times as fast as fold by fold with the "
        f"kernels made once, {each:.0f} times as fast as with kernels made in each fold. Only what "
        "a fold leaves out is solved for."
    )


def _labelling(rows: Rows) -> str:
    row = rows[0]
    return (
        f"{row['people']} people, {int(row['answers']):,} answers without a pause, while the next "
        f"batches are picked: {row['lost']} lost, {row['doubled']} doubled, 95 % acknowledged, on "
        f"the disk, within {float(row['p95_ms']):.0f} ms (goal: 200)."
    )


def _ensembles(rows: Rows) -> str:
    told = ", ".join(
        f"{float(row['speedup']):.1f} times as fast at width {row['width']} on {row['n']} points"
        + (f" (goal: {float(row['goal']):.0f})" if row["goal"] else "")
        for row in rows
    )
    wide = rows[-1]
    return (
        f"Against one by one, {rows[0]['members']} networks trained at once are {told}. At width "
        f"{wide['width']} a step runs at {float(wide['peak_percent']):.0f} % of the speed of a "
        "large matrix product."
    )


SECTIONS: dict[str, tuple[str, Callable[[Rows], str], dict[str, str]]] = {
    "kernel": (
        "The kernel",
        _kernel,
        {
            "d": "d",
            "dtype": "stored as",
            "gram_s": "Gram, s",
            "evgp_s": "evgp, s",
            "nt_s": "neural-tangents, s",
            "gram_ratio": "evgp / Gram",
            "speedup": "speed-up",
            "extra_mb": "evgp, MB beyond the result",
            "nt_extra_mb": "neural-tangents, MB",
            "difference": "largest relative difference",
        },
    ),
    "picks": (
        "400 picks of 10,000 MNIST images",
        _picks,
        {
            "storage": "storage",
            "total_s": "kernel and picks, s",
            "kernel_s": "kernel, s",
            "pick_s": "a pick, s",
            "product_s": "a product, s",
            "ratio": "ratio",
            "certificate_s": "certificate, s",
            "peak_mb": "peak, MB",
            "variance_left": "variance left",
            "paper_s": "paper, s",
        },
    ),
    "growth": (
        "Growth",
        _growth,
        {
            "grows": "what grows",
            "n": "n",
            "m": "m",
            "k": "k",
            "pick_s": "a pick, s",
            "ratio": "ratio to a product",
            "ns_a_pair": "ns a pair",
        },
    ),
    "exchange": (
        "Exchange",
        _exchange,
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
        _bait,
        {
            "pool": "pool",
            "method": "method",
            "setup": "set-up, s",
            "pick_s": "a pick, s",
            "variance_left": "variance left",
            "note": "note",
        },
    ),
    "empirical": (
        "The empirical NTK",
        _empirical,
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
        _models,
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
        _features,
        {
            "n": "n",
            "p": "p",
            "setup_s": "set-up, s",
            "pick_s": "a pick, s",
            "read_s": "a read, s",
            "ratio": "ratio",
            "bait_s": "bait, s",
            "same_picks": "same picks",
        },
    ),
    "sparse": (
        "Through inducing points",
        _sparse,
        {
            "pool": "pool",
            "method": "method",
            "k": "k",
            "variance_left": "variance left",
            "seconds": "seconds",
        },
    ),
    "scale": (
        "Pools in files",
        _scale,
        {
            "n": "rows",
            "k": "k",
            "how": "how",
            "reading_s": "reading, s",
            "features_s": "features, s",
            "opening_s": "opening, s",
            "pick_s": "a pick, s",
            "read_s": "a read, s",
            "ratio": "ratio",
            "total_s": "total, s",
            "anon_mb": "MB",
            "left": "variance left",
        },
    ),
    "rounds": (
        "Two rounds",
        _rounds,
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
        _choose,
        {
            "n": "labels",
            "evgp_s": "evgp, s",
            "kernels_once_s": "loop, kernels once, s",
            "loop_s": "loop, s",
            "speedup_once": "speedup, kernels once",
            "speedup": "speedup",
            "difference": "difference",
            "others": "others",
        },
    ),
    "labelling": (
        "Eight people label at once",
        _labelling,
        {
            "people": "people",
            "answers": "answers",
            "lost": "lost",
            "doubled": "doubled",
            "p50_ms": "median, ms",
            "p95_ms": "95 %, ms",
            "p99_ms": "99 %, ms",
            "max_ms": "longest, ms",
            "answers_a_second": "answers a second",
        },
    ),
    "ensembles": (
        "Fifty networks at once",
        _ensembles,
        {
            "width": "width",
            "n": "points",
            "steps": "steps",
            "evgp_s": "evgp, s",
            "one_by_one_s": "one by one, s",
            "speedup": "speed-up",
            "step_ms": "a step, ms",
            "peak_percent": "of peak, %",
            "difference": "largest relative difference",
        },
    ),
}


if __name__ == "__main__":
    main()
