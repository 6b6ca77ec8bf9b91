"""Each metric against an independent computation."""

from inspect import unwrap
from itertools import combinations, pairwise

import numpy as np
import pytest
import torch
from scipy import special, stats
from sklearn import metrics as sklearn_metrics

from evgp import EvgpError, metrics
from tests.messages import refused

RNG = np.random.default_rng(0)
OUTPUTS = RNG.normal(size=(7, 40, 3))
TARGETS = RNG.normal(size=(40, 3))
LABELS = RNG.integers(0, 3, size=40)


def test_mse_is_the_mean_over_members_of_sklearns() -> None:
    each = [sklearn_metrics.mean_squared_error(TARGETS, output) * 3 for output in OUTPUTS]
    assert metrics.mse(OUTPUTS, TARGETS) == pytest.approx(np.mean(each))


def test_variance_and_its_percentile_are_those_of_numpy() -> None:
    each = OUTPUTS.var(axis=0).sum(axis=-1)
    assert metrics.variances(OUTPUTS).numpy() == pytest.approx(each)
    assert metrics.output_variance(OUTPUTS) == pytest.approx(each.mean())
    assert metrics.output_variance(OUTPUTS, 90) == pytest.approx(np.percentile(each, 90))


def test_error_is_bias_plus_variance() -> None:
    rest = metrics.mse(OUTPUTS, TARGETS) - metrics.output_variance(OUTPUTS)
    assert metrics.bias(OUTPUTS, TARGETS) == pytest.approx(rest)


def test_accuracy_is_the_mean_over_members_of_sklearns() -> None:
    each = [sklearn_metrics.accuracy_score(LABELS, output.argmax(-1)) for output in OUTPUTS]
    assert metrics.accuracy(OUTPUTS, LABELS) == pytest.approx(np.mean(each))


def test_entropy_is_scipys_entropy_of_the_votes() -> None:
    votes = [np.bincount(column, minlength=3) for column in OUTPUTS.argmax(-1).T]
    expected = np.mean([stats.entropy(vote) for vote in votes])
    assert metrics.output_entropy(OUTPUTS) == pytest.approx(expected)


def test_disagreement_counts_pairs() -> None:
    chosen = OUTPUTS.argmax(-1)
    pairs = [np.mean(a != b) for a, b in combinations(chosen, 2)]
    assert metrics.disagreement(OUTPUTS) == pytest.approx(np.mean(pairs))


def test_nll_is_sklearns_log_loss_of_the_mean() -> None:
    mean = special.softmax(OUTPUTS, axis=-1).mean(axis=0)
    assert metrics.nll(OUTPUTS, LABELS) == pytest.approx(
        sklearn_metrics.log_loss(LABELS, mean, labels=[0, 1, 2])
    )


def test_nll_of_the_surely_wrong_is_large_but_finite() -> None:
    assert metrics.nll(torch.tensor([[[0.0, 1e4]]]), torch.tensor([0])) == pytest.approx(1e4)


def test_calibration_error_bin_by_bin() -> None:
    outputs = 3 * RNG.normal(size=(5, 500, 4))
    labels = RNG.integers(0, 4, size=500)
    mean = special.softmax(outputs, axis=-1).mean(axis=0)
    confidence, right = mean.max(-1), mean.argmax(-1) == labels
    expected, edges = 0.0, np.linspace(0, 1, 16)
    for low, high in pairwise(edges):
        here = (confidence > low) & (confidence <= high)
        if here.any():
            expected += here.mean() * abs(right[here].mean() - confidence[here].mean())
    assert metrics.calibration_error(outputs, labels) == pytest.approx(expected)


def test_correlations_are_scipys() -> None:
    a = RNG.normal(size=50)
    b = np.round(a + RNG.normal(size=50))
    assert metrics.pearson(a, b) == pytest.approx(stats.pearsonr(a, b).statistic)
    assert metrics.spearman(a, b) == pytest.approx(stats.spearmanr(a, b).statistic)
    assert metrics.pearson(torch.from_numpy(a), torch.from_numpy(b)) == metrics.pearson(a, b)
    for scale in (1e-200, 1e200, 0.99 * np.finfo(float).max / np.abs(a).max()):
        assert metrics.pearson(scale * a, b) == pytest.approx(metrics.pearson(a, b))


def test_area_is_numpys_trapezoid() -> None:
    at, heights = np.array([5, 10, 30, 100]), RNG.random(4)
    expected = sklearn_metrics.auc(at, heights) / 95
    assert metrics.area(at, heights) == pytest.approx(expected)
    assert metrics.area(at, np.full(4, 0.7)) == pytest.approx(0.7)


def test_torch_and_numpy_agree() -> None:
    tensors = torch.from_numpy(OUTPUTS), torch.from_numpy(LABELS)
    assert metrics.nll(*tensors) == metrics.nll(OUTPUTS, LABELS)


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: metrics.mse(OUTPUTS, TARGETS[:, :2]),
        lambda: metrics.accuracy(OUTPUTS, LABELS + 1),
        lambda: metrics.disagreement(OUTPUTS[:1]),
        lambda: metrics.mse(OUTPUTS * np.nan, TARGETS),
        lambda: metrics.mse(OUTPUTS, TARGETS * np.nan),
        lambda: metrics.bias(OUTPUTS, TARGETS * np.inf),
        lambda: metrics.output_variance(OUTPUTS, 101),
        lambda: metrics.calibration_error(OUTPUTS, LABELS, 0),
        lambda: unwrap(metrics.calibration_error)(OUTPUTS, LABELS, np.nan),
        lambda: unwrap(metrics.calibration_error)(OUTPUTS, LABELS, np.inf),
        lambda: metrics.pearson([1.0, 1.0], [1.0, 2.0]),
        lambda: metrics.pearson([1.0], [1.0, 2.0]),
        lambda: metrics.area([2, 1], [0.0, 1.0]),
        lambda: metrics.area([], []),
    ],
)
def test_bad_input_is_a_one_line_error(wrong) -> None:
    with refused(EvgpError):
        wrong()
