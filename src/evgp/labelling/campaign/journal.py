"""The file of a campaign: an append-only list of events in SQLite.

Each event carries a digest of itself and all before it, and a second table has the number and
digest of the last one, so that a file that was edited, truncated or damaged is detected. With
`journal_mode=DELETE` and `synchronous=EXTRA`, a commit that returned survives a crash of the
process and a power failure.
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

from evgp.datasets import naming
from evgp.errors import CampaignError, Conflict, EvgpError, NoRoom, UnreadableFile
from evgp.labelling.campaign.events import Event, from_json, normalised, to_json

APPLICATION = 0x65766770  # "evgp": identifies the file, to `file` too
_FIRST = "0" * 64
_WAIT = 30.0  # seconds to wait for another process that is writing


@dataclass(frozen=True)
class Entry:
    """An event with its number, its key, and its time."""

    number: int
    key: str
    at: str
    event: Event


def m001_events(connection: sqlite3.Connection) -> None:
    """Create the list of events, which can only grow."""
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
    """Store the number and digest of the last event, so that events missing at the end are noticed.

    A trigger updates it in the transaction of the event, for older versions of evgp too.
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
NewEvent: TypeAlias = tuple[str, Event]  # its key, and the event to add


class Journal:
    """Events in order, in one file; several processes and threads may add to it concurrently."""

    def __init__(self, path: Path, connection: sqlite3.Connection) -> None:
        self.path = path
        self._connection = connection
        self._lock = threading.RLock()
        self._seen: list[Entry] = []
        self._keys: dict[str, Entry] = {}
        self._digest = _FIRST
        weakref.finalize(self, connection.close)  # if nobody calls close()

    @classmethod
    def create(cls, path: Path, first: Event) -> "Journal":
        """A new file with its first event; raises if the file exists."""
        try:
            with naming(path):
                path.open("xb").close()
        except FileExistsError as error:
            raise CampaignError(
                f"{path} exists already; choose another name for the campaign"
            ) from error
        try:
            with _readable_errors(path), _connected(path) as connection:
                connection.execute(f"PRAGMA application_id={APPLICATION}")
                journal = cls(path, connection)
                with journal._writing():
                    for migrate in MIGRATIONS:
                        migrate(connection)
                    connection.execute(f"PRAGMA user_version={len(MIGRATIONS)}")
                    journal._append([("created", first)])
        except BaseException:
            path.unlink(missing_ok=True)
            raise
        return journal

    @classmethod
    def open(cls, path: Path) -> "Journal":
        """Open an existing file; raises if it is damaged, or newer than this version of evgp.

        A file with an older schema is verified and then migrated, in one transaction.
        """
        if not path.is_file():
            raise CampaignError(f"{path}: no such campaign; create it with evgp campaign new")
        with _readable_errors(path), _connected(path) as connection:
            (application,) = connection.execute("PRAGMA application_id").fetchone()
            (version,) = connection.execute("PRAGMA user_version").fetchone()
            if application != APPLICATION:
                raise UnreadableFile.of(CampaignError)(str(path), "not an evgp campaign")
            if version > len(MIGRATIONS):
                raise UnreadableFile.of(CampaignError)(
                    str(path),
                    f"made by a newer version of evgp (schema {version}, expected at most "
                    f"{len(MIGRATIONS)})",
                    "update evgp",
                )
            (integrity,) = connection.execute("PRAGMA integrity_check(1)").fetchone()
            if integrity != "ok":
                raise _damaged(path, integrity)
            journal = cls(path, connection)
            if version < len(MIGRATIONS):
                journal._migrate()
            if _schema(connection) != _expected(len(MIGRATIONS)):
                raise _damaged(path, "its tables were changed")
            journal.events()
            if not journal._seen or journal._seen[0].event.name != "created":
                raise _damaged(path, "its beginning is missing")
        return journal

    def events(self) -> Sequence[Entry]:
        """All events so far, including those of other processes; O(new events)."""
        with self._lock, _readable_errors(self.path), self._transaction("BEGIN"):
            self._read()
            return tuple(self._seen)

    def add(self, decide: Callable[[Sequence[Entry]], Sequence[NewEvent]]) -> list[Entry]:
        """Decide what to add from the events so far, and add it, in one transaction.

        Returns the entries. If a key exists with the same event, its entry is returned; with
        another event it is a `Conflict`, and nothing is added.
        """
        with self._lock, _readable_errors(self.path), self._writing():
            self._read()
            return self._append(decide(tuple(self._seen)))

    def add_each(self, events: Sequence[NewEvent]) -> list[tuple[Entry, bool] | Conflict]:
        """Add events in one transaction; returns each entry, and whether it existed before.

        A conflicting key affects only its own event.
        """
        results: list[tuple[Entry, bool] | Conflict] = []
        with self._lock, _readable_errors(self.path), self._writing():
            self._read()
            for event in events:
                before = len(self._seen)
                try:
                    (entry,) = self._append([event])
                    results.append((entry, entry.number <= before))
                except Conflict as error:
                    results.append(error)
        return results

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            self._connection.close()

    def _migrate(self) -> None:
        """Migrate an older file to this schema, unless another process has done so meanwhile."""
        with self._transaction("BEGIN IMMEDIATE"):
            (version,) = self._connection.execute("PRAGMA user_version").fetchone()
            if version >= len(MIGRATIONS):
                return
            if _schema(self._connection) != _expected(version):
                raise _damaged(self.path, "its tables were changed")
            self._read_events()
            for migrate in MIGRATIONS[version:]:
                migrate(self._connection)
            self._connection.execute(f"PRAGMA user_version={len(MIGRATIONS)}")

    @contextmanager
    def _writing(self) -> Iterator[None]:
        """A transaction that writes."""
        with self._transaction("BEGIN IMMEDIATE"):
            yield

    @contextmanager
    def _transaction(self, begin: str) -> Iterator[None]:
        """A transaction; if it fails, neither the file nor this object has changed."""
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

    def _append(self, events: Sequence[NewEvent]) -> list[Entry]:
        entries = []
        for key, new in events:
            event = normalised(new)
            before = self._keys.get(key)
            if before is not None:
                if to_json(before.event) != to_json(event):
                    raise Conflict(
                        f"the key {key!r} was used before for something else; use a new key for "
                        "each submission"
                    )
                entries.append(before)
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
                (entry.number, key, entry.at, event.name, to_json(event), self._digest),
            )
            self._note(entry)
            entries.append(entry)
        return entries

    def _note(self, entry: Entry) -> None:
        self._seen.append(entry)
        self._keys[entry.key] = entry

    def _read(self) -> None:
        """Read new events, and check their digests and the head."""
        self._read_events()
        count = len(self._seen)
        (last,) = self._connection.execute("SELECT max(number) FROM event").fetchone()
        head = self._connection.execute("SELECT number, digest FROM head").fetchall()
        if last != count or head != [(count, self._digest)]:
            number = head[0][0] if len(head) == 1 else "none"
            raise _damaged(self.path, f"its last event is number {last}, expected {number}")

    def _read_events(self) -> None:
        # fetchall, because a query that is not read to its end keeps the file locked.
        rows = self._connection.execute(
            "SELECT number, key, at, name, body, digest FROM event WHERE number > ? "
            "ORDER BY number",
            (len(self._seen),),
        ).fetchall()
        for number, *texts in rows:
            wrong = _damaged(self.path, f"event {len(self._seen) + 1} was changed")
            if number != len(self._seen) + 1 or not all(isinstance(text, str) for text in texts):
                raise wrong
            key, at, name, body, digest = texts
            try:
                entry = Entry(number, key, at, from_json(name, body))
            except CampaignError as error:
                raise wrong from error
            self._digest = _digest(self._digest, entry)
            if digest != self._digest or to_json(entry.event) != body or key in self._keys:
                raise wrong
            # The digest is of the name as it was written; names are compared in one Unicode form.
            self._note(replace(entry, event=normalised(entry.event)))


