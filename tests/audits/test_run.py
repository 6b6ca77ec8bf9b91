"""The audit of a labelled set compared with direct solves, and its errors."""

import numpy as np
import pytest
import torch
from scipy import stats

from evgp import NNGP, NTK, audit, mlp, pick, read_pool
from evgp.audits import confirm, run
from evgp.errors import DataWarning, EvgpError, EvgpWarning, MemoryPlanError
from evgp.posterior import ntkgp, trained
from evgp.training import Recipe
from tests.messages import refused, warned

X = np.random.default_rng(0).normal(size=(60, 3))
TRAIN, TEST, POOL = X[:20], X[20:35], X[35:]


def test_deviations_are_those_of_the_closed_forms() -> None:
    result = audit(TRAIN, TEST, scale=None, noise=1e-4)
    ntk, nngp = NTK(mlp()), NNGP(mlp())
    zeros = np.zeros(20)
    ours = trained(ntk, nngp, TRAIN, zeros, TEST, noise=1e-4).variance.sqrt()
    process = ntkgp(ntk, TRAIN, zeros, TEST, noise=1e-4).variance.sqrt()
    np.testing.assert_allclose(result.deviation, ours, rtol=1e-9)
    np.testing.assert_allclose(result.ceiling, process, rtol=1e-7)
    assert (result.deviation <= result.ceiling + 1e-9).all()
    assert result.prior == pytest.approx((nngp.diag(TEST).mean(), ntk.diag(TEST).mean()))
    assert result.at_risk(3).tolist() == np.argsort(-result.deviation)[:3].tolist()


def test_a_scale_is_learnt_on_the_training_rows() -> None:
    train, test = TRAIN * [1, 2, 3], TEST * [1, 2, 3]
    for scale in ("columns", "common", "auto"):
        data = read_pool(train, scale=scale)
        result = audit(data.in_memory, data.tensor_like(test), scale=None)
        np.testing.assert_allclose(audit(train, test, scale=scale).deviation, result.deviation)
    with warned(DeprecationWarning):
        old = audit(train, test, standardise=True)
    assert np.array_equal(old.deviation, audit(train, test).deviation)


def test_influence_is_what_leaving_a_row_out_does() -> None:
    result = audit(TRAIN, TEST, scale=None, noise=1e-3)
    ntk = NTK(mlp())
    whole = float((result.ceiling**2).mean())
    for row in range(20):
        rest = np.delete(TRAIN, row, 0)
        without = ntkgp(ntk, rest, np.zeros(19), TEST, noise=1e-3).variance.mean()
        assert result.influence[row] == pytest.approx(float(without) - whole, rel=1e-6)
    assert result.matter(2).tolist() == np.argsort(-result.influence)[:2].tolist()


def test_a_copy_is_redundant() -> None:
    x = np.concatenate([TRAIN, TRAIN[:1]])
    result = audit(x, TEST, scale=None, noise=1e-3)

    def left(rows: np.ndarray) -> float:
        zeros = np.zeros(len(rows))
        return float(ntkgp(NTK(mlp()), rows, zeros, TEST, noise=1e-3).variance.mean())

    whole = left(x)
    lost = np.array([left(np.delete(x, row, 0)) - whole for row in range(21)])
    expected = np.flatnonzero(lost < 0.1 * whole / 21).tolist()  # a tenth of an even share
    assert result.redundant().tolist() == expected
    assert {0, 20} <= set(expected) and len(expected) < 15


def test_a_pool_gives_what_would_help_and_random_sets() -> None:
    result = audit(TRAIN, TEST, pool=POOL, k=4, scale=None)
    selection = pick(POOL, 4, x_test=TEST, x_labelled=TRAIN, scale=None)
    assert result.further.indices.tolist() == selection.indices.tolist()
    assert result.random.shape == (20,) and (result.random > 0).all()
    assert audit(TRAIN, TEST, pool=POOL[:5], k=9).further.indices.shape == (5,)
    with warned(EvgpWarning):
        assert audit(TRAIN, TEST, pool=TRAIN[:5], k=1).random.shape == (0,)


