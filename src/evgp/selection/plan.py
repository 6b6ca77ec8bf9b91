"""What a run will take and how it will be done, decided once, before it starts."""

import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import wraps
from inspect import signature
from typing import Any, ParamSpec, TypeVar

from torch import Generator

from evgp._checks import can, instance
from evgp._errors import DataWarning, EvgpWarning, MemoryPlanError, PoolError
from evgp._linalg import JITTER
from evgp._machine import available_memory
from evgp._progress import reporting
from evgp._reading import reading_within
from evgp._repr import html_card
from evgp.pool import Selection
from evgp.search import Greedy
from evgp.selection.backends import Backend, DenseBackend, backend_named, features_of
from evgp.selection.checks import choose_greedy
from evgp.selection.request import Request
from evgp.selection.run import check_by_features

P = ParamSpec("P")
T = TypeVar("T")
# Of the memory that is free, how much a run may plan to use.
_SHARE = 0.8
# A fall of the variance by a smaller share than this says nothing.
_NOTHING = 1e-9


@dataclass(frozen=True, eq=False)
class Plan:
    """How a request will be run on this machine, what that takes, and what else there is.

    `run()` does just that. `memory` and `disk` are bytes, `seconds` a rough guess; `room` is the
    memory that the run may use, and `advice` what to do where it does not fit.
    """

    request: Request
    backend: Backend
    search: Greedy
    storage: str
    memory: int
    available: int
    room: int
    seconds: float
    advice: str = ""

    @property
    def fits(self) -> bool:
        """Whether the run stays within the memory that it may use."""
        return self.memory <= self.room

    @property
    def method(self) -> str:
        """The name of the backend: dense, features or sharded."""
        return self.backend.name

    @property
    def kind(self) -> str:
        """The features that take the place of the matrix; empty where nothing does."""
        return self.backend.kind

    @property
    def greedy(self) -> str:
        """The search in words."""
        return repr(self.search)

    @property
    def k(self) -> int:
        """How many picks it aims at."""
        return self.request.k

    @property
    def rows(self) -> int:
        """How many rows the pool has."""
        return len(self.request.x)

    @property
    def test_points(self) -> int:
        """How many test points count."""
        return self.request.sizes.tests

    def facts(self) -> dict[str, object]:
        """The plan as plain values, as `evgp plan --json` prints it."""
        return {
            "rows": len(self.request.x),
            "features": self.request.sizes.width,
            "test_points": self.request.sizes.tests,
            "k": self.request.k,
            "method": self.method,
            "kind": self.backend.kind,
            "storage": self.storage,
            "greedy": repr(self.search),
            "memory": self.memory,
            "available": self.available,
            "seconds": self.seconds,
            "fits": self.fits,
            "advice": self.advice,
            "disk": self.backend.disk(),
            "scratch": can(self.backend, "scratch"),
            "room": self.room,
        }

    def run(self, generator: Generator | None = None) -> Selection:
        """The picks, with their settings and the warnings of their making, which are raised too.

        A run that would not fit is refused. `generator` takes the place of the request's seed.
        """
        if generator is not None:
            instance(generator, "a generator", Generator, "torch.Generator()")
        self.check()
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", EvgpWarning)
            if self.method != "dense":
                self._remark_backend()
            limit = self.request.memory
            with reporting(self.request.progress) as report, reading_within(limit):
                backend: Any = self.backend
                backend = replace(backend, request=replace(self.request, progress=report))
                picks = backend.run(self.search, self.storage, generator)
            _remark_picks(picks, self.request.noise)
        for one in caught:
            warnings.warn(one.message, stacklevel=3)
        texts = (str(one.message) for one in caught if issubclass(one.category, EvgpWarning))
        data = self.request.data
        ids = () if data is None else data.ids_of(picks.indices)
        return replace(picks, ids=ids, settings=self._settings(picks), warnings=tuple(texts))

    def _settings(self, picks: Selection) -> dict[str, object]:
        """What is needed to repeat the run."""
        asked = self.request
        return {
            "rows": len(asked.x),
            "features": asked.sizes.width,
            "test_points": asked.sizes.tests,
            "labelled": asked.sizes.labelled,
            "candidates": asked.sizes.candidates,
            "network": asked.network,
            "criterion": repr(asked.criterion),
            "greedy": repr(self.search),
            "noise": asked.noise,
            "noise_variance": max(asked.noise, JITTER) * picks.prior_variance,
            "jitter": JITTER if asked.noise < JITTER else 0.0,
            "storage": self.storage,
            "method": self.method,
            "kernel_features": self.backend.kind or None,
            "thin": asked.thin,
            "seed": asked.seed,
            **asked.given,
        }

    def check(self) -> None:
        """Stop before a run that would not fit."""
        if not self.fits:
            raise MemoryPlanError(
                f"expected a run within {size(self.room)} of memory, got {self._what()}, which "
                f"takes {size(self.memory)}; {self.advice}"
            )

    def _what(self) -> str:
        rows, asked = f"{len(self.request.x):,} rows", self.request
        if self.method == "dense":
            return f"{rows} x {asked.sizes.tests:,} test points in {self.storage}"
        where = "on the disk" if self.backend.disk() else f"in {self.storage}"
        return f"{rows} of {asked.sizes.width:,} columns with {self.backend.kind} features {where}"

    def _remark_backend(self) -> None:
        asked, sizes = self.request, self.request.sizes
        own_choice = asked.features is None and asked.method == "auto" and asked.executor is None
        if own_choice:
            warnings.warn(
                f"the {sizes.rows:,} x {sizes.tests:,} matrix of the exact kernel would not fit "
                f"in memory, so the picks are those of {self.backend.kind} features",
                DataWarning,
                stacklevel=3,
            )

    def __str__(self) -> str:
        sizes, kind = self.request.sizes, self.backend.kind
        verdict = "fits" if self.fits else "does not fit"
        how = f"{self.method} ({kind})" if kind else self.method
        disk = f", {size(self.backend.disk())} on the disk" if self.backend.disk() else ""
        text = (
            f"{sizes.rows:,} rows x {sizes.width:,} features, {sizes.tests:,} test points, "
            f"{sizes.k:,} picks: {how}, {self.search!r}, {self.storage} storage, about "
            f"{size(self.memory)} of memory ({verdict} in the {size(self.available)} available)"
            f"{disk} and about {_duration(self.seconds)}."
        )
        return f"{text} {self.advice[0].upper()}{self.advice[1:]}." if self.advice else text

    def _repr_html_(self) -> str:
        sizes, disk = self.request.sizes, self.backend.disk()
        lines = {
            "pool": f"{sizes.rows:,} rows x {sizes.width:,} features",
            "test points": f"{sizes.tests:,}",
            "picks": f"{sizes.k:,}",
            "method": f"{self.method} ({self.kind})" if self.kind else self.method,
            "search": self.greedy,
            "storage": self.storage,
            "memory": f"about {size(self.memory)} of {size(self.available)} available",
            "disk": size(disk) if disk else "none",
            "time": f"about {_duration(self.seconds)}",
        }
        title = "This run fits in memory" if self.fits else "This run does not fit in memory"
        advice = [f"{self.advice[0].upper()}{self.advice[1:]}."] if self.advice else []
        return html_card(title, {"plan": list(lines), "": list(lines.values())}, advice)


