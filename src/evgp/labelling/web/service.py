"""The labelling service: hands out rows, saves answers, picks the next batch in the background."""

import threading
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from hashlib import sha256
from queue import Empty, SimpleQueue
from time import monotonic
from typing import TypeAlias
from zlib import crc32

from evgp.errors import CampaignError, NoRoom
from evgp.labelling.campaign import Answered, Campaign, Item, Receipt, State, Submission
from evgp.labelling.campaign.estimates import Hint, hint
from evgp.labelling.campaign.events import Kind, Value, to_json
from evgp.labelling.campaign.source import CardCell, cells
from evgp.labelling.web.auth import Session
from evgp.labelling.web.overview import PoolMap
from evgp.labelling.web.thumbnails import Thumbnails

# Rows that one person holds: the one on the screen and the next two. The rest is for others.
ROWS_PER_PERSON = 3
_CACHED_CARDS = 1_000
_RECOVERY_SECONDS = 4.0  # pages retry every second
_MAX_BATCH = 500  # answers in one transaction
_RETRY_SECONDS = 5.0  # after a failed pick
_POLL_SECONDS = 10.0  # longest time between two checks for missing picks


class Leases:
    """Which rows are on whose screen, so that two people do not label the same row by accident.

    A lease keeps a row from being shown to others until it expires. It never blocks an answer: one
    that arrives after the lease has expired counts like any other. Leases are kept in memory only,
    because losing them loses no data.

    >>> leases = Leases(seconds=60)
    >>> leases.take("ann", [4, 7, 9], 2), leases.take("bob", [4, 7, 9], 2)
    ([4, 7], [9])
    """

    def __init__(self, seconds: float, clock: Callable[[], float] = monotonic) -> None:
        self.seconds = seconds
        self._clock = clock
        self._lock = threading.Lock()
        self._leases: dict[int, tuple[str, float]] = {}

    def take(
        self, holder: str, rows: Iterable[int], count: int, most: int | None = None
    ) -> list[int]:
        """Lease at most `count` of these rows: those the holder has already, then free ones.

        A holder that has `most` rows, these or others, gets no further ones.
        """
        with self._lock:
            self._expire()
            candidates = list(rows)
            mine = [row for row in candidates if self._holder(row) == holder]
            free = [row for row in candidates if self._holder(row) is None]
            if most is not None:
                held = sum(name == holder for name, _ in self._leases.values())
                free = free[: max(0, most - held)]
            leased = [*mine, *free][:count]
            until = self._clock() + self.seconds
            self._leases |= dict.fromkeys(leased, (holder, until))
            return leased

    def release(self, holder: str, row: int) -> None:
        """End the holder's lease on a row, if there is one."""
        with self._lock:
            if self._holder(row) == holder:
                del self._leases[row]

    def release_all(self, holder: str) -> None:
        """End all leases of a holder."""
        with self._lock:
            self._leases = {row: lease for row, lease in self._leases.items() if lease[0] != holder}

    def held_by(self, holder: str) -> set[int]:
        """Rows that this holder has leased now."""
        with self._lock:
            self._expire()
            return {row for row in self._leases if self._holder(row) == holder}

    def held(self) -> set[int]:
        """Rows that anybody has leased now."""
        with self._lock:
            self._expire()
            return set(self._leases)

    def _holder(self, row: int) -> str | None:
        lease = self._leases.get(row)
        return None if lease is None else lease[0]

    def _expire(self) -> None:
        now = self._clock()
        self._leases = {row: lease for row, lease in self._leases.items() if lease[1] > now}


_Pending: TypeAlias = "tuple[Submission, Future[Receipt]]"


class WriteUnavailable(CampaignError):
    """The campaign file cannot be written right now; the same answer may be sent again."""


