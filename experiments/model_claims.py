"""What the paper says of choosing a network without training, and what the rows say."""

from collections.abc import Iterable, Sequence
from itertools import pairwise

import numpy as np

from evgp import metrics
from experiments.data import TITLES
from experiments.model_figures import ranks
from experiments.rows import Rows, column, distinct, where
from experiments.study import Claim, Verdict, verdict
from experiments.verdicts import HIGH, LARGE, Gap, clear, graded, hundredths, over, percent, rule

FIRST = "relu-2"


def areas(rows: Rows, name: str, way: str) -> dict[int, float]:
    """Mean log error over a learning curve, for each seed."""
    made = {}
    for seed in distinct(where(rows, dataset=name, strategy=way), "seed"):
        some = sorted(
            where(rows, dataset=name, strategy=way, seed=seed), key=lambda row: row["labels"]
        )
        labels, errors = column(some, "labels"), np.log(column(some, "mse"))
        made[seed] = metrics.area(labels, errors) if len(some) > 1 else float(errors[0])
    return made


def lower(rows: Rows, name: str, way: str, other: str) -> Gap:
    """How far one way's error is below the other's, as a logarithm, paired by seeds."""
    ours, theirs = areas(rows, name, way), areas(rows, name, other)
    return over(theirs[seed] - ours[seed] for seed in ours if seed in theirs)


def claims(rows: Rows) -> Sequence[Claim]:
    """What the paper says in words of its figures on model selection."""
    played, tried = where(rows, kind="round"), where(rows, kind="ladder")
    names = distinct(played, "dataset")
    fixed, rival, kept = (
        {name: lower(played, name, *pair) for name in names}
        for pair in (("evgp-ms", "fixed"), ("evgp-ms", "naswot"), ("evgp-ms-1se", "evgp-ms"))
    )
    sizes = sorted(distinct(tried, "labels"))
    last = where(tried, labels=sizes[-1])
    adequate = {name: beside_median(where(last, dataset=name), FIRST) for name in names}
    ends = {name: beside_median(where(last, dataset=name)) for name in names}
    behind = {name: (-mean, error) for name, (mean, error) in fixed.items()}
    chosen = [one for name in names for one in choices(where(tried, dataset=name))]
    wrong = [one for one in chosen if one[1] > 1.0]

    def rank(score: str, sizes: Sequence[int], sign: float = 1.0) -> str:
        return "; ".join(
            f"at {size} labels "
            + ", ".join(
                f"{TITLES[name]} {hundredths(over(ranks(where(some, dataset=name), score, sign)))}"
                for name in names
            )
            for size in sizes
            if (some := where(tried, labels=size))
        )

    return [
        Claim(
            "Where the fixed network does well, EV-GP+MS is on par; where it is not adequate, "
            "EV-GP+MS finds a better one.",
            "Test error below that of the fixed 2-layer ReLU network (geometric mean over the "
            "curve, in percent of the larger, ± standard error over seeds): "
            f"{_listed(fixed)}. Error of the fixed network at {sizes[-1]} labels below that of the "
            f"median architecture: {_listed(adequate)}; it is "
            "not adequate where that is below zero by more than the standard error. Holds if "
            "EV-GP+MS is ahead there, and not behind elsewhere, by more than the standard error; "
            "in part if so on some dataset.",
            verdict(
                [
                    clear(fixed[name])
                    if clear((-adequate[name][0], adequate[name][1]))
                    else not clear(behind[name])
                    for name in names
                    if np.isfinite(fixed[name][1])
                ]
            ),
        ),
        Claim(
            "EV-GP+MS does better than model selection by NASWOT.",
            f"Test error below that of NASWOT, as above: {_listed(rival)}. "
            + rule("it is lower", played),
            graded([gap] for gap in rival.values()),
        ),
        Claim(
            "The score is an accurate reflection of the error that a trained network reaches.",
            "Spearman with the test MSE over all architectures, ± standard error over seeds. The "
            f"score: {rank('score', sizes)}. Others at {sizes[-1]} labels alone. NASWOT: "
            f"{rank('naswot', sizes[-1:], -1.0)}; marginal likelihood: "
            f"{rank('evidence', sizes[-1:], -1.0)}; the training loss that is reached: "
            f"{rank('train_loss', sizes[-1:])}. "
            + rule(f"that of the score is {HIGH} at both sizes", tried),
            graded(_reflected(where(tried, dataset=name), sizes) for name in names),
        ),
        Claim(
            "In most datasets EV-GP+MS selects a suitable architecture, which leads to low error.",
            f"Test MSE of the network with the best score at {sizes[-1]} labels below that of the "
            f"median architecture: {_listed(ends)}. Holds if so by more than the standard error "
            "over seeds on more than half of the datasets; in part if on some.",
            most([clear(gap) for gap in ends.values() if np.isfinite(gap[1])]),
        ),
        Claim(
            "Several networks have similar scores and different errors, so that the one that is "
            "selected is often not the best.",
            f"{len(wrong)} of {len(chosen)} choices (datasets, {_sizes(sizes)} "
            "labels, seeds) are not the best of all architectures. Test MSE of the chosen one over "
            f"the least, geometric mean: {_regret(tried, names, sizes)}. The score of the best one "
            f"over that of the chosen one, median: {_median(wrong, 2)}; the error of the chosen "
            f"one over that of the best one, median: {_median(wrong, 1)} (both of choices that "
            "are not the best). Holds if more than half of the choices are not the best, and the "
            "scores of these are nearer to that of the best one than the errors are, by the "
            "median; in part if one of both.",
            verdict(_mistaken(chosen)),
        ),
        Claim(
            "The network that is selected is acceptable nonetheless.",
            "Test MSE of the chosen network below that of the median architecture, ± standard "
            "error over seeds: "
            + "; ".join(
                f"at {size} labels "
                + _listed({n: beside_median(where(tried, dataset=n, labels=size)) for n in names})
                for size in sizes
            )
            + ". "
            + rule("it is lower at both sizes", tried),
            graded(
                [beside_median(where(tried, dataset=name, labels=size)) for size in sizes]
                for name in names
            ),
        ),
        Claim(
            "Ours: keeping the network unless another leads by one standard error fixes that.",
            f"With the rule the test error is lower by: {_listed(kept)}. Networks changed from one "
            f"round to the next {_changes(played, 'evgp-ms')} of the time without it, "
            f"{_changes(played, 'evgp-ms-1se')} with it. " + rule("the error is lower", played),
            graded([gap] for gap in kept.values()),
        ),
    ]


