"""The value of a row, compared with the gains of picks."""

import numpy as np
import pytest

from evgp.labelling.campaign.estimates import scores


def test_before_a_pick_the_best_row_has_the_gain_that_the_pick_then_has(spam) -> None:
    before = scores(spam, range(30))
    spam.next(3)
    first = spam.state.rounds[0]
    assert int(np.argmax(before)) == first.rows[0]
    assert max(before) == pytest.approx(first.gains[0] / first.prior, rel=1e-9)
    reported = scores(spam, first.rows)
    assert reported == pytest.approx([gain / first.prior for gain in first.gains], rel=1e-12)
    assert all(0 <= item <= 1 for item in before + reported)


def test_what_is_labelled_or_waits_counts_and_what_was_skipped_does_not(spam) -> None:
    spam.next(3)
    spam.answer(spam.state.picked[0], "skip")
    free = [row for row in range(30) if row not in spam.state.picked]
    now = dict(zip(free, scores(spam, free), strict=True))
    spam.next(3)
    second = spam.state.rounds[1]
    assert max(now, key=lambda row: now[row]) == second.rows[0]
    assert now[second.rows[0]] == pytest.approx(second.gains[0] / second.prior, rel=1e-9)
