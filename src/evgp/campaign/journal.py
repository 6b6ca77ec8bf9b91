"""The file of a campaign: an append-only list of events in SQLite, on the disk before it is told.

Each event carries a digest of itself and all before it, and a second table has the number and
digest of the last one, so that a file that was changed, cut short or damaged is noticed.
`journal_mode=DELETE` and `synchronous=EXTRA`: a commit that returned survives the end of the
process and of the machine's power.
"""

import hashlib
import os
import sqlite3
import threading
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import TypeAlias
from urllib.parse import quote

from evgp._errors import CampaignError, Conflict, NoRoom
from evgp.campaign.events import Event, composed, read, written
from evgp.datasets import naming

APPLICATION = 0x65766770  # "evgp": what `file` and we know the file by
_FIRST = "0" * 64
_WAIT = 30.0  # seconds for another process that writes


@dataclass(frozen=True)
class Entry:
    """An event with its number, its key, and when it came."""

    number: int
    key: str
    at: str
    event: Event


def m001_events(connection: sqlite3.Connection) -> None:
    """The list of events, which can only grow."""
    connection.execute(
        "CREATE TABLE event (number INTEGER PRIMARY KEY, key TEXT NOT NULL UNIQUE, "
        "at TEXT NOT NULL, name TEXT NOT NULL, body TEXT NOT NULL, digest TEXT NOT NULL)"
    )
    for change in ("UPDATE", "DELETE"):
        connection.execute(
            f"CREATE TRIGGER no_{change.lower()} BEFORE {change} ON event BEGIN "
            "SELECT RAISE(ABORT, 'events are never changed'); END"
        )


def m002_head(connection: sqlite3.Connection) -> None:
    """The number and digest of the last event, so that events deleted from the end are missed.

    A trigger keeps it, in the transaction of the event, for connections of an older program too.
    """
    connection.execute(
        "CREATE TABLE head (one INTEGER PRIMARY KEY CHECK (one = 1), number INTEGER NOT NULL, "
        "digest TEXT NOT NULL)"
    )
    connection.execute(
        "INSERT INTO head SELECT 1, count(*), coalesce((SELECT digest FROM event ORDER BY number "
        "DESC LIMIT 1), ?) FROM event",
        (_FIRST,),
    )
    connection.execute(
        "CREATE TRIGGER head_follows AFTER INSERT ON event BEGIN "
        "UPDATE head SET number = NEW.number, digest = NEW.digest; END"
    )
    connection.execute(
        "CREATE TRIGGER head_grows BEFORE UPDATE ON head WHEN NEW.number != OLD.number + 1 BEGIN "
        "SELECT RAISE(ABORT, 'events are never removed'); END"
    )
    connection.execute(
        "CREATE TRIGGER head_stays BEFORE DELETE ON head BEGIN "
        "SELECT RAISE(ABORT, 'events are never removed'); END"
    )


MIGRATIONS: tuple[Callable[[sqlite3.Connection], None], ...] = (m001_events, m002_head)
Wanted: TypeAlias = tuple[str, Event]  # its key, and what is to be added


