"""Other work on the machine: wait until it pauses, and say how much of it there was.

A call counts only if others left the machine alone while it ran. That is judged by their CPU time,
never by how long the call took, and alike for everyone who is compared.
"""

import time
from collections.abc import Callable
from typing import TypeVar

import psutil

Answer = TypeVar("Answer")

_CALM = 0.1  # of one core
_PATIENCE = 30.0  # seconds for a quiet moment
_LONG = 60.0  # seconds of work after which a call is not tried again


class Others:
    """Cores that processes other than this one and its children kept busy."""

    def __init__(self) -> None:
        self._clock, self._busy = time.perf_counter(), _busy_elsewhere()

    def cores(self) -> float:
        """On average since this object was made."""
        spent = time.perf_counter() - self._clock
        return round(max(0.0, (_busy_elsewhere() - self._busy) / spent), 2)


def calm(work: Callable[[], Answer], tries: int = 6) -> tuple[Answer, float]:
    """What the work answers when left alone, or on the calmest of the tries; and others' cores."""
    calls: list[tuple[Answer, float]] = []
    spent = 0.0
    while len(calls) < tries and spent < _LONG and not (calls and calls[-1][1] < _CALM):
        wait_for_quiet()
        began, others = time.perf_counter(), Others()
        answer = work()
        calls.append((answer, others.cores()))
        spent += time.perf_counter() - began
    return min(calls, key=lambda value: value[1])


def wait_for_quiet() -> None:
    """Return once a second went by with little else running, or after half a minute."""
    until = time.perf_counter() + _PATIENCE
    while time.perf_counter() < until:
        others = Others()
        time.sleep(1)
        if others.cores() < _CALM:
            return


def _busy_elsewhere() -> float:
    """CPU seconds since the machine started that are not ours."""
    times = psutil.cpu_times()
    busy = times.user + times.system + times.nice
    me = psutil.Process()
    own = me.cpu_times()
    mine = own.user + own.system + own.children_user + own.children_system
    for child in me.children(recursive=True):
        spent = child.cpu_times()
        mine += spent.user + spent.system
    return busy - mine
