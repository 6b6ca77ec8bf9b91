"""What evgp answered, held against the brute force: every pick, gain, variance and bound."""

import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch

import evgp
from tests.hostile import brute
from tests.hostile.problems import DISK, UNIT, Answer, Problem, answered, modelled

Array = np.ndarray
# Rounding in evgp (incremental, over many steps) against that of one direct solve.
MARGIN = 10.0
# A swap must pay this much (docs/theory.md says until none helps; this is what rounding allows).
PAYS = 1e-6


class Faults(list[str]):
    """What is wrong, in sentences; `limit` is how closely the largest gain was looked at."""

    limit: float = np.inf

    def near(self, what: str, got: float | Array, want: float | Array, off: float | Array) -> None:
        """Numbers that should be equal up to `off`."""
        got, want = np.asarray(got, float), np.asarray(want, float)
        if got.shape != want.shape:
            self.append(f"{what} has shape {got.shape}, not {want.shape}")
        elif not (np.abs(got - want) <= MARGIN * off + 1e-12 * np.abs(want)).all():
            self.append(f"{what} is {got.tolist()}, not {want.tolist()} (give or take {off})")

    def right(self, what: str, holds: bool) -> None:
        """What should hold."""
        if not holds:
            self.append(what)


def check(problem: Problem, folder: Path) -> Faults | None:
    """All that is wrong with what evgp answers; None where the problem has no single answer."""
    model = modelled(problem)
    if model is None:
        return None
    if not model.prior > 0:
        return _refused(problem, folder)
    answer = answered(problem, folder)
    faults = Faults()
    faults.right(f"kernels {model.eps_rest:.0e} apart", model.eps_rest <= 1e-7)
    for text in answer.warnings:
        if match := re.search(r"added jitter of (\S+) x", text):
            faults.right(
                f"jitter though noise is {problem.noise:g}",
                problem.noise < 1e-6 or bool(problem.features),
            )
            model.eps += 10 * float(match[1])
    check_rows(problem, answer.made, faults)
    if faults:
        return faults
    if problem.door != "greedy":
        check_variances(problem, model, answer.made, faults)
        check_certificate(problem, model, answer.made, faults)
    check_search(problem, model, answer, faults, folder)
    return faults


def _refused(problem: Problem, folder: Path) -> Faults:
    faults = Faults()
    if problem.door == "greedy":
        return faults
    try:
        answered(problem, folder)
    except evgp.EvgpError:
        return faults
    faults.append("picks, though no test point has any variance")
    return faults


def check_rows(problem: Problem, made: evgp.Selection, faults: Faults) -> None:
    """The right number of distinct rows, each allowed, within the budget, none left that fits."""
    rows, money = made.indices.tolist(), problem.money()
    faults.right(f"rows {rows} are not distinct", len(set(rows)) == len(rows))
    faults.right(f"rows {rows} are not all allowed", set(rows) <= set(problem.free()))
    faults.right("gains have another length", made.gains.shape == (len(rows),))
    rest = money.allowed(sorted(set(problem.free()) - set(rows)), money.cost(rows))
    more = len(rows) < problem.most() and len(rest) > 0
    more &= problem.search != "two-rounds" or problem.prices is None  # it looks at finalists alone
    faults.right(
        f"{len(rows)} of {problem.most()} picks, though rows {rest} could be had", not more
    )
    faults.right(f"{len(rows)} picks of at most {problem.most()}", len(rows) <= problem.most())
    if problem.prices is None:
        faults.right("costs without prices", made.costs is None)
        return
    faults.near("costs", made.costs, problem.prices[rows] * UNIT, 1e-12)
    faults.right("the budget is passed", money.cost(rows) <= money.budget)


def check_variances(
    problem: Problem, model: brute.Model, made: evgp.Selection, faults: Faults
) -> None:
    """Of the test points: before any label, with those there were, after each pick, one by one."""
    rows = made.indices.tolist()
    faults.near("prior_variance", made.prior_variance, model.prior, model.eps * model.prior)
    means = [model.mean(rows[:j]) for j in range(len(rows) + 1)]
    faults.near("start_variance", made.start_variance, means[0][0], means[0][1])
    want, off = (np.array([mean[i] for mean in means[1:]]) for i in (0, 1))
    faults.near("variance_left", made.variance_left, want, off)
    if problem.features is not None:
        faults.right(
            "test points one by one", made.test_before.shape == made.test_after.shape == (0,)
        )
        return
    for name, subset in (("test_before", []), ("test_after", rows)):
        left, limit = model.left(subset)
        faults.near(name, getattr(made, name), left, limit)
    if problem.door == "pick":
        faults.near("noise_variance", made.settings["noise_variance"], model.s, model.eps * model.s)


