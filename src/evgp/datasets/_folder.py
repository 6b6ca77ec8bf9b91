"""Files below a folder, and an account of those that are left out."""

import os
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from evgp.datasets._photos import NOT_PLAIN, UNREADABLE

LINKED = "linked folders are not followed"
_NAMED = 5


@dataclass(frozen=True)
class LeftOut:
    """Names by the reason why they cannot be used.

    >>> left_out = LeftOut()
    >>> left_out.add("not images", "b.csv")
    >>> left_out.add("not images", "a.txt")
    >>> left_out.lines()
    ['2 files left out, not images: a.txt, b.csv']
    """

    names: dict[str, list[str]] = field(default_factory=dict)

    def add(self, reason: str, name: str) -> None:
        """Note one more."""
        self.names.setdefault(reason, []).append(name)

    def lines(self) -> list[str]:
        """A line for each reason, with the first few names."""
        return [_line(reason, sorted(names)) for reason, names in sorted(self.names.items())]


def _line(reason: str, names: list[str]) -> str:
    count = "1 file" if len(names) == 1 else f"{len(names):,} files"
    shown = ", ".join(map(readable, names[:_NAMED]))
    more = f" and {len(names) - _NAMED:,} more" if len(names) > _NAMED else ""
    return f"{count} left out, {reason}: {shown}{more}"


def readable(name: str) -> str:
    """A name as UTF-8 can hold it."""
    return name.encode("utf-8", "replace").decode()


def walk(folder: Path) -> tuple[list[str], LeftOut]:
    """Names of the plain files below a folder, sorted, and an account of all else not hidden."""
    names: list[str] = []
    left_out = LeftOut()
    ahead = [PurePosixPath()]
    while ahead:
        here = ahead.pop()
        try:
            with os.scandir(folder / here) as entries:
                visible = [entry for entry in entries if not entry.name.startswith(".")]
        except OSError:
            left_out.add(UNREADABLE, f"{here}/")
            continue
        for entry in visible:
            name = here / entry.name
            try:
                if entry.is_dir(follow_symlinks=False):
                    ahead.append(name)
                elif entry.is_symlink() and entry.is_dir():
                    left_out.add(LINKED, str(name))
                elif entry.is_file() or entry.is_symlink():  # a broken link fails when it is read
                    names.append(str(name))
                else:
                    left_out.add(NOT_PLAIN, str(name))
            except OSError:  # a link to itself
                left_out.add(UNREADABLE, str(name))
    return sorted(names), left_out
