"""Work on the workers of a Dask cluster.

Calls of one name go to the worker that answered the first one, which kept its sums; they move when
it is gone, or when Dask gave one to a worker that has fewer. Nothing is scattered, since data that
only one worker holds would be lost with it.
"""

import pickle
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from itertools import count
from logging import getLogger
from queue import Empty, SimpleQueue
from socket import create_connection
from time import monotonic, sleep
from types import ModuleType
from typing import Any, TypeVar
from uuid import uuid4

from evgp._errors import ExecutorError
from evgp._executor import Executor
from evgp._extras import lacking

T = TypeVar("T")

# Seconds without an answer after which the cluster is looked at.
_LOOK = 0.25
# Names whose last worker is remembered.
_NAMES_KEPT = 4096
# What a client says when its scheduler does not answer.
_GONE = (OSError, TimeoutError, RuntimeError, CancelledError)


@contextmanager
def connect(address: str, *, patience: float = 5.0) -> Iterator[Any]:
    """A Dask client of the scheduler at an address such as tcp://10.0.0.5:8786."""
    distributed = _distributed()
    found = re.fullmatch(r"(?:(tcp|tls|inproc)://)?(.+?):?(\d*)", address)
    if found is None or "://" in found[2] or (found[1] != "inproc" and not found[3]):
        raise ExecutorError(
            "expected the address of a Dask scheduler, such as tcp://10.0.0.1:8786; got "
            f"{address!r}"
        )
    try:
        if found[1] != "inproc":  # a client that finds nobody there cannot be closed in peace
            create_connection((found[2].strip("[]"), int(found[3])), patience).close()
        client = distributed.Client(address, timeout=patience, set_as_default=False)
    except (OSError, ValueError, OverflowError) as error:
        raise ExecutorError(
            f"expected a Dask scheduler at {address}, got no answer within {patience:g} s; start "
            "one with `dask scheduler`, or correct the address"
        ) from error
    try:
        yield client
    finally:
        with _quiet(client.status != "running"):
            client.close()


def executor(client: Any, *, patience: float = 30.0) -> Executor:
    """Runs work on the cluster of a `distributed.Client`; stops after so long without a worker."""
    _distributed()
    return Dask(client, patience)


