"""Output of the commands: tables and JSON on stdout; notes, progress and errors on stderr."""

import errno
import json
import os
import re
import shlex
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from copy import copy
from dataclasses import dataclass
from functools import wraps
from io import TextIOWrapper
from math import floor, isfinite
from pathlib import Path
from time import perf_counter
from typing import NoReturn, ParamSpec, TextIO, TypeVar

import typer

from evgp._executor import Progress, silent
from evgp._progress import tenths, terminal_bar
from evgp.cli._options import PickOptions
from evgp.errors import EvgpError, EvgpWarning, TableProblems

P = ParamSpec("P")
_UNWRITTEN = (errno.ENOSPC, errno.EFBIG, errno.EIO, getattr(errno, "EDQUOT", errno.ENOSPC))
# Maximum characters of a line on stderr, and how many of its end are kept if it is cut.
_LONGEST, _END = 2_000, 300
# Python arguments in the library's messages, such as `impute=True` and `drop='price'`.
_ARGUMENT = re.compile(r"(?<![\w'\"-])([a-z][a-z_]*)=(True\b)?(?=(\S?))")
# Options of commands other than `evgp pick`, and flags that are spelled differently.
_OTHERS = (
    "batch", "budgets", "classes", "host", "images", "jobs", "kappa", "label", "lr", "members",
    "number", "out", "port", "project", "start", "steps", "task", "url", "width",
)  # fmt: skip
_SPELLED = {"x_test": "test", "output": "unit"}
_BEYOND = re.compile(r"[^\n -~]")


def guarded(command: Callable[P, None]) -> Callable[P, None]:
    """Turn the errors of a command that users can fix into one line on stderr and an exit code."""

    @wraps(command)
    def run(*args: P.args, **kwargs: P.kwargs) -> None:
        try:
            with _warnings_as_notes():
                command(*args, **kwargs)
            # Flush here: a failure at interpreter exit could not be reported.
            sys.stdout.flush()
        except TableProblems as error:
            fail_all(error)
        except EvgpError as error:
            fail(str(with_flag(error)))
        except KeyboardInterrupt as error:
            fail(f"stopped; {str(error) or 'nothing was written'}", code=130)
        except MemoryError:
            fail("ran out of memory; `evgp plan` says what would fit")
        except OSError as error:
            # A reader that stops early, as in `evgp pick ... | head`, is not an error. Files are
            # written before anything is printed, so nothing is lost.
            if error.errno == errno.EPIPE:
                silence(sys.stdout)
                raise typer.Exit(0) from None
            # Errors of files carry the file's name; errors of streams have none.
            nameless = "standard output" if error.errno in _UNWRITTEN else "a file"
            fail(f"{error.filename or nameless}: {error.strerror or error}")

    return run


@contextmanager
def _warnings_as_notes() -> Iterator[None]:
    """Print this package's warnings as notes on stderr, and hide those of other packages."""

    def show(message: Warning | str, category: type[Warning], *_: object, **__: object) -> None:
        if issubclass(category, EvgpWarning):
            tell(f"note: {in_flags(str(message))}")

    with warnings.catch_warnings():
        warnings.simplefilter("default", EvgpWarning)  # notes, whatever PYTHONWARNINGS says
        warnings.showwarning = show
        yield


def in_flags(message: str) -> str:
    """Rewrite the Python arguments in a library message as command-line flags.

    >>> in_flags("use id='key', impute=True, or raise max_categories=; columns 'a', 'kind=b'")
    "use --id 'key', --impute, or raise --max-categories; columns 'a', 'kind=b'"
    """

    def flag(match: re.Match[str]) -> str:
        value = " " if not match[2] and re.match(r"[\w'\"]", match[3]) else ""
        name = flag_of(match[1])
        return match[0] if name is None else f"{name}{value}"

    return _ARGUMENT.sub(flag, message)


def flag_of(argument: str) -> str | None:
    """The flag that sets an argument of the library, if there is one.

    >>> flag_of("max_categories"), flag_of("k"), flag_of("x_test"), flag_of("generator")
    ('--max-categories', '-k', '--test', None)
    """
    name = _SPELLED.get(argument, argument)
    if name not in _OTHERS and name not in PickOptions.__dataclass_fields__:
        return None
    return f"{'-' if len(name) == 1 else '--'}{name.replace('_', '-')}"


def with_flag(error: EvgpError) -> EvgpError:
    """The same error with the flag in place of the argument that it is about.

    >>> from evgp.errors import BadArgument
    >>> str(with_flag(BadArgument("noise", ">= 0", "-1")))
    'expected --noise >= 0, got -1'
    """
    flag = flag_of(getattr(error, "argument", ""))
    if flag is None:
        return error
    error = copy(error)
    error.argument = flag  # type: ignore[attr-defined]
    return error


def fail(message: str, code: int = 1) -> NoReturn:
    """Print an error as one line on stderr and exit."""
    tell(f"evgp: {in_flags(' '.join(message.split()))}")
    raise typer.Exit(code)


def fail_all(error: TableProblems) -> NoReturn:
    """Print all problems of a table, one per line, and the command that works, and exit."""
    count = "1 problem" if len(error.problems) == 1 else f"{len(error.problems)} problems"
    tell(f"evgp: {error.source}: {count} (rows count from 0)")
    for problem in error.problems:
        tell(f"  {in_flags(' '.join(problem.split()))}")
    if error.options:
        before = error.given.get("drop", ())
        known = before if isinstance(before, list) else []
        works(f"{called()} {flags(error.options, known)}")
    raise typer.Exit(1)


def works(command: str) -> None:
    """Print a command that works, to be pasted: on a line of its own, and never cut."""
    tell("this works:")
    with suppress(OSError):
        typer.echo(f"  {clean(command)}", err=True)


