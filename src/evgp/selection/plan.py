"""Plan a run before it starts: choose how to run it, and estimate its memory and time."""

import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, partial, wraps
from inspect import getdoc, signature
from typing import Any, ParamSpec, TypeVar, cast
from weakref import ReferenceType

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Generator

from evgp._checks import can, instance, recorded
from evgp._executor import silent
from evgp._linalg import JITTER
from evgp._machine import available_memory
from evgp._progress import reporting
from evgp._reading import reading_within
from evgp._repr import duration, html_card
from evgp.datasets import PoolData
from evgp.errors import DataWarning, EvgpWarning, MemoryPlanError, PoolError, size
from evgp.pool import Selection
from evgp.search import Greedy, choose_greedy
from evgp.search.greedy import winner
from evgp.selection.backends import BACKENDS, Backend, DenseBackend, FeaturesBackend
from evgp.selection.features import rank_for
from evgp.selection.request import Request
from evgp.selection.run import check_by_features, gains_in_units

P = ParamSpec("P")
T = TypeVar("T")
# Share of the free memory that a run may plan to use.
_SHARE = 0.8
# Features replace an exact kernel that fits if it would take more seconds than this, and this many
# times as long as features. Times are for a fixed machine, so that picks do not depend on yours:
# two cores, with these speeds in operations and bytes read per second.
_LONG, _TIMES = 120.0, 8.0
_SPEEDS = (4e10, 1e10)
_SMALL = 1_000  # numbers of rows and test points below which no run takes that long
_BLOCK = 512  # rows whose gains are computed at once
# A relative reduction of the variance below this is rounding error.
_NOTHING = 1e-9


