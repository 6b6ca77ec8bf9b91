"""What every run of a command must keep, whatever file it is given."""

import os
import re
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue

from evgp.cli.main import _CAMPAIGN
from tests.hostile.forked import Forked, Ran

# Bytes beyond the imports that a run on a small or hostile file may take, unless it says otherwise.
# A run on a small good file takes about 100 MB.
MOST = 700_000_000
SECONDS = 40.0
_MOST_WORDS = 5_000
WORKERS = 1  # other modules may have the other cores

Files = dict[str, tuple[str, int, int]]


@dataclass(frozen=True)
class Run:
    """One call of the command: its subject, its arguments, and its limits.

    `fails` says that it must (True) or must not (False) be refused; None leaves it open. `writes`
    are the files that a run that succeeds leaves, `keeps` those that no run may change, and `same`
    one that a run may not change if it is refused. `largest` is as in `Forked`. A comparison goes
    on where it was stopped: what it `leaves` may stay, and it tells how far it is.
    """

    what: str
    arguments: tuple[object, ...]
    fails: bool | None = None
    writes: tuple[str, ...] = ()
    keeps: tuple[str, ...] = ()
    most: int = MOST
    tty: bool = False
    env: Mapping[str, str] | None = None
    largest: int | None = None
    same: Path | None = None
    leaves: str = ""


class Crew:
    """Some processes that run the command, each in a folder of its own."""

    def __init__(self, workers: Sequence[tuple[Forked, Path]], prepare: Callable[[Path], None]):
        self._prepare = prepare
        self._free: SimpleQueue[tuple[Forked, Path]] = SimpleQueue()
        for forked, folder in workers:
            self._free.put((forked, folder))

    def failures(self, runs: Iterable[Run | Sequence[Run]]) -> tuple[int, list[str]]:
        """How many runs there were, and what each one that broke a promise did.

        A sequence of runs goes in order; all else goes side by side.
        """

        def some(wanted: Run | Sequence[Run]) -> list[str]:
            return [self._one(run) for run in ([wanted] if isinstance(wanted, Run) else wanted)]

        with ThreadPoolExecutor(WORKERS) as threads:
            reported = [text for texts in threads.map(some, runs) for text in texts]
        return len(reported), [text for text in reported if text]

    def run(self, run: Run) -> Ran:
        """One run, whose outcome the caller looks at."""
        forked, folder = self._free.get()
        try:
            return _started(forked, folder, run)
        finally:
            self._clear(folder)
            self._free.put((forked, folder))

    def _one(self, run: Run) -> str:
        forked, folder = self._free.get()
        try:
            before = listed(folder)
            content = None if run.same is None else run.same.read_bytes()
            ran = _started(forked, folder, run)
            wrong = list(broken(run, ran, before, listed(folder)))
            if run.same is not None and ran.code and run.same.read_bytes() != content:
                wrong.append(f"was refused, but changed {run.same.name}")
            if not wrong and ran.code == 0:
                wrong = list(_written(run, folder))
        finally:
            self._clear(folder)
            self._free.put((forked, folder))
        shown = " ".join(str(argument) for argument in run.arguments)[:200]
        text = f"{run.what}: evgp {shown}: {'; '.join(wrong)}\n{ran.err[-1500:]}"
        return text.encode("utf-8", "backslashreplace").decode() if wrong else ""

    def _clear(self, folder: Path) -> None:
        for path in folder.iterdir():
            shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()
        self._prepare(folder)


def _started(forked: Forked, folder: Path, run: Run) -> Ran:
    words: tuple[object, ...] = run.arguments
    if words and words[0] in _CAMPAIGN:
        words = ("campaign", *words)
    return forked(
        *words, cwd=folder, timeout=SECONDS, tty=run.tty, env=run.env, largest=run.largest
    )


@contextmanager
def crew(folder: Path, prepare: Callable[[Path], None]) -> Iterator[Crew]:
    """Processes for as long as the block lasts; `prepare` fills the folder of each, often."""
    with ExitStack() as stack:
        workers = []
        for number in range(WORKERS):
            place = folder / f"worker-{number}"
            place.mkdir()
            prepare(place)
            workers.append((stack.enter_context(Forked(place)), place))
        yield Crew(workers, prepare)


def listed(folder: Path) -> Files:
    """Everything below a folder, to detect changes."""
    actual: Files = {}
    for here, folders, files in os.walk(folder):
        for name in (*folders, *files):
            path = Path(here, name)
            status = path.lstat()
            size = 0 if path.is_dir() else status.st_size
            change = 0 if path.is_dir() else status.st_mtime_ns
            actual[str(path.relative_to(folder))] = (oct(status.st_mode), size, change)
    return actual


def broken(run: Run, ran: Ran, before: Files, after: Files) -> Iterator[str]:
    """Every promise that a run broke."""
    if ran.ended:
        yield f"was ended because of {ran.ended} after {ran.seconds:.0f} s, {ran.peak / 1e6:.0f} MB"
        return
    if "Traceback" in ran.err or ran.code not in (0, 1, 2):
        yield f"ended with {ran.code} and a traceback"
    if run.fails is not None and run.fails != (ran.code != 0):
        yield f"{'was refused' if ran.code else 'was accepted'}, and should not have been"
    if ran.peak > run.most:
        yield f"took {ran.peak / 1e6:.0f} MB"
    if not run.tty and any(sign != "\n" and not sign.isprintable() for sign in ran.err):
        yield "sent control characters to stderr"
    if len(ran.err) > _MOST_WORDS:
        yield f"said {len(ran.err):,} letters"
    for name in run.keeps:
        if before.get(name) != after.get(name):
            yield f"changed {name}"
    if ran.code:
        yield from _refused(run, ran, before, after)


def _as_one_sentence(lines: list[str]) -> list[str]:
    """The lines with a list of problems, one per line, and the command that works as one line."""
    heads = [at for at, line in enumerate(lines) if re.search(r"^evgp: .*: \d+ problems", line)]
    if not heads:
        return lines
    problems = lines[heads[0] + 1 :]
    if "this works:" in problems:  # and then the command
        problems.remove("this works:")
    if not all(line.startswith("  ") for line in problems):
        return lines
    return [*lines[: heads[0]], lines[heads[0]]]


def _refused(run: Run, ran: Ran, before: Files, after: Files) -> Iterator[str]:
    *notes, last = _as_one_sentence(ran.err.splitlines()) or [""]
    sentence = last.startswith("Error: ") if ran.code == 2 else last.startswith("evgp: ")
    # Notes on what was read before the failure may come first; a wrong call begins with its usage.
    notes = [] if ran.code == 2 else [line for line in notes if not line.startswith("note: ")]
    if run.leaves:
        notes = [line for line in notes if not line.endswith("rounds")]
    if not sentence or notes:
        yield "did not end with one sentence"
    if ran.out:
        yield "was refused, but printed something"
    kept = (lambda name: name.startswith(run.leaves)) if run.leaves else (lambda name: False)
    if new := sorted(name for name in set(after) - set(before) if not kept(name)):
        yield f"was refused, but left {', '.join(new[:5])}"


def _written(run: Run, folder: Path) -> Iterator[str]:
    for name in run.writes:
        path = folder / name
        if not path.is_file() or path.stat().st_size == 0:
            yield f"did not write {name}"
        elif name.endswith(".html") and not path.read_text().rstrip().endswith("</html>"):
            yield f"wrote half of {name}"
    parts = [path.name for path in folder.rglob(".evgp-*")]
    if parts:
        yield f"left {', '.join(parts)}"
