"""A selection is a sequence of row numbers that can be used wherever row numbers can."""

import copy
import pickle
from dataclasses import fields, replace
from inspect import unwrap

import numpy as np
import pandas as pd
import polars as pl
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import evgp
from evgp.errors import PoolError
from evgp.pool import Certificate, Needed, Selection
from tests.messages import refused
from tests.pool.conftest import build, parts


@given(parts())
def test_it_is_the_sequence_of_its_rows(given_parts: dict) -> None:
    selection = build(given_parts)
    rows = selection.indices.tolist()
    assert len(selection) == len(rows)
    assert list(selection) == rows == [selection[at] for at in range(len(rows))]
    assert list(reversed(selection)) == rows[::-1]
    assert all(type(row) is int for row in selection)
    assert all(row in selection and selection.index(row) == at for at, row in enumerate(rows))
    assert -1 not in selection
    if rows:
        assert type(selection[np.int64(-1)]) is int
        assert selection[np.int64(-1)] == rows[-1]
    with pytest.raises(IndexError):
        selection[len(rows)]
    result = np.asarray(selection)
    assert result.dtype == np.int64 and result.tolist() == rows
    assert np.asarray(selection, dtype=np.float32).dtype == np.float32


def test_one_pick_is_in_the_singular() -> None:
    selection = Selection(np.array([7]), np.array([0.5]))
    assert repr(selection) == "Selection(1 pick: [7])"
    assert repr(selection[:0]) == "Selection(0 picks: [])"


@given(parts())
def test_it_indexes_what_row_numbers_index(given_parts: dict) -> None:
    selection = build(given_parts)
    x = np.arange(100).reshape(50, 2)
    rows = selection.indices.tolist()
    result = x[selection.indices]
    assert np.array_equal(x[selection], result)
    assert np.array_equal(x[selection, 1], result[:, 1])
    assert torch.equal(torch.from_numpy(x)[selection], torch.from_numpy(result))
    assert [x.tolist()[row] for row in selection] == result.tolist()
    frame = pd.DataFrame(x, index=[f"r{row}" for row in range(50)])
    assert frame.iloc[selection].equals(frame.iloc[rows])
    assert frame[0].iloc[selection].equals(frame[0].iloc[rows])
    assert pl.DataFrame(x)[selection].equals(pl.DataFrame(x)[rows])
    assert np.array_equal(np.delete(x, selection, axis=0), np.delete(x, rows, axis=0))
    assert [len(item) for item in torch.utils.data.Subset(torch.eye(50), selection)] == [50] * len(
        rows
    )


def test_a_copy_is_a_copy_and_a_view_is_a_view() -> None:
    selection = Selection(np.array([3, 1]), np.zeros(2))
    np.array(selection)[0] = 7
    assert list(selection) == [3, 1]
    assert np.shares_memory(np.asarray(selection), selection.indices)


@given(parts(), st.data())
def test_a_prefix_keeps_what_holds_for_it(given_parts: dict, data: st.DataObject) -> None:
    selection = build(given_parts)
    stop = data.draw(st.integers(0, len(selection)))
    part = selection[:stop]
    assert isinstance(part, Selection) and list(part) == selection.indices[:stop].tolist()
    for name in ("gains", "variance_left", "costs"):
        whole, kept = getattr(selection, name), getattr(part, name)
        assert (whole is None) == (kept is None)
        assert whole is None or np.array_equal(kept, whole[:stop], equal_nan=True)
    for name in ("prior_variance", "start_variance", "test_before", "settings", "warnings"):
        assert getattr(part, name) is getattr(selection, name)
    if stop == len(selection):
        assert part == selection
        return
    assert not len(part.test_after)
    assert (part.certificate is None) == (selection.certificate is None)
    if selection.certificate is not None:
        whole = selection.certificate
        assert np.array_equal(part.certificate.lowest, whole.lowest[:stop], equal_nan=True)
        assert np.array_equal(part.certificate.share, whole.share[:stop], equal_nan=True)
        for share, labels in part.certificate.needed.items():
            assert labels.at_least == whole.needed[share].at_least
            before = whole.needed[share].at_most
            assert labels.at_most == (before if before is not None and before <= stop else None)


