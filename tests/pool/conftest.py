"""Selections of every kind, and a real one."""

from typing import Any

import numpy as np
import pytest
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import evgp
from evgp.pool import Certificate, Needed, Selection

X = np.random.default_rng(0).normal(size=(60, 4))
FLOATS = st.floats(width=64) | st.just(-0.0)


@pytest.fixture(scope="session")
def x() -> np.ndarray:
    return X


@pytest.fixture(scope="session")
def real() -> Selection:
    """Eight picks with prices, found step by step."""
    return evgp.pick(X, 8, greedy="exact", costs=np.full(60, 2.5), budget=50)


def arrays(length: int) -> st.SearchStrategy[np.ndarray]:
    return hnp.arrays(np.float64, length, elements=FLOATS)


SETTINGS = st.dictionaries(
    st.text(max_size=5),
    st.recursive(
        st.none() | st.booleans() | st.integers() | FLOATS | st.text(max_size=9),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner),
        max_leaves=5,
    ),
    max_size=4,
)


@st.composite
def parts(draw, rows: int = 50) -> dict[str, Any]:
    """Arguments of any selection that can be made; what it says need not be true.

    It is made by `build` in the test itself: the checks of annotations draw random numbers, which
    strategies may not.
    """
    indices = draw(st.lists(st.integers(0, rows - 1), unique=True, max_size=12))
    k = len(indices)
    labels = st.tuples(st.integers(0, 99), st.none() | st.integers(0, max(1, k)))
    needed = st.dictionaries(st.sampled_from([0.5, 0.8, 0.9, 0.95]), labels)
    return {
        "indices": np.array(indices, dtype=np.int64),
        "gains": draw(arrays(k)),
        "prior_variance": draw(FLOATS),
        "start_variance": draw(FLOATS),
        "variance_left": draw(st.sampled_from([0, k]).flatmap(arrays)),
        "test_before": draw(st.integers(0, 6).flatmap(arrays)),
        "test_after": draw(st.integers(0, 6).flatmap(arrays)),
        "costs": draw(st.none() | arrays(k)),
        "certificate": draw(st.none() | st.tuples(arrays(k), arrays(k), needed)),
        "settings": draw(SETTINGS),
        "warnings": tuple(draw(st.lists(st.text(), max_size=3))),
    }


def build(parts: dict[str, Any]) -> Selection:
    certificate = parts["certificate"]
    if certificate is not None:
        lowest, share, needed = certificate
        named = {part: Needed(*labels) for part, labels in needed.items()}
        certificate = Certificate(lowest, share, named)
    return Selection(**{**parts, "certificate": certificate})
