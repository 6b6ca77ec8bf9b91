r"""Metrics of ensembles: how good members are, and how much they differ.

`outputs` are those of `Ensemble.predict`: e members, n points, o outputs $f_e(x)$. Averages over
members and points are plain means; sums run over outputs, so that error = bias + variance.
"""

import numpy as np
import torch
from jaxtyping import Float, Shaped
from scipy import stats
from torch import Tensor

from evgp._checks import integer, number, numbers
from evgp._linalg import as_tensor
from evgp._typing import Array, ArrayLike
from evgp.errors import BadArgument, EvgpError


class MetricError(EvgpError, ValueError):
    """A metric cannot be computed from these values."""


def mse(outputs: Shaped[Array, "e n o"], y: Shaped[Array, " n ..."]) -> float:
    r"""Mean squared error of single members: $\frac{1}{e n} \sum_{e,x} |f_e(x) - y(x)|^2$.

    Parameters
    ----------
    outputs : array, shape (e, n, o)
        Outputs of e members at n points.
    y : array, shape (n,) or (n, o)
        Targets of the points.

    Returns
    -------
    float

    Examples
    --------
    >>> mse(torch.tensor([[[1.0]], [[3.0]]]), torch.tensor([0.0]))
    5.0
    """
    values = _outputs(outputs)
    return float((values - _targets(y, values)).square().sum(-1).mean())


def variances(outputs: Shaped[Array, "e n o"]) -> Float[Tensor, " n"]:
    r"""Variance over members at each point: $\sum_o \frac1e \sum_e (f_{eo} - \bar f_o)^2$.

    Parameters
    ----------
    outputs : array, shape (e, n, o)
        Outputs of e members at n points.

    Returns
    -------
    tensor, shape (n,)

    Examples
    --------
    >>> variances(torch.tensor([[[1.0]], [[3.0]]])).tolist()
    [1.0]
    """
    return _outputs(outputs).var(0, correction=0).sum(-1)


def output_variance(outputs: Shaped[Array, "e n o"], percentile: float | None = None) -> float:
    """The variance over members, as a mean over points or as a percentile of them.

    Parameters
    ----------
    outputs : array, shape (e, n, o)
        Outputs of e members at n points.
    percentile : float, optional
        Percentile over points; the mean by default.

    Returns
    -------
    float

    Examples
    --------
    >>> outputs = torch.tensor([[[1.0], [0.0]], [[3.0], [0.0]]])
    >>> output_variance(outputs), output_variance(outputs, percentile=90)
    (0.5, 0.9)
    """
    spread = variances(outputs)
    if percentile is None:
        return float(spread.mean())
    percentile = number(percentile, "a percentile", 0, 100, error=MetricError)
    return float(np.percentile(spread.numpy(), percentile))


def bias(outputs: Shaped[Array, "e n o"], y: Shaped[Array, " n ..."]) -> float:
    r"""Squared error of the mean over members: $\frac1n \sum_x |\bar f(x) - y(x)|^2$.

    That is `mse` minus `output_variance`.

    Parameters
    ----------
    outputs : array, shape (e, n, o)
        Outputs of e members at n points.
    y : array, shape (n,) or (n, o)
        Targets of the points.

    Returns
    -------
    float

    Examples
    --------
    >>> bias(torch.tensor([[[1.0]], [[3.0]]]), torch.tensor([0.0]))
    4.0
    """
    values = _outputs(outputs)
    return float((values.mean(0) - _targets(y, values)).square().sum(-1).mean())


def accuracy(outputs: Shaped[Array, "e n o"], labels: Shaped[Array, " n"]) -> float:
    r"""Share of correct predictions of single members: $\frac{1}{e n} \sum [\arg\max f_e(x) = y]$.

    Parameters
    ----------
    outputs : array, shape (e, n, o)
        Outputs of e members at n points.
    labels : array of int, shape (n,)
        Classes of the points.

    Returns
    -------
    float

    Examples
    --------
    >>> accuracy(torch.eye(2)[None], torch.tensor([0, 0]))
    0.5
    """
    values = _outputs(outputs)
    return float((values.argmax(-1) == _labels(labels, values)).double().mean())


