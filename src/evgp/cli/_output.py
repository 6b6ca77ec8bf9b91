"""What a person or a pipe sees, and what they see when something fails."""

import errno
import json
import os
import re
import shlex
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import wraps
from io import TextIOWrapper
from math import floor, isfinite
from pathlib import Path
from time import perf_counter
from typing import NoReturn, ParamSpec, TextIO, TypeVar

import typer

from evgp._errors import EvgpError, EvgpWarning
from evgp._executor import Progress, silent
from evgp._progress import tenths, terminal_bar

P = ParamSpec("P")
_UNWRITTEN = (errno.ENOSPC, errno.EFBIG, errno.EIO, getattr(errno, "EDQUOT", errno.ENOSPC))
# Letters of a line on stderr, and of its end where it is cut.
_LONGEST, _END = 2_000, 300
# Arguments that messages of the library name, such as `impute=True` and `drop='price'`.
_ARGUMENT = re.compile(
    r"(?<![\w'\"-])(id|drop|costs|impute|max_categories|delimiter|array|image_size|memory|cache|jobs|thin"
    r"|label|seed|random_state)=(True\b)?(?=(\S?))"
)
_BEYOND = re.compile(r"[^\n -~]")


def guarded(command: Callable[P, None]) -> Callable[P, None]:
    """Turn what a user can fix into one line on stderr and an exit code."""

    @wraps(command)
    def run(*args: P.args, **kwargs: P.kwargs) -> None:
        try:
            with _warnings_as_notes():
                command(*args, **kwargs)
            # What stays in the buffer would fail where nobody can be told.
            sys.stdout.flush()
        except EvgpError as error:
            fail(str(error))
        except KeyboardInterrupt:
            fail("stopped; nothing was written", code=130)
        except MemoryError:
            fail("ran out of memory; `evgp plan` says what would fit")
        except OSError as error:
            # A reader that has seen enough, as in `evgp pick ... | head`, is no failure of ours.
            # Files are written before anything is printed, so nothing is lost.
            if error.errno == errno.EPIPE:
                silence(sys.stdout)
                raise typer.Exit(0) from None
            # Whatever writes to a file names it; a stream has no name.
            nameless = "standard output" if error.errno in _UNWRITTEN else "a file"
            fail(f"{error.filename or nameless}: {error.strerror or error}")

    return run


@contextmanager
def _warnings_as_notes() -> Iterator[None]:
    """Our own warnings that no command has taken are notes; those of others are not for users."""

    def show(message: Warning | str, category: type[Warning], *_: object, **__: object) -> None:
        if issubclass(category, EvgpWarning):
            tell(f"note: {in_flags(str(message))}")

    with warnings.catch_warnings():
        warnings.simplefilter("default", EvgpWarning)  # notes, whatever PYTHONWARNINGS says
        warnings.showwarning = show
        yield


def in_flags(message: str) -> str:
    """A message of the library in the words of the command line.

    >>> in_flags("use id='key', impute=True, or raise max_categories=; columns 'a', 'kind=b'")
    "use --id 'key', --impute, or raise --max-categories; columns 'a', 'kind=b'"
    """

    def flag(found: re.Match[str]) -> str:
        value = " " if not found[2] and re.match(r"[\w'\"]", found[3]) else ""
        return f"--{found[1].replace('_', '-')}{value}"

    return _ARGUMENT.sub(flag, message)


def fail(message: str, code: int = 1) -> NoReturn:
    """One line on stderr, then the end."""
    tell(f"evgp: {in_flags(' '.join(message.split()))}")
    raise typer.Exit(code)


def tell(text: str) -> None:
    """One line on stderr, clean and not endless; where nobody reads it, the work goes on."""
    if len(text) > _LONGEST:  # a name or a cell may be of any length
        text = f"{text[: _LONGEST - _END]} ... {text[-_END:]}"
    try:
        typer.echo(clean(text), err=True)
    except OSError:
        silence(sys.stderr)


def prepare_streams() -> None:
    """Let stdout and stderr take any letter, and let them be closed."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))
        elif isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def silence(stream: TextIO) -> None:
    """Send what is still to come on a broken stream nowhere."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
        stream.flush()


def note(notes: Sequence[str], *, quiet: bool) -> None:
    """Lines on stderr, for the person."""
    for text in () if quiet else notes:
        tell(f"note: {text}")


