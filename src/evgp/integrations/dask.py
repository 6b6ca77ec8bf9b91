"""Run work on a Dask cluster.

Calls with the same name go to the worker that ran the first one, because it has cached its sums.
They move if that worker is gone, or if Dask ran one on a worker with fewer names. Nothing is
scattered: data that only one worker holds would be lost with it.
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

from evgp._executor import Executor
from evgp._extras import lacking
from evgp.errors import ExecutorError

T = TypeVar("T")

_POLL = 0.25  # seconds without a result after which the workers are checked
_MAX_NAMES = 4096  # names whose last worker is remembered
# What a client raises if its scheduler does not respond.
_GONE = (OSError, TimeoutError, RuntimeError, CancelledError)


@contextmanager
def connect(address: str, *, patience: float = 5.0) -> Iterator[Any]:
    """A Dask client of the scheduler at an address such as tcp://10.0.0.5:8786.

    Parameters
    ----------
    address : str
    patience : float
        Seconds to wait for a response.

    Returns
    -------
    context manager of a distributed.Client
    """
    distributed = _distributed()
    match = re.fullmatch(r"(?:(tcp|tls|inproc)://)?(.+?):?(\d*)", address)
    if match is None or "://" in match[2] or (match[1] != "inproc" and not match[3]):
        raise ExecutorError(
            "expected the address of a Dask scheduler, such as tcp://10.0.0.1:8786; got "
            f"{address!r}"
        )
    try:
        if match[1] != "inproc":  # closing a client that never connected hangs, so probe the port
            create_connection((match[2].strip("[]"), int(match[3])), patience).close()
        client = distributed.Client(address, timeout=patience, set_as_default=False)
    except (OSError, ValueError, OverflowError) as error:
        raise ExecutorError(
            f"no Dask scheduler responded at {address} within {patience:g} s; start one with `dask "
            "scheduler`, or correct the address"
        ) from error
    try:
        yield client
    finally:
        with _quiet(client.status != "running"):
            client.close()


def executor(client: Any, *, patience: float = 30.0) -> Executor:
    """An executor on the cluster of a `distributed.Client`.

    Parameters
    ----------
    client : distributed.Client
    patience : float
        Seconds without any worker after which `ExecutorError` is raised.

    Returns
    -------
    Executor
    """
    _distributed()
    return Dask(client, patience)


@dataclass(frozen=True, eq=False)
class Dask:
    """An executor that runs work on the workers of a Dask cluster."""

    client: Any
    patience: float = 30.0
    homes: dict[str, str] = field(default_factory=dict)  # the worker of each name
    known: set[str] = field(default_factory=set)  # workers with our version of evgp
    mark: str = field(default_factory=lambda: uuid4().hex[:8])
    number: Iterator[int] = field(default_factory=count)

    def run(
        self,
        work: Callable[..., T],
        calls: Sequence[tuple[Any, ...]],
        names: Sequence[str],
        each: Callable[[], object] = lambda: None,
    ) -> list[T]:
        """The results of all calls, in order; `each` is called after each result."""
        groups = self._groups(names)
        places = self._places(names)
        results: dict[int, T] = {}
        waiting: dict[int, Any] = {}
        done: SimpleQueue[int] = SimpleQueue()
        try:
            for first, group in groups.items():
                together = [calls[at] for at in group]
                waiting[first] = self._submit(work, together, names[first], places[names[first]])
                waiting[first].add_done_callback(lambda _, at=first: done.put(at))
            while waiting:
                ready = [self._next(done)]
                while not done.empty():  # fetched together, because each fetch is a round trip
                    ready.append(done.get())
                fetched = self._fetch(waiting, ready, names)
                for first, (place, values) in zip(ready, fetched, strict=True):
                    del waiting[first]
                    self._check([place])
                    for at, value in zip(groups[first], values, strict=True):
                        results[at] = value
                        self._settle(places, names[at], place)
                        each()
        except BaseException:
            self._cancel(list(waiting.values()))
            raise
        return [results[at] for at in range(len(calls))]

    def _groups(self, names: Sequence[str]) -> dict[int, list[int]]:
        """Calls that are sent together, by the first of them.

        Those whose names belong to one worker are, so that a round of picks is one task per worker.
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
        """Submit one task, with a new key."""
        import cloudpickle
        import dask

        what = getattr(work, "__name__", "work")
        # Dask would warn that large data should be scattered; see above.
        with dask.config.set({"distributed.admin.large-graph-warning-threshold": "1TB"}):
            return self.client.submit(
                _run_on_worker,
                cloudpickle.dumps((work, calls)),
                key=f"{what}-{name}-{next(self.number)}-{self.mark}",
                workers=[place],
                allow_other_workers=True,
                pure=False,
            )

    def _places(self, names: Sequence[str]) -> dict[str, str]:
        """The worker of each name: the one it had, or the one with the fewest names per thread."""
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
        """Remember the worker of a name, unless Dask only moved it to one with no fewer names."""
        home = places[name]
        if place != home:
            load = Counter(places.values())
            if load[place] < load[home] or home not in self._workers():
                places[name] = place
        self.homes.pop(name, None)
        self.homes[name] = places[name]
        while len(self.homes) > max(_MAX_NAMES, 2 * len(places)):
            del self.homes[next(iter(self.homes))]

    def _fetch(
        self, waiting: dict[int, Any], ready: list[int], names: Sequence[str]
    ) -> list[tuple[str, list[Any]]]:
        """The workers and results of calls that are done."""
        replies: SimpleQueue[list[tuple[str, list[Any]]] | BaseException] = SimpleQueue()
        tasks = [waiting[at] for at in ready]
        self.client.loop.add_callback(_gather, self.client, tasks, replies)
        reply = self._next(replies)
        if isinstance(reply, BaseException):
            raise self._explained(reply, waiting, names)
        return reply

    def _next(self, replies: SimpleQueue[T]) -> T:
        """The next reply; raises if there are no workers left to send one."""
        while True:
            with suppress(Empty):
                return replies.get(timeout=_POLL)
            self._some_workers()

    def _some_workers(self) -> dict[str, int]:
        """The workers and their threads; waits up to `patience` seconds for the first one."""
        start = monotonic()
        while True:
            threads = self._workers()
            if threads:
                return threads
            if monotonic() - start > self.patience:
                raise ExecutorError(
                    f"there were no Dask workers for {self.patience:g} s; finished work is kept, "
                    "so start workers and run again"
                )
            sleep(_POLL)

    def _workers(self) -> dict[str, int]:
        """The workers and their threads."""
        if self.client.status != "running":
            raise self._lost()
        try:
            threads = self.client.sync(
                self.client.scheduler.ncores, callback_timeout=max(5.0, self.patience)
            )
        except _GONE as error:
            raise self._lost() from error
        return dict(threads)

    def _check(self, places: list[str]) -> None:
        """Raise if a worker has another version of evgp, whose results could differ."""
        new = [place for place in places if place not in self.known]
        if not new:
            return
        # A function of the standard library, because the worker may not have evgp.
        try:
            versions = self.client.run(version, "evgp", workers=new, on_error="return")
        except _GONE as error:
            raise self._lost() from error
        own = _own_version()
        for place, theirs in versions.items():
            if isinstance(theirs, PackageNotFoundError) or (
                isinstance(theirs, str) and theirs != own
            ):
                got = theirs if isinstance(theirs, str) else "none"
                raise ExecutorError(
                    f"expected evgp {own} on every Dask worker, got {got} on {place}; install "
                    "the same version there"
                )
            if isinstance(theirs, str):  # otherwise the worker died meanwhile
                self.known.add(place)

    def _explained(
        self, error: BaseException, waiting: dict[int, Any], names: Sequence[str]
    ) -> BaseException:
        """The error to raise for one of Dask."""
        from distributed import KilledWorker

        if isinstance(error, CancelledError):
            if self.client.status != "running":
                return self._lost()
            return ExecutorError(
                "tasks were cancelled on the Dask cluster; finished work is kept, so run again"
            )
        if not isinstance(error, KilledWorker):
            return error
        # Dask blames all tasks that were queued at a dead worker; the first one was running.
        sleep(_POLL)
        at = min((at for at, task in waiting.items() if task.status == "error"), default=0)
        times = error.allowed_failures + 1
        explained = ExecutorError(
            f"{times} Dask workers died while working on {names[at]}; give workers more memory, or "
            "make shards smaller, and run again"
        )
        explained.__cause__ = error
        return explained

    def _lost(self) -> ExecutorError:
        return ExecutorError(
            "the connection to the Dask scheduler was lost; finished work is kept, so start the "
            "cluster and run again"
        )

    def _cancel(self, tasks: list[Any]) -> None:
        """Cancel tasks whose results are no longer needed."""
        if tasks and self.client.status == "running":
            with suppress(*_GONE):
                self.client.cancel(tasks)


def _run_on_worker(sent: bytes) -> tuple[str, list[Any]]:
    """Run calls on a worker; returns its address and the results.

    The calls come as bytes, so that the scheduler need not unpickle them, nor have torch.
    """
    from distributed import get_worker

    work, calls = pickle.loads(sent)
    return get_worker().address, [work(*call) for call in calls]


async def _gather(client: Any, tasks: list[Any], replies: SimpleQueue[Any]) -> None:
    """Gather results, or the error, on the client's event loop.

    Not in our thread, which would wait forever if a worker died with its result.
    """
    try:
        replies.put(await client.gather(tasks))
    except (Exception, CancelledError) as error:
        replies.put(error)


@contextmanager
def _quiet(lost: bool) -> Iterator[None]:
    """Silence a client that has lost its scheduler: it would print a traceback when closed."""
    logger = getLogger("distributed.client")
    before, logger.disabled = logger.disabled, logger.disabled or lost
    try:
        yield
    finally:
        logger.disabled = before


def _own_version() -> str:
    """The version of evgp in this process."""
    return version("evgp")


def _distributed() -> ModuleType:
    try:
        import distributed
    except ImportError as error:
        raise ExecutorError(lacking("dask")) from error
    return distributed