def check_certificate(
    problem: Problem, model: brute.Model, made: evgp.Selection, faults: Faults
) -> None:
    """Floors, shares and numbers of labels, by all eigenvalues."""
    if problem.criterion != "ev":
        faults.right("a certificate of another criterion", made.certificate is None)
        return
    bound, off = brute.most(model)
    got, rows = made.certificate, made.indices.tolist()
    start, _ = model.mean([])
    counts = list(range(1, len(rows) + 1))
    if problem.prices is not None:
        prices = problem.prices[problem.free()]
        counts = [brute.affordable(prices, problem.money().cost(rows[:j])) for j in counts]
    eps = 2.4e-7 if problem.storage == "float32" and problem.features is None else 1e-14
    size = np.sqrt(model.weights @ np.square(_prior(model)) @ model.weights)
    falls = np.array([min(bound[min(j, len(bound) - 1)], start) for j in counts])
    slack = MARGIN * off + 1e-12 * model.prior
    room = slack + 2 * eps * size * np.sqrt(counts)  # of the matrix, and what is added for it
    floor = np.maximum(start - falls, 0)
    faults.right(
        f"floors {got.lowest} are above {floor}", (got.lowest <= floor + MARGIN * off).all()
    )
    faults.right(f"floors {got.lowest} are below {floor}", (got.lowest >= floor - room).all())
    left = np.array([model.mean(rows[:j])[0] for j in range(1, len(rows) + 1)])
    with np.errstate(divide="ignore", invalid="ignore"):
        share = np.where(falls > 0, np.clip((start - left) / falls, 0, 1), 1.0)
        unsure = np.where(falls > 0, (3 * room) / falls, np.inf)
    faults.right(
        f"shares {got.share}, not {share}", (np.abs(got.share - share) <= unsure + 1e-9).all()
    )
    beyond = len(problem.x) + 1
    allowance = eps * size * np.sqrt(np.arange(len(bound)))
    path = np.array([start, *left])
    for part, (low, high) in got.needed.items():
        fall = start - (1 - part) * model.prior
        # Rounding may lower the number that is promised, and must not raise it.
        least = _first(bound + 2 * allowance + slack >= fall * (1 - 1e-9), beyond)
        most = _first(bound - slack >= fall, beyond)
        faults.right(f"needed[{part}] from {low}, not {least} to {most}", least <= low <= most)
        want = _first(path <= (1 - part) * model.prior, -len(path))
        close = (np.abs(start - path - fall) <= slack).any()
        same = high == (None if want < 0 else want)
        faults.right(f"needed[{part}] to {high}, not {want}", same or bool(close))


def _first(holds: Array, otherwise: int) -> int:
    """The first place where it holds, at most `otherwise`."""
    return min(int(holds.argmax()), abs(otherwise)) if holds.any() else otherwise


def _prior(model: brute.Model) -> Array:
    size = model.size[model.test]
    return model.gram[np.ix_(model.test, model.test)] * np.outer(size, size)


# -- searches --------------------------------------------------------------------------------------


def check_search(
    problem: Problem, model: brute.Model, answer: Answer, faults: Faults, folder: Path
) -> None:
    """Each gain, and that each pick is what the search promises."""
    rows, result = answer.made.indices.tolist(), answer.made
    steps = [_step(problem, model, rows, j) for j in range(len(rows))]
    own = [(actual[at], off[at]) for _, actual, off, at in steps]
    want, off = np.array([item[0] for item in own]), np.array([item[1] for item in own])
    faults.near("gains", result.gains, want, off)
    most = int(want.argmax())
    faults.limit = MARGIN * off[most] / max(want[most], 1e-300)
    search = problem.search
    if search in ("auto", "exact", "sharded"):
        _any_rule(problem, faults, lambda money: _greedy(problem, model, money, steps))
        _best_of(problem, model, rows, faults, None)
    if search == "lazy":
        _any_rule(problem, faults, lambda money: _lazy(problem, model, money, rows, steps))
    if search == "stochastic":
        _stochastic(problem, model, rows, steps, faults)
    if search == "two-rounds":
        _two_rounds(problem, model, rows, faults)
    if search == "exchange":
        _exchange(problem, model, answer, steps, faults)


