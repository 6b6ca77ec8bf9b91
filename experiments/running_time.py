"""Seconds to pick n points, compared with the paper's tables."""

from collections.abc import Mapping, Sequence
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from evgp.comparison.cells import Cell, Settings
from evgp.comparison.curves import looks
from evgp.comparison.rows import Record, Records, column, distinct, where
from evgp.kernels import EmpiricalNTK, Sketch
from evgp.loop import run
from evgp.pool import Pool
from evgp.selection import pick
from experiments import pinned
from experiments.contests import MLMOC, NAMES
from experiments.data import TITLES, dataset
from experiments.study import Claim, Study, verdict
from experiments.verdicts import at_most_in_part

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Seconds of the paper's tables: by data, strategy and number of points.
PAPER = {
    "mnist": {
        "badge": {100: 12, 200: 23, 300: 35, 400: 47},
        "batchbald": {100: 2629, 200: 4499, 300: 6371, 400: 8227},
        MLMOC: {100: 88, 200: 441, 300: 974, 400: 1637},
        "evgp": {100: 1120, 200: 2089, 300: 3159, 400: 4283},
    },
    "svhn": {
        "badge": {200: 34, 400: 70, 600: 105, 800: 148, 1000: 204},
        MLMOC: {200: 2486, 400: 5485, 600: 9816, 800: 16564, 1000: 26607},
        "evgp": {200: 3768, 400: 7846, 600: 13020, 800: 18755, 1000: 25018},
    },
}


def timed(
    *, dataset_name: str, strategy: str, seed: int, budget: int, batch: int, network: str,
    **sizes: Any,
) -> list[Record]:  # fmt: skip
    """Time the rounds of one strategy, without training afterwards: seconds from the start."""
    data = dataset(dataset_name, seed, pool=sizes["pool"], test=10, task=sizes.get("task"))
    training = {name: sizes[name] for name in ("steps", "width") if name in sizes}
    protocol = pinned.protocol(budget=budget, batch=batch, network=network, **training)
    way, count = protocol.strategy(strategy, data, seed), protocol.rounds
    rows: list[Record] = []
    begun = perf_counter()
    for played in run(Pool(data.x), way, lambda picks: data.y[picks], count, batch, seed=seed):
        rows.append(
            {
                "dataset": dataset_name,
                "labels": len(played.pool.labelled),
                "seconds": perf_counter() - begun,
                "threads": torch.get_num_threads(),
            }
        )
    return rows


def sketched(
    *, dataset_name: str, seed: int, budget: int, batch: int, network: str, features: int,
    pool: int, **_: Any,
) -> list[Record]:  # fmt: skip
    """Time random features of all gradients, then picks: seconds to n picks."""
    data = dataset(dataset_name, seed, pool=pool, test=10)
    protocol = pinned.protocol(budget=budget, batch=batch, network=network)
    begun = perf_counter()
    kernel = EmpiricalNTK(protocol.setting(data, seed).recipe.network, seed=seed)
    phi = Sketch(kernel, features, seed).phi(data.x)
    passed = perf_counter() - begun
    records: list[Record] = []
    for n in range(batch, budget + 1, batch):
        begun = perf_counter()
        pick(
            phi,
            n,
            features="raw",
            greedy="exact",
            noise=pinned.NOISE,
            scale=None,
            seed=seed,
        )
        seconds = passed + perf_counter() - begun
        records.append({"dataset": dataset_name, "labels": n, "seconds": seconds, "pool": pool})
    return records


def cells(settings: Settings) -> Sequence[Cell]:
    """Cells of all strategies of all groups, seed by seed.

    EV-GP picks for all rounds at once if they make no difference, so it is timed for each number of
    picks separately (`apart`).
    """
    return [
        Cell(f"evgp.studies.running_time:{timing.get('work', 'timed')}", options | sizes)
        for timing in settings["timings"]
        for seed in range(timing["seeds"])
        for way in timing["strategies"]
        for options in [
            {"strategy": way, "seed": seed, **{k: v for k, v in timing.items() if k not in _LISTS}}
        ]
        for sizes in (
            [{"budget": n, "batch": n} for n in _steps(timing)] if timing.get("apart") else [{}]
        )
    ]


_LISTS = ("strategies", "seeds", "work", "apart")


def _steps(one: dict[str, Any]) -> range:
    return range(one["batch"], one["budget"] + 1, one["batch"])