class AnswerWriter:
    """Saves submissions from any thread, and acknowledges each one once it is on disk.

    A commit takes some milliseconds however many answers it contains, so one thread writes
    everything that arrived during a commit with the next one. Every submission gets its own receipt
    or its own error.
    """

    def __init__(self, campaign: Campaign) -> None:
        self._campaign = campaign
        self._queue: SimpleQueue[_Pending | None] = SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="evgp-writer", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def stop(self) -> None:
        """Write everything in the queue, then end the thread."""
        self._queue.put(None)
        self._thread.join()

    def put(self, submission: Submission) -> "Future[Receipt]":
        """Queue a submission; the future gets its receipt once the answer is on disk."""
        future: Future[Receipt] = Future()
        self._queue.put((submission, future))
        return future

    def _run(self) -> None:
        while (first := self._queue.get()) is not None:
            batch, stopping = self._next_batch(first)
            self._write(batch)
            if stopping:
                return

    def _next_batch(self, first: _Pending) -> tuple[list[_Pending], bool]:
        batch = [first]
        while len(batch) < _MAX_BATCH:
            try:
                pending = self._queue.get_nowait()
            except Empty:
                break
            if pending is None:
                return batch, True
            batch.append(pending)
        return batch, False

    def _write(self, batch: list[_Pending]) -> None:
        # Answers whose sender has disconnected are saved too: the sender will repeat them with
        # the same key.
        listening = [future.set_running_or_notify_cancel() for _, future in batch]
        try:
            results: list[Receipt | Exception] = list(
                self._campaign.submit([submission for submission, _ in batch])
            )
        except NoRoom as error:
            results = [error] * len(batch)
        except Exception as error:
            results = [WriteUnavailable(str(error))] * len(batch)
        for (_, future), result, connected in zip(batch, results, listening, strict=True):
            if not connected:
                continue
            if isinstance(result, Receipt):
                future.set_result(result)
            else:
                future.set_exception(result)


class Prefetcher:
    """Picks the next batch in the background, and estimates whether more labels will help.

    It keeps at least half a batch of rows that nobody holds; `held` returns how many of the waiting
    rows are on screens. No request waits for this thread.
    """

    def __init__(self, campaign: Campaign, k: int, held: Callable[[], int]) -> None:
        self.k = k
        self.busy = False
        self.problem: str | None = None
        self.hint = Hint()
        self._campaign = campaign
        self._held = held
        self._hint_size = -1
        self._wake = threading.Event()
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="evgp-prefetch", daemon=True)

    def start(self) -> None:
        """Start the thread, which picks the first batch if there is none."""
        self.busy = self._target() > 0
        self._wake.set()
        self._thread.start()

    def stop(self) -> None:
        """Stop picking; a pick that is under way ends with the process."""
        self._stopping.set()
        self._wake.set()
        self._thread.join(timeout=0.5)

    def wake(self) -> None:
        """Check now whether more picks are needed, because rows were handed out or answered."""
        self._wake.set()

    def _target(self) -> int:
        """How many rows should be waiting, or 0 if enough are."""
        state = self._campaign.state
        free = state.created.rows - len(self._campaign.used(state))
        held = self._held()
        if not free or len(state.pending) - held >= (self.k + 1) // 2:
            return 0
        return held + self.k

    def _run(self) -> None:
        while True:
            self._wake.wait(_POLL_SECONDS)
            self._wake.clear()
            if self._stopping.is_set():
                return
            try:
                target = self._target()
                self.busy = target > 0
                if target:
                    self._campaign.next(target)
                self.busy, self.problem = False, None
                self._update_hint()
            except Exception as error:
                self.busy, self.problem = False, " ".join(str(error).split())
                self._stopping.wait(_RETRY_SECONDS)

    def _update_hint(self) -> None:
        """Compute the hint again once the labels have grown by a tenth."""
        state = self._campaign.state
        size = len(state.labels) + len(state.rounds)
        if self._hint_size < 0 or abs(size - self._hint_size) > 0.1 * self._hint_size:
            self.hint, self._hint_size = hint(self._campaign), size


@dataclass(frozen=True)
class Assignment:
    """Rows for a person. If there are none, more will be picked, all is done, or others have them.

    `lost` are rows that the person had, and that others hold or have answered since.
    """

    items: list[Item]
    lost: list[int]
    picking: bool
    done: bool
    problem: str | None


