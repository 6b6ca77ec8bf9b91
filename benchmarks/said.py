"""What the page of benchmarks says of its tables, from their rows."""

from collections.abc import Sequence

Rows = list[dict[str, str]]


def kernel(rows: Rows) -> str:
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


def picks(rows: Rows) -> str:
    small = next(row for row in rows if row["storage"] == "float32")
    return (
        f"{small['k']} exact picks of {int(small['n']):,} images take "
        f"{float(small['total_s']):.0f} s, kernel included; the paper reports "
        f"{float(small['paper_s']):,.0f} s on other hardware. A pick costs "
        f"{float(small['ratio']):.2f} float32 matrix-vector products (goal: 1.5)."
    )


def growth(rows: Rows) -> str:
    pairs = [row["ns_a_pair"] for row in rows if row["grows"] == "n = m"]
    return (
        f"The time a pick takes for each pair of candidate and test point is {_span(pairs)} ns as "
        "n = m grows eightfold: it is linear in n m, with overheads that fade."
    )


def exchange(rows: Rows) -> str:
    swapped = [row for row in rows if row["greedy"] == "exchange"]
    return " ".join(
        f"On {row['pool']} swapping costs {float(row['cost']):.1f} times the exact run, leaves "
        f"{float(row['saved_percent']):.1f} % less variance, and is certainly within "
        f"{100 - float(row['certified_percent']):.1f} % of the best possible fall."
        for row in swapped
    )


def bait(rows: Rows) -> str:
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


def empirical(rows: Rows) -> str:
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


def models(rows: Rows) -> str:
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


def features(rows: Rows) -> str:
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


def sparse(rows: Rows) -> str:
    return "Variance left under the exact kernel by picks that were chosen with less."


def rounds(rows: Rows) -> str:
    lost = [float(row["more_percent"]) for row in rows if row["how"] != "exact"]
    return (
        f"A greedy in every shard and one over the finalists leave {min(lost):+.1f} to "
        f"{max(lost):+.1f} % more variance than exact picks, with 4 to 64 shards."
    )


def scale(rows: Rows) -> str:
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


def checksums(rows: Rows) -> str:
    few, more = (rows[at] for at in (0, -1))
    return (
        f"A run that finds {float(few['gb']):.1f} GB of features in its cache takes "
        f"{float(few['ratio']):.2f} times as long when it verifies them, with {few['k']} pick, and "
        f"{float(more['ratio']):.2f} times with {more['k']} picks; verifying alone goes at "
        f"{float(more['gb_per_s']):.1f} GB a second."
    )


def choose(rows: Rows) -> str:
    paper = next(row for row in rows if row["n"] == "200")
    once, each = float(paper["speedup_once"]), float(paper["speedup"])
    return (
        f"{paper['candidates']} architectures are ranked by {paper['folds']} folds of 200 labels "
        f"in {float(paper['evgp_s']):.1f} s: {once:.1f} times as fast as fold by fold with the "
        f"kernels made once, {each:.0f} times as fast as with kernels made in each fold. Only what "
        "a fold leaves out is solved for."
    )


def labelling(rows: Rows) -> str:
    row = rows[0]
    return (
        f"{row['people']} people, {int(row['answers']):,} answers without a pause, while the next "
        f"batches are picked: {row['lost']} lost, {row['doubled']} doubled, 95 % acknowledged, on "
        f"the disk, within {float(row['p95_ms']):.0f} ms (goal: 200)."
    )


def ensembles(rows: Rows) -> str:
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


def busy(rows: Rows) -> str:
    alone, beside = (
        [row for row in rows if (row["others"] != "0") is loaded] for loaded in (False, True)
    )
    times = " and ".join(f"{float(row['ratio']):.1f}" for row in beside)
    same = " and ".join(f"{float(row['ratio']):.2f}" for row in alone)
    return (
        f"With {beside[0]['others']} processes beside them on two cores, `evgp choose` and `evgp "
        f"pick` take {times} times as long if torch's threads spin while they wait, as they do by "
        f"default; the command has them rest. Alone on the machine it is {same} times as long."
    )


def command(rows: Rows) -> str:
    found = {row["what"]: row for row in rows}
    asked, typer, torch = (found[name] for name in ("evgp --help", "import typer", "import torch"))
    return (
        f"`evgp --help` takes {float(asked['cpu_s']):.2f} s of processor time (importing typer "
        f"alone {float(typer['cpu_s']):.2f} s, torch {float(torch['cpu_s']):.1f} s); on the clock "
        "that depends on what else runs. "
        f"The wheel has about {int(found['wheel']['size']) / 1e6:.1f} MB."
    )