def planned(request: Request) -> Plan:
    """Decide how a request is run: the first backend that fits, the search, the storage."""
    available = available_memory()
    room = int(_SHARE * available) if request.memory is None else request.memory
    backend = _backend(request, room)
    storage = "float32" if backend.disk() else request.storage
    if storage == "auto":
        storage = "float64" if backend.memory("float64") <= room else "float32"
    search = choose_greedy(
        request.search,
        request.sizes.candidates,
        request.k,
        request.criterion,
        sharded=backend.name == "sharded",
    )
    need = backend.memory(storage)
    return Plan(
        request,
        backend,
        search,
        storage,
        memory=need,
        available=available if request.memory is None else room,
        room=room,
        seconds=backend.seconds(storage, search),
        advice="" if need <= room else _advice(backend, storage, room),
    )


def _backend(request: Request, room: int) -> Backend:
    """The first backend that fits; where none does, the one that takes least."""
    able = can(request.criterion, "by_features")
    if request.executor is not None or request.method != "auto":
        names = [request.method if request.executor is None else "sharded"]
    elif request.features is not None:
        names = ["features", "sharded"]
    elif able and request.thin is None:
        names = ["dense", "features", "sharded"]
    else:
        names = ["dense"]
    if names == ["sharded"]:
        check_by_features(request.criterion, "shards")
    if names == ["sharded"] and request.thin is not None:
        raise PoolError(
            "expected no thin for a sharded run, where any number of test points are one matrix; "
            "leave it out"
        )
    made: list[Backend] = []
    for name in names:
        if name == "sharded" and len(names) > 1 and not able:
            continue
        if names[0] == "dense" and made and features_of(request)[1] >= len(request.x):
            break  # as many features as rows take no less
        backend = backend_named(name, request)
        if backend.memory("float32") > room:
            backend = backend.in_less()
        made.append(backend)
        # A matrix that would fit in float32 is advised, not replaced.
        free = request.storage == "auto" or name != "features"
        if backend.memory("float32" if free else request.storage) <= room:
            return backend
    return min(made, key=lambda one: one.memory("float32"))


