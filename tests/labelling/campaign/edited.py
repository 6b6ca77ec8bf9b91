"""Campaign files edited with `sqlite3`."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path


@contextmanager
def edited(path: Path) -> Iterator[sqlite3.Connection]:
    """The file with its triggers out of the way; they are there again in the end."""
    with closing(sqlite3.connect(path)) as connection:
        triggers = connection.execute(
            "SELECT name, sql FROM sqlite_master WHERE type = 'trigger'"
        ).fetchall()
        for name, _ in triggers:
            connection.execute(f"DROP TRIGGER {name}")
        yield connection
        for _, sql in triggers:
            connection.execute(sql)
        connection.commit()
