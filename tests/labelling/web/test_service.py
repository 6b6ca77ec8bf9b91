"""Leases, the writer, statistics and charts."""

import socket
from concurrent.futures import wait
from datetime import date
from itertools import permutations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from evgp.errors import CampaignError
from evgp.labelling.campaign import Campaign, Submission
from evgp.labelling.campaign.estimates import hint
from evgp.labelling.campaign.source import cells
from evgp.labelling.web.overview import PoolMap, alpha, statistics, variance_curve
from evgp.labelling.web.pages import keys_of
from evgp.labelling.web.server import listen
from evgp.labelling.web.service import AnswerWriter, Leases
from tests.messages import refused


@pytest.mark.parametrize(
    "rows",
    [
        [["a", "a"], ["a", "b"], ["c", "c", "a"], ["b", "b"]],
        [[1.0, 1.5], [4.0, 3.0], [2.0, 2.0, 8.0]],
    ],
)
def test_alpha_is_that_of_its_definition(rows) -> None:
    def apart(a, b):
        return (a - b) ** 2 if isinstance(a, float) else float(a != b)

    every = [value for row in rows for value in row]
    n = len(every)
    observed = (
        sum(apart(a, b) / (len(row) - 1) for row in rows for a, b in permutations(row, 2)) / n
    )
    expected = sum(apart(a, b) for a, b in permutations(every, 2)) / (n * (n - 1))
    assert alpha(rows) == pytest.approx(1 - observed / expected)
    assert alpha([row[:1] * 2 for row in rows]) == pytest.approx(1)
    assert alpha([]) is None and alpha([["a", "a"]]) is None


@pytest.mark.parametrize("size", [1e-200, 1e200, 1e307])
def test_alpha_is_the_same_in_any_unit(size) -> None:
    rows = [[1.0, 1.5], [4.0, 3.0], [2.0, -2.0, 8.0]]
    assert alpha([[size * item for item in row] for row in rows]) == pytest.approx(alpha(rows))
    assert alpha([[0.0, 0.0]]) is None


def test_cards_are_text_whatever_they_hold() -> None:
    result = {
        cell.name: (cell.text, cell.kind)
        for cell in cells(
            {
                "flag": True, "day": date(2024, 5, 1), "raw": b"\x00\x01", "nan": float("nan"),
                "list": [1, "<b>"], "long": "word " * 40, "lines": "a\nb", "huge": "x" * 30_000,
                "big": 10**30,
            }
        )
    }  # fmt: skip
    assert result["flag"] == ("yes", "short") and result["day"] == ("2024-05-01", "short")
    assert result["raw"] == ("2 bytes", "short") and result["nan"] == ("", "missing")
    assert result["list"] == ("[1, '<b>']", "short") and result["big"][0] == "1" + "0" * 30
    assert result["long"][1] == result["lines"][1] == "long"
    assert (
        result["huge"][0].endswith("(10,000 more characters)") and len(result["huge"][0]) < 20_100
    )
    wide = cells({f"c{i}": i for i in range(1_000)})
    assert len(wide) == 301 and wide[-1].text == "and 700 more columns"


def test_leases_are_renewed_released_and_expire() -> None:
    now = [0.0]
    leases = Leases(10, clock=lambda: now[0])
    assert leases.take("a", [1, 2, 3], 2) == [1, 2]
    now[0] = 8
    assert leases.take("a", [1], 1) == [1]  # renewed
    leases.release("b", 1)
    assert leases.held() == {1, 2}
    now[0] = 11
    assert leases.held() == {1} and leases.take("b", [1, 2, 3], 3) == [2, 3]
    leases.release("a", 1)
    leases.release_all("b")
    assert leases.held() == set()


def test_a_writer_that_stops_saves_its_queue(spam) -> None:
    writer = AnswerWriter(spam)
    waiting = [writer.put(Submission(i, "ann", f"k{i}", "label", "ham")) for i in range(40)]
    gone = writer.put(Submission(50, "ann", "gone", "label", "ham"))
    assert gone.cancel()  # they hung up; it is written all the same
    writer.start()
    writer.stop()
    wait(waiting, timeout=1)
    assert [item.result().number for item in waiting] == list(range(2, 42))
    assert len({event.at for event in spam.log()[1:]}) < 20 and len(spam.state.labels) == 41
    spam.close()