class LabellingService:
    """A campaign with its leases, its writer thread and its prefetcher.

    A batch has `k` rows. Of a hundred labelled rows, `twice` are shown to a second person, who does
    not see the first label, so that agreement can be measured.
    """

    def __init__(
        self, campaign: Campaign, *, k: int = 50, twice: int = 0, lease: float = 300.0
    ) -> None:
        self.campaign = campaign
        self.identity = _identity(campaign)
        self.twice = twice
        self.leases = Leases(lease)
        self.map = PoolMap(campaign)
        self.prefetcher = Prefetcher(campaign, k, lambda: len(self.leases.held()))
        self._writer = AnswerWriter(campaign)
        self._recovers = 0.0
        images = campaign.source.images
        self.thumbnails = None if images is None else Thumbnails(images)
        # Pages request the same rows repeatedly. Image files are not cached: they may change.
        self.card: Callable[[int], tuple[CardCell, ...]] = (
            lru_cache(_CACHED_CARDS)(self._card) if images is None else self._card
        )

    def start(self) -> None:
        """Start the writer and the prefetcher."""
        times = [entry.at for entry in self.campaign.log() if isinstance(entry.event, Answered)]
        for at in times[-1:]:
            age = (datetime.now(UTC) - datetime.fromisoformat(at)).total_seconds()
            if age < self.leases.seconds:
                self._recovers = monotonic() + _RECOVERY_SECONDS
        self._writer.start()
        self.prefetcher.start()

    def stop(self) -> None:
        """Save everything that is queued, and close the file."""
        self._writer.stop()
        self.prefetcher.stop()
        if self.thumbnails is not None:
            self.thumbnails.stop()
        self.campaign.close()

    def hand_out(self, session: Session, count: int, holding: Sequence[int] = ()) -> Assignment:
        """At most `ROWS_PER_PERSON` rows for this person: those they hold, then the best others.

        Leases end with the server. For some seconds after a restart in the middle of the work,
        people get only what they hold already, so that every page can report its rows first.
        """
        state = self.campaign.state
        pending = state.pending
        available = [*self._for_second_label(state, session.who), *pending]
        known = set(available)
        claimed = [row for row in holding if row in known]
        rows = kept = self.leases.take(session.id, claimed, ROWS_PER_PERSON, ROWS_PER_PERSON)
        if not self._recovering():
            others = [row for row in available if row not in kept]
            rows = self.leases.take(
                session.id, [*kept, *others], min(count, ROWS_PER_PERSON), ROWS_PER_PERSON
            )
        self.prefetcher.wake()
        free = state.created.rows - len(self.campaign.used(state))
        return Assignment(
            items=self._items(state, rows),
            lost=[row for row in holding if row not in kept],
            picking=free > 0 or self._recovering(),
            done=not pending and not free,
            problem=self.prefetcher.problem,
        )

    def submit(
        self, session: Session, row: int, kind: Kind, value: Value | None, key: str
    ) -> "Future[Receipt]":
        """Submit an answer; the future gets its receipt once the answer is on disk."""

        def release(future: "Future[Receipt]") -> None:
            if not future.cancelled() and future.exception() is None:
                self.leases.release(session.id, row)
                self.prefetcher.wake()

        future = self._writer.put(Submission(row, session.who, key, kind, value))
        future.add_done_callback(release)
        return future

    def undo(self, session: Session, key: str) -> tuple[Answered, Item]:
        """Undo this person's latest answer, and lease its row to them again.

        A person who holds the maximum number of rows releases the last of them for it.
        """
        answer = self.campaign.undo(session.who, key=key)
        mine = self.leases.held_by(session.id)
        others = [row for row in self.campaign.state.pending if row in mine and row != answer.row]
        for row in others[ROWS_PER_PERSON - 1 :]:
            self.leases.release(session.id, row)
        self.leases.take(session.id, [answer.row], 1)
        return answer, self._items(self.campaign.state, [answer.row])[0]

    def _card(self, row: int) -> tuple[CardCell, ...]:
        source = self.campaign.source
        if source.images is not None:
            problem = source.images.problem(row)
            return tuple(cells({} if problem is None else {"note": problem}))
        texts = self.campaign.created.settings.get("text", ())
        return tuple(cells(self.campaign.card(row), texts))

    def _recovering(self) -> bool:
        return monotonic() < self._recovers

    def _items(self, state: State, rows: list[int]) -> list[Item]:
        rank = {row: number for number, row in enumerate(state.picked, 1)}
        names = self.campaign.source.names
        return [Item(row, names[row], rank.get(row, 0)) for row in rows]

    def _for_second_label(self, state: State, who: str) -> list[int]:
        """Rows that this person should label although somebody else has."""
        if not self.twice:
            return []
        return [
            row
            for row, verdict in state.verdicts.items()
            if verdict.labelled
            and len(verdict.answers) == 1
            and who not in verdict.answers
            and crc32(str(row).encode()) % 100 < self.twice
        ]


def _identity(campaign: Campaign) -> str:
    """An identifier of this campaign that does not depend on the name of its file."""
    first = campaign.log()[0]
    text = f"{first.at}\n{to_json(first.event)}"
    return sha256(text.encode("utf-8", "replace")).hexdigest()[:32]