def test_further_labels_do_what_a_larger_training_set_does() -> None:
    result = audit(TRAIN, TEST, pool=POOL, k=4, scale=None, noise=1e-3)
    for count in range(1, 5):
        larger = np.concatenate([TRAIN, POOL[result.further.indices[:count]]])
        refit = audit(larger, TEST, scale=None, noise=1e-3)
        assert result.after[count - 1] == pytest.approx(refit.variance, rel=1e-8)
    assert result.chance.shape == (20, 4) and len(np.unique(result.chance[:, -1])) > 10
    assert result.after[-1] < result.chance[:, -1].mean() < result.variance


def test_random_sets_come_from_training_rows_and_pool_together() -> None:
    result = audit(TRAIN, TEST, pool=POOL, scale=None)
    rows = torch.randperm(45, generator=torch.Generator().manual_seed(0))[:20]
    drawn = np.concatenate([TRAIN, POOL])[rows]
    assert result.random[0] == pytest.approx(audit(drawn, TEST, scale=None).variance)
    # Training rows that are in the pool too count once.
    with warned(EvgpWarning):
        both = audit(TRAIN, TEST, pool=np.concatenate([TRAIN, POOL]), scale=None)
    assert both.random.tolist() == result.random.tolist()


def test_blocks_of_test_rows_change_nothing(monkeypatch) -> None:
    arguments = {"x_train": TRAIN, "x_test": TEST, "pool": POOL, "k": 3}
    whole = audit(**arguments)
    sizes = []
    real = run.Fit.variances
    monkeypatch.setattr(run, "CELLS", 80)  # four test rows at a time
    monkeypatch.setattr(run.Fit, "variances", lambda self, x: sizes.append(len(x)) or real(self, x))
    parts = audit(**arguments)
    assert sizes[:4] == [4, 4, 4, 3]
    for name in ("deviation", "ceiling", "influence", "random", "after", "chance"):
        np.testing.assert_allclose(getattr(parts, name), getattr(whole, name), rtol=1e-9)


def test_too_many_training_rows_are_refused_with_a_number_that_fits(monkeypatch) -> None:
    monkeypatch.setattr(run, "available_memory", lambda: 10_000)
    with refused(MemoryPlanError):
        audit(TRAIN, TEST)
    audit(TRAIN[:15], TEST)


def test_progress_comes_to_its_end() -> None:
    results = []
    audit(TRAIN, TEST, pool=POOL, k=2, progress=lambda *step: results.append(step))
    assert ("test rows", 15, 15) in results and results[-1] == ("random sets", 20, 20)


def test_a_confirmation_is_the_variance_of_the_members() -> None:
    result = audit(TRAIN, TEST)
    outputs = np.random.default_rng(1).normal(size=(6, 15, 2))
    outcome = confirm(result, outputs)
    by_hand = ((outputs - outputs.mean(0)) ** 2).sum(0).mean(1) / 5
    np.testing.assert_allclose(outcome.observed, by_hand)
    np.testing.assert_allclose(outcome.deviation, np.sqrt(by_hand))
    predicted = result.deviation**2
    assert outcome.pearson == pytest.approx(np.corrcoef(predicted, by_hand)[0, 1])
    assert outcome.spearman == pytest.approx(stats.spearmanr(predicted, by_hand)[0])
    assert outcome.ratio == pytest.approx(by_hand.mean() / predicted.mean())


def test_what_few_members_allow_is_what_exact_predictions_reach() -> None:
    result = audit(TRAIN, TEST)
    random = np.random.default_rng(0)
    drawn = [
        confirm(result, result.deviation[:, None] * random.normal(size=(30, 15, 1)))
        for _ in range(200)
    ]
    reached = np.mean([item.pearson for item in drawn])
    assert reached == pytest.approx(drawn[0].attainable, abs=0.03)
    assert np.mean([item.ratio for item in drawn]) == pytest.approx(1, abs=0.05)
    assert 0.5 < drawn[0].attainable < 0.98


def test_trained_networks_confirm_the_audit() -> None:
    x, test = torch.from_numpy(TRAIN[:10]), torch.from_numpy(TEST)
    recipe = Recipe(mlp(width=128), {"optimiser": "adam", "lr": 0.01, "steps": 150}, gentler=3)
    outputs = recipe(x, x[:, 0].sin(), members=40).predict(test)
    result = confirm(audit(x, test, scale=None), outputs)
    assert result.pearson > 0.7 and 0.7 < result.ratio < 1.4, result