def most(found: Sequence[bool]) -> Verdict:
    """More than half of them, or some."""
    if not found:
        return "not measured"
    if 2 * sum(found) > len(found):
        return "holds"
    return "holds in part" if any(found) else "does not hold"


def choices(rows: Rows) -> list[tuple[float, float, float]]:
    """For each seed and size, of the network with the best score: error over the median's, over
    the least; and the score of the network of least error over its own."""
    made = []
    for seed in distinct(rows, "seed"):
        for size in distinct(rows, "labels"):
            some = where(rows, seed=seed, labels=size)
            errors, scores = column(some, "mse"), column(some, "score")
            mine, least = int(scores.argmin()), int(errors.argmin())
            ratio = errors[mine] / np.array([np.median(errors), errors[least]])
            made.append((float(ratio[0]), float(ratio[1]), float(scores[least] / scores[mine])))
    return made


def beside_median(rows: Rows, network: str | None = None) -> Gap:
    """How far a network's error, or that of the best score, is below the median, as a logarithm."""
    if network is None:
        return over(-np.log([one[0] for one in choices(rows)]))
    made = []
    for seed in distinct(rows, "seed"):
        some = where(rows, seed=seed)
        own = column(where(some, network=network), "mse")
        made += [float(np.log(np.median(column(some, "mse")) / one)) for one in own]
    return over(made)


def _reflected(rows: Rows, sizes: Sequence[int]) -> list[Gap]:
    found = [over(ranks(where(rows, labels=size), "score")) for size in sizes]
    return [(mean - LARGE, error) for mean, error in found]


def _regret(rows: Rows, names: Sequence[str], sizes: Sequence[int]) -> str:
    return "; ".join(
        f"at {size} labels "
        + ", ".join(
            f"{TITLES[name]} {_geometric(one[1] for one in choices(where(some, dataset=name))):.2f}"
            for name in names
        )
        for size in sizes
        if (some := where(rows, labels=size))
    )


def _geometric(values: Iterable[float]) -> float:
    return float(np.exp(np.mean(np.log(list(values)))))


def _median(found: Sequence[tuple[float, float, float]], which: int) -> str:
    return f"{np.median([one[which] for one in found]):.2f}" if found else "none"


def _mistaken(chosen: Sequence[tuple[float, float, float]]) -> list[bool]:
    wrong = [one for one in chosen if one[1] > 1.0]
    if not wrong:
        return [False] if chosen else []
    error, score = (float(np.median([one[i] for one in wrong])) for i in (1, 2))
    return [2 * len(wrong) > len(chosen), score < error]


def _sizes(sizes: Sequence[int]) -> str:
    return " and ".join(map(str, sizes))


def _listed(found: dict[str, Gap]) -> str:
    return ", ".join(f"{TITLES[name]} {percent(gap)}" for name, gap in found.items())


def _changes(rows: Rows, way: str) -> str:
    changed: list[bool] = []
    for name in distinct(rows, "dataset"):
        for seed in distinct(rows, "seed"):
            some = sorted(
                where(rows, dataset=name, seed=seed, strategy=way), key=lambda row: row["labels"]
            )
            nets = [row["network"] for row in some]
            changed += [a != b for a, b in pairwise(nets)]
    return f"{100 * np.mean(changed):.0f} %" if changed else "0 %"
