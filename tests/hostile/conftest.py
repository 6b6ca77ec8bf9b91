"""Every test here is hostile: left out of `make test`, counted by `make test-hostile`."""

import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from tests.hostile.counts import Count, write

HERE = Path(__file__).parent
Tally = Callable[[str, str, int, int], None]

_counts: list[tuple[str, Count]] = []


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.hostile)


@pytest.fixture
def rng() -> np.random.Generator:
    """Random numbers; `EVGP_HOSTILE_SEED=7 make test-hostile` tries other ones."""
    return np.random.default_rng(int(os.environ.get("EVGP_HOSTILE_SEED", "0")))


@pytest.fixture
def tally(request: pytest.FixtureRequest) -> Tally:
    """A function that counts: `tally(part, what, tried, held)`; fails unless all of it held.

    Counts of several tests with the same `part` and `what` are added up.
    """

    def add(part: str, what: str, tried: int, held: int) -> None:
        request.node.user_properties.append(("count", (part, what, tried, held)))
        assert held == tried, f"{part}, {what}: {held} of {tried} held"

    return add


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    if report.when == "call" and report.passed:
        for name, value in report.user_properties:
            if name == "count":
                _counts.append((report.nodeid, Count(*value, seconds=report.duration)))


def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    """With EVGP_HOSTILE_RECORD set, a whole run that passed becomes the table of the page."""
    controller = not hasattr(session.config, "workerinput")
    if controller and exitstatus == 0 and os.environ.get("EVGP_HOSTILE_RECORD"):
        write([count for _, count in sorted(_counts, key=lambda pair: pair[0])])
