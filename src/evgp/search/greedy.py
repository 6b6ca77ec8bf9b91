"""The budget, which candidate is best, and the searches that take one candidate after another."""

import heapq
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from math import inf
from typing import ClassVar, Protocol, TypeVar, runtime_checkable

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Generator, Tensor

from evgp._checks import can, integer, keep, recorded, shown
from evgp._executor import Executor, Progress, silent
from evgp.criteria import Criterion
from evgp.errors import NotFiniteGain, PluginError
from evgp.pool import Selection
from evgp.posterior import Posterior
from evgp.posterior.posterior import FINALISTS, Preparing

Opens = Callable[[Int[Tensor, " c"]], Posterior]

# Gains that differ by less than this share of the best, or by no more than rounding, are a tie,
# and the lowest index wins: rounding must not decide.
TIE = 1e-7


@dataclass(frozen=True)
class Budget:
    """How much may be picked: k rows, and as many as the money buys if rows have costs.

    `by_rate` ranks candidates by gain per cost instead of gain.
    """

    k: int
    costs: Float[Tensor, " c"] | None = None
    money: float = inf
    by_rate: bool = False

    def price(self, rows: list[int]) -> float:
        """Total cost of these rows; zero if rows have no costs."""
        return 0.0 if self.costs is None else float(self.costs[rows].sum())

    def affords(self, row: int, spent: float) -> bool:
        """Whether the remaining money buys this row."""
        return self.costs is None or float(self.costs[row]) <= self._rest(spent)

    def allowed(self, free: Bool[Tensor, " c"], spent: float) -> Bool[Tensor, " c"]:
        """The free candidates that the remaining money buys."""
        return free if self.costs is None else free & (self.costs <= self._rest(spent))

    def _rest(self, spent: float) -> float:
        # A tolerance of 1e-12 for sums like 0.1 + 0.2, which should fit in 0.3.
        return self.money * (1 + 1e-12) - spent

    def rates(self) -> Float[Tensor, " c"] | None:
        """Costs by which gains are divided, if they are."""
        return self.costs if self.by_rate else None


@runtime_checkable
class Greedy(Protocol):
    """A search: from gains to picks.

    A search may have further attributes, which are used where present; a missing one means no:

    - `nested`: its picks for k begin those for any larger k, so that a strategy computes them once;
    - `swaps`: it exchanges picks, which the estimated time allows for;
    - `over_shards(executor)`: returns what searches in its place in a sharded run: an object whose
      `take(shards, start, progress=...)` returns `FeaturePicks`, as `Sharded` and `TwoRounds` do;
    - `resumes`: this `take` also accepts `journal=`, which records finished picks.
    """

    def __call__(
        self,
        start: Opens,
        criterion: Criterion,
        candidates: Int[Tensor, " c"],
        budget: Budget,
        *,
        generator: Generator,
        progress: Progress = silent,
    ) -> Selection:
        """Picks among the candidates, with their gains."""
        ...


def winner(
    posterior: Posterior,
    criterion: Criterion,
    allowed: Bool[Tensor, " c"],
    per: Float[Tensor, " c"] | None = None,
) -> tuple[int, float] | None:
    """The best allowed row and its gain, computed in float64; None if no row is allowed."""
    settled = contenders(posterior, criterion, allowed, per).gains
    if not settled:
        return None
    row = min(settled)
    return row, settled[row] * (1.0 if per is None else float(per[row]))


@dataclass(frozen=True)
class Contenders:
    """Rows that tie with the best, with their gains, per cost if rows are ranked so.

    `lost` bounds the rounding error of each gain. If rows that tie too were not computed, `most`
    bounds their gains, and `reach` their gains with rounding.
    """

    gains: dict[int, float]
    lost: dict[int, float]
    most: float = -inf
    reach: float = -inf


