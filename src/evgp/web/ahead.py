"""The next batch is picked in the background while people label this one."""

import threading
from collections.abc import Callable

from evgp.campaign import Campaign
from evgp.campaign.hint import Hint, hint

_PAUSE = 5.0  # seconds after something failed
_LOOK = 10.0  # seconds without a call, after which it looks by itself


class Ahead:
    """Keeps half a batch of free rows in store, and says whether more labels will help.

    `held` tells how many of the waiting rows are on screens. Nobody waits for this thread.
    """

    def __init__(self, campaign: Campaign, k: int, held: Callable[[], int]) -> None:
        self.k = k
        self.busy = False
        self.problem: str | None = None
        self.hint = Hint()
        self._campaign = campaign
        self._held = held
        self._told = -1
        self._call = threading.Event()
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._run, name="evgp-ahead", daemon=True)

    def start(self) -> None:
        """Begin, and pick the first batch if there is none."""
        self.busy = self._short() > 0
        self._call.set()
        self._thread.start()

    def stop(self) -> None:
        """Pick no more; a pick that is under way ends with the process."""
        self._ending.set()
        self._call.set()
        self._thread.join(timeout=0.5)

    def call(self) -> None:
        """Rows were handed out or answered: see whether more are needed."""
        self._call.set()

    def _short(self) -> int:
        """How many rows should wait, or 0 where enough do."""
        state = self._campaign.state
        free = state.created.rows - len({*state.picked, *state.verdicts})
        held = self._held()
        if not free or len(state.pending) - held >= (self.k + 1) // 2:
            return 0
        return held + self.k

    def _run(self) -> None:
        while True:
            self._call.wait(_LOOK)
            self._call.clear()
            if self._ending.is_set():
                return
            try:
                wanted = self._short()
                self.busy = wanted > 0
                if wanted:
                    self._campaign.next(wanted)
                self.busy, self.problem = False, None
                self._think()
            except Exception as error:
                self.busy, self.problem = False, " ".join(str(error).split())
                self._ending.wait(_PAUSE)

    def _think(self) -> None:
        """The hint anew, once a tenth more is labelled."""
        state = self._campaign.state
        seen = len(state.labels) + len(state.rounds)
        if self._told < 0 or abs(seen - self._told) > 0.1 * self._told:
            self.hint, self._told = hint(self._campaign), seen
