"""Where people take rows from and hand answers in."""

from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from hashlib import sha256
from time import monotonic
from zlib import crc32

from evgp.campaign import Answered, Campaign, Item, Receipt, State, Submission
from evgp.campaign.cards import CardCell, cells
from evgp.campaign.events import Kind, Value, written
from evgp.web.ahead import Ahead
from evgp.web.drawn import Chart
from evgp.web.leases import Leases
from evgp.web.sessions import Session
from evgp.web.thumbnails import Thumbnails
from evgp.web.writer import Writer

# Rows that a person holds: the one on the screen and two ahead; others want some too.
AT_HAND = 3
_CARDS = 1_000
_RECOVERY = 4.0  # seconds; pages try again every second


@dataclass(frozen=True)
class Handed:
    """Rows for a person; without any, more will be picked, or all is done, or others have them.

    `lost` are rows that the person had, and that others have or have answered since.
    """

    items: list[Item]
    lost: list[int]
    picking: bool
    done: bool
    problem: str | None


class Desk:
    """A campaign with its leases, its writer and the picks ahead.

    `k` rows are a batch; `twice` in a hundred labelled rows are shown to a second person, who does
    not see the first label, so that there is something to agree on.
    """

    def __init__(
        self, campaign: Campaign, *, k: int = 50, twice: int = 0, lease: float = 300.0
    ) -> None:
        self.campaign = campaign
        self.identity = _identity(campaign)
        self.twice = twice
        self.leases = Leases(lease)
        self.chart = Chart(campaign)
        self.ahead = Ahead(campaign, k, lambda: len(self.leases.held()))
        self._writer = Writer(campaign)
        self._recovers = 0.0
        images = campaign.source.images
        self.thumbnails = None if images is None else Thumbnails(images)
        # Pages ask for the same rows again and again; the files of pictures may change meanwhile.
        self.card: Callable[[int], tuple[CardCell, ...]] = (
            lru_cache(_CARDS)(self._card) if images is None else self._card
        )

    def start(self) -> None:
        """Begin to write, and to pick ahead."""
        last = [one.at for one in self.campaign.log() if isinstance(one.event, Answered)][-1:]
        for at in last:
            age = (datetime.now(UTC) - datetime.fromisoformat(at)).total_seconds()
            if age < self.leases.seconds:
                self._recovers = monotonic() + _RECOVERY
        self._writer.start()
        self.ahead.start()

    def stop(self) -> None:
        """Write what waits, and let go of the file."""
        self._writer.stop()
        self.ahead.stop()
        if self.thumbnails is not None:
            self.thumbnails.stop()
        self.campaign.close()

    def hand_out(self, session: Session, count: int, holding: Sequence[int] = ()) -> Handed:
        """At most `AT_HAND` rows for this person: what they hold already, then best first.

        Leases end with the server. For some seconds after it was started in the middle of the
        work, people get nothing but what they hold, so that all can say what that is.
        """
        state = self.campaign.state
        pending = state.pending
        open = [*self._again(state, session.who), *pending]
        known = set(open)
        claimed = [row for row in holding if row in known]
        rows = first = self.leases.take(session.id, claimed, AT_HAND, AT_HAND)
        if not self._recovering():
            others = [row for row in open if row not in first]
            rows = self.leases.take(session.id, [*first, *others], min(count, AT_HAND), AT_HAND)
        self.ahead.call()
        free = state.created.rows - len({*state.picked, *state.verdicts})
        return Handed(
            items=self._items(state, rows),
            lost=[row for row in holding if row not in first],
            picking=free > 0 or self._recovering(),
            done=not pending and not free,
            problem=self.ahead.problem,
        )

    def submit(
        self, session: Session, row: int, kind: Kind, value: Value | None, key: str
    ) -> "Future[Receipt]":
        """Hand an answer in; the receipt comes when it is on the disk."""

        def taken(future: "Future[Receipt]") -> None:
            if not future.cancelled() and future.exception() is None:
                self.leases.release(session.id, row)
                self.ahead.call()

        made = self._writer.put(Submission(row, session.who, key, kind, value))
        made.add_done_callback(taken)
        return made

    def undo(self, session: Session, key: str) -> tuple[Answered, Item]:
        """Take this person's latest answer back, and give them the row again.

        Whoever has as many rows at hand as they may gives back the last of them for it.
        """
        answer = self.campaign.undo(session.who, key=key)
        mine = self.leases.held_by(session.id)
        ahead = [row for row in self.campaign.state.pending if row in mine and row != answer.row]
        for row in ahead[AT_HAND - 1 :]:
            self.leases.release(session.id, row)
        self.leases.take(session.id, [answer.row], 1)
        return answer, self._items(self.campaign.state, [answer.row])[0]

    def _card(self, row: int) -> tuple[CardCell, ...]:
        source = self.campaign.source
        if source.images is not None:
            problem = source.images.problem(row)
            return tuple(cells({} if problem is None else {"note": problem}))
        card = source.card(row)
        card.pop(self.campaign.created.id or "", None)  # its name is shown already
        return tuple(cells(card))

    def _recovering(self) -> bool:
        return monotonic() < self._recovers

    def _items(self, state: State, rows: list[int]) -> list[Item]:
        rank = {row: number for number, row in enumerate(state.picked, 1)}
        names = self.campaign.source.names
        return [Item(row, names[row], rank.get(row, 0)) for row in rows]

    def _again(self, state: State, who: str) -> list[int]:
        """Rows that a second person should label too."""
        if not self.twice:
            return []
        return [
            row
            for row, one in state.verdicts.items()
            if one.labelled
            and len(one.answers) == 1
            and who not in one.answers
            and crc32(str(row).encode()) % 100 < self.twice
        ]


def _identity(campaign: Campaign) -> str:
    """What tells a campaign from all others, whatever its file is called: how it began."""
    first = campaign.log()[0]
    told = f"{first.at}\n{written(first.event)}"
    return sha256(told.encode("utf-8", "replace")).hexdigest()[:32]