def contenders(
    posterior: Posterior,
    criterion: Criterion,
    allowed: Bool[Tensor, " c"],
    per: Float[Tensor, " c"] | None = None,
    *,
    every: bool = False,
) -> Contenders:
    """Find the rows whose gains (per cost, with `per`) tie with the best.

    Running sums may be rounded (float32 storage), so ceilings only decide which rows to compute:
    they are computed exactly, a few at a time, until no other row can reach the best. A gain ties
    with the best if it is within 1e-7 of it, or within rounding; the lowest row of these wins, so
    that storage, threads and chunks make no difference. If no gain can exceed rounding and none is
    negative, all rows tie, and only the lowest is computed, unless `every` row is asked for.
    """
    if not bool(allowed.any()):
        return Contenders({}, {})
    count = len(allowed)
    lost = posterior.noise().new_tensor(rounding(criterion, posterior))
    lost = lost.expand(count) if per is None else lost / per
    ceilings = one_each(criterion, "ceiling", criterion.ceilings(posterior), count)
    ceilings = torch.where(allowed, ceilings if per is None else ceilings / per, -inf)
    most = float(ceilings.max())
    if not every and _all_tie(criterion, most, float(lost[allowed].min())):
        row = int(allowed.nonzero()[0])
        gain = float(gains_of(criterion, posterior, torch.tensor([row])))
        gain = gain if per is None else gain / float(per[row])
        return Contenders(
            {row: gain}, {row: float(lost[row])}, most, float((ceilings + lost).max())
        )
    ceilings = ceilings + lost
    settled: dict[int, float] = {}
    look, best, floor = 1, -inf, -inf
    while True:
        rows = torch.topk(ceilings, min(look, len(ceilings))).indices
        if bool(ceilings[rows].isnan().any()):  # topk puts NaN first
            raise not_finite(criterion, posterior, ceilings, torch.arange(len(ceilings)))
        rows = rows[(ceilings[rows] >= floor) & (ceilings[rows] > -inf)]
        if len(rows) == 0:
            break
        rows = rows.sort().values
        gains = gains_of(criterion, posterior, rows)
        gains = gains if per is None else gains / per[rows]
        settled.update(zip(rows.tolist(), gains.tolist(), strict=True))
        best = max(settled.values())
        floor = tie_of(best)
        ceilings[rows] = -inf
        look = min(2 * look, 512)
    off = dict(zip(settled, lost[list(settled)].tolist(), strict=True))
    near = {row: gain for row, gain in settled.items() if gain + off[row] >= floor}
    return Contenders(near, {row: off[row] for row in near})


def _all_tie(criterion: Criterion, most: float, lost: float) -> bool:
    """Whether gains up to `most` all tie, as none is negative and rounding is at least `lost`."""
    return can(criterion, "monotone") and tie_of(most) <= lost


def gains_of(
    criterion: Criterion, posterior: Posterior, rows: Int[Tensor, " r"]
) -> Float[Tensor, " r"]:
    """Gains of these candidates; refuse any that is missing, NaN or infinite."""
    gains = one_each(criterion, "gain", criterion.gains(posterior, rows), len(rows))
    if not bool(gains.isfinite().all()):
        raise not_finite(criterion, posterior, gains, rows)
    return gains


def one_each(criterion: Criterion, what: str, values: object, count: int) -> Tensor:
    """Refuse what a criterion may return in place of one number for each candidate."""
    if isinstance(values, Tensor) and values.shape == (count,):
        return values
    raise PluginError(
        f"expected a tensor with one {what} for each of {count} candidates from the criterion "
        f"{recorded(criterion)}, got {shown(values)}"
    )


def not_finite(
    criterion: Criterion, posterior: Posterior, gains: Float[Tensor, " r"], rows: Int[Tensor, " r"]
) -> NotFiniteGain:
    """Return the error for the first gain that is NaN, or else infinite."""
    wrong = gains.isnan() if bool(gains.isnan().any()) else ~gains.isfinite()
    at = int(wrong.nonzero()[0])
    step = len(getattr(posterior, "observed", list)()) + 1
    return NotFiniteGain(recorded(criterion), float(gains[at]), int(rows[at]), step)


def tie_of(best: float) -> float:
    """The smallest gain that ties with the best, apart from rounding."""
    return best - TIE * abs(best)


def rounding(criterion: Criterion, posterior: Posterior) -> float:
    """The rounding error of a gain, if the criterion gives it, else 0."""
    bound = getattr(criterion, "rounding", None)
    return 0.0 if bound is None else float(bound(posterior))


@runtime_checkable
class Gained(Protocol):
    """Picks with their gains."""

    @property
    def gains(self) -> Iterable[float]:
        """The gain of each pick."""