class Journal:
    """Events in order, in one file; several processes and threads may add to it at once."""

    def __init__(self, path: Path, connection: sqlite3.Connection) -> None:
        self.path = path
        self._connection = connection
        self._lock = threading.RLock()
        self._seen: list[Entry] = []
        self._keys: dict[str, Entry] = {}
        self._digest = _FIRST
        weakref.finalize(self, connection.close)  # for those who let go of it without a word

    @classmethod
    def create(cls, path: Path, first: Event) -> "Journal":
        """A new file with its first event; refused where one is."""
        try:
            with naming(path):
                path.open("xb").close()
        except FileExistsError as error:
            raise CampaignError(
                f"{path}: expected a new campaign, got a file that is there; take another name"
            ) from error
        try:
            with _told(path), _connected(path) as connection:
                connection.execute(f"PRAGMA application_id={APPLICATION}")
                made = cls(path, connection)
                with made._writing():
                    for change in MIGRATIONS:
                        change(connection)
                    connection.execute(f"PRAGMA user_version={len(MIGRATIONS)}")
                    made._append([("created", first)])
        except BaseException:
            path.unlink(missing_ok=True)
            raise
        return made

    @classmethod
    def open(cls, path: Path) -> "Journal":
        """A file that is there, whole, and not newer than this program; else it is refused.

        One of an older schema is brought to this one, in one transaction, once it is verified.
        """
        if not path.is_file():
            raise CampaignError(
                f"{path}: expected a campaign, got no file; make it with evgp campaign new"
            )
        with _told(path), _connected(path) as connection:
            (application,) = connection.execute("PRAGMA application_id").fetchone()
            (version,) = connection.execute("PRAGMA user_version").fetchone()
            if application != APPLICATION:
                raise CampaignError(f"{path}: expected a campaign, got another file")
            if version > len(MIGRATIONS):
                raise CampaignError(
                    f"{path}: expected a campaign of schema {len(MIGRATIONS)} at most, got "
                    f"{version}; a newer evgp made it: update evgp"
                )
            (found,) = connection.execute("PRAGMA integrity_check(1)").fetchone()
            if found != "ok":
                raise _damaged(path, found)
            made = cls(path, connection)
            if version < len(MIGRATIONS):
                made._migrate()
            if _schema(connection) != _expected(len(MIGRATIONS)):
                raise _damaged(path, "its tables are not as they were made")
            made.events()
            if not made._seen or made._seen[0].event.name != "created":
                raise _damaged(path, "its beginning is missing")
        return made

    def events(self) -> Sequence[Entry]:
        """All events so far, those of other processes too; O(what is new)."""
        with self._lock, _told(self.path), self._transaction("BEGIN"):
            self._read()
            return tuple(self._seen)

    def add(self, wanted: Callable[[Sequence[Entry]], Sequence[Wanted]]) -> list[Entry]:
        """Decide on what is there, and add to it, in one transaction; give the entries.

        A key that is there with the same event is answered with what is there; with another event
        it is a `Conflict`, and nothing is added.
        """
        with self._lock, _told(self.path), self._writing():
            self._read()
            return self._append(wanted(tuple(self._seen)))

    def add_each(self, wanted: Sequence[Wanted]) -> list[tuple[Entry, bool] | Conflict]:
        """Add events in one transaction; each is told with whether it was there already.

        A key that conflicts costs its own event alone.
        """
        made: list[tuple[Entry, bool] | Conflict] = []
        with self._lock, _told(self.path), self._writing():
            self._read()
            for one in wanted:
                before = len(self._seen)
                try:
                    (entry,) = self._append([one])
                    made.append((entry, entry.number <= before))
                except Conflict as error:
                    made.append(error)
        return made

    def close(self) -> None:
        """Let go of the file."""
        with self._lock:
            self._connection.close()

    def _migrate(self) -> None:
        """Bring an older file to this schema, unless another process has done so meanwhile."""
        with self._transaction("BEGIN IMMEDIATE"):
            (version,) = self._connection.execute("PRAGMA user_version").fetchone()
            if version >= len(MIGRATIONS):
                return
            if _schema(self._connection) != _expected(version):
                raise _damaged(self.path, "its tables are not as they were made")
            self._read_events()
            for change in MIGRATIONS[version:]:
                change(self._connection)
            self._connection.execute(f"PRAGMA user_version={len(MIGRATIONS)}")

    @contextmanager
    def _writing(self) -> Iterator[None]:
        """One transaction that writes."""
        with self._transaction("BEGIN IMMEDIATE"):
            yield

    @contextmanager
    def _transaction(self, begin: str) -> Iterator[None]:
        """Reads are of one time; what is not committed leaves no trace, here or in the file."""
        seen, digest = len(self._seen), self._digest
        self._connection.execute(begin)
        try:
            yield
            self._connection.execute("COMMIT")
        except BaseException:
            for entry in self._seen[seen:]:
                del self._keys[entry.key]
            del self._seen[seen:]
            self._digest = digest
            with suppress(sqlite3.Error):
                self._connection.execute("ROLLBACK")
            raise

    def _append(self, wanted: Sequence[Wanted]) -> list[Entry]:
        made = []
        for key, given in wanted:
            event = composed(given)
            before = self._keys.get(key)
            if before is not None:
                if written(before.event) != written(event):
                    raise Conflict(
                        f"expected a new key, or what {key!r} was used for before; got another "
                        "content; take a key of its own for each submission"
                    )
                made.append(before)
                continue
            entry = Entry(
                len(self._seen) + 1,
                key,
                datetime.now(UTC).isoformat(timespec="milliseconds"),
                event,
            )
            self._digest = _digest(self._digest, entry)
            self._connection.execute(
                "INSERT INTO event VALUES (?, ?, ?, ?, ?, ?)",
                (entry.number, key, entry.at, event.name, written(event), self._digest),
            )
            self._note(entry)
            made.append(entry)
        return made

    def _note(self, entry: Entry) -> None:
        self._seen.append(entry)
        self._keys[entry.key] = entry

    def _read(self) -> None:
        """What came since the last look, with its digests checked, up to the head and no less."""
        self._read_events()
        count = len(self._seen)
        (last,) = self._connection.execute("SELECT max(number) FROM event").fetchone()
        head = self._connection.execute("SELECT number, digest FROM head").fetchall()
        if last != count or head != [(count, self._digest)]:
            number = head[0][0] if len(head) == 1 else "none"
            raise _damaged(self.path, f"its last event is number {last}, not {number} as written")

    def _read_events(self) -> None:
        # All at once: a query that is left half-read would keep the file locked for others.
        rows = self._connection.execute(
            "SELECT number, key, at, name, body, digest FROM event WHERE number > ? "
            "ORDER BY number",
            (len(self._seen),),
        ).fetchall()
        for number, *told in rows:
            wrong = _damaged(self.path, f"event {len(self._seen) + 1} is not as it was written")
            if number != len(self._seen) + 1 or not all(isinstance(one, str) for one in told):
                raise wrong
            key, at, name, body, digest = told
            try:
                entry = Entry(number, key, at, read(name, body))
            except CampaignError as error:
                raise wrong from error
            self._digest = _digest(self._digest, entry)
            if digest != self._digest or written(entry.event) != body or key in self._keys:
                raise wrong
            # The digest is of the name as it was written; people are compared in one spelling.
            self._note(replace(entry, event=composed(entry.event)))


