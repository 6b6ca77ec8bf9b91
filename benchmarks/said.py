"""The sentences above each table of the benchmarks page, computed from its rows."""

from collections.abc import Sequence

Rows = list[dict[str, str]]


def kernel(rows: Rows) -> str:
    wide = [row for row in rows if row["d"] == "784"]
    speedups = " and ".join(f"{float(row['speedup']):.1f}" for row in wide if row.get("speedup"))
    ratios = " and ".join(f"{float(row['gram_ratio']):.2f}" for row in wide)
    text = (
        f"At d = 784 the kernel takes {ratios} times as long as the product `x @ x.T` (goal: 1.7)"
    )
    if speedups:
        text += f" and is {speedups} times as fast as neural-tangents (goal: 2)"
    return (
        f"{text}, stored as float64 and float32 respectively. evgp always computes in float64 and "
        "only stores float32. neural-tangents computes in the type it stores, which is why the "
        "gap is smaller in float32."
    )


def picks(rows: Rows) -> str:
    small = next(row for row in rows if row["storage"] == "float32")
    return (
        f"{small['k']} exact picks from {int(small['n']):,} images take "
        f"{float(small['total_s']):.0f} s, including the kernel; the paper reports "
        f"{float(small['paper_s']):,.0f} s on other hardware. A pick takes "
        f"as long as {float(small['ratio']):.2f} float32 matrix-vector products (goal: 1.5)."
    )


def growth(rows: Rows) -> str:
    pairs = [row["ns_a_pair"] for row in rows if row["grows"] == "n = m"]
    return (
        f"A pick takes {_span(pairs)} ns per pair of candidate and test point as n = m grows "
        "eightfold: its time is linear in n m, plus an overhead that matters only for small pools."
    )


def exchange(rows: Rows) -> str:
    swapped = [row for row in rows if row["greedy"] == "exchange"]
    return " ".join(
        f"On {row['pool']} exchange takes {float(row['cost']):.1f} times as long as exact greedy, "
        f"leaves {float(row['saved_percent']):.1f} % less variance, and is provably within "
        f"{100 - float(row['certified_percent']):.1f} % of the largest possible reduction."
        for row in swapped
    )


def bait(rows: Rows) -> str:
    sentences = []
    for name in dict.fromkeys(row["pool"] for row in rows):
        ours = _find(rows, name, "evgp exact")
        theirs = _find(rows, name, "bait features")
        if theirs is not None and ours is not None and theirs["pick_s"]:
            times = float(theirs["pick_s"]) / float(ours["pick_s"])
            sentences.append(
                f"On {name} an exact pick of evgp is {times:.0f} times as fast as one of bait with "
                f"all features (variance left: {ours['variance_left']} and "
                f"{theirs['variance_left']})."
            )
        sketch = _find(rows, name, "bait sketch-512")
        if sketch is not None and ours is not None and sketch["pick_s"]:
            times = float(sketch["pick_s"]) / float(ours["pick_s"])
            more = 100 * (float(sketch["variance_left"]) / float(ours["variance_left"]) - 1)
            sentences.append(
                f"With 512 sketched features bait takes {times:.1f} times as long per pick as evgp "
                f"and leaves {more:.1f} % more variance."
            )
    return " ".join([*sentences, "`benchmarks/results/bait.md` says how the two differ."])


def empirical(rows: Rows) -> str:
    compared = [row for row in rows if row["speedup"]]
    ratios = ", ".join(
        f"{float(row['speedup']):.0f} times as fast on the {row['network']} with {row['n']} "
        f"samples (goal: {float(row['goal']):.0f})"
        for row in compared
    )
    large = next(row for row in rows if row["extra_mb"])
    return (
        f"Speed relative to `vmap(grad)` and a product: {ratios}. {int(large['n']):,} samples of "
        f"the MLP take {float(large['evgp_s']):.1f} s and {float(large['extra_mb']):.0f} MB, "
        "including the result (goal: 700 MB)."
    )


def models(rows: Rows) -> str:
    return " ".join(
        f"Picking {row['k']} of {int(row['n']):,} SVHN images with {row['network']} took "
        f"{float(row['total_s']):,.0f} s ({float(row['kernel_s']):,.0f} s for the kernel) and "
        f"{float(row['peak_mb']):,.0f} MB; the plan said {float(row['planned_s']):,.0f} s and "
        f"{float(row['planned_mb']):,.0f} MB."
        for row in rows
    )


def _find(rows: Rows, pool: str, method: str) -> dict[str, str] | None:
    return next((r for r in rows if r["pool"] == pool and r["method"] == method), None)


def _span(values: Sequence[str]) -> str:
    low, high = min(map(float, values)), max(map(float, values))
    return f"{low:.2g} to {high:.2g}"