def draw(rows: Records) -> "dict[str, Figure]":
    """Draw seconds by the number of picks, ours and the paper's."""
    from matplotlib.figure import Figure

    names, styles = distinct(rows, "dataset"), looks(distinct(rows, "strategy"))
    figure = Figure(figsize=(4.9 * len(names), 5.0), layout="constrained")
    for axes, name in zip(figure.subplots(1, len(names), squeeze=False)[0], names, strict=True):
        subset = where(rows, dataset=name)
        for way in distinct(subset, "strategy"):
            # A first batch at random takes no time, which a logarithm cannot show.
            mine = [row for row in where(subset, strategy=way) if row["seconds"] > _NOTHING]
            pool, look = max(distinct(mine, "pool")), styles[way]
            whole = pool == _POOLS.get(name)
            words = f"{_NAMES[way]}, here" + ("" if whole else f", {pool:,} points")
            axes.plot(
                column(mine, "labels"), column(mine, "seconds"), "-" if whole else ":", ms=4.5,
                marker=look.marker or "o", color=look.colour, label=words,
            )  # fmt: skip
            theirs = PAPER.get(name, {}).get(way)
            if theirs:
                axes.plot(
                    list(theirs), list(theirs.values()), "--", lw=1, ms=4.5, color=look.colour,
                    marker=look.marker or "o", markerfacecolor="white",
                    label=f"{_NAMES[way]}, paper",
                )  # fmt: skip
        title = f"{TITLES[name]}, {_NETWORKS[name]}" if name in _NETWORKS else TITLES[name]
        axes.set(yscale="log", xlabel="picks", ylabel="seconds", title=title)
        axes.spines[["top", "right"]].set_visible(False)
        axes.legend(
            frameon=False, fontsize=8, ncols=2, loc="upper center", bbox_to_anchor=(0.5, -0.14)
        )
    return {"running-time": figure}


def table(rows: Records) -> str:
    """The paper's two tables and ours, in Markdown."""
    lines = []
    for name in distinct(rows, "dataset"):
        subset = where(rows, dataset=name)
        theirs = PAPER.get(name, {})
        counts = sorted(
            {*distinct(subset, "labels"), *(n for item in theirs.values() for n in item)}
        )
        lines += [
            f"Seconds to n picks, {TITLES[name]}:",
            "",
            "| | pool | " + " | ".join(f"n = {n:,}" for n in counts) + " |",
            "|---|---:|" + "---:|" * len(counts),
        ]
        for way in distinct(subset, "strategy"):
            for pool in distinct(where(subset, strategy=way), "pool"):
                values = _seconds(where(subset, strategy=way, pool=pool))
                lines.append(f"| {_NAMES[way]}, here | {pool:,} | {_line(values, counts)} |")
        for way, options in theirs.items():
            lines.append(f"| {_NAMES[way]}, paper | {_POOLS[name]:,} | {_line(options, counts)} |")
        lines.append("")
    return "\n".join(lines)


def _line(found: Mapping[int, float], counts: Sequence[int]) -> str:
    return " | ".join(
        "" if n not in found else f"{found[n]:,.0f}" if found[n] >= 10 else f"{found[n]:.1f}"
        for n in counts
    )


def claims(rows: Records) -> Sequence[Claim]:
    """The claims of the paper about running time."""
    claims_of = []
    for name in distinct(rows, "dataset"):
        subset = where(rows, dataset=name)
        single = len(distinct(subset, "seed")) < 2
        grade = at_most_in_part if single else (lambda values: values)
        few = "One seed, so it holds in part at most" if single else "Mean over seeds"
        rule = f"{few}; holds where EV-GP takes at most half as much again, in part if so for some."
        greedy, every, badge = (
            beside(subset, ours, theirs)
            for ours, theirs in (
                ("evgp", (MLMOC, "batchbald")),
                ("evgp", ("badge", MLMOC, "batchbald")),
                ("badge", ("evgp", MLMOC, "batchbald")),
            )
        )
        claims_of += [
            Claim(
                f"{TITLES[name]}: the running time of EV-GP is not significantly larger than that "
                "of other look-ahead or greedy algorithms (MLMOC, BatchBALD).",
                f"Seconds of EV-GP and of the other to as many picks, {_pool(subset, name)}: "
                f"{_pairs(greedy)}. {rule}",
                grade(verdict([mine <= 1.5 * other for _, mine, other in greedy.values()])),
            ),
            Claim(
                f"{TITLES[name]}: the cost of running EV-GP is not significantly higher than that "
                "of other active learning baselines.",
                f"As above, with BADGE, {_pool(subset, name)}: {_pairs(every)}. {rule}",
                grade(verdict([mine <= 1.5 * other for _, mine, other in every.values()])),
            ),
            Claim(
                f"{TITLES[name]}: BADGE is the fastest of the tables (their numbers).",
                f"Seconds of BADGE and of the other to as many picks, {_pool(subset, name)}: "
                f"{_pairs(badge)}. {few}; holds if BADGE takes less than each, in part if less "
                "than some.",
                grade(verdict([mine < other for _, mine, other in badge.values()])),
            ),
        ]
    return claims_of