def _advice(backend: Backend, storage: str, room: int) -> str:
    need, request = backend.memory(storage), backend.request
    if room < need <= _SHARE * available_memory():
        return f"this machine has enough for it, so allow memory='{size(need)}'"
    if storage == "float64" and backend.memory("float32") <= room:
        return f"float32 storage would take {size(backend.memory('float32'))}"
    for points in (20_000, 10_000, 5_000, 2_000, 1_000):
        fewer = DenseBackend(replace(request, thin=points)).memory("float32")
        if points < request.sizes.tests and fewer <= room:
            return f"float32 storage with thin={points} (test points) would take {size(fewer)}"
    return "pick from a sample of the rows, or use a machine with more memory"


def _remark_picks(picks: Selection, noise: float) -> None:
    """Say what a reader of the picks should know."""
    worse = int((picks.gains < 0).sum())
    if worse:
        warnings.warn(
            f"{worse} of {len(picks)} picks have a negative gain: the criterion is not monotone, "
            "and fewer labels would serve it better",
            DataWarning,
            stacklevel=3,
        )
    start, left = picks.start_variance, picks.variance_left
    if len(left) and 0 < start and not start - left[-1] > _NOTHING * start:
        warnings.warn(
            f"the {len(picks)} picks lower the variance by less than {_NOTHING:g} of it, so that "
            "others would do as well: the test points may be far from the pool, or on another "
            "scale",
            DataWarning,
            stacklevel=3,
        )
        return
    nothing = min(max(1e-9, 3 * noise), 1e-5) * picks.prior_variance
    enough = int((picks.variance_left > nothing).sum()) + 1
    if picks.prior_variance > 0 and enough < len(picks):
        warnings.warn(
            f"the first {enough} of {len(picks)} picks leave no variance beyond the noise (the "
            "pool has no more distinct points, or the network is linear), so the others add "
            "nothing",
            DataWarning,
            stacklevel=3,
        )


def asking(make: Callable[P, Request]) -> Callable[[Callable[[Request], T]], Callable[P, T]]:
    """Give a function of a request the arguments that a request is made from."""

    def taking(run: Callable[[Request], T]) -> Callable[P, T]:
        words = signature(make).replace(return_annotation=signature(run).return_annotation)

        @wraps(run)
        def call(*args: P.args, **kwargs: P.kwargs) -> T:
            try:
                words.bind(*args, **kwargs)
            except TypeError as error:
                raise TypeError(f"{run.__name__}(): {error}") from None
            return run(make(*args, **kwargs))

        call.__signature__ = words  # type: ignore[attr-defined]
        return call

    return taking


def by_sizes(call: Callable[P, T]) -> Callable[P, T]:
    """Take `plan(n, d, k, m=..., labelled=count)` too, as version 0.1 had it, with a warning."""

    @wraps(call)
    def either(*args: Any, **kwargs: Any) -> T:
        if args and isinstance(args[0], int):
            n, d, k = (*args, *(kwargs.pop(name) for name in ("d", "k")[len(args) - 1 :]))
            shape = d if isinstance(d, tuple) else (d,)
            warnings.warn(
                f"plan({n}, {d}, {k}) is now plan(({n}, {', '.join(map(str, shape))}), {k})",
                DeprecationWarning,
                stacklevel=2,
            )
            tests, known = kwargs.pop("m", None), kwargs.pop("labelled", 0)
            kwargs["x_test"] = None if tests is None else (tests, *shape)
            kwargs["labelled"] = range(known) if isinstance(known, int) else known
            args, kwargs["k"] = ((n, *shape),), k
        return call(*args, **kwargs)

    return either


@by_sizes
@asking(Request.of)
def plan(request: Request) -> Plan:
    """How `evgp.pick` would make these picks, and what that takes on this machine.

    Takes what `evgp.pick` takes; `plan(x, k).run()` is `pick(x, k)`. In place of the points `x`
    (and `x_test`) a tuple gives their shape, to plan for data that is not at hand; such a plan
    cannot be run. A network with a finite reading only is tried on a few samples to see what it
    takes.

    >>> plan((50_000, 384), 500, memory="2GB").method
    'features'
    """
    return planned(request)


def size(count: int) -> str:
    """Bytes for a person.

    >>> size(1_500_000_000)
    '1.5 GB'
    """
    for unit, scale in (("TB", 1e12), ("GB", 1e9), ("MB", 1e6)):
        if count >= scale:
            return f"{count / scale:.1f} {unit}"
    return f"{count / 1e3:.1f} kB"


def _duration(seconds: float) -> str:
    """Seconds for a person.

    >>> _duration(200)
    '3 minutes'
    """
    if seconds < 1.5:
        return "a second"
    if seconds < 90:
        return f"{seconds:.0f} seconds"
    return f"{seconds / 60:.0f} minutes" if seconds < 5400 else f"{seconds / 3600:.1f} hours"