@contextmanager
def _connected(path: Path) -> Iterator[sqlite3.Connection]:
    """The file, open from now on; closed where what follows fails."""
    connection = sqlite3.connect(
        f"file:{quote(os.fsencode(path.resolve()))}?mode=rw",
        uri=True, timeout=_WAIT, isolation_level=None, check_same_thread=False,
    )  # fmt: skip
    try:
        connection.execute("PRAGMA journal_mode=DELETE")
        connection.execute("PRAGMA synchronous=EXTRA")
        yield connection
    except BaseException:
        connection.close()
        raise


def _schema(connection: sqlite3.Connection) -> list[tuple[str, ...]]:
    return sorted(
        tuple(map(str, row))
        for row in connection.execute("SELECT type, name, tbl_name, sql FROM sqlite_master")
    )


@cache
def _expected(version: int) -> list[tuple[str, ...]]:
    """The tables of a file that so many migrations made."""
    connection = sqlite3.connect(":memory:")
    for change in MIGRATIONS[:version]:
        change(connection)
    made = _schema(connection)
    connection.close()
    return made


def _digest(before: str, entry: Entry) -> str:
    parts = (before, str(entry.number), entry.key, entry.at, entry.event.name, written(entry.event))
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()


@contextmanager
def _told(path: Path) -> Iterator[None]:
    """What SQLite raises, as one sentence."""
    try:
        yield
    except UnicodeDecodeError as error:
        raise _damaged(path, "letters of no alphabet") from error
    except sqlite3.DatabaseError as error:
        code = getattr(error, "sqlite_errorcode", 0) & 0xFF
        if code == sqlite3.SQLITE_FULL:
            raise NoRoom(
                f"{path}: the disk is full; nothing that was acknowledged is lost: make room in "
                f"{path.resolve().parent} and submit again"
            ) from error
        if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
            raise CampaignError(
                f"{path}: another process has been writing for {_WAIT:.0f} s; try again"
            ) from error
        if code in (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM):
            raise CampaignError(f"{path}: the file may not be written to ({error})") from error
        if code == sqlite3.SQLITE_IOERR:
            raise CampaignError(f"{path}: the disk failed ({error}); try again") from error
        raise _damaged(path, str(error)) from error


def _damaged(path: Path, why: str) -> CampaignError:
    said = " ".join(why.replace("*** in database main ***", "").split())  # SQLite takes two lines
    return CampaignError(
        f"{path}: expected a whole campaign, got a damaged file ({said}); restore it from a copy"
    )