def beside(rows: Records, ours: str, theirs: Sequence[str]) -> dict[str, tuple[int, float, float]]:
    """The largest number of picks that both reached, and the seconds of each."""
    mine = _seconds(where(rows, strategy=ours))
    rivals = {way: _seconds(where(rows, strategy=way)) for way in theirs}
    return {
        way: (n, mine[n], values[n])
        for way, values in rivals.items()
        if (n := max({*values} & {*mine}, default=0))
    }


def _pairs(found: Mapping[str, tuple[int, float, float]]) -> str:
    return (
        ", ".join(
            f"{_NAMES[way]} {mine:,.3g} and {other:,.3g} (n = {n})"
            for way, (n, mine, other) in found.items()
        )
        or "not run"
    )


def _pool(rows: Records, name: str) -> str:
    pools = distinct(where(rows, strategy="evgp"), "pool")
    whole = "" if pools == [_POOLS.get(name)] else f" in place of {_POOLS.get(name, 0):,}"
    return f"a pool of {', '.join(f'{pool:,}' for pool in pools)}{whole if name in _POOLS else ''}"


def _seconds(rows: Records) -> dict[int, float]:
    return {
        n: float(np.mean(column(where(rows, labels=n), "seconds")))
        for n in distinct(rows, "labels")
    }


_NOTHING = 0.01
_NETWORKS = {"mnist": "2-layer MLP", "svhn": "ResNet18"}
_NAMES = {**NAMES, MLMOC: "MLMOC", "evgp-sketch": "EV-GP, sketched, all n at once"}
_POOLS = {"mnist": 10_000, "svhn": 20_000}
_MNIST: dict[str, Any] = {
    "dataset_name": "mnist", "strategies": ["badge", "batchbald", MLMOC, "evgp"], "seeds": 5,
    "budget": 400, "batch": 100, "network": "mlp", "pool": 10_000,
}  # fmt: skip
_SVHN: dict[str, Any] = {
    "dataset_name": "svhn", "strategies": ["badge", MLMOC, "evgp"], "seeds": 5, "budget": 1000,
    "batch": 200, "network": "resnet18", "pool": 20_000,
}  # fmt: skip
_UNLIKE = (
    "EV-GP with ResNet18 draws a network anew for every batch, as the authors do; sketched EV-GP, "
    "which is ours, draws one and picks all n points from its features at once, and how good these "
    "picks are is not measured here. The first 100 points of MLMOC are random and take no time "
    "here; whether the paper's n counts them is not told."
)
_SKETCH = {**_SVHN, "strategies": ["evgp-sketch"], "work": "sketched", "features": 512}

STUDY = Study(
    name="running-time",
    title="Seconds to pick",
    paper="tables time1, time2",
    shows="Seconds to n picks of BADGE, BatchBALD, MLMOC and EV-GP on MNIST, and with ResNet18 on "
    "SVHN, next to the paper's.",
    scales={
        "paper": {
            "timings": [
                {**_MNIST, "strategies": ["badge", "batchbald", MLMOC]},
                {**_MNIST, "strategies": ["evgp"], "apart": True},
                _SVHN,
                _SKETCH,
            ]
        },
        "laptop": {
            "timings": [
                {**_MNIST, "strategies": ["evgp"], "seeds": 1, "apart": True},
                {**_MNIST, "strategies": ["badge", MLMOC], "seeds": 1},
                {**_MNIST, "strategies": ["batchbald"], "seeds": 1, "budget": 100},
                {**_SVHN, "seeds": 1, "budget": 200, "batch": 100, "pool": 500, "steps": 10},
                {**_SKETCH, "seeds": 1},
            ]
        },
        "smoke": {
            "timings": [
                {
                    **_MNIST, "dataset_name": "optdigits", "task": "classification",
                    "strategies": ["badge", "evgp"], "seeds": 1, "budget": 4, "batch": 2,
                    "pool": 30, "width": 8, "steps": 2,
                },
                {
                    **_SKETCH, "dataset_name": "mnist", "network": "cnn", "seeds": 1, "budget": 4,
                    "batch": 2, "pool": 12, "features": 8,
                },
            ]
        },
    },
    departures="One seed; BatchBALD to 100 picks. SVHN with ResNet18: with the exact empirical "
    "kernel a pool of 500 in place of 20,000, 200 picks, and 10 epochs in place of 100 for BADGE "
    "and MLMOC, which train; with 512 random features of the gradients (ours) the whole pool. "
    f"{_UNLIKE} The paper does not say its machine; ours has two cores and no GPU.",
    paper_departures=f"{_UNLIKE} The paper does not say its machine.",
    cells=cells,
    draw=draw,
    claims=claims,
    table=table,
    alone=True,
)  # fmt: skip
