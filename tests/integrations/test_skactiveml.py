"""The query strategy for scikit-activeml, compared with that package and direct solves."""

import subprocess
import sys
import unittest
import zipfile
from importlib import import_module

import numpy as np
import pytest
import skactiveml
import torch
from skactiveml.classifier import ParzenWindowClassifier
from skactiveml.pool import RandomSampling
from skactiveml.utils import MISSING_LABEL, is_labeled

import evgp
from evgp.errors import PoolError
from evgp.integrations.skactiveml import EVGPQuery
from tests.conftest import absent
from tests.messages import refused

X = np.random.default_rng(0).normal(size=(30, 3))
Y = np.full(30, MISSING_LABEL)


def labels(*rows: int) -> np.ndarray:
    y = Y.copy()
    y[list(rows)] = 1
    return y


def test_queries_are_the_picks_of_an_exact_greedy() -> None:
    known = [3, 7]
    rows = EVGPQuery(random_state=0).query(X, labels(*known), batch_size=6)
    assert rows.tolist() == evgp.pick(X, 6, labelled=known, greedy="exact").indices.tolist()


def test_batches_do_not_matter() -> None:
    query, y = EVGPQuery(), Y.copy()
    for _ in range(3):
        y[query.query(X, y, batch_size=2)] = 0
    assert set(np.flatnonzero(is_labeled(y))) == set(query.query(X, Y, batch_size=6))


def test_utilities_are_reductions_of_the_mean_variance() -> None:
    """By conditioning on the labelled rows and one more, from scratch."""
    known = [3, 7]
    rows, utilities = EVGPQuery(noise=0.01, scale="columns").query(
        X, labels(*known), batch_size=3, return_utilities=True
    )
    x = torch.from_numpy((X - X.mean(0)) / X.std(0))
    k = evgp.NTK(evgp.mlp())(x).numpy()
    noise = 0.01 * k.diagonal().mean()

    def mean_variance(given: list[int]) -> float:
        subset = k[np.ix_(given, given)] + noise * np.eye(len(given))
        return float((k.diagonal() - (k[given] * np.linalg.solve(subset, k[given])).sum(0)).mean())

    for step, row in enumerate(rows):
        before = [*known, *rows[:step].tolist()]
        assert np.isnan(utilities[step, before]).all()
        free = np.setdiff1d(np.arange(30), before)
        falls = [mean_variance(before) - mean_variance([*before, item]) for item in free.tolist()]
        assert utilities[step, free] == pytest.approx(falls, rel=1e-6)
        assert row == free[np.argmax(falls)]


def test_candidates_as_rows_and_as_samples() -> None:
    subset = np.array([20, 4, 11, 9])
    query, y = EVGPQuery(), labels(0, 1)
    rows, gains = query.query(X, y, candidates=subset, batch_size=2, return_utilities=True)
    assert set(rows) <= set(subset) and gains.shape == (2, 30)
    assert np.isfinite(gains[0]).sum() == 4 and np.isfinite(gains[1]).sum() == 3
    places, same = query.query(X, y, candidates=X[subset], batch_size=2, return_utilities=True)
    assert subset[places].tolist() == rows.tolist() and same.shape == (2, 4)
    assert np.allclose(same[0], gains[0, subset])
    again = query.query(X, y, candidates=[0, 5])
    assert again.tolist() == [5], "a row that is labelled already brings less than another"


def test_in_the_loop_with_another_strategy() -> None:
    truth = (X[:, 0] > 0).astype(float)
    for query in (EVGPQuery(random_state=0), RandomSampling(random_state=0)):
        y, classifier = Y.copy(), ParzenWindowClassifier(classes=[0, 1])
        for _ in range(4):
            rows = query.query(X, y, batch_size=4)
            y[rows] = truth[rows]
            classifier.fit(X, y)
        assert is_labeled(y).sum() == 16 and classifier.score(X, truth) > 0.7


@pytest.mark.parametrize(("missing", "label"), [(-1, 0), (None, "cat"), ("", "cat"), (np.nan, 1.5)])
def test_any_label_may_be_missing(missing, label) -> None:
    best = int(EVGPQuery().query(X, Y)[0])  # picked first, were it not labelled
    y = np.full(30, missing, dtype=object)
    y[best] = label
    y = y if missing is None else np.array(y.tolist())
    rows = EVGPQuery(missing_label=missing).query(X, y, batch_size=4)
    assert rows.tolist() == evgp.pick(X, 4, labelled=[best], greedy="exact").indices.tolist()