def features(rows: Rows) -> str:
    sentences = [
        f"With {int(row['n']):,} rows of {row['p']} features a pick takes as long as "
        f"{float(row['ratio']):.2f} reads of the features (goal: 1.5)."
        for row in rows
    ]
    rival = next((row for row in rows if row.get("speedup")), None)
    if rival is not None:
        picks = "the same" if rival["same_picks"] == "True" else "different"
        sentences.append(
            f"At {int(rival['n']):,} x {rival['p']} evgp is {float(rival['speedup']):.1f} times as "
            f"fast as bait of bmdal-reg (goal: 3.5), with {picks} picks."
        )
    return " ".join(sentences)


def sparse(rows: Rows) -> str:
    return "Variance left, under the exact kernel, by picks made with an approximate one."


def rank(rows: Rows) -> str:
    left: dict[str, dict[str, float]] = {}
    for row in rows:
        left.setdefault(row["pool"], {})[row["method"]] = float(row["left_at_1000"])
    sentences = [
        "The mean variance of 5,000 rows outside the pool, under the exact kernel. Features of "
        "rank p say nothing after p picks, so by default there are twice as many as picks, fewer "
        "if memory is short."
    ]
    sentences += [
        f"On {pool}, 1,000 picks with 512 features leave {values['nystrom-512']:.4f}, with 1,024 "
        f"{values['nystrom-1024']:.4f}, with the default of 2,048 {values['default']:.4f}, and "
        f"random ones {values['random']:.4f}."
        for pool, values in left.items()
    ]
    return " ".join(sentences)


def rounds(rows: Rows) -> str:
    lost = [float(row["more_percent"]) for row in rows if row["how"] != "exact"]
    return (
        f"Greedy picks in every shard, and then among those, leave {min(lost):+.1f} to "
        f"{max(lost):+.1f} % more variance than exact picks, with 4 to 64 shards."
    )


def scale(rows: Rows) -> str:
    alone = [row for row in rows if row["how"] == "one process"]
    large = max(alone, key=lambda row: (int(row["n"]), int(row["k"])))
    message = (
        f"{int(large['k']):,} picks from a Parquet table of {int(large['n']):,} rows x 64 columns, "
        f"with 512 features, take {float(large['total_s']):.0f} s and "
        f"{float(large['anon_mb']) / 1000:.1f} GB (goal: 6). A pick takes as long as "
        f"{float(large['ratio']):.2f} reads of the features (goal: 1.5)."
    )
    for row in rows:
        same = [item for item in alone if (item["n"], item["k"]) == (row["n"], row["k"])]
        if row["how"] == "two rounds" and same:
            share = 100 * (float(row["left"]) / float(same[0]["left"]) - 1)
            word = "more" if share > 0 else "less"
            message += f" Two rounds leave {abs(share):.1f} % {word} variance than exact picks."
    return message


def checksums(rows: Rows) -> str:
    few, more = (rows[at] for at in (0, -1))
    return (
        f"With {float(few['gb']):.1f} GB of cached features, verifying checksums makes a run of "
        f"{few['k']} pick take {float(few['ratio']):.2f} times as long, and one of {more['k']} "
        f"picks {float(more['ratio']):.2f} times as long. Verifying alone reads "
        f"{float(more['gb_per_s']):.1f} GB a second."
    )


def choose(rows: Rows) -> str:
    paper = next(row for row in rows if row["n"] == "200")
    once, each = float(paper["speedup_once"]), float(paper["speedup"])
    return (
        f"Ranking {paper['candidates']} architectures by {paper['folds']} folds of 200 labels "
        f"takes {float(paper['evgp_s']):.1f} s. That is {once:.1f} times as fast as a loop over "
        f"folds that computes the kernels once, and {each:.0f} times as fast as one that computes "
        "them in each fold, because evgp solves only for the points that a fold leaves out."
    )


def labelling(rows: Rows) -> str:
    row = rows[0]
    return (
        f"{row['people']} people give {int(row['answers']):,} answers without a pause while the "
        f"next batches are picked: {row['lost']} lost, {row['doubled']} duplicated, 95 % written "
        f"to disk and acknowledged within {float(row['p95_ms']):.0f} ms (goal: 200)."
    )


def ensembles(rows: Rows) -> str:
    ratios = ", ".join(
        f"{float(row['speedup']):.1f} times as fast at width {row['width']} on {row['n']} points"
        + (f" (goal: {float(row['goal']):.0f})" if row["goal"] else "")
        for row in rows
    )
    wide = rows[-1]
    return (
        f"Compared with training one by one, training {rows[0]['members']} networks at once is "
        f"{ratios}. At width "
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
        f"With {beside[0]['others']} other processes on two cores, `evgp choose` and `evgp pick` "
        f"would take {times} times as long if torch's threads spun while they wait, which is "
        f"torch's default; the command turns that off. On an idle machine the ratios are {same}."
    )


def command(rows: Rows) -> str:
    values = {row["what"]: row for row in rows}
    asked, typer, torch = (values[name] for name in ("evgp --help", "import typer", "import torch"))
    return (
        f"`evgp --help` takes {float(asked['cpu_s']):.2f} s of CPU time; importing typer alone "
        f"takes {float(typer['cpu_s']):.2f} s, torch {float(torch['cpu_s']):.1f} s. The wheel is "
        f"about {int(values['wheel']['size']) / 1e6:.1f} MB."
    )