Picks = TypeVar("Picks", bound=Gained)


def best_of(choices: Sequence[Picks]) -> Picks:
    """The picks with the largest sum of gains; of several within 1e-7 of it, the first.

    The same rows in another order gain the same up to rounding, which depends on the shards.

    >>> from evgp.pool import Selection
    >>> orders = [Selection(np.array(rows), np.array([0.1, 0.2])) for rows in ([3, 4], [4, 3])]
    >>> best_of(orders).indices
    array([3, 4])
    """
    sums = [float(sum(picks.gains)) for picks in choices]
    floor = tie_of(max(sums))
    return next(picks for picks, gain in zip(choices, sums, strict=True) if gain >= floor)


def selection(
    candidates: Int[Tensor, " c"], rows: list[int], gains: list[float], budget: Budget
) -> Selection:
    """Picks as pool indices."""
    costs = None if budget.costs is None else budget.costs[rows].numpy()
    return Selection(candidates[rows].numpy(), np.array(gains, dtype=np.float64), costs=costs)


_FIRST = 8  # picks that are guessed at once, until guesses were right
_EACH = 32  # candidates for each of them


@dataclass
class Lookahead:
    r"""Guesses the next picks, so that the large matrix is read once for all of them.

    Among the r candidates with the largest gains some greedy steps need only their covariance K
    and $G = \sum_t w_t \mathrm{cov}(\cdot, t) \mathrm{cov}(\cdot, t)^\top$. A pick with variance
    $v_*$ and noise $s$ has $a = K_* / \sqrt{v_* + s}$ and $g = G_* / \sqrt{v_* + s}$, and then
    $K \leftarrow K - a a^\top$ and
    $G \leftarrow G - a g^\top - g a^\top + a a^\top G_{**} / (v_* + s)$: O(r²) a step.

    A guess decides nothing: every pick is made by `winner`, over all candidates. Only what a
    pick does to the running sums was computed before. Guesses grow as long as they are right.
    """

    posterior: Posterior
    criterion: Criterion
    size: int = _FIRST
    waiting: list[int] = field(default_factory=list)

    def prepare_(self, budget: Budget, free: Bool[Tensor, " c"], spent: float, left: int) -> None:
        """Guess the next picks if no guess is left, and have the posterior prepare for them."""
        posterior: Posterior = self.posterior
        if self.waiting or not (can(self.criterion, "certifiable") and left > 1):
            return
        if not isinstance(posterior, Preparing) or (most := posterior.worth()) < 2:
            return
        allowed = budget.allowed(free, spent)
        size = min(self.size, most, left, int(allowed.sum()))
        if size > 1:
            self.waiting = self._guess(posterior, budget, allowed, spent=spent, size=size)
            posterior.expect_(self.waiting)

    def picked_(self, row: int) -> None:
        """Note a pick; a wrong guess ends the others, and the next guess is shorter."""
        if not self.waiting:
            return
        if self.waiting.pop(0) != row:
            self.size = max(2, self.size - len(self.waiting) - 1)
            self.waiting = []
        elif not self.waiting:
            self.size *= 2

    def _guess(
        self,
        posterior: Preparing,
        budget: Budget,
        allowed: Bool[Tensor, " c"],
        *,
        spent: float,
        size: int,
    ) -> list[int]:
        """The picks of some greedy steps among the candidates with the largest gains."""
        assert isinstance(posterior, Posterior)
        gains = self.criterion.ceilings(posterior)
        per = budget.rates()
        gains = torch.where(allowed, gains if per is None else gains / per, -inf)
        lost = rounding(self.criterion, posterior) / (1.0 if per is None else float(per.max()))
        if _all_tie(self.criterion, float(gains.max()), lost):
            return [int(row) for row in allowed.nonzero()[:size]]
        rows = (
            torch.topk(gains, min(_EACH * size, FINALISTS, int(allowed.sum())))
            .indices.sort()
            .values
        )
        k, g = posterior.pairs(rows)
        fall, v = posterior.fall()[rows], posterior.variance()[rows]
        noise, unused = posterior.noise()[rows], torch.ones(len(rows), dtype=torch.bool)
        costs = None if budget.costs is None else budget.costs[rows]
        within = replace(budget, k=len(rows), costs=costs)
        guessed: list[int] = []
        while len(guessed) < size and bool((free := within.allowed(unused, spent)).any()):
            gains = fall / (v.clamp(min=0) + noise)
            gains = torch.where(free, gains if per is None else gains / per[rows], -inf)
            at = int((gains >= tie_of(float(gains.max()))).nonzero()[0])
            scale = float(v[at].clamp(min=0) + noise[at])
            a, b, own = k[at] / scale**0.5, g[at] / scale**0.5, float(g[at, at]) / scale
            fall += a * (a * own - 2 * b)
            v -= a.square()
            k.addr_(a, a, alpha=-1)
            g.addr_(a, b, alpha=-1).addr_(b, a, alpha=-1).addr_(a, a, alpha=own)
            unused[at] = False
            spent += within.price([at])
            guessed.append(int(rows[at]))
        return guessed