@contextmanager
def _connected(path: Path) -> Iterator[sqlite3.Connection]:
    """An open connection; closed if the block fails."""
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
    """The schema after so many migrations."""
    connection = sqlite3.connect(":memory:")
    for migrate in MIGRATIONS[:version]:
        migrate(connection)
    schema = _schema(connection)
    connection.close()
    return schema


def _digest(before: str, entry: Entry) -> str:
    parts = (before, str(entry.number), entry.key, entry.at, entry.event.name, to_json(entry.event))
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()


@contextmanager
def _readable_errors(path: Path) -> Iterator[None]:
    """Turn SQLite's errors into sentences that say what to do."""
    try:
        yield
    except UnicodeDecodeError as error:
        raise _damaged(path, "invalid UTF-8") from error
    except sqlite3.DatabaseError as error:
        code = getattr(error, "sqlite_errorcode", 0) & 0xFF
        if code == sqlite3.SQLITE_FULL:
            raise NoRoom(
                f"{path}: the disk is full; no acknowledged answer is lost; free space in "
                f"{path.resolve().parent} and submit again"
            ) from error
        if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
            raise CampaignError(
                f"{path}: another process has been writing for {_WAIT:.0f} s; try again"
            ) from error
        if code in (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM):
            raise CampaignError(f"{path}: the file is not writable ({error})") from error
        if code == sqlite3.SQLITE_IOERR:
            raise CampaignError(f"{path}: the disk failed ({error}); try again") from error
        raise _damaged(path, str(error)) from error


def _damaged(path: Path, why: str) -> EvgpError:
    # SQLite writes two lines.
    reason = " ".join(why.replace("*** in database main ***", "").split())
    return UnreadableFile.of(CampaignError)(
        str(path), f"damaged campaign file ({reason})", "restore it from a backup"
    )