def test_fewer_test_points() -> None:
    def queried(thin: int | None) -> np.ndarray:
        selection = EVGPQuery(thin=thin, random_state=0).query(X, Y, return_utilities=True)
        return selection[1][0]

    assert queried(30) == pytest.approx(queried(None), rel=1e-9)
    assert np.isfinite(queried(10)).all()  # every row may still be picked
    assert np.abs(queried(10) / queried(None) - 1).max() > 1e-3


def test_a_torch_module_is_drawn_by_the_random_state() -> None:
    def small() -> torch.nn.Module:
        return torch.nn.Sequential(torch.nn.Linear(3, 8), torch.nn.ReLU(), torch.nn.Linear(8, 1))

    def queried(state: int) -> tuple[list[int], np.ndarray]:
        query = EVGPQuery(network=small, random_state=state)
        rows, utilities = query.query(X, Y, batch_size=5, return_utilities=True)
        return rows.tolist(), utilities[0]

    (first, gains), (same, again), (_, other) = queried(1), queried(1), queried(2)
    assert first == same and gains.tolist() == again.tolist()
    assert np.abs(other / gains - 1).max() > 0.01


@pytest.mark.filterwarnings("ignore:'batch_size=1' is larger")
def test_errors_say_what_is_wrong() -> None:
    with refused(ValueError):
        EVGPQuery(kernel="nothing").query(X, Y)
    for noise in (-1, np.nan, "little"):
        with refused(ValueError):
            EVGPQuery(noise=noise).query(X, Y)
    with refused(ValueError):
        EVGPQuery().query(X, np.zeros(30))
    with refused(MemoryError, hide=r"within \S+ GB|; float32.*"):
        EVGPQuery().query(np.arange(300_000.0)[:, None], np.full(300_000, MISSING_LABEL))
    with refused(ValueError):
        EVGPQuery().query(np.where(X > 2, np.nan, X), Y)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_the_templates_that_the_package_tests_its_own_strategies_with(
    tmp_path, monkeypatch
) -> None:
    """Those of 0.6.1, the last release that ships them."""
    fetch = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", tmp_path]
    got = subprocess.run([*fetch, "scikit-activeml==0.6.1"], check=False, capture_output=True)
    if got.returncode:
        absent("scikit-activeml 0.6.1 cannot be had here")
    with zipfile.ZipFile(next(tmp_path.glob("*.whl"))) as wheel:
        wheel.extractall(
            tmp_path, [name for name in wheel.namelist() if "skactiveml/tests/" in name]
        )
    shipped = [*skactiveml.__path__, str(tmp_path / "skactiveml")]
    monkeypatch.setattr(skactiveml, "__path__", shipped)
    templates = import_module("skactiveml.tests.template_query_strategy")

    class Test(templates.TemplateSingleAnnotatorPoolQueryStrategy, unittest.TestCase):
        def setUp(self):
            classes = {"X": X[:10], "y": np.array([0, 1, *[MISSING_LABEL] * 8])}
            numbers = {"X": X[:10], "y": np.array([1.5, 2.5, *[MISSING_LABEL] * 8])}
            super().setUp(EVGPQuery, {}, classes, numbers)

        def test_init_param_network(self):
            self._test_param("init", "network", [(evgp.mlp(1), None), (int, ValueError)])

        def test_init_param_kernel(self):
            self._test_param("init", "kernel", [("nngp", None), ("nothing", ValueError)])

        def test_init_param_noise(self):
            self._test_param("init", "noise", [(0.1, None), (-1, ValueError), ("a", ValueError)])

        def test_init_param_scale(self):
            self._test_param("init", "scale", [("columns", None), ("no", ValueError)])

        def test_init_param_standardise(self):
            self._test_param("init", "standardise", [(None, None), ("no", ValueError)])

        def test_init_param_thin(self):
            self._test_param("init", "thin", [(5, None), (0, ValueError)])

        def test_query(self):
            assert len(EVGPQuery().query(X[:10], Y[:10])) == 1

    result = unittest.TextTestRunner().run(unittest.TestLoader().loadTestsFromTestCase(Test))
    assert result.testsRun > 15
    assert not result.errors + result.failures, result.errors + result.failures


@pytest.mark.parametrize("wrong", ["no", 1])
def test_standardise_is_true_or_false(wrong) -> None:
    with refused(PoolError):
        EVGPQuery(standardise=wrong).query(X[:10], Y[:10])


def test_a_selection_may_be_the_candidates() -> None:
    among = evgp.pick(X, 10)
    rows = EVGPQuery(random_state=0).query(X, Y, candidates=among, batch_size=3)
    again = EVGPQuery(random_state=0).query(X, Y, candidates=among.indices, batch_size=3)
    assert rows.tolist() == again.tolist() and set(rows) <= set(among)
