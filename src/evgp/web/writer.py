"""One thread writes: all answers that wait go to the disk together."""

import threading
from concurrent.futures import Future
from queue import Empty, SimpleQueue
from typing import TypeAlias

from evgp._errors import CampaignError, NoRoom
from evgp.campaign import Campaign, Receipt, Submission

_MOST = 500  # answers in one transaction
Waiting: TypeAlias = "tuple[Submission, Future[Receipt]]"


class NotNow(CampaignError):
    """The file cannot be written to at the moment; the same answer may be sent again."""


class Writer:
    """Takes submissions from any thread, and acknowledges each once it is on the disk.

    A commit costs some milliseconds however much is in it, so whatever came during one goes into
    the next. Every submission gets its own receipt or its own error.
    """

    def __init__(self, campaign: Campaign) -> None:
        self._campaign = campaign
        self._queue: SimpleQueue[Waiting | None] = SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="evgp-writer", daemon=True)

    def start(self) -> None:
        """Begin to write."""
        self._thread.start()

    def stop(self) -> None:
        """Write what waits, then end."""
        self._queue.put(None)
        self._thread.join()

    def put(self, submission: Submission) -> "Future[Receipt]":
        """Take a submission; the future holds its receipt when it is on the disk."""
        made: Future[Receipt] = Future()
        self._queue.put((submission, made))
        return made

    def _run(self) -> None:
        while (first := self._queue.get()) is not None:
            waiting, last = self._further(first)
            self._write(waiting)
            if last:
                return

    def _further(self, first: Waiting) -> tuple[list[Waiting], bool]:
        waiting = [first]
        while len(waiting) < _MOST:
            try:
                found = self._queue.get_nowait()
            except Empty:
                break
            if found is None:
                return waiting, True
            waiting.append(found)
        return waiting, False

    def _write(self, waiting: list[Waiting]) -> None:
        # Who has hung up meanwhile is written too: they will send it again, with the same key.
        listening = [future.set_running_or_notify_cancel() for _, future in waiting]
        try:
            made: list[Receipt | Exception] = list(
                self._campaign.submit([submission for submission, _ in waiting])
            )
        except NoRoom as error:
            made = [error] * len(waiting)
        except Exception as error:
            made = [NotNow(str(error))] * len(waiting)
        for (_, future), told, here in zip(waiting, made, listening, strict=True):
            if not here:
                continue
            if isinstance(told, Receipt):
                future.set_result(told)
            else:
                future.set_exception(told)