Step = tuple[Array, Array, Array, int]


def _step(problem: Problem, model: brute.Model, rows: list[int], j: int) -> Step:
    """Before pick j: the rows that could be had, their gains, how far off, and its place."""
    money = problem.money()
    free = [row for row in problem.free() if row not in rows[:j]]
    allowed = money.allowed(free, money.cost(rows[:j]))
    actual, off = brute.gains(model, problem.criterion, rows[:j], allowed)
    return allowed, actual, off, int(np.flatnonzero(allowed == rows[j])[0])


def _any_rule(problem: Problem, faults: Faults, wrong: Callable[[brute.Money], list[str]]) -> None:
    """Ranked by gain or by gain per cost: the picks must follow one of the two throughout."""
    tried = [wrong(money) for money in problem.rules()]
    if all(tried):
        faults.extend(tried[0])


def _greedy(
    problem: Problem, model: brute.Model, money: brute.Money, steps: list[Step]
) -> list[str]:
    """The best at every step, the lowest of several."""
    wrong = []
    # By its place a copy may be no test point; the difference of two percentiles is rounded, as are
    # sums over features; and where the kernel has half its digits, copies differ in noise.
    least = {"m": np.inf, "p": 1e-6 * model.prior}.get(problem.criterion[0], 0.0)
    least = max(least, 1e-6 * model.prior if model.by_features else 0.0)
    least = least if model.eps_rest < 1e-12 else np.inf
    for j, (allowed, actual, off, at) in enumerate(steps):
        per = money.rates(allowed)
        near = brute.rounding(model, problem.criterion) / per
        if text := brute.is_wrong(actual / per, MARGIN * off / per, at, near):
            wrong.append(f"pick {j}, row {allowed[at]}: {text}")
        copies = _copies(problem, allowed[:at], int(allowed[at]))
        copies = [row for row in copies if per[allowed == row] == per[at]]
        if copies and actual[at] > least:
            wrong.append(f"pick {j}, row {allowed[at]}: rows {copies} before it are copies of it")
    return wrong


def _copies(problem: Problem, others: Array, row: int) -> list[int]:
    flat = problem.x.reshape(len(problem.x), -1)
    return [int(other) for other in others if (flat[other] == flat[row]).all()]


def _lazy(
    problem: Problem, model: brute.Model, money: brute.Money, rows: list[int], steps: list[Step]
) -> list[str]:
    """Nobody whose gain was above that of the pick at every step so far; copies as above."""
    least = np.full(len(problem.x), np.inf)
    wrong = []
    for j, (allowed, actual, off, at) in enumerate(steps):
        per = money.rates(allowed)
        least[allowed] = np.minimum(least[allowed], (actual - MARGIN * off) / per)
        near = brute.rounding(model, problem.criterion)
        score = (actual[at] + MARGIN * off[at] + near) / per[at]
        better = allowed[brute.lowered(least[allowed].max()) > score] if len(allowed) else []
        if len(better):
            wrong.append(f"pick {j}, row {rows[j]}: {least[allowed].max()!r} was passed over")
    return wrong


def _best_of(
    problem: Problem,
    model: brute.Model,
    rows: list[int],
    faults: Faults,
    draw: Callable[[Array], Array] | None,
) -> None:
    """With prices: the very picks of the better of both runs, where no call was close."""
    whole = draw or (lambda subset: subset)
    runs = [
        brute.greedy(model, problem.criterion, problem.free(), problem.most(), money, draw=whole)
        for money in problem.rules()
    ]
    best = brute.best_of(runs)
    if best.clear:
        faults.right(f"picks {rows}, not {best.rows}", rows == best.rows)


