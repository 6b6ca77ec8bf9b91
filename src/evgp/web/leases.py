"""Which rows are on whose screen, so that two people do not label the same one by chance."""

import threading
from collections.abc import Callable, Iterable
from time import monotonic


class Leases:
    """Rows and who holds them, until when; in memory, as losing them loses nothing.

    A lease keeps a row from being shown to others. It never keeps an answer from being taken: one
    that comes after the lease has expired is as good as any.

    >>> leases = Leases(seconds=60)
    >>> leases.take("ann", [4, 7, 9], 2), leases.take("bob", [4, 7, 9], 2)
    ([4, 7], [9])
    """

    def __init__(self, seconds: float, clock: Callable[[], float] = monotonic) -> None:
        self.seconds = seconds
        self._clock = clock
        self._lock = threading.Lock()
        self._held: dict[int, tuple[str, float]] = {}

    def take(
        self, holder: str, rows: Iterable[int], count: int, most: int | None = None
    ) -> list[int]:
        """At most `count` of these rows for a holder: those it has, then free ones, in order.

        No free row is taken by a holder that has `most` rows, these or others.
        """
        with self._lock:
            self._expire()
            wanted = list(rows)
            mine = [row for row in wanted if self._holder(row) == holder]
            free = [row for row in wanted if self._holder(row) is None]
            if most is not None:
                has = sum(one == holder for one, _ in self._held.values())
                free = free[: max(0, most - has)]
            taken = [*mine, *free][:count]
            until = self._clock() + self.seconds
            self._held |= dict.fromkeys(taken, (holder, until))
            return taken

    def release(self, holder: str, row: int) -> None:
        """The holder is done with a row."""
        with self._lock:
            if self._holder(row) == holder:
                del self._held[row]

    def release_all(self, holder: str) -> None:
        """The holder has left."""
        with self._lock:
            self._held = {row: one for row, one in self._held.items() if one[0] != holder}

    def held_by(self, holder: str) -> set[int]:
        """The rows that this holder has now."""
        with self._lock:
            self._expire()
            return {row for row in self._held if self._holder(row) == holder}

    def held(self) -> set[int]:
        """All rows that somebody holds now."""
        with self._lock:
            self._expire()
            return set(self._held)

    def _holder(self, row: int) -> str | None:
        found = self._held.get(row)
        return None if found is None else found[0]

    def _expire(self) -> None:
        now = self._clock()
        self._held = {row: one for row, one in self._held.items() if one[1] > now}