@pytest.mark.parametrize("shape", [(5, 14, 1), (1, 15, 1), (5, 15, 0)])
def test_outputs_elsewhere_confirm_nothing(shape) -> None:
    with refused(EvgpError):
        confirm(audit(TRAIN, TEST), np.zeros(shape))


def test_a_correlation_without_spread_is_not_a_number() -> None:
    result = confirm(audit(TRAIN, TEST), np.zeros((3, 15, 1)))
    assert np.isnan(result.pearson) and np.isnan(result.spearman) and result.ratio == 0


def test_scaling_is_that_of_the_training_set() -> None:
    shifted = audit(5 * TRAIN + 2, 5 * TEST + 2)
    np.testing.assert_allclose(shifted.deviation, audit(TRAIN, TEST).deviation, rtol=1e-6)


@pytest.mark.parametrize("size", [1e200, 1e-200, 1e-100])
def test_columns_of_any_size_are_scaled(size) -> None:
    result, plain = (
        audit(size * TRAIN, size * TEST, pool=size * POOL),
        audit(TRAIN, TEST, pool=POOL),
    )
    for name in ("deviation", "ceiling", "influence", "random", "after"):
        np.testing.assert_allclose(getattr(result, name), getattr(plain, name), rtol=1e-6)


def test_an_offset_changes_nothing_while_there_are_digits() -> None:
    np.testing.assert_allclose(
        audit(TRAIN + 1e6, TEST + 1e6).deviation, audit(TRAIN, TEST).deviation, rtol=1e-4
    )


def with_column(x: np.ndarray, column: object) -> np.ndarray:
    return np.column_stack([x[:, 0], np.broadcast_to(column, len(x)), x[:, 1:]])


def test_a_constant_column_does_not_count() -> None:
    result = audit(
        with_column(TRAIN, 5.0), with_column(TEST, 5.0), pool=with_column(POOL, 5.0), k=2
    )
    plain = audit(TRAIN, TEST, pool=POOL, k=2)
    assert result.prior == plain.prior
    assert result.deviation.tolist() == plain.deviation.tolist()
    assert result.after.tolist() == plain.after.tolist()


@pytest.mark.parametrize("other", [np.arange(15.0), 6.0])
def test_a_column_that_varies_only_in_the_test_rows_is_a_warning(other) -> None:
    with warned(DataWarning):
        audit(with_column(TRAIN, 5.0), with_column(TEST, other))
    with warned(DataWarning):
        audit(with_column(TRAIN, 0.0), with_column(TEST, 0.0), pool=with_column(POOL, 1e-9))
    twice = [with_column(with_column(x, column), column) for x, column in ((TRAIN, 1), (TEST, 2))]
    with warned(DataWarning):
        audit(*twice)
    # As they are, all columns count.
    audit(with_column(TRAIN, 5.0), with_column(TEST, other), scale=None)


def test_training_rows_in_the_pool_are_counted() -> None:
    pool = np.concatenate([TRAIN[:3], POOL[:1]])
    with warned(DataWarning):
        audit(TRAIN, TEST, pool=pool, k=4)


@pytest.mark.parametrize(
    "change",
    [
        {"x_test": TEST[:, :2]},
        {"pool": POOL[:, :2]},
        {"x_train": TRAIN * np.nan},
        {"x_train": TRAIN[:0]},
        {"noise": -1.0},
        {"noise": np.nan},
        {"noise": np.inf},
        {"seed": -1},
        {"x_train": TRAIN[:1]},
        {"x_train": np.ones((5, 3))},
        {"x_train": TRAIN + 1e17, "x_test": TEST + 1e17},
        {"x_test": TEST * 1e200},
        {"x_test": TEST * 1e200, "scale": None},
        {"x_train": TRAIN * 1e-200},
    ],
)
def test_invalid_audits_are_refused(change) -> None:
    with refused(EvgpError):
        audit(**{"x_train": TRAIN, "x_test": TEST, **change})
