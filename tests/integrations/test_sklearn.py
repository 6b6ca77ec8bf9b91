"""The scikit-learn estimator, with scikit-learn's own checks and real containers."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array, csr_matrix, issparse
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.utils.estimator_checks import check_estimator

import evgp
from evgp.errors import PoolError
from evgp.integrations.sklearn import EVGPSelector
from tests.messages import refused

X = np.random.default_rng(0).normal(size=(40, 3))
# Rows are what is selected: these checks are about estimators that give one result a row.
ONE_A_ROW = {
    "check_transformer_general": "transform keeps k rows, and not all",
    "check_transformer_data_not_an_array": "transform keeps k rows, and not all",
    "check_methods_sample_order_invariance": "picks are rows of the X that was fitted",
    "check_methods_subset_invariance": "picks are rows of the X that was fitted",
    "check_fit_idempotent": "picks are rows of the X that was fitted, and not of a test part",
}


@pytest.mark.filterwarnings("ignore")
def test_scikit_learns_own_checks() -> None:
    fitted = check_estimator(
        EVGPSelector(k=1), expected_failed_checks=ONE_A_ROW, on_skip=None, on_fail="raise"
    )
    counts = {name: [item["check_name"] for item in fitted if item["status"] == name]
              for name in ("passed", "xfail", "skipped")}  # fmt: skip
    assert len(counts["passed"]) > 35
    assert set(counts["xfail"]) == set(ONE_A_ROW), "an exception that is not needed"
    assert set(counts["skipped"]) <= {"check_array_api_input"}


def test_it_picks_like_evgp_pick() -> None:
    fitted, picked = EVGPSelector(k=6).fit(X), evgp.pick(X, 6)
    assert fitted.indices_.tolist() == picked.indices.tolist()
    assert fitted.gains_.tolist() == picked.gains.tolist()
    assert fitted.variance_left_.tolist() == picked.variance_left.tolist()
    assert fitted.selection_.certificate.share[-1] == picked.certificate.share[-1]
    other = EVGPSelector(3, criterion="p90", network=evgp.mlp(3), noise=0.1).fit(X)
    same = evgp.pick(X, 3, criterion="p90", network=evgp.mlp(3), noise=0.1)
    assert other.indices_.tolist() == same.indices.tolist()
    assert clone(other).fit(X).indices_.tolist() == same.indices.tolist()
    nngp = EVGPSelector(3, kernel="nngp").fit(X)
    assert nngp.variance_left_[-1] == evgp.pick(X, 3, kernel="nngp").variance_left[-1]


@settings(max_examples=10, deadline=None)
@given(k=st.integers(1, 12), n=st.integers(12, 30), seed=st.integers(0, 50))
def test_support_and_transform_agree_with_the_indices(k, n, seed) -> None:
    x = np.random.default_rng(seed).normal(size=(n, 2))
    fitted = EVGPSelector(k, greedy="exact").fit(x)
    mask = fitted.get_support()
    assert mask.shape == (n,) and mask.sum() == k
    assert fitted.get_support(indices=True).tolist() == sorted(fitted.indices_.tolist())
    assert np.array_equal(fitted.transform(x), x[fitted.indices_])
    assert np.array_equal(fitted.fit_transform(x), x[fitted.indices_])


def frame() -> dict[str, list[object]]:
    return {
        "a": X[:, 0].tolist(), "b": (100 * X[:, 1]).tolist(), "kind": [*"xyzz"] * 10,
    }  # fmt: skip


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame])
@pytest.mark.parametrize("sparse", [0.0, 1.0])
def test_at_the_end_of_a_pipeline(make, sparse) -> None:
    table = make(frame())
    columns = ColumnTransformer(
        [("numbers", StandardScaler(), ["a", "b"]), ("words", OneHotEncoder(), ["kind"])],
        sparse_threshold=sparse,
    )
    pipeline = Pipeline([("columns", columns), ("pick", EVGPSelector(k=5))]).fit(table)
    encoded = columns.fit_transform(table)
    assert issparse(encoded) == bool(sparse)
    dense = encoded.toarray() if sparse else encoded
    picks = pipeline["pick"].indices_
    assert picks.tolist() == evgp.pick(dense, 5).indices.tolist()
    kept = pipeline.transform(table)
    assert issparse(kept) == bool(sparse)
    assert np.allclose(kept.toarray() if sparse else kept, dense[picks])
    more = pipeline.fit(table, pick__labelled=picks)["pick"].indices_
    assert not set(more) & set(picks)
    assert more.tolist() == evgp.pick(dense, 5, labelled=picks).indices.tolist()


def test_the_output_has_the_type_of_the_input() -> None:
    picks = EVGPSelector(k=4).fit(X).indices_
    for result in (pd.DataFrame(X, columns=[*"abc"]), pl.DataFrame(X, schema=[*"abc"])):
        selector = EVGPSelector(k=4)
        kept = selector.fit_transform(result)
        assert type(kept) is type(result) and selector.indices_.tolist() == picks.tolist()
        assert np.array_equal(kept.to_numpy(), X[picks])
        assert selector.feature_names_in_.tolist() == ["a", "b", "c"]
    indexed = pd.DataFrame(X, index=[f"row-{j}" for j in range(40)], columns=[*"abc"])
    kept = EVGPSelector(k=4).fit_transform(indexed)
    assert kept.index.tolist() == [f"row-{j}" for j in picks]
    for sparse in (csr_matrix(X), csr_array(X)):
        kept = EVGPSelector(k=4).fit_transform(sparse)
        assert issparse(kept) and np.array_equal(kept.toarray(), X[picks])
    assert np.array_equal(EVGPSelector(k=4).fit_transform(X.tolist()), X[picks])


def test_set_output_names_the_columns() -> None:
    pipeline = Pipeline([("scale", StandardScaler()), ("pick", EVGPSelector(k=3))])
    kept = pipeline.set_output(transform="pandas").fit_transform(pd.DataFrame(X, columns=[*"abc"]))
    assert kept.columns.tolist() == ["a", "b", "c"] and len(kept) == 3
    assert kept.index.tolist() == pipeline["pick"].indices_.tolist()


@pytest.mark.parametrize(
    "call",
    [
        lambda: EVGPSelector(k=41).fit(X),
        lambda: EVGPSelector(k=39).fit(X, labelled=[0, 1]),
        lambda: EVGPSelector(k=36).fit(X, labelled=np.arange(40) < 5),
        lambda: EVGPSelector(k=0).fit(X),
        lambda: EVGPSelector(k=2).fit(np.where(X > 2, np.nan, X)),
        lambda: EVGPSelector(k=2).fit(np.full((40, 2), "word")),
        lambda: EVGPSelector(k=2).fit(X).transform(X[:5]),
        lambda: EVGPSelector(k=2, criterion="best").fit(X),
        lambda: EVGPSelector(k=2, kernel="none").fit(X),
        lambda: EVGPSelector(k=2).fit(X, labelled=[99]),
    ],
)
def test_errors_say_what_is_wrong(call) -> None:
    with refused(ValueError):
        call()


def test_a_sparse_matrix_that_would_not_fit_is_refused() -> None:
    wide = csr_array((np.ones(3), ([0, 1, 2], [0, 1, 2])), shape=(2_000_000, 2_000_000))
    with refused((PoolError, MemoryError, ValueError)):
        EVGPSelector(k=2).fit(wide)


def test_any_random_state() -> None:
    x = np.random.default_rng(1).normal(size=(400, 3))

    def picks(state: object) -> list[int]:
        fitted = EVGPSelector(2, greedy=evgp.search.Stochastic(5), random_state=state).fit(x)
        return fitted.indices_.tolist()

    assert picks(3) == evgp.pick(x, 2, greedy=evgp.search.Stochastic(5), seed=3).indices.tolist()
    for state in (3, np.int64(3)):
        assert picks(state) == picks(state)
    assert picks(np.random.RandomState(3)) == picks(np.random.RandomState(3))
    first = np.random.RandomState(3)  # continues its sequence, as in scikit-learn
    assert len({tuple(picks(state)) for state in (first, first, 4, 5, None)}) == 5


def test_an_earlier_selection_may_be_what_is_labelled() -> None:
    first = EVGPSelector(k=4).fit(X).selection_
    again = EVGPSelector(k=3).fit(X, labelled=first)
    assert again.selection_ == evgp.pick(X, 3, labelled=first.indices)
    assert not set(again.indices_) & set(first)


@pytest.mark.parametrize("kind", [pd.DataFrame, pl.DataFrame])
def test_frames_are_read_as_by_pick(kind) -> None:
    random = np.random.default_rng(0)
    frame = kind(
        {
            "size": random.normal(size=30),
            "sold": random.random(30) < 0.4,
            "town": random.choice(["Rome", "Oslo"], 30),
        }
    )
    selector = EVGPSelector(k=4)
    rows = selector.fit_transform(frame)
    assert selector.selection_ == evgp.pick(frame, 4)
    assert list(selector.feature_names_in_) == ["size", "sold", "town"]
    assert isinstance(rows, kind) and rows["town"].to_list() == [
        frame["town"].to_list()[row] for row in selector.indices_
    ]
