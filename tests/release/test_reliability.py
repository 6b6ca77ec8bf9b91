"""The page on reliability shows the counts of a whole run, and all of it held."""

from collections import Counter

from tests.hostile.counts import read, shown, table

PARTS = {
    "brute force", "certificates", "same picks", "arguments", "files", "names", "HTTP", "kills",
    "damage",
}  # fmt: skip


def test_the_page_shows_what_was_recorded() -> None:
    assert shown() == table(read())


def test_every_part_was_tried_and_held() -> None:
    counts = read()
    assert {count.part for count in counts} >= PARTS
    assert [count for count in counts if count.held != count.tried or count.tried < 1] == []


def test_it_was_tried_often_enough() -> None:
    tried = Counter[str]()
    for count in read():
        if not count.what.startswith("answers"):  # what kills did not lose, not kills
            tried[count.part] += count.tried
    assert tried["brute force"] >= 300
    assert tried["files"] >= 200
    assert tried["kills"] >= 60