@dataclass(frozen=True, eq=False)
class Plan:
    """How a request will run on this machine, and its estimated memory and time.

    `evgp.plan` makes it, and `run()` runs it. `seconds` is a rough estimate of the time, made when
    it is first asked for.

    Attributes
    ----------
    request : Request
        What was asked for.
    backend : Backend
        How the picks will be made: dense, features or sharded.
    search : Greedy
        The search that will be used.
    storage : {"float64", "float32"}
        Type of the large matrix.
    memory : int
        Bytes that the run takes at its peak.
    available : int
        Bytes that are free, or that the request allows.
    room : int
        Bytes that the run may use.
    advice : str
        What to do if the run does not fit; empty if it does.
    times : float
        How many times as long the exact kernel would take if features were chosen because they are
        faster; else 0.

    Examples
    --------
    >>> from evgp.selection import plan
    >>> made = plan((1_000, 8), 20)
    >>> made.method, made.fits
    ('dense', True)
    """

    request: Request
    backend: Backend
    search: Greedy
    storage: str
    memory: int
    available: int
    room: int
    advice: str = ""
    times: float = 0.0

    @property
    def why(self) -> str:
        """Why features were chosen although the exact kernel fits; empty if they were not."""
        if not self.times:
            return ""
        return (
            f"the exact kernel (method='dense') would take about {self.times:.0f} times as long as "
            f"{self.backend.kind} features"
        )

    @cached_property
    def seconds(self) -> float:
        """A rough estimate of the time, from a short measurement of this machine's speed."""
        return self.backend.seconds(self.storage, self.search)

    @property
    def fits(self) -> bool:
        """Whether the run stays within the memory that it may use."""
        return self.memory <= self.room

    @property
    def method(self) -> str:
        """Name of the backend: dense, features or sharded."""
        return self.backend.name

    @property
    def kind(self) -> str:
        """Name of the features that replace the kernel matrix; empty if nothing replaces it."""
        return self.backend.kind

    @property
    def greedy(self) -> str:
        """The search algorithm as text."""
        return recorded(self.search)

    @property
    def k(self) -> int:
        """Number of picks to aim for."""
        return self.request.k

    @property
    def rows(self) -> int:
        """Number of rows in the pool."""
        return len(self.request.x)

    @property
    def test_points(self) -> int:
        """Number of test points, after thinning."""
        return self.request.sizes.tests

    def facts(self) -> dict[str, object]:
        """Return the plan as plain values, as printed by `evgp plan --json`."""
        return {
            "rows": len(self.request.x),
            "features": self.request.sizes.width,
            "test_points": self.request.sizes.tests,
            "k": self.request.k,
            "method": self.method,
            "kind": self.backend.kind,
            "storage": self.storage,
            "greedy": self.greedy,
            "memory": self.memory,
            "available": self.available,
            "seconds": self.seconds,
            "fits": self.fits,
            "advice": self.advice,
            "why": self.why,
            "disk": self.backend.disk,
            "scratch": can(self.backend, "scratch"),
            "room": self.room,
        }

    def run(self, generator: Generator | None = None) -> Selection:
        """Make the picks; the selection records its settings and the warnings issued on the way.

        A run that would not fit is refused. `generator` replaces the request's seed.
        """
        if generator is not None:
            instance(generator, "a generator", Generator, "torch.Generator()")
        if not self.memory <= self.room:
            self.check()
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", EvgpWarning)
            if self.backend.name != "dense":
                self._remark_backend()
            limit = self.request.memory
            with reporting(self.request.progress) as report, reading_within(limit):
                backend: Any = self.backend
                shown = None if report is silent else report
                backend = replace(backend, request=replace(self.request, progress=shown))
                picks = backend.run(self.search, self.storage, generator)
            _remark_picks(picks, self.request.noise)
        for warning in caught:
            warnings.warn(warning.message, stacklevel=3)
        texts = (str(item.message) for item in caught if issubclass(item.category, EvgpWarning))
        data: Any = self.request.data
        messages = tuple(dict.fromkeys((*data.notes, *texts)))
        names = picks.settings.pop("names", data.features)
        ids, source = data.ids_of(picks.indices), self.request.source
        frame: Any = source() if isinstance(source, ReferenceType) else None
        # A pandas frame keeps its index.
        in_frame = hasattr(frame, "iloc") and len(frame) == len(data)
        rows = frame.iloc[picks.indices] if in_frame else data.kept_of(picks.indices)
        selection = replace(picks, ids=ids, settings=self._settings(picks), warnings=messages)
        return selection.picked_from(source, rows, names)

    def _settings(self, picks: Selection) -> dict[str, object]:
        """Return the settings that are needed to repeat the run."""
        request, data = self.request, cast(PoolData, self.request.data)
        reading: dict[str, object] = {}
        if how := getattr(data, "options", None):
            reading["scale"] = data.scale
        if how and data.features:
            reading |= {
                "id": how.id,
                "drop": list(how.drop) or None,
                "cost_column": how.costs,
                "impute": how.impute,
                "max_categories": how.max_categories,
            }
        return {
            "rows": len(request.x),
            "features": request.sizes.width,
            "test_points": request.sizes.tests,
            "labelled": request.sizes.labelled,
            "candidates": request.sizes.candidates,
            "network": request.network,
            "criterion": recorded(request.criterion),
            "greedy": recorded(self.search),
            "noise": request.noise,
            "noise_variance": max(request.noise, JITTER) * picks.prior_variance,
            "jitter": JITTER if request.noise < JITTER else 0.0,
            "storage": self.storage,
            "method": self.backend.name,
            "kernel_features": self.backend.kind or None,
            "thin": request.thin,
            "seed": request.seed,
            **request.given,
            **reading,
            **picks.settings,
        }

    def check(self) -> None:
        """Refuse a run that would not fit in memory."""
        if self.memory > self.room:
            raise MemoryPlanError(
                f"expected a run within {size(self.room)} of memory, got {self._what()}, which "
                f"takes {size(self.memory)}; {self.advice}"
            )

    def _what(self) -> str:
        rows, request = f"{len(self.request.x):,} rows", self.request
        if self.method == "dense":
            restricted = request.candidates is not None
            rows = f"{request.sizes.candidates:,} candidates" if restricted else rows
            return f"{rows} x {request.sizes.tests:,} test points in {self.storage}"
        where = "on the disk" if self.backend.disk else f"in {self.storage}"
        return (
            f"{rows} of {request.sizes.width:,} columns with {self.backend.kind} features {where}"
        )

    def _remark_backend(self) -> None:
        request, sizes = self.request, self.request.sizes
        width = self.backend.width
        if request.k > width / 2 and width < sizes.rows and self.backend.kind != "raw":
            warnings.warn(
                f"{request.k:,} picks are many for {width:,} features ({self.backend.kind}), which "
                f"describe little of the variance left after {width // 2:,} picks; allow more "
                f"memory, or pass features='nystrom-{rank_for(request.k)}'",
                DataWarning,
                stacklevel=3,
            )
        own_choice = (
            request.features is None and request.method == "auto" and request.executor is None
        )
        if self.times:
            warnings.warn(
                f"{self.why}, so the picks are those of the features", DataWarning, stacklevel=3
            )
        elif own_choice:
            warnings.warn(
                f"the {sizes.rows:,} x {sizes.tests:,} matrix of the exact kernel would not fit "
                f"in memory, so the picks are those of {self.backend.kind} features",
                DataWarning,
                stacklevel=3,
            )

    def __repr__(self) -> str:
        return f"Plan({self.method}, {size(self.memory)} of memory, fits: {self.fits})"

    def __str__(self) -> str:
        sizes, kind = self.request.sizes, self.backend.kind
        verdict = "fits" if self.fits else "does not fit"
        how = f"{self.method} ({kind})" if kind else self.method
        disk = f", {size(self.backend.disk)} on the disk" if self.backend.disk else ""
        text = (
            f"{sizes.rows:,} rows x {sizes.width:,} features, {sizes.tests:,} test points, "
            f"{sizes.k:,} picks: {how}, {self.greedy}, {self.storage} storage, about "
            f"{size(self.memory)} of memory ({verdict} in the {size(self.available)} available)"
            f"{disk} and about {duration(self.seconds)}."
        )
        more = self.advice or self.why
        return f"{text} {more[0].upper()}{more[1:]}." if more else text

    def _repr_html_(self) -> str:
        sizes, disk = self.request.sizes, self.backend.disk
        lines = {
            "pool": f"{sizes.rows:,} rows x {sizes.width:,} features",
            "test points": f"{sizes.tests:,}",
            "picks": f"{sizes.k:,}",
            "method": f"{self.method} ({self.kind})" if self.kind else self.method,
            "search": self.greedy,
            "storage": self.storage,
            "memory": f"about {size(self.memory)} of {size(self.available)} available",
            "disk": size(disk) if disk else "none",
            "time": f"about {duration(self.seconds)}",
        }
        title = "This run fits in memory" if self.fits else "This run does not fit in memory"
        more = self.advice or self.why
        advice = [f"{more[0].upper()}{more[1:]}."] if more else []
        return html_card(title, {"plan": list(lines), "": list(lines.values())}, advice)