@dataclass(frozen=True, eq=False)
class Dask:
    """The workers of a Dask cluster."""

    client: Any
    patience: float = 30.0
    homes: dict[str, str] = field(default_factory=dict)  # the worker where a name is at home
    known: set[str] = field(default_factory=set)  # workers whose version is ours
    mark: str = field(default_factory=lambda: uuid4().hex[:8])
    number: Iterator[int] = field(default_factory=count)

    def run(
        self,
        work: Callable[..., T],
        calls: Sequence[tuple[Any, ...]],
        names: Sequence[str],
        each: Callable[[], object] = lambda: None,
    ) -> list[T]:
        """The answers to all calls, in their order; `each` is called after each answer."""
        groups = self._groups(names)
        places = self._places(names)
        made: dict[int, T] = {}
        waiting: dict[int, Any] = {}
        done: SimpleQueue[int] = SimpleQueue()
        try:
            for first, group in groups.items():
                some = [calls[at] for at in group]
                waiting[first] = self._submit(work, some, names[first], places[names[first]])
                waiting[first].add_done_callback(lambda _, at=first: done.put(at))
            while waiting:
                ready = [self._next(done)]
                while not done.empty():  # fetched together: each fetch is a way there and back
                    ready.append(done.get())
                fetched = self._fetch(waiting, ready, names)
                for first, (place, answers) in zip(ready, fetched, strict=True):
                    del waiting[first]
                    self._check([place])
                    for at, answer in zip(groups[first], answers, strict=True):
                        made[at] = answer
                        self._settle(places, names[at], place)
                        each()
        except BaseException:
            self._cancel(list(waiting.values()))
            raise
        return [made[at] for at in range(len(calls))]

    def _groups(self, names: Sequence[str]) -> dict[int, list[int]]:
        """Calls that go together, by the first of them.

        Those whose names are at home with one worker do: a round of picks is one task a worker.
        """
        groups: dict[int, list[int]] = {}
        firsts: dict[str, int] = {}
        for at, name in enumerate(names):
            home = self.homes.get(name)
            first = at if home is None else firsts.setdefault(home, at)
            groups.setdefault(first, []).append(at)
        return groups

    def _submit(
        self, work: Callable[..., T], calls: list[tuple[Any, ...]], name: str, place: str
    ) -> Any:
        """One task, under a key that was never used."""
        import cloudpickle
        import dask

        what = getattr(work, "__name__", "work")
        # Dask advises to scatter what is large; see above.
        with dask.config.set({"distributed.admin.large-graph-warning-threshold": "1TB"}):
            return self.client.submit(
                _there,
                cloudpickle.dumps((work, calls)),
                key=f"{what}-{name}-{next(self.number)}-{self.mark}",
                workers=[place],
                allow_other_workers=True,
                pure=False,
            )

    def _places(self, names: Sequence[str]) -> dict[str, str]:
        """The worker of each name: where it was, or the one with the fewest for its threads."""
        places = {name: self.homes[name] for name in names if name in self.homes}
        new = [name for name in dict.fromkeys(names) if name not in places]
        if not new:
            return places
        threads = self._some_workers()
        self._check(list(threads))
        load = dict.fromkeys(threads, 0)
        for place in places.values():
            if place in load:
                load[place] += 1
        for name in new:
            least = min(load, key=lambda place: (load[place] + 1) / threads[place])
            load[least] += 1
            places[name] = least
        return places

    def _settle(self, places: dict[str, str], name: str, place: str) -> None:
        """Remember who answered for a name, but not if Dask only lent it to one with no fewer."""
        home = places[name]
        if place != home:
            load = Counter(places.values())
            if load[place] < load[home] or home not in self._workers():
                places[name] = place
        self.homes.pop(name, None)
        self.homes[name] = places[name]
        while len(self.homes) > max(_NAMES_KEPT, 2 * len(places)):
            del self.homes[next(iter(self.homes))]

    def _fetch(
        self, waiting: dict[int, Any], some: list[int], names: Sequence[str]
    ) -> list[tuple[str, list[Any]]]:
        """Who answered some calls that are done, and what."""
        replies: SimpleQueue[list[tuple[str, list[Any]]] | BaseException] = SimpleQueue()
        tasks = [waiting[at] for at in some]
        self.client.loop.add_callback(_gather, self.client, tasks, replies)
        reply = self._next(replies)
        if isinstance(reply, BaseException):
            raise self._told(reply, waiting, names)
        return reply

    def _next(self, replies: SimpleQueue[T]) -> T:
        """The next reply, as long as there is somebody to give one."""
        while True:
            with suppress(Empty):
                return replies.get(timeout=_LOOK)
            self._some_workers()

    def _some_workers(self) -> dict[str, int]:
        """The workers that are there and their threads; waits for one as long as our patience."""
        start = monotonic()
        while True:
            threads = self._workers()
            if threads:
                return threads
            if monotonic() - start > self.patience:
                raise ExecutorError(
                    f"expected Dask workers, got none for {self.patience:g} s; what was finished "
                    "is kept, so start workers and run again"
                )
            sleep(_LOOK)

    def _workers(self) -> dict[str, int]:
        """The workers that are there and their threads."""
        if self.client.status != "running":
            raise self._lost()
        try:
            found = self.client.sync(
                self.client.scheduler.ncores, callback_timeout=max(5.0, self.patience)
            )
        except _GONE as error:
            raise self._lost() from error
        return dict(found)

    def _check(self, places: list[str]) -> None:
        """Workers of another version could answer otherwise."""
        new = [place for place in places if place not in self.known]
        if not new:
            return
        # A function of Python's own: there may be no evgp to find one of ours in.
        try:
            found = self.client.run(version, "evgp", workers=new, on_error="return")
        except _GONE as error:
            raise self._lost() from error
        own = _ours()
        for place, theirs in found.items():
            if isinstance(theirs, PackageNotFoundError) or (
                isinstance(theirs, str) and theirs != own
            ):
                got = theirs if isinstance(theirs, str) else "none"
                raise ExecutorError(
                    f"expected evgp {own} on every Dask worker, got {got} on {place}; install "
                    "the same version there"
                )
            if isinstance(theirs, str):  # else it died while it was asked
                self.known.add(place)

    def _told(
        self, error: BaseException, waiting: dict[int, Any], names: Sequence[str]
    ) -> BaseException:
        """What to raise for what Dask said."""
        from distributed import KilledWorker

        if isinstance(error, CancelledError):
            if self.client.status != "running":
                return self._lost()
            return ExecutorError(
                "expected answers, got tasks that someone cancelled on the Dask cluster; what was "
                "finished is kept, so run again"
            )
        if not isinstance(error, KilledWorker):
            return error
        # Dask suspects all that stood in line at a dead worker; the first in line was running.
        sleep(_LOOK)
        at = min((at for at, task in waiting.items() if task.status == "error"), default=0)
        times = error.allowed_failures + 1
        told = ExecutorError(
            f"expected an answer for {names[at]}, got {times} Dask workers that died of it; give "
            "workers more memory, or make shards smaller, and run again"
        )
        told.__cause__ = error
        return told

    def _lost(self) -> ExecutorError:
        return ExecutorError(
            "expected a Dask scheduler, got a lost connection; what was finished is kept, so start "
            "the cluster and run again"
        )

    def _cancel(self, tasks: list[Any]) -> None:
        """Nobody waits for these any more."""
        if tasks and self.client.status == "running":
            with suppress(*_GONE):
                self.client.cancel(tasks)


def _there(sent: bytes) -> tuple[str, list[Any]]:
    """On a worker: its address and its answers.

    The calls come as bytes, so that the scheduler need not unpack it, nor have torch.
    """
    from distributed import get_worker

    work, calls = pickle.loads(sent)
    return get_worker().address, [work(*call) for call in calls]


async def _gather(client: Any, tasks: list[Any], replies: SimpleQueue[Any]) -> None:
    """On the client's loop: the answers, or what went wrong.

    Not in our thread, which would wait for ever should a worker die with its answer.
    """
    try:
        replies.put(await client.gather(tasks))
    except (Exception, CancelledError) as error:
        replies.put(error)


@contextmanager
def _quiet(lost: bool) -> Iterator[None]:
    """A client that still looks for its scheduler would print a traceback when it is closed."""
    logger = getLogger("distributed.client")
    before, logger.disabled = logger.disabled, logger.disabled or lost
    try:
        yield
    finally:
        logger.disabled = before


def _ours() -> str:
    """The version of evgp in this process."""
    return version("evgp")


def _distributed() -> ModuleType:
    try:
        import distributed
    except ImportError as error:
        raise ExecutorError(lacking("dask")) from error
    return distributed