def flags(options: Mapping[str, object], known: Sequence[object] = ()) -> str:
    """Return options of the library as flags; columns in `known` are dropped already.

    >>> flags({"impute": True, "id": "key", "drop": ["a", "b c"]}, known=["a"])
    "--impute --id key --drop 'b c'"
    """
    words: list[str] = []
    for name, value in options.items():
        flag = flag_of(name) or f"--{name}"
        if isinstance(value, list):
            words += [word for part in value if part not in known for word in (flag, str(part))]
        else:
            words += [flag] if value is True else [flag, str(value)]
    return shlex.join(words)


def tell(text: str) -> None:
    """Print one line on stderr, without control characters and cut if very long.

    If stderr is closed, the command continues silently.
    """
    if len(text) > _LONGEST:  # names and cells can be of any length
        text = f"{text[: _LONGEST - _END]} ... {text[-_END:]}"
    try:
        typer.echo(clean(text), err=True)
    except OSError:
        silence(sys.stderr)


def prepare_streams() -> None:
    """Let stdout and stderr accept any character, and allow either of them to be closed."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))
        elif isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def silence(stream: TextIO) -> None:
    """Discard everything written to a broken stream from now on."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
        stream.flush()


def note(notes: Sequence[str], *, quiet: bool) -> None:
    """Print notes on stderr, one per line."""
    for text in () if quiet else notes:
        tell(f"note: {text}")


def show(columns: Mapping[str, Sequence[object]]) -> None:
    """Print a table on stdout: formatted on a terminal, tab-separated in a pipe."""
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
        is_text = all(isinstance(cell, str) for cell in cells)
        table.add_column(name.replace("_", " "), justify="left" if is_text else "right")
    for row in zip(*columns.values(), strict=True):
        table.add_row(*(Text(_cell(cell)) for cell in row))
    Console().print(table)


def show_json(document: Mapping[str, object]) -> None:
    """Print one JSON document on stdout; NaN and infinity become null."""
    text = json.dumps(_plain(document), indent=2, ensure_ascii=False, default=str)
    typer.echo(_BEYOND.sub(_escaped, text))


def _escaped(match: re.Match[str]) -> str:
    r"""Escape a character that is not printable, so that no terminal interprets it.

    >>> _BEYOND.sub(_escaped, "\x9b, é, \U000e0001")
    '\\u009b, é, \\udb40\\udc01'
    """
    char = match[0]
    return char if char.isprintable() else json.dumps(char)[1:-1]


def lines(columns: Mapping[str, Sequence[object]]) -> list[dict[str, object]]:
    """Convert columns to a list of rows, for JSON.

    >>> lines({"rank": [1, 2], "id": ["a", "b"]})
    [{'rank': 1, 'id': 'a'}, {'rank': 2, 'id': 'b'}]
    """
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def called() -> str:
    """Return the command line of this process, for reports."""
    return shlex.join(["evgp", *sys.argv[1:]])


@contextmanager
def progress(
    quiet: bool, *, lines: bool = False, left: Callable[[], float | None] = lambda: None
) -> Iterator[Progress]:
    """Show a progress bar on stderr; in a pipe, nothing, or with `lines` a line every 10 %.

    These lines say how long the rest will take if `left` knows the seconds; a bar finds out.
    """
    if quiet or not sys.stderr.isatty():
        yield tenths(tell, left) if lines and not quiet else silent
        return
    with terminal_bar() as bar:
        yield bar


@dataclass
class Meter:
    """Forwards progress to `inner`, and times the picks."""

    inner: Progress
    first: tuple[int, float] | None = None
    last: tuple[int, float] | None = None

    def __call__(self, stage: str, done: int, total: int) -> None:
        """Forward the progress, and record the time of each pick."""
        self.inner(stage, done, total)
        if stage == "picking":
            self.last = (done, perf_counter())
            self.first = self.first or self.last

    def pace(self, rows: int) -> str:
        """Format the seconds per pick, and the rows scored per second."""
        if self.first is None or self.last is None or self.last[0] == self.first[0]:
            return ""
        seconds = (self.last[1] - self.first[1]) / (self.last[0] - self.first[0])
        time = f"{seconds:,.1f} s" if seconds >= 1 else f"{1000 * seconds:,.3g} ms"
        return f"{time} per pick, {rows / seconds / 1e6:,.2g} million rows per second"


def percent(share: float) -> str:
    """Format a share in whole percent, rounded down, because a guarantee is never rounded up.

    >>> percent(0.9199), percent(1.0)
    ('91 %', '100 %')
    """
    return f"{floor(100 * share + 1e-9)} %"


def clean(text: str) -> str:
    """Replace control characters, which a terminal would interpret."""
    return "".join(char if char.isprintable() else "\ufffd" for char in text)


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
    """Call a function; return its result, and this package's warnings as notes.

    If it fails, they are printed before the error, which they may explain.
    """
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            result = call()
        except EvgpError:
            note([in_flags(text) for text in _ours(caught)], quiet=False)
            raise
    return result, [in_flags(text) for text in _ours(caught)]


def _ours(caught: Sequence[warnings.WarningMessage]) -> list[str]:
    return [str(item.message) for item in caught if issubclass(item.category, EvgpWarning)]


def left_out(path: Path, drop: Sequence[str], delimiter: str | None = None) -> tuple[str, ...]:
    """Return the columns named by --drop; read the table only if a name may contain a comma."""
    from evgp.datasets import read_table, split

    if not (path.is_file() and any("," in name for name in drop)):
        return split(drop, ())
    table, _ = noted(lambda: read_table(path, delimiter=delimiter))
    return split(drop, table.names)