def planned(request: Request) -> Plan:
    """Decide how to run a request: the first backend that fits, the search and the storage.

    Features replace an exact kernel that fits if it would take minutes, and many times as long.
    """
    available = available_memory()
    room = int(_SHARE * available) if request.memory is None else request.memory
    backend, times = _backend(request, room), 0.0
    if max(request.sizes.rows, request.sizes.tests) > _SMALL:
        backend, times = _faster(backend, room)
    storage = "float32" if backend.disk else request.storage
    if storage == "auto":
        storage = "float64" if backend.memory("float64") <= room else "float32"
    sharded = request.place() if backend.name == "sharded" else None
    search = choose_greedy(request.search, request.criterion, final=request.final, sharded=sharded)
    need = backend.memory(storage)
    return Plan(
        request,
        backend,
        search,
        storage,
        memory=need,
        available=available if request.memory is None else room,
        room=room,
        advice="" if need <= room else _advice(backend, storage, room),
        times=times,
    )


def _backend(request: Request, room: int) -> Backend:
    """Return the first backend that fits in memory, or else the one that needs least."""
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
            "thin= has no effect in a sharded run, which summarises all test points in one matrix; "
            "leave it out"
        )
    backends: list[Backend] = []
    for name in names:
        if name == "sharded" and len(names) > 1 and not able:
            continue
        backend: Backend = BACKENDS[name](request)
        if names[0] == "dense" and backends and FeaturesBackend(request).width >= len(request.x):
            break  # as many features as rows save no memory
        while backend.memory("float32") > room and (less := backend.in_less()) is not backend:
            backend = less
        backends.append(backend)
        # If the user asked for float64, a matrix that only fits in float32 leads to advice instead.
        free = request.storage == "auto" or name != "features"
        if backend.memory("float32" if free else request.storage) <= room:
            return backend
    return min(backends, key=lambda backend: backend.memory("float32"))


