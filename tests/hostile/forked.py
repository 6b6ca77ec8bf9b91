"""Run the command often and cheaply: one process imports everything, and forks for each run.

A run costs milliseconds instead of the seconds that torch takes to import. Each one has its own
time limit, and its peak memory is measured by the system, so a run that waits or grows is ended
here and not by the machine.
"""

import functools
import gc
import json
import os
import pty
import resource
import select
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

# What a run may print; more is cut off.
_MOST_TEXT = 200_000
# A run that takes this many bytes beyond the imports is killed, to protect the machine.
_KILL_ABOVE = 6_000_000_000


@dataclass(frozen=True)
class Ran:
    """How one run of the command ended.

    `code` is the exit code, or minus the signal that ended it; `peak` is the largest resident
    memory in bytes beyond what the imports take, and `ended` says why it was killed, if it was.
    """

    code: int
    out: str
    err: str
    peak: int
    seconds: float
    ended: str = ""


class Forked:
    """A process with evgp imported, that runs the command for us, one run at a time."""

    def __init__(self, folder: Path, env: Mapping[str, str] | None = None) -> None:
        self._folder = folder
        threads = {f"{name}_NUM_THREADS": "1" for name in ("OMP", "OPENBLAS", "MKL")}
        self._process = subprocess.Popen(
            [sys.executable, __file__],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, **threads, "COLUMNS": "200", **(env or {})},
            text=True,
        )
        self._base = self._ask(arguments=["--version"], cwd=str(folder), timeout=60.0)["peak"]

    def __call__(
        self,
        *arguments: object,
        cwd: Path | None = None,
        timeout: float = 20.0,
        env: Mapping[str, str] | None = None,
        tty: bool = False,
        largest: int | None = None,
    ) -> Ran:
        """Run `evgp` with these arguments.

        `tty` gives it a terminal to write to; no file may grow beyond `largest` bytes, as if the
        disk were full.
        """
        reported = self._ask(
            arguments=[
                os.fspath(argument) if isinstance(argument, Path) else str(argument)
                for argument in arguments
            ],
            cwd=os.fspath(cwd or self._folder),
            timeout=timeout,
            env=dict(env or {}),
            tty=tty,
            largest=largest,
        )
        reported["peak"] = max(0, reported["peak"] - self._base)
        return Ran(**reported)

    def _ask(self, **request: Any) -> dict[str, Any]:
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline()
        assert answer, "the process that runs the command has ended"
        return dict(json.loads(answer))

    def __enter__(self) -> "Forked":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait(timeout=30)
        self._process.stdout.close()


def _child(request: Mapping[str, Any], out: int, err: int) -> None:
    """In the forked process: become the command."""
    os.setsid()
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(out, 1)
    os.dup2(err, 2)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if request.get("largest") is not None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)  # so that writing fails, as on a full disk
        resource.setrlimit(resource.RLIMIT_FSIZE, (request["largest"],) * 2)
    os.chdir(request["cwd"])
    os.environ.update(request.get("env") or {})
    sys.stdin, sys.stdout, sys.stderr = (
        open(0), open(1, "w", buffering=1), open(2, "w", buffering=1),
    )  # fmt: skip
    sys.argv = ["evgp", *request["arguments"]]
    code = 99
    try:
        from evgp.cli.main import main

        main()
        code = 0
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:
        sys.excepthook(*sys.exc_info())
        code = 1
    finally:
        for stream in (sys.stdout, sys.stderr):
            try:
                stream.flush()
            except (OSError, ValueError):
                pass
        os._exit(code)


def _serve(request: Mapping[str, Any]) -> dict[str, Any]:
    """Fork, watch, and report."""
    tty = bool(request.get("tty"))
    pairs = [pty.openpty() if tty else os.pipe() for _ in range(2)]
    begun = time.monotonic()
    pid = os.fork()
    if pid == 0:
        for mine, _ in pairs:
            os.close(mine)
        _child(request, pairs[0][1], pairs[1][1])
    for _, theirs in pairs:
        os.close(theirs)
    handles = [mine for mine, _ in pairs]
    texts: dict[int, bytes] = dict.fromkeys(handles, b"")
    ended, actual, waited = "", (0, 0), 0.001
    while actual[0] == 0:
        _drain(handles, texts, waited)
        waited = min(0.02, 1.5 * waited)
        if not ended and time.monotonic() - begun > request["timeout"]:
            ended = "time"
        if not ended and _resident(pid) > _KILL_ABOVE:
            ended = "memory"
        if ended:
            try:
                os.killpg(pid, signal.SIGKILL)
            except ProcessLookupError:
                os.kill(pid, signal.SIGKILL)
        *actual, usage = os.wait4(pid, os.WNOHANG)  # type: ignore[assignment]
    seconds = time.monotonic() - begun
    _drain(handles, texts, 0.0)
    for handle in handles:
        os.close(handle)
    out, err = (texts[handle].decode("utf-8", "surrogateescape") for handle in handles)
    return {
        "code": os.waitstatus_to_exitcode(actual[1]),
        "out": out,
        "err": err,
        "peak": usage.ru_maxrss * 1024,
        "seconds": seconds,
        "ended": ended,
    }


def _drain(handles: Sequence[int], texts: dict[int, bytes], wait: float) -> None:
    """Read what is there, so that nothing waits for a full pipe."""
    while True:
        ready = select.select(handles, [], [], wait)[0]
        subset = False
        for handle in ready:
            try:
                data = os.read(handle, 1 << 16)
            except OSError:  # the other end of a terminal is gone
                data = b""
            subset = subset or bool(data)
            texts[handle] = (texts[handle] + data)[:_MOST_TEXT]
        if not subset:
            if ready:
                time.sleep(wait)
            return
        wait = 0.0


def _resident(pid: int) -> int:
    try:
        with open(f"/proc/{pid}/statm", encoding="ascii") as file:
            return int(file.read().split()[1]) * resource.getpagesize()
    except (OSError, IndexError):
        return 0


def _import_all() -> None:
    """What the commands import when they run, without running anything."""
    import pkgutil
    from importlib import import_module

    import evgp

    for module in pkgutil.walk_packages(evgp.__path__, "evgp."):
        if module.name.startswith("evgp.__main__"):
            continue
        try:
            import_module(module.name)
        except ImportError:  # an optional package
            pass
    for name in (
        "matplotlib.pyplot",
        "rich.console",
        "rich.table",
        "safetensors.torch",
        "torch._dynamo",
    ):
        try:
            import_module(name)
        except ImportError:
            pass


def _keep_commands() -> None:
    """Typer makes all commands from their functions for every call; once is enough here."""
    import typer.main

    from evgp.cli.main import app

    typer.main.get_command = functools.cache(typer.main.get_command)
    typer.main.get_command(app)


def _main() -> None:
    # Packages may print while they are imported; the answers go to a separate file.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    _import_all()
    _keep_commands()
    gc.collect()
    gc.freeze()  # so that a fork does not copy all that it looks through for garbage
    for line in sys.stdin:
        answers.write(json.dumps(_serve(json.loads(line))) + "\n")
        answers.flush()


if __name__ == "__main__":
    _main()