def output_entropy(outputs: Shaped[Array, "e n o"]) -> float:
    r"""Entropy of the members' votes, mean over points: $-\sum_i v_i \log v_i$.

    $v_i$ is the share of the members that predict class i, so that they sum to one.

    Parameters
    ----------
    outputs : array, shape (e, n, o)
        Outputs of e members at n points.

    Returns
    -------
    float

    Examples
    --------
    >>> output_entropy(torch.tensor([[[1.0, 0.0]], [[0.0, 1.0]]]))  # log 2
    0.6931471805599453
    """
    return float(torch.special.entr(_votes(_outputs(outputs))).sum(-1).mean())


def disagreement(outputs: Shaped[Array, "e n o"]) -> float:
    r"""Share of pairs of members that predict different classes, mean over points.

    $$ \frac{2}{e (e - 1)} \sum_{a < b} [\arg\max f_a \ne \arg\max f_b] $$

    Parameters
    ----------
    outputs : array, shape (e, n, o)
        Outputs of e members at n points.

    Returns
    -------
    float

    Examples
    --------
    >>> disagreement(torch.tensor([[[1.0, 0.0]], [[0.0, 1.0]]]))
    1.0
    """
    values = _outputs(outputs)
    members = len(values)
    if members < 2:
        raise MetricError(f"expected at least two members, got {members}; train more")
    same = _votes(values).square().sum(-1).mean()
    return float((1 - same) * members / (members - 1))


def nll(outputs: Shaped[Array, "e n o"], labels: Shaped[Array, " n"]) -> float:
    r"""Negative log-likelihood of the mean prediction: $-\frac1n \sum_x \log \bar p_{y}(x)$.

    $\bar p$ is the mean over members of their softmax.

    Parameters
    ----------
    outputs : array, shape (e, n, o)
        Outputs of e members at n points.
    labels : array of int, shape (n,)
        Classes of the points.

    Returns
    -------
    float

    Examples
    --------
    >>> nll(torch.zeros(3, 1, 2), torch.tensor([1]))  # log 2
    0.6931471805599453
    """
    values = _outputs(outputs)
    logs = torch.logsumexp(torch.log_softmax(values, -1), 0) - np.log(len(values))
    return float(-logs.gather(-1, _labels(labels, values)[:, None]).mean())


def calibration_error(
    outputs: Shaped[Array, "e n o"], labels: Shaped[Array, " n"], bins: int = 15
) -> float:
    r"""Expected calibration error of the mean prediction (Guo et al. 2017).

    $$ \sum_b \frac{n_b}{n} \left| \mathrm{accuracy}_b - \mathrm{confidence}_b \right| $$

    Points are sorted into bins of equal width by their confidence, the largest mean softmax.

    Parameters
    ----------
    outputs : array, shape (e, n, o)
        Outputs of e members at n points.
    labels : array of int, shape (n,)
        Classes of the points.
    bins : int
        Number of bins.

    Returns
    -------
    float

    Examples
    --------
    >>> calibration_error(torch.zeros(1, 2, 2), torch.tensor([0, 1]))
    0.0
    """
    bins = integer(bins, "bins", 1, 1_000_000, error=MetricError)
    values = _outputs(outputs)
    confidence, chosen = torch.softmax(values, -1).mean(0).max(-1)
    right = (chosen == _labels(labels, values)).double()
    # A bin includes its upper edge and not its lower one.
    place = (confidence * bins).ceil().long().clamp(1, bins) - 1
    gaps = torch.zeros(bins, dtype=torch.float64).index_add_(0, place, right - confidence)
    return float(gaps.abs().sum() / len(right))


def pearson(a: ArrayLike, b: ArrayLike) -> float:
    r"""Correlation: $\mathrm{cov}(a, b) / \sqrt{\mathrm{var}(a)\,\mathrm{var}(b)}$.

    Parameters
    ----------
    a, b : sequence of float

    Returns
    -------
    float

    Examples
    --------
    >>> round(pearson([1.0, 2.0, 3.0], [2.0, 4.0, 6.0]), 12)
    1.0
    """
    x, y = (part / np.abs(part).max() for part in _paired(a, b))  # so that no square overflows
    x, y = x - x.mean(), y - y.mean()
    x, y = x / np.linalg.norm(x), y / np.linalg.norm(y)
    return float(np.clip(x @ y, -1, 1))