def _faster(dense: Backend, room: int) -> tuple[Backend, float]:
    """Return features that are much faster than an exact kernel that takes minutes, if there are.

    Also return how many times as long the exact kernel would take; 0 if it stays.
    """
    request = dense.request
    free = request.method == "auto" and request.features is None and request.thin is None
    # An empirical kernel takes the time of its network, which features would take too.
    usable = can(request.criterion, "by_features") and not hasattr(request.kernel, "cost")
    if dense.name != "dense" or not (free and usable):
        return dense, 0.0
    search = choose_greedy(request.search, request.criterion, final=request.final)
    if (exact := dense.seconds("float32", search, _SPEEDS)) <= _LONG:
        return dense, 0.0
    features = FeaturesBackend(request)
    # Features represent the remaining variance badly after half as many picks and labels.
    few = 2 * (request.k + request.sizes.labelled) > features.width
    few = few or features.width >= len(request.x)
    storage = "float32" if request.storage == "auto" else request.storage
    if few or features.memory(storage) > room:
        return dense, 0.0
    fast = features.seconds("float32", search, _SPEEDS)
    return (features, exact / fast) if exact > _TIMES * fast else (dense, 0.0)


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
    """Warn about picks that gain nothing, or less than nothing."""
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
            f"the {len(picks)} picks reduce the variance by less than a share of {_NOTHING:g}, so "
            "other rows would do as well: the test points may be far from the pool, or on another "
            "scale",
            DataWarning,
            stacklevel=3,
        )
        return
    nothing = min(max(1e-9, 3 * noise), 1e-5) * picks.prior_variance
    enough = int((picks.variance_left > nothing).sum()) + 1
    if picks.prior_variance > 0 and enough < len(picks):
        warnings.warn(
            f"after {enough} of {len(picks)} picks no variance is left except noise (the pool has "
            "no more distinct points, or the network is linear), so the others add nothing",
            DataWarning,
            stacklevel=3,
        )


# What other packages call our arguments.
_MEANT = {"search": "greedy", "optimizer": "greedy", "optimiser": "greedy"}


def with_arguments_of(make: Callable[P, Request], run: Callable[[Request], T]) -> Callable[P, T]:
    """Give a function of a request the arguments of `make`, and their documentation."""
    arguments = signature(make).replace(return_annotation=signature(run).return_annotation)

    @wraps(run)
    def call(*args: P.args, **kwargs: P.kwargs) -> T:
        try:
            arguments.bind(*args, **kwargs)
        except TypeError as error:
            if run.__name__ == "plan" and args and isinstance(args[0], int):
                return run(_by_sizes(make, *args, **kwargs))
            meant = next((new for old, new in _MEANT.items() if old in kwargs), None)
            hint = "" if meant is None else f"; did you mean {meant}=?"
            raise TypeError(f"{run.__name__}(): {error}{hint}") from None
        return run(make(*args, **kwargs))

    call.__signature__ = arguments  # type: ignore[attr-defined]
    _, heading, parameters = (getdoc(make) or "").partition("Parameters\n")
    call.__doc__ = (getdoc(run) or "").replace("{parameters}", heading + parameters)
    return call