@given(parts(), st.data())
def test_a_later_batch_drops_what_does_not_hold_for_it(given_parts: dict, data) -> None:
    selection = build(given_parts)
    start = data.draw(st.integers(1, max(1, len(selection))))
    stop = data.draw(st.integers(0, len(selection)))
    if start > len(selection):
        return
    part = selection[start:stop]
    assert list(part) == selection.indices[start:stop].tolist()
    assert np.array_equal(part.gains, selection.gains[start:stop], equal_nan=True)
    left = selection.variance_left
    assert np.array_equal(part.variance_left, left[start:stop], equal_nan=True)
    if len(left):
        np.testing.assert_equal(part.start_variance, left[start - 1])
    assert part.certificate is None
    assert not len(part.test_before) and not len(part.test_after)


def test_a_prefix_is_what_a_run_with_fewer_picks_gives(x) -> None:
    whole, fewer = (evgp.pick(x, k, greedy="exact", labelled=[3]) for k in (8, 5))
    part = whole[:5]
    again = replace(fewer, test_after=part.test_after, settings=part.settings)
    for name in ("indices", "gains", "variance_left", "test_before"):
        np.testing.assert_allclose(getattr(part, name), getattr(again, name), rtol=1e-12)
    np.testing.assert_allclose(part.certificate.lowest, again.certificate.lowest, rtol=1e-12)
    np.testing.assert_allclose(part.certificate.share, again.certificate.share, rtol=1e-12)
    assert part.certificate.needed == again.certificate.needed


def test_a_prefix_with_costs_is_what_a_smaller_budget_gives(x, real) -> None:
    fewer = evgp.pick(x, greedy="exact", costs=np.full(60, 2.5), budget=10)
    part = real[: len(fewer)]
    assert list(part) == list(fewer)
    np.testing.assert_allclose(part.certificate.share, fewer.certificate.share, rtol=1e-12)
    assert part.certificate.needed == fewer.certificate.needed


def test_a_batch_is_what_the_next_round_gives(x) -> None:
    whole = evgp.pick(x, 8, greedy="exact")
    later = evgp.pick(x, 3, greedy="exact", labelled=whole[:5])
    assert list(whole[5:]) == list(later)
    assert whole[5:].start_variance == pytest.approx(later.start_variance)
    np.testing.assert_allclose(whole[5:].variance_left, later.variance_left)


@pytest.mark.parametrize("key", [slice(None, None, 2), slice(None, None, -1)])
def test_picks_out_of_order_are_refused(real, key) -> None:
    with refused(PoolError):
        real[key]


@pytest.mark.parametrize("key", ["rank", [0, 1], 1.0, None, np.array([True])])
def test_other_keys_are_refused(real, key) -> None:
    plain = unwrap(Selection.__getitem__)
    if isinstance(key, np.ndarray):  # which says that it can be an index, and cannot
        key = key.tolist()
    with refused(PoolError):
        plain(real, key)


@given(parts())
def test_equal_is_equal_field_by_field(given_parts: dict) -> None:
    selection = build(given_parts)
    same = copy.deepcopy(selection)
    assert same == selection and not same != selection
    for field in fields(Selection):
        other = replace_one(selection, field.name)
        assert (other is None) or (other != selection and selection != other), field.name


def replace_one(selection: Selection, name: str) -> Selection | None:
    """The same with another value in one field, where that can be."""
    value = getattr(selection, name)
    if name == "ids" and not len(selection):
        return None
    if isinstance(value, np.ndarray):
        if not len(value):
            return None
        changed = value.copy()
        changed[0] = 51 if name == "indices" else 0.0 if np.isnan(changed[0]) else np.nan
        return replace(selection, **{name: changed})
    new = {
        "prior_variance": 0.5 if value != 0.5 else 0.25,
        "start_variance": 0.5 if value != 0.5 else 0.25,
        "costs": np.zeros(len(selection)),
        "certificate": None,
        "ids": () if selection.ids else ("another",) * len(selection),
        "settings": {**selection.settings, "another": 1},
        "warnings": (*selection.warnings, "another"),
    }[name]
    return None if new is None and value is None else replace(selection, **{name: new})