@dataclass(frozen=True)
class Exact:
    """Greedy search: pick the best candidate, update the posterior, repeat.

    With the expected variance the c x m matrix is read once for several picks (`Lookahead`), and a
    pick costs O(k (c + m)); with other criteria it is read once per pick.
    """

    nested: ClassVar[bool] = True

    def over_shards(self, executor: Executor) -> Greedy:
        """Return the same search over shards."""
        from evgp.search.sharded import Sharded

        return Sharded(executor=executor)

    def __call__(
        self,
        start: Opens,
        criterion: Criterion,
        candidates: Int[Tensor, " c"],
        budget: Budget,
        *,
        generator: Generator,
        progress: Progress = silent,
    ) -> Selection:
        """Picks among the candidates, with their gains."""
        posterior = start(candidates)
        free = torch.ones(len(candidates), dtype=torch.bool)
        rows, gains = self.fill_(posterior, criterion, free, budget, progress=progress)
        return selection(candidates, rows, gains, budget)

    def fill_(
        self,
        posterior: Posterior,
        criterion: Criterion,
        free: Bool[Tensor, " c"],
        budget: Budget,
        *,
        taken: tuple[int, ...] = (),
        progress: Progress = silent,
    ) -> tuple[list[int], list[float]]:
        """Add picks until k is reached or the money is spent; mark them as not free."""
        rows: list[int] = []
        gains: list[float] = []
        spent = budget.price(list(taken))
        ahead = Lookahead(posterior, criterion)
        while len(taken) + len(rows) < budget.k:
            ahead.prepare_(budget, free, spent, budget.k - len(taken) - len(rows))
            best = winner(posterior, criterion, budget.allowed(free, spent), budget.rates())
            if best is None:
                break
            row, gain = best
            posterior.observe_(row)
            ahead.picked_(row)
            free[row] = False
            spent += budget.price([row])
            rows.append(row)
            gains.append(gain)
            progress("picking", len(taken) + len(rows), budget.k)
        return rows, gains


_LOOK = 16
_BLOCK = 512  # rows whose gains are computed at once
# Running sums with errors above this share of the largest were rounded to float32.
_ROUNDED = 1e-10


