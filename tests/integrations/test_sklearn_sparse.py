"""The estimator on every kind of sparse matrix that SciPy has."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler

from evgp.integrations.sklearn import EVGPSelector

FORMATS = ("bsr", "coo", "csc", "csr", "dia", "dok", "lil")
KINDS = [getattr(sp, f"{form}_{kind}") for form in FORMATS for kind in ("array", "matrix")]
RANDOM = np.random.default_rng(0)
X = RANDOM.normal(size=(24, 4)) * (RANDOM.random((24, 4)) < 0.6)


@pytest.mark.parametrize("kind", KINDS, ids=lambda value: value.__name__)
def test_transform_keeps_the_type_of_its_input(kind) -> None:
    sparse = kind(X)
    fitted = EVGPSelector(k=3, greedy="exact").fit(X).indices_
    selector = EVGPSelector(k=3, greedy="exact")
    for kept in (selector.fit_transform(sparse), selector.fit(sparse).transform(sparse)):
        assert selector.indices_.tolist() == fitted.tolist()
        assert type(kept) is kind and kept.dtype == sparse.dtype
        assert np.array_equal(kept.toarray(), X[fitted])
    assert np.array_equal(sparse.toarray(), X), "what was given is as it was"


@settings(max_examples=20, deadline=None)
@given(
    kind=st.sampled_from(KINDS),
    dtype=st.sampled_from([np.float32, np.int64, np.uint8, bool]),
    seed=st.integers(0, 99),
    share=st.floats(0.1, 1.0),
)
def test_other_numbers_come_back_exactly_too(kind, dtype, seed, share) -> None:
    random = np.random.default_rng(seed)
    dense = (random.integers(1, 9, (12, 3)) * (random.random((12, 3)) < share)).astype(dtype)
    dense[0], dense[1] = True, False  # not all rows alike
    selector = EVGPSelector(k=2, greedy="exact")
    kept = selector.fit_transform(kind(dense))
    assert type(kept) is kind and kept.dtype == dtype
    assert np.array_equal(kept.toarray(), dense[selector.indices_])


def test_after_a_step_that_leaves_another_kind() -> None:
    pipeline = make_pipeline(MaxAbsScaler(), EVGPSelector(k=3))
    kept = pipeline.fit_transform(sp.coo_array(X))
    scaled = X / np.abs(X).max(0)
    assert sp.issparse(kept)
    assert np.allclose(kept.toarray(), scaled[pipeline[-1].indices_])
