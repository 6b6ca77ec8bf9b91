"""Rows as a comparison would write them, from curves that are made up."""

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from evgp.comparison.rows import Row

STRATEGIES = ("random", "evgp", "kmeans++", "badge", "mlmoc", "evgp:20+badge")
RATES = dict(zip(STRATEGIES, (1.0, 1.7, 1.35, 1.2, 0.8, 1.55), strict=True))


def row(strategy: str, seed: int, number: int, **metrics: float) -> Row:
    """One round of a regression in batches of ten."""
    labels = 10 * (number + 1)
    return Row("yacht", "regression", strategy, seed, number, labels, 10, 5, 0.1, 0.2, 3, **metrics)


def curves(given: Mapping[str, Sequence[Sequence[float]]], metric: str = "mse") -> list[Row]:
    """Rows from a curve for each seed of each strategy."""
    return [
        row(strategy, seed, number, **{metric: value})
        for strategy, runs in given.items()
        for seed, run in enumerate(runs)
        for number, value in enumerate(run)
    ]


def study(
    datasets: Iterable[tuple[str, str]] = (("yacht", "regression"), ("digits", "classification")),
    strategies: Sequence[str] = STRATEGIES,
    seeds: int = 3,
    rounds: int = 6,
) -> list[Row]:
    """A whole study in which everything falls with labels, at a rate of each strategy."""
    noise = np.random.default_rng(0)
    results = []
    for dataset, kind in datasets:
        for strategy in strategies:
            for seed in range(seeds):
                for number in range(rounds):
                    labels = 10 * (number + 1)
                    fall = float(np.exp(-RATES.get(strategy, 1.0) * labels / 30))
                    fall *= float(np.exp(0.05 * noise.normal()))
                    results.append(
                        Row(dataset, kind, strategy, seed, number, labels, 10, 20, 1e-4, 0.3, 6.0,
                            **_metrics(kind, fall))
                    )  # fmt: skip
    return results


def _metrics(kind: str, fall: float) -> dict[str, float]:
    if kind == "regression":
        return {
            "mse": 8 * fall + 0.3,
            "output_variance_p90": 3 * fall**2,
            "output_variance": fall,
            "bias": 7 * fall,
        }
    return {
        "accuracy": 0.97 - 0.6 * fall,
        "output_entropy": fall,
        "disagreement": 0.4 * fall,
        "nll": 2 * fall,
        "calibration_error": 0.1 * fall,
    }
