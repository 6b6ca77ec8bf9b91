"""The page of what was tried shows the recorded counts, and these are enough."""

from tests.hostile.counts import read, shown, table


def test_the_page_shows_the_recorded_counts() -> None:
    assert shown() == table(read()), "make test-hostile writes both"


def test_everything_that_was_recorded_held() -> None:
    counts = read()
    assert all(row.held == row.tried > 0 for row in counts)
    parts = {part: sum(row.tried for row in counts if row.part == part) for part in {
        row.part for row in counts}}  # fmt: skip
    assert parts["brute force"] >= 300 and parts["files"] >= 200
    assert {"certificates", "same picks", "kills", "damage", "HTTP", "arguments"} <= set(parts)