@partial(with_arguments_of, Request.of)
def pick(request: Request) -> Selection:
    """Choose the k rows of a pool to label first, before any label exists.

    {parameters}

    Returns
    -------
    Selection
        The picks in order, with their gains, the variance left after each, and a certificate of
        how good they are. Picks are row numbers of the pool, from 0.

    See Also
    --------
    evgp.plan : estimates what a run costs. One that would not fit in memory is refused.

    Examples
    --------
    >>> import numpy as np
    >>> x = np.random.default_rng(0).normal(size=(100, 3))
    >>> pick(x, k=5).indices.shape
    (5,)
    """
    return planned(request).run()


def _by_sizes(make: Callable[..., Request], *args: Any, **kwargs: Any) -> Request:
    """Accept the form `plan(n, d, k, m=..., labelled=count)` of version 0.1 with a warning."""
    n, d, k = (*args, *(kwargs.pop(name) for name in ("d", "k")[len(args) - 1 :]))
    shape = d if isinstance(d, tuple) else (d,)
    warnings.warn(
        f"plan({n}, {d}, {k}) is now plan(({n}, {', '.join(map(str, shape))}), {k})",
        DeprecationWarning,
        stacklevel=3,
    )
    tests, known = kwargs.pop("m", None), kwargs.pop("labelled", 0)
    x_test = None if tests is None else (tests, *shape)
    labelled = range(known) if isinstance(known, int) else known
    return make((n, *shape), k, x_test=x_test, labelled=labelled, **kwargs)


@partial(with_arguments_of, Request.of)
def plan(request: Request) -> Plan:
    """Decide how `evgp.pick` would make these picks, and estimate its memory and time.

    `plan(x, k).run()` equals `pick(x, k)`. Instead of the points `x` (and `x_test`), a tuple can
    give their shape, to plan for data that is not available yet; such a plan cannot be run. A
    network without an analytic kernel is timed on a few samples.

    {parameters}

    Returns
    -------
    Plan
        The chosen method, and its estimated memory and time; `run()` makes the picks.

    Examples
    --------
    >>> plan((50_000, 384), 500, memory="2GB").method
    'features'
    """
    return planned(request)


def stepwise(
    plan: Plan, *, with_gains: bool = True
) -> tuple[Int[np.ndarray, " k"], Float[np.ndarray, "k c"]]:
    """Return the picks of exact greedy search over the exact kernel, and all gains before each.

    The gain of a row is NaN once it is picked; without `with_gains` all gains are NaN.

    >>> from evgp.selection import plan
    >>> x = np.array([[0.0], [1.0], [3.0]])
    >>> picks, gains = stepwise(plan(x, 2, scale=None, method="dense"))
    >>> picks.tolist(), gains.shape, np.nanargmax(gains, axis=1).tolist()
    ([2, 1], (2, 3), [2, 1])
    """
    plan.check()
    criterion, free = plan.request.criterion, plan.request.rows()
    opened = DenseBackend(plan.request).opened(plan.storage)
    posterior = opened.start(free)
    left = torch.ones(len(free), dtype=torch.bool)
    rows, gains = [], np.full((plan.request.k, len(free)), np.nan)
    for step in range(plan.request.k):
        best = winner(posterior, criterion, left)
        assert best is not None  # k rows are free
        if with_gains:
            for part in torch.split(left.nonzero().squeeze(1), _BLOCK):
                gains[step, part.numpy()] = criterion.gains(posterior, part).numpy()
        rows.append(best[0])
        left[best[0]] = False
        posterior.observe_(best[0])
    return free[rows].numpy(), gains_in_units(gains, criterion, opened.unit)