@pytest.mark.parametrize("classes", [2, 12, 0])
def test_figures_colour_rows_by_label(mails, tmp_path, classes) -> None:
    names = [f"class {i} & <co>" for i in range(classes)]
    campaign = Campaign.create(
        tmp_path / "c", mails, id="key", classes=names, number=not names, drop=["subject"]
    )
    chart = PoolMap(campaign)
    assert (
        variance_curve(campaign.state) is None
        and "no label yet" in chart.figure(campaign.state).description
    )
    rows = [item.row for item in campaign.next(30)]
    for i, row in enumerate(rows[:24]):
        campaign.answer(row, "label", names[i % classes] if names else float(i))
    campaign.answer(rows[24], "skip")
    other = next(row for row in range(60) if row not in rows)  # a row that was not picked
    campaign.answer(other, "label", names[0] if names else 1.0, who="bob")
    drawn = chart.figure(campaign.state)
    counts = {name: count for _, name, count in drawn.legend}
    assert counts["waiting"] == 5 and counts["skipped or unsure"] == 1
    assert sum(counts.values()) == 31 and (not names or counts[names[0]] == 24 // classes + 1)
    colours = {colour for colour, _, _ in drawn.legend} - {"waiting", "passed"}
    expected = {2: {"c0", "c1"}, 12: {*(f"c{i}" for i in range(8)), "others"}}
    assert colours == expected.get(classes, {f"q{i}" for i in range(5)})
    assert "<co>" not in drawn.svg
    (first,) = campaign.state.rounds
    skipped = (first.left[23] - first.left[24]) / first.prior  # without labels
    words = variance_curve(campaign.state).description
    assert f"{100 * first.left[23] / first.prior:.0f} % after 25 answered" in words
    then = 100 * (first.left[-1] / first.prior + skipped)
    assert f"{then:.0f} % once all waiting ones are labelled" in words
    assert hint(campaign).left == pytest.approx(then / 100)
    reported = statistics(campaign.state, campaign.log())
    assert (reported.labelled, reported.waiting, reported.skipped, reported.unsure) == (25, 5, 1, 0)
    assert [item.who for item in reported.latest] == ["bob"] + ["me"] * 11
    campaign.close()


def test_skipped_rows_do_not_reduce_the_variance(mails, tmp_path) -> None:
    campaign = Campaign.create(
        tmp_path / "c", mails, id="key", classes=["a", "b"], drop=["subject"]
    )
    for item in campaign.next(8):
        campaign.answer(item.row, "skip")
    words = variance_curve(campaign.state).description
    assert "100 % after 8 answered, 100 % once" in words
    assert hint(campaign).left == pytest.approx(1) and hint(campaign).last == 0
    campaign.next(4)  # the curve of a second round continues from there
    reported = variance_curve(campaign.state)
    assert "100 % after 8 answered" in reported.description
    assert f", {100 * hint(campaign).left:.0f} % once all waiting ones" in reported.description
    campaign.close()


def test_a_socket_can_be_reached_and_its_address_is_in_use() -> None:
    with listen("127.0.0.1", 0) as listening:
        port = listening.getsockname()[1]
        socket.create_connection(("127.0.0.1", port), timeout=5).close()
        with refused(CampaignError):
            listen("127.0.0.1", port)


@given(st.lists(st.text("019aAsxé ", max_size=2), unique=True, max_size=40))
@example([str(item) for item in range(10)])
@example(["2", "cat", "1", "dog", "A", "a", "s"])
def test_a_class_that_is_a_key_has_that_key(classes) -> None:
    keys = keys_of(classes)
    used = [key for key in keys if key]
    assert len(keys) == len(classes) and len(set(used)) == len(used) <= 32
    assert not set(used) & set("uscz") and len(used) == min(32, len(classes))
    for item, key in zip(classes, keys, strict=True):
        alike = [other for other in classes if other.lower() == item.lower()]
        if item.lower() in set("1234567890qwertyiopadfghjklvbnmx") and alike[0] == item:
            assert key == item.lower()
