"""The page of a suite: one HTML file, losses first."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import log
from pathlib import Path

from markupsafe import Markup

from evgp._repr import several
from evgp.comparison.curves import LogAxis, Look, apart, looks, swatch
from evgp.comparison.judge import (
    Duel,
    Judgement,
    LostPlace,
    PoolScores,
    Savings,
    judge,
    pool_scores,
    rivals,
    savings,
    standing,
    unit,
)
from evgp.comparison.rows import LEARNERS, NETWORK, Row
from evgp.comparison.statistics import interval
from evgp.comparison.suite import COLD, ROUNDS, SuitePool, pools_of, recorded_rows
from evgp.comparison.summary import LEVEL, RANDOM, chance, ours, signed
from evgp.datasets import write_text
from evgp.report.axes import Axis, join, path, percent, stretched, tag
from evgp.report.render import asset, environment, self_contained

PAGE = "page.html"
SHOWN_LOSSES = 12


@dataclass(frozen=True, eq=False)
class Part:
    """One way to run a suite: cold starts with quick learners, or rounds with networks."""

    title: str
    judgement: Judgement
    rivals: Mapping[str, Savings]  # labels of the strategy of the page next to each rival's
    by_learner: Mapping[str, Mapping[str, Savings]]

    @property
    def mine(self) -> str | None:
        """The strategy that the page is about."""
        return ours(self.judgement.strategies)

    @property
    def headline(self) -> str:
        """The verdict of the test of that strategy against random picks."""
        saved = self.judgement.savings.get(self.mine or "")
        return "nothing to compare with random picks" if saved is None else saved.sentence()

    @property
    def against(self) -> str:
        """The verdict of the tests against all rivals, in one sentence, losses first."""
        return standing(self.rivals)


@dataclass(frozen=True)
class Rivalry:
    """How the strategy of the page does against another one."""

    rival: str
    losses: tuple[LostPlace, ...]
    tested: int
    duel: Duel
    saved: Savings | None

    @property
    def clear(self) -> int:
        """Number of losses that remain with Holm's correction."""
        return sum(loss.holm < LEVEL for loss in self.losses)


def parts_of(rows: Sequence[Row]) -> list[Part]:
    """Judge the cold starts and the rounds of a suite."""
    titles = {
        True: "Cold start: no labels, one batch",
        False: "Rounds: labels batch by batch, with trained networks",
    }
    parts = []
    for cold, title in titles.items():
        listed = COLD if cold else tuple(name for every in ROUNDS.values() for name in every)
        own = [row for row in rows if (row.batch == 0) == cold and row.strategy in listed]
        if not own:
            continue
        # Rounds are about the network that picks and is trained; quick learners are beside it.
        central = None if cold or all(row.learner != NETWORK for row in own) else NETWORK
        whole = judge(own, learner=central)
        mine = ours(whole.strategies)
        against = {} if mine is None else rivals(whole.pools, mine, whole.strategies)
        learners = [name for name in LEARNERS if any(row.learner == name for row in own)]
        strategies = [name for name in whole.strategies if name != RANDOM]
        by_learner = {
            name: savings(pool_scores(own, name), strategies)
            for name in learners
            if len(learners) > 1
        }
        parts.append(Part(title, whole, against, by_learner))
    return parts


def render_suite(
    suite: str, parts: Sequence[Part], *, command: str = "", version: str = "", rows: str = ""
) -> str:
    """Return one self-contained page with sortable tables, and curves with values on hover."""
    names = [name for part in parts for name in part.judgement.strategies]
    known = {
        "LEARNERS": LEARNERS, "RANDOM": RANDOM, "chance": chance, "several": several,
        "share": share, "rivalries": rivalries, "unit": unit, "swatch": swatch, "ranks": ranks,
        "forest": forest, "differences": differences, "MOST": SHOWN_LOSSES, "number": _number,
    }  # fmt: skip
    style = "".join(
        asset(room, name)
        for room, name in (
            ("report", "page.css"), ("comparison", "page.css"), ("comparison", "suite.css"),
        )
    )  # fmt: skip
    return self_contained(
        environment("comparison", **known),
        "suite.html",
        style=style,
        script=asset("comparison", "suite.js"),
        suite=suite,
        parts=parts,
        looks=looks(list(dict.fromkeys(names))),
        pools=_about(suite, parts),
        command=command,
        version=version,
        rows=rows,
    )