def spearman(a: ArrayLike, b: ArrayLike) -> float:
    """Correlation of the ranks; equal values share a rank.

    Parameters
    ----------
    a, b : sequence of float

    Returns
    -------
    float

    Examples
    --------
    >>> round(spearman([1.0, 2.0, 3.0], [1.0, 8.0, 27.0]), 12)
    1.0
    """
    x, y = _paired(a, b)
    return pearson(stats.rankdata(x), stats.rankdata(y))


def area(labels: ArrayLike, scores: ArrayLike) -> float:
    r"""Area under a learning curve over its span: $\frac{1}{b - a} \int_a^b s(l)\, dl$.

    By trapezoids: the mean height of the curve, or the score itself at one number of labels.

    Parameters
    ----------
    labels : sequence of int
        Increasing numbers of labels.
    scores : sequence of float
        One score for each.

    Returns
    -------
    float

    Examples
    --------
    >>> area([10, 20, 40], [0.0, 1.0, 1.0])
    0.8333333333333334
    """
    at, heights = (_floats(part, name) for part, name in ((labels, "labels"), (scores, "scores")))
    if at.shape != heights.shape or at.ndim != 1 or not len(at):
        raise MetricError(
            f"expected as many scores as numbers of labels, at least one; got {heights.shape} and "
            f"{at.shape}"
        )
    steps = np.diff(at)
    if not (np.isfinite(heights).all() and (steps > 0).all()):
        raise MetricError(
            "expected finite scores at increasing numbers of labels; sort or fix them"
        )
    if len(at) == 1:
        return float(heights[0])
    return float(steps @ (heights[1:] + heights[:-1]) / 2 / (at[-1] - at[0]))


def _outputs(outputs: Array) -> Float[Tensor, "e n o"]:
    values = as_tensor(outputs, "outputs", error=MetricError).double()
    if values.ndim != 3 or 0 in values.shape:
        raise MetricError(
            f"expected outputs of shape (members, points, outputs), got {tuple(values.shape)}"
        )
    if not bool(torch.isfinite(values).all()):
        raise MetricError("expected finite outputs, got NaN or inf; did a member diverge?")
    return _moderate(values, "outputs")


def _targets(y: Array, outputs: Float[Tensor, "e n o"]) -> Float[Tensor, "n o"]:
    targets = as_tensor(y, "y", error=MetricError).double()
    targets = targets[:, None] if targets.ndim == 1 else targets
    if targets.shape != outputs.shape[1:]:
        raise MetricError(
            f"expected targets of shape {tuple(outputs.shape[1:])}, like the outputs of a member; "
            f"got {tuple(targets.shape)}"
        )
    if not bool(torch.isfinite(targets).all()):
        raise MetricError("expected finite targets, got NaN or inf; drop those points")
    return _moderate(targets, "targets")


def _labels(labels: Array, outputs: Float[Tensor, "e n o"]) -> Shaped[Tensor, " n"]:
    values = as_tensor(labels, "labels", error=MetricError)
    _, n, classes = outputs.shape
    if values.shape != (n,) or not bool(
        ((values >= 0) & (values < classes) & (values == values.round())).all()
    ):
        raise MetricError(
            f"expected {n} labels from 0 to {classes - 1}, got shape {tuple(values.shape)} with "
            "other values; number the classes from 0"
        )
    return values.long()


def _votes(outputs: Float[Tensor, "e n o"]) -> Float[Tensor, "n o"]:
    """The share of members that predict each class."""
    chosen = torch.nn.functional.one_hot(outputs.argmax(-1), outputs.shape[-1])
    return chosen.double().mean(0)


def _paired(a: ArrayLike, b: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
    x, y = (_floats(part, name).ravel() for part, name in ((a, "a"), (b, "b")))
    if len(x) != len(y) or len(x) < 2:
        raise MetricError(f"expected two lists of the same length, got {len(x)} and {len(y)}")
    for part in (x, y):
        if not np.isfinite(part).all() or (part == part[0]).all():
            raise MetricError(
                "expected finite values that are not all equal; a correlation needs spread"
            )
    return x, y


def _floats(values: ArrayLike, name: str) -> np.ndarray:
    return numbers(values, name, error=MetricError).double().numpy()


def _moderate(values: Tensor, name: str) -> Tensor:
    """Refuse values whose square overflows in float64."""
    if float(values.abs().max()) > 1e150:
        raise BadArgument.of(MetricError)(
            name,
            "below 1e150, whose squares float64 can hold",
            f"{float(values.abs().max()):g}",
            "scale them",
        )
    return values
