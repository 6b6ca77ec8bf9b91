"""One tidy row: what networks were worth after one round of one strategy."""

from dataclasses import dataclass
from math import nan

from evgp.datasets import Kind


@dataclass(frozen=True)
class Measure:
    """A metric: what it is called in words, which way is better, and where it applies.

    Those that are `central` are tested against random picks, and drawn first.
    """

    words: str
    kind: Kind
    lower: bool = True
    central: bool = False


MEASURES = {
    "mse": Measure("test MSE", "regression", central=True),
    "output_variance_p90": Measure("output variance, 90th percentile", "regression", central=True),
    "output_variance": Measure("output variance, mean", "regression"),
    "bias": Measure("empirical bias", "regression"),
    "accuracy": Measure("test accuracy", "classification", lower=False, central=True),
    "output_entropy": Measure("output entropy", "classification", central=True),
    "disagreement": Measure("disagreement", "classification"),
    "nll": Measure("negative log-likelihood", "classification"),
    "calibration_error": Measure("calibration error", "classification"),
}


@dataclass(frozen=True)
class Row:
    """One round of one cell; metrics that do not apply to the kind of data are NaN.

    A cell is a dataset, a strategy and a seed. `labels` counts what is labelled once the round is
    over, `members` the networks that were trained on it. Rows of one dataset share `batch`, and
    differ in members only where a study has grown. `lr` is the step size that training took, which
    is smaller than asked for where it diverged.
    """

    dataset: str
    kind: str
    strategy: str
    seed: int
    round: int
    labels: int
    batch: int
    members: int
    train_loss: float
    pick_seconds: float
    train_seconds: float
    mse: float = nan
    output_variance_p90: float = nan
    output_variance: float = nan
    bias: float = nan
    accuracy: float = nan
    output_entropy: float = nan
    disagreement: float = nan
    nll: float = nan
    calibration_error: float = nan
    lr: float = nan