def test_nothing_else_is_equal_and_there_is_no_hash(real) -> None:
    assert real != real.indices.tolist() and real != "picks" and real is not None
    assert real.certificate != real
    for item in (real, real.certificate):
        with pytest.raises(TypeError, match="unhashable"):
            hash(item)


@given(parts())
def test_it_can_be_pickled_and_copied(given_parts: dict) -> None:
    selection = build(given_parts)
    for result in (pickle.loads(pickle.dumps(selection)), copy.copy(selection)):
        assert result == selection and result is not selection
        assert repr(result) == repr(selection)


@pytest.mark.parametrize(
    "given_",
    [
        {"indices": np.zeros((2, 1), int)},
        {"indices": np.array([0.0, 1.0])},
        {"gains": np.zeros(3)},
        {"variance_left": np.zeros(1)},
        {"costs": np.zeros(0)},
        {"certificate": Certificate(np.zeros(3), np.zeros(3), {})},
    ],
)
def test_it_is_checked_when_it_is_made(given_) -> None:
    result = object.__new__(Selection)  # annotations, which tests check too, would come first
    start = Selection(np.arange(2), np.zeros(2))
    for name, value in {**start.__dict__, **given_}.items():
        object.__setattr__(result, name, value)
    with refused(PoolError):
        unwrap(Selection.__post_init__)(result)


def test_arrays_have_one_type_whatever_was_passed() -> None:
    result = Selection(np.array([3, 1], dtype=np.int32), np.ones(2, dtype=np.float32))
    assert result.indices.dtype == np.int64
    assert result.gains.dtype == result.variance_left.dtype == np.float64


def test_what_a_share_needs_has_names_and_stays_a_tuple(x) -> None:
    needed = evgp.pick(x, 5).certificate.needed[0.5]
    assert (needed.at_least, needed.at_most) == needed == (3, 4)
    low, high = needed
    assert (low, high) == (3, 4)
    result = object.__new__(Certificate)
    result.__dict__.update(lowest=np.zeros(1), share=np.ones(1), needed={0.5: (2, None)})
    unwrap(Certificate.__post_init__)(result)
    assert result.needed == {0.5: Needed(2, None)} and result.needed[0.5].at_most is None


@settings(deadline=None, max_examples=10)
@given(st.integers(1, 8), st.integers(0, 4))
def test_labelled_and_candidates_may_be_selections(k: int, seed: int) -> None:
    x = np.random.default_rng(seed).normal(size=(30, 3))
    first = evgp.pick(x, k)
    rows = first.indices
    again = evgp.pick(x, 3, labelled=first)
    assert again == evgp.pick(x, 3, labelled=rows)
    assert not set(again) & set(first)
    among = evgp.pick(x, 10, greedy="exact")
    assert evgp.pick(x, 1, labelled=among[:9], candidates=among)[0] == among[9]
    both = [*first, *again]
    assert not set(evgp.pick(x, 2, labelled=both)) & set(both)
    assert evgp.plan((30, 3), 2, labelled=first).k == 2


def test_a_plan_counts_labelled_rows(x) -> None:
    first = evgp.pick(x, 5)
    mask = np.isin(np.arange(60), first)
    plans = [
        evgp.plan((60, 4), 3, labelled=item) for item in (range(5), first, first.indices, mask)
    ]
    assert len({plan.memory for plan in plans}) == 1
    assert plans[0].memory != evgp.plan((60, 4), 3).memory


@pytest.mark.parametrize("name", ["labelled", "candidates"])
def test_lists_of_selections_are_an_error(x, name) -> None:
    first, second = evgp.pick(x, 2), evgp.pick(x, 3)
    for lists in ([first, second], [first, first]):
        with refused(PoolError):
            evgp.pick(x, 2, **{name: lists})


def test_results_with_arrays_can_be_compared(x) -> None:
    pools = [evgp.Pool(torch.from_numpy(x)) for _ in range(2)]
    kernel = evgp.NTK(evgp.mlp())
    predictions = [evgp.posterior.ntkgp(kernel, x[:3], x[:3, 0], x[3:]) for _ in range(2)]
    strategy = evgp.strategies.Random()
    rounds = [next(evgp.run(pools[0], strategy, lambda rows: rows, 1, 2)) for _ in range(2)]
    for item, other in (pools, predictions, rounds):
        assert (item == other) is False