def _stochastic(
    problem: Problem, model: brute.Model, rows: list[int], steps: list[Step], faults: Faults
) -> None:
    """The best of the sample, which the seed determines."""
    generator = torch.Generator().manual_seed(problem.seed)
    sample = problem.options.get("sample", 1000)

    def draw(allowed: Array) -> Array:
        return allowed[torch.randperm(len(allowed), generator=generator)[:sample].numpy()]

    if len(problem.rules()) > 1:
        _best_of(problem, model, rows, faults, draw)
        return
    money = problem.rules()[0]
    for j, (allowed, actual, off, at) in enumerate(steps):
        seen = np.isin(allowed, draw(allowed))
        if not seen[at]:
            faults.append(f"pick {j}, row {rows[j]}, is not in the sample")
            return
        per, place = money.rates(allowed)[seen], int(seen[:at].sum())
        near = brute.rounding(model, problem.criterion) / per
        if text := brute.is_wrong(actual[seen] / per, MARGIN * off[seen] / per, place, near):
            faults.append(f"pick {j}, row {rows[j]}, of a sample: {text}")


def _two_rounds(problem: Problem, model: brute.Model, rows: list[int], faults: Faults) -> None:
    """Every shard by itself, then all finalists; the best of these, filled up."""
    n, shards = len(problem.x), problem.options.get("shards", 2)
    step = DISK if problem.method == "sharded" else -(-n // shards)
    runs = []
    for money in problem.rules():

        def run(free: list[int], money: brute.Money = money, **more: brute.Run) -> brute.Run:
            return brute.greedy(model, problem.criterion, free, problem.most(), money, **more)

        parts = [[r for r in problem.free() if low <= r < low + step] for low in range(0, n, step)]
        finals = [item for item in map(run, parts) if item.rows]
        every = [row for final in finals for row in final.rows]
        runs.append(run(every, begun=brute.best_of([run(every), *finals])))
    best = brute.best_of(runs)
    if best.clear:
        faults.right(f"picks {rows}, not {best.rows}", rows == best.rows)


def _exchange(
    problem: Problem, model: brute.Model, answer: Answer, steps: list[Step], faults: Faults
) -> None:
    """Never worse than the greedy it began with; ranked within; no swap left that pays."""
    rows, free = answer.made.indices.tolist(), problem.free()

    def within(money: brute.Money) -> list[str]:
        inside = []
        for allowed, actual, off, at in steps:
            subset = np.isin(allowed, rows)
            inside.append((allowed[subset], actual[subset], off[subset], int(subset[:at].sum())))
        return _greedy(problem, model, money, inside)

    _any_rule(problem, faults, within)
    total = sum(step[1][step[3]] for step in steps)
    unsure = MARGIN * sum(step[2][step[3]] for step in steps)
    kept = False
    for money in problem.rules():
        plain = brute.greedy(model, problem.criterion, free, problem.most(), money)
        short = sum(plain.gains) - total
        allowed = unsure + MARGIN * plain.off + 2 * brute.TIE * abs(total)
        if plain.clear and short > allowed:
            faults.append(f"a sum of gains of {total!r}, {short:.1e} less than the plain greedy's")
        kept |= not plain.clear or set(plain.rows) == set(rows)
    limit = problem.options.get("passes", 20)
    if not answer.passes or not all(0 < pass_ < limit for pass_ in answer.passes):
        return
    # Where swaps were made but the plain greedy's list was kept, all of them together gained less
    # than a tie. The linear form may even add up to less in another order, and information falls
    # where swaps leave money for more rows.
    kept &= max(answer.passes) > 1
    if not (kept and problem.criterion in ("linearised", "mi")):
        faults.extend(_swaps(problem, model, rows, 2 * brute.TIE * abs(total) if kept else 0.0))


def _swaps(problem: Problem, model: brute.Model, rows: list[int], least: float) -> list[str]:
    """Swaps that would pay more than `least`."""
    money, wrong = problem.money(), []
    outside = sorted(set(problem.free()) - set(rows))
    for row in rows:
        others = [item for item in rows if item != row]
        allowed = money.allowed(outside, money.cost(others))
        if not len(allowed):
            continue
        actual, off = brute.gains(model, problem.criterion, others, np.array([row, *allowed]))
        must = 1.1 * PAYS * abs(actual[0]) + 1.1 * brute.rounding(model, problem.criterion)
        more = actual[1:] - MARGIN * off[1:] - actual[0] - MARGIN * off[0]
        pays = more > max(must, least)
        if pays.any():
            wrong.append(f"row {row} could be swapped for {allowed[pays].tolist()}")
    return wrong