def publish_suite(
    suite: str, out: str | Path, *, command: str = "", version: str = ""
) -> list[Part]:
    """Write the page of a suite next to its rows."""
    parts = parts_of(recorded_rows(out))
    page = render_suite(suite, parts, command=command, version=version, rows="rows.parquet")
    write_text(Path(out) / PAGE, page)
    return parts


def _about(suite: str, parts: Sequence[Part]) -> list[SuitePool]:
    there = {pool.name for part in parts for pool in part.judgement.pools}
    return [pool for pool in pools_of(suite) if pool.name in there]


def share(saved: Savings | None) -> str:
    """Labels needed in percent, with the interval.

    >>> share(Savings("a", "b", 0.62, 0.55, 0.7, 0.0, 0.0, {}))
    '62\u202f% (55 to 70)'
    """
    if saved is None:
        return "–"
    low, high = (f"{100 * value:.0f}" for value in (saved.low, saved.high))
    return f"{100 * saved.ratio:.0f}\u202f% ({low} to {high})"


def _number(value: float) -> str:
    return signed(f"{value:+.1f}")


def rivalries(part: Part) -> list[Rivalry]:
    """Return random picks first, then the rivals with the most losses to them."""
    mine, whole = part.mine, part.judgement
    if mine is None:
        return []
    listed = [
        Rivalry(name, *whole.losses(mine, name), whole.duel(mine, name), part.rivals.get(name))
        for name in whole.strategies
        if name != mine
    ]
    return sorted(
        listed, key=lambda rivalry: (rivalry.rival != RANDOM, -rivalry.clear, -len(rivalry.losses))
    )


def forest(judgement: Judgement, styles: Mapping[str, Look]) -> Markup:
    """The share of random's labels that each strategy needs, with its interval."""
    every = sorted(judgement.savings.values(), key=lambda saving: saving.ratio)
    low = min(saving.low for saving in every)
    high = max(1.0, *(saving.high for saving in every))
    x = LogAxis(0.95 * low, 1.05 * high)
    step = 100 / len(every)
    ticks = [v for v in (0.25, 0.35, 0.5, 0.7, 1.0, 1.4, 2.0) if x.low <= v <= x.high]
    parts = [
        tag("text", f"{100 * v:.0f}\u202f%", class_="tick", x=percent(x.at(v)), y="100%",
            dy="1.5em", text_anchor="middle")
        for v in ticks
    ]  # fmt: skip
    at_one = percent(x.at(1.0))
    parts.append(tag("line", class_="grid even", x1=at_one, x2=at_one, y1=0, y2="100%"))
    for at, saved in enumerate(every):
        y, look = percent(step * (at + 0.5)), styles[saved.strategy].name
        title = tag("title", f"{saved.strategy}: {share(saved)} of the labels of random")
        ends = {"x1": percent(x.at(saved.low)), "x2": percent(x.at(saved.high))}
        parts.append(
            tag(
                "g", title,
                tag("line", class_=f"reach {look}", y1=y, y2=y, **ends),
                tag("circle", class_=f"dot {look}", cx=percent(x.at(saved.ratio)), cy=y, r=5),
                tag("text", saved.strategy, class_=f"who {look}", x=0, dx=-10, y=y, dy=".34em",
                    text_anchor="end"),
            )
        )  # fmt: skip
    return join(parts)