@dataclass(frozen=True)
class Lazy:
    """Greedy search with a priority queue of stale gains; only the top is brought up to date.

    Equal to `Exact` where gains only shrink. Expected variance does not always have diminishing
    returns, so there it is a heuristic, though a good one. A pick costs O(m k) for each gain
    brought up to date, and no read of the c x m matrix. If that is stored in float32, all gains are
    computed once at the start, so that rounding does not decide which ones are updated later.

    Minoux, Accelerated greedy algorithms for maximizing submodular set functions, 1978.
    """

    nested: ClassVar[bool] = True

    def __call__(
        self,
        start: Opens,
        criterion: Criterion,
        candidates: Int[Tensor, " c"],
        budget: Budget,
        *,
        generator: Generator,
        progress: Progress = silent,
    ) -> Selection:
        """Picks among the candidates, with their gains."""
        posterior = start(candidates)
        per = budget.rates()
        scale = torch.ones(len(candidates), dtype=torch.float64) if per is None else per
        lost = rounding(criterion, posterior) / scale
        least = float(lost.min())
        stale = (_first_gains(posterior, criterion, len(candidates)) / scale + lost).tolist()
        heap = [(-gain, row) for row, gain in enumerate(stale)]
        heapq.heapify(heap)
        rows: list[int] = []
        gains: list[float] = []
        spent = 0.0
        while len(rows) < budget.k:
            fresh: dict[int, float] = {}
            best, rest = -inf, heap[:0]
            if heap and _all_tie(criterion, -heap[0][0] - least, least):
                heap = [entry for entry in heap if budget.affords(entry[1], spent)]
                heap.sort(key=lambda entry: entry[1])
                heap, rest = heap[:1], heap[1:]
            while heap and -heap[0][0] >= tie_of(best):
                # Money only shrinks: a row that is too expensive now stays so.
                top = [row for row in _top(heap) if budget.affords(row, spent)]
                for part in (
                    torch.split(torch.tensor(top, dtype=torch.int64), _BLOCK) if top else ()
                ):
                    values = (gains_of(criterion, posterior, part) / scale[part]).tolist()
                    fresh.update(zip(part.tolist(), values, strict=True))
                    best = max(best, *values)
            if not fresh:
                break
            row = min(row for row, gain in fresh.items() if gain + float(lost[row]) >= tie_of(best))
            posterior.observe_(row)
            spent += budget.price([row])
            rows.append(row)
            gains.append(fresh.pop(row) * float(scale[row]))
            for other, gain in fresh.items():
                heapq.heappush(heap, (-gain - float(lost[other]), other))
            if rest:
                heap += rest
                heapq.heapify(heap)
            progress("picking", len(rows), budget.k)
        return selection(candidates, rows, gains, budget)


def _first_gains(posterior: Posterior, criterion: Criterion, count: int) -> Float[Tensor, " c"]:
    """Gains before the first pick, whatever type the matrix is stored in."""
    ceilings = one_each(criterion, "ceiling", criterion.ceilings(posterior), count)
    if bool(ceilings.isnan().any()):
        raise not_finite(criterion, posterior, ceilings, torch.arange(len(ceilings)))
    if not bool((posterior.slack() > _ROUNDED * posterior.fall().max()).any()):
        return ceilings
    rows = torch.arange(len(ceilings))
    return torch.cat([gains_of(criterion, posterior, part) for part in torch.split(rows, _BLOCK)])


def _top(heap: list[tuple[float, int]]) -> list[int]:
    """A few rows from the top, which are likely to be needed next, and all that tie with them.

    So copies, whose stale gains differ by rounding at most, are brought up to date together.
    """
    rows: list[int] = []
    last = inf
    while heap and (len(rows) < _LOOK or -heap[0][0] >= tie_of(last)):
        stale, row = heapq.heappop(heap)
        last = -stale
        rows.append(row)
    return rows


@dataclass(frozen=True)
class Stochastic:
    """Greedy search that picks the best of `sample` random candidates, drawn again for each pick.

    With `sample` at least the number of candidates it is `Exact`.

    Mirzasoleiman et al., Lazier Than Lazy Greedy, AAAI 2015.
    """

    sample: int = 1000

    def __post_init__(self) -> None:
        keep(self, sample=integer(self.sample, "sample", 1, why="the candidates of each pick"))

    def __call__(
        self,
        start: Opens,
        criterion: Criterion,
        candidates: Int[Tensor, " c"],
        budget: Budget,
        *,
        generator: Generator,
        progress: Progress = silent,
    ) -> Selection:
        """Picks among the candidates, with their gains."""
        posterior = start(candidates)
        free = torch.ones(len(candidates), dtype=torch.bool)
        rows: list[int] = []
        gains: list[float] = []
        spent = 0.0
        while len(rows) < budget.k:
            left = budget.allowed(free, spent).nonzero().squeeze(1)
            drawn = left[torch.randperm(len(left), generator=generator)[: self.sample]]
            seen = torch.zeros_like(free)
            seen[drawn] = True
            best = winner(posterior, criterion, seen, budget.rates())
            if best is None:
                break
            row, gain = best
            posterior.observe_(row)
            free[row] = False
            spent += budget.price([row])
            rows.append(row)
            gains.append(gain)
            progress("picking", len(rows), budget.k)
        return selection(candidates, rows, gains, budget)