def show(columns: Mapping[str, Sequence[object]]) -> None:
    """A table on stdout: drawn for a terminal, tab-separated for a pipe."""
    from evgp.datasets.files import write_separated

    if not sys.stdout.isatty():
        write_separated(sys.stdout, columns, "\t")
        return
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD)
    for name, cells in columns.items():
        words = all(isinstance(cell, str) for cell in cells)
        table.add_column(name.replace("_", " "), justify="left" if words else "right")
    for row in zip(*columns.values(), strict=True):
        table.add_row(*(Text(_cell(cell)) for cell in row))
    Console().print(table)


def show_json(document: Mapping[str, object]) -> None:
    """One JSON document on stdout; what JSON has no number for is null."""
    text = json.dumps(_plain(document), indent=2, ensure_ascii=False, default=str)
    typer.echo(_BEYOND.sub(_escaped, text))


def _escaped(found: re.Match[str]) -> str:
    r"""A letter as JSON may have it, which a terminal does not obey.

    >>> _BEYOND.sub(_escaped, "\x9b, é, \U000e0001")
    '\\u009b, é, \\udb40\\udc01'
    """
    letter = found[0]
    return letter if letter.isprintable() else json.dumps(letter)[1:-1]


def lines(columns: Mapping[str, Sequence[object]]) -> list[dict[str, object]]:
    """Columns as rows, for JSON.

    >>> lines({"rank": [1, 2], "id": ["a", "b"]})
    [{'rank': 1, 'id': 'a'}, {'rank': 2, 'id': 'b'}]
    """
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def called() -> str:
    """The command as it was called, for a page to show."""
    return shlex.join(["evgp", *sys.argv[1:]])


@contextmanager
def progress(quiet: bool, *, lines: bool = False) -> Iterator[Progress]:
    """A bar on stderr that a library call can move; for a pipe nothing, or a line each tenth."""
    if quiet or not sys.stderr.isatty():
        yield tenths(tell) if lines and not quiet else silent
        return
    with terminal_bar() as bar:
        yield bar


@dataclass
class Meter:
    """Passes progress on, and takes the time of the picks."""

    inner: Progress
    first: tuple[int, float] | None = None
    last: tuple[int, float] | None = None

    def __call__(self, stage: str, done: int, total: int) -> None:
        """One step further."""
        self.inner(stage, done, total)
        if stage == "picking":
            self.last = (done, perf_counter())
            self.first = self.first or self.last

    def told(self, rows: int) -> str:
        """Seconds a pick, and rows looked at in a second."""
        if self.first is None or self.last is None or self.last[0] == self.first[0]:
            return ""
        each = (self.last[1] - self.first[1]) / (self.last[0] - self.first[0])
        pace = f"{each:,.1f} s" if each >= 1 else f"{1000 * each:,.3g} ms"
        return f"{pace} a pick, {rows / each / 1e6:,.2g} million rows a second"


def percent(share: float) -> str:
    """A share in whole percent, rounded down: a promise is never rounded up.

    >>> percent(0.9199), percent(1.0)
    ('91 %', '100 %')
    """
    return f"{floor(100 * share + 1e-9)} %"


def clean(text: str) -> str:
    """Text without control characters, which a terminal would obey."""
    return "".join(letter if letter.isprintable() else "\ufffd" for letter in text)


def _cell(value: object) -> str:
    return f"{value:.4g}" if isinstance(value, float) else clean(str(value))


def _plain(value: object) -> object:
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if hasattr(value, "tolist"):
        return _plain(value.tolist())
    return None if isinstance(value, float) and not isfinite(value) else value


T = TypeVar("T")


def noted(call: Callable[[], T]) -> tuple[T, list[str]]:
    """Call, and take the warnings of this package as notes; those of others are not for users."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = call()
    ours = (item for item in caught if issubclass(item.category, EvgpWarning))
    return result, [in_flags(str(item.message)) for item in ours]


def left_out(path: Path, drop: Sequence[str], delimiter: str | None = None) -> tuple[str, ...]:
    """What --drop names in a table, which is read only where a comma may belong to a name."""
    from evgp.datasets import read_table, split

    if not (path.is_file() and any("," in name for name in drop)):
        return split(drop, ())
    table, _ = noted(lambda: read_table(path, delimiter=delimiter))
    return split(drop, table.names)