def ranks(judgement: Judgement, styles: Mapping[str, Look]) -> Markup:
    """Mean ranks on a line; bars join strategies that are not clearly different."""
    names = [name for name in judgement.strategies if name in judgement.ranks]
    x = Axis(1, max(2, len(names)), whole=True)
    places = apart([x.at(judgement.ranks[name]) for name in names], 100 / (len(names) + 1))
    parts = [tag("line", class_="grid even", x1=0, x2="100%", y1=30, y2=30)]
    for tick in range(1, len(names) + 1):
        at = percent(x.at(tick))
        parts += [
            tag("line", class_="grid even", x1=at, x2=at, y1=26, y2=34),
            tag("text", f"{tick}", class_="tick", x=at, y=18, text_anchor="middle"),
        ]
    bars = len(judgement.cliques)
    for number, group in enumerate(judgement.cliques):
        ends = [x.at(judgement.ranks[name]) for name in (group[0], group[-1])]
        title = tag("title", f"not clearly different: {', '.join(group)}")
        level = 44 + 9 * number
        parts.append(
            tag("line", title, class_="clique", y1=level, y2=level, x1=percent(ends[0] - 0.6),
                x2=percent(ends[1] + 0.6))
        )  # fmt: skip
    top = 56 + 9 * bars
    for name, place in zip(names, places, strict=True):
        look, rank = styles[name].name, judgement.ranks[name]
        at = percent(x.at(rank))
        title = tag("title", f"{name}: mean rank {rank:.2f}")
        parts.append(
            tag(
                "g", title,
                tag("circle", class_=f"dot {look}", cx=at, cy=30, r=4.5),
                tag("line", class_=f"lead {look}", x1=at, x2=percent(place), y1=30, y2=top),
                tag("svg", tag("text", f"{name} {rank:.1f}", class_=f"who {look}",
                    transform="rotate(55)", x=4, y=4), x=percent(place), y=top, overflow="visible"),
            )
        )  # fmt: skip
    return join(parts)


def differences(pool: PoolScores, styles: Mapping[str, Look]) -> Markup:
    """Draw the difference to random picks by number of labels; points show their value on hover."""
    if RANDOM not in pool.scores or len(pool.labels) < 2:
        return Markup("")
    lines = {}
    for name in pool.scores:
        first, second = pool.pair(name, RANDOM)
        if name != RANDOM and len(first) > 1:
            lines[name] = first - second
    if not lines:
        return Markup("")
    means = [value for gaps in lines.values() for value in gaps.mean(0)]
    room = max(1.0, 0.06 * (max(means) - min(means)))
    y = Axis(min(0.0, *means) - room, max(0.0, *means) + room)
    x = Axis(log(pool.labels[0]), log(pool.labels[-1]))
    ticks = [
        tag("text", f"{n:,}", class_="tick", x=percent(x.at(log(n))), y="100%", dy="1.7em",
            text_anchor="middle")
        for n in pool.labels
    ]  # fmt: skip
    zero = percent(100 - y.at(0))
    base = tag("line", class_="line random", x1=0, x2="100%", y1=zero, y2=zero)
    order = sorted(lines, key=lambda name: styles[name].width)
    drawn, points = [], []
    at = [log(n) for n in pool.labels]
    for name in order:
        look, gaps = styles[name].name, lines[name]
        mean = gaps.mean(0)
        drawn.append(
            tag("path", tag("title", name), class_=f"line {look}",
                d=path(x, y, list(zip(at, mean, strict=True))))
        )  # fmt: skip
        for place, labels in enumerate(pool.labels):
            low, high = interval(gaps[:, place].tolist())
            what = (
                f"{name}, {labels:,} labels: {_number(mean[place])} {unit(pool.kind)} "
                f"({_number(low)} to {_number(high)}), {len(gaps)} seeds"
            )
            points.append(
                tag("circle", tag("title", what), class_=f"dot {look}",
                    cx=percent(x.at(log(labels))), cy=percent(100 - y.at(mean[place])), r=4)
            )  # fmt: skip
    return join([_levels(y), *ticks, base, stretched(*drawn), *points])


def _levels(y: Axis) -> Markup:
    """Horizontal grid lines with their values."""
    parts = []
    for value in y.ticks():
        at = percent(100 - y.at(value))
        parts += [
            tag("line", class_="grid", x1=0, x2="100%", y1=at, y2=at),
            tag("text", signed(y.label(value)), class_="tick", x=-10, y=at, dy=".34em",
                text_anchor="end"),
        ]  # fmt: skip
    return join(parts)
