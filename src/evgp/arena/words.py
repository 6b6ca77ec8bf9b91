"""Numbers and sentences for people: every claim that a comparison makes in prose."""

from collections.abc import Sequence
from math import ceil, floor, isfinite, log10

from evgp.arena.row import MEASURES
from evgp.arena.summary import LEVEL, RANDOM, Comparison, Contest, Entrant, Lead, Saved, ours
from evgp.report.words import THIN, number, several

MINUS = "\u2212"
FEW = 5
_AGAINST = {
    "better": "better than random",
    "worse": "worse than random",
    "unclear": "not clearly different from random",
}


def verdict(contest: Contest) -> str:
    """How it ended on one dataset, in one sentence, and where evgp stands if it did not win."""
    where, entrants = f"On {contest.dataset}", contest.entrants
    if len(contest.labels) < 2:
        return f"{where}, one round was run: ranks and tests need a learning curve of two at least."
    if len(entrants) == 1:
        return f"{where}, only {entrants[0].strategy} was run, so there is nothing to compare."
    if not contest.leads:
        return f"{where}, nothing can be ranked: the central metrics are missing."
    mine = ours(tuple(one.strategy for one in entrants))
    before = [None, *(lead.best for lead in contest.leads)]
    clauses = [
        _clause(contest, lead, mine, "it also" if lead.best == last else lead.best)
        for lead, last in zip(contest.leads, before, strict=False)
    ]
    return f"{where}, over the whole run, {'; '.join(clauses)}."


def _clause(contest: Contest, lead: Lead, mine: str | None, who: str) -> str:
    measure = MEASURES[lead.metric]
    what, _, detail = measure.words.partition(", ")
    remarks = [detail, _margin(lead)]
    if RANDOM not in (lead.best, lead.second):
        remarks.append(_against(contest, lead.best, lead.metric))
    most = "lowest" if measure.lower else "highest"
    made = f"{who} has the {most} {what}{_in_brackets(remarks)}"
    if mine is None or mine == lead.best:
        return made
    place, test = _place(contest, mine, lead.metric), _against(contest, mine, lead.metric)
    return f"{made}, while {mine} {place}{_in_brackets([test])}" if place else made


def _in_brackets(remarks: Sequence[str]) -> str:
    shown = ", ".join(remark for remark in remarks if remark)
    return f" ({shown})" if shown else ""


def _margin(lead: Lead) -> str:
    if lead.second is None:
        return ""
    if lead.clear:
        return f"ahead of {lead.second} beyond noise"
    if lead.paired is None or lead.paired.p is None:
        return f"ahead of {lead.second} by a margin that cannot be tested"
    return f"within noise of {lead.second}"


def _against(contest: Contest, strategy: str, metric: str) -> str:
    entrant = contest.entrant(strategy)
    test = None if entrant is None else entrant.score(metric).paired
    if test is None:
        return ""
    if test.verdict == "unclear" and test.p is not None and test.p < LEVEL:
        way = "better" if test.better else "worse"
        return f"{way} than random by the plain p, not by the adjusted one"
    return _AGAINST[test.verdict]


def _place(contest: Contest, strategy: str, metric: str) -> str:
    entrant = contest.entrant(strategy)
    rank = None if entrant is None else entrant.score(metric).rank
    if rank is None:
        return ""
    ran = sum(one.score(metric).rank is not None for one in contest.entrants)
    return f"comes {ordinal(int(rank))} of {ran}" if rank % 1 == 0 else f"shares rank {rank:g}"


def ordinal(place: int) -> str:
    """A place in a contest.

    >>> [ordinal(place) for place in (1, 2, 3, 4, 11, 22)]
    ['1st', '2nd', '3rd', '4th', '11th', '22nd']
    """
    ending = {1: "st", 2: "nd", 3: "rd"}.get(place % 10, "th")
    return f"{place}{'th' if 11 <= place % 100 <= 13 else ending}"


def title(comparison: Comparison) -> str:
    """What met where, in one line."""
    count = len(comparison.contests)
    where = comparison.contests[0].dataset if count == 1 else several(count, "dataset")
    return f"{several(len(comparison.strategies), 'strategy').replace('ys', 'ies')} on {where}"


def lead(comparison: Comparison) -> list[str]:
    """The whole of it in one or two sentences."""
    if len(comparison.contests) == 1:
        return [comparison.contests[0].verdict]
    first = comparison.standings[0]
    if first.rank is None:
        return ["Nothing could be ranked; each dataset says below why."]
    among = f"Over {several(len(comparison.contests), 'dataset')}, {first.strategy} has the best"
    made = [f"{among} mean rank, {first.rank:.2g} of {len(comparison.standings)}"]
    mine = next((s for s in comparison.standings if s.strategy == comparison.ours), first)
    if mine is not first and mine.rank is not None:
        place = ordinal(1 + comparison.standings.index(mine))
        made[0] += f"; {mine.strategy} comes {place} with {mine.rank:.2g}"
    made[0] += "."
    if mine.tested:
        made.append(
            f"Against random, {mine.strategy} is clearly better in {mine.better} of "
            f"{several(mine.tested, 'comparison')} and clearly worse in {mine.worse or 'none'}."
        )
        ran = [contest.entrant(mine.strategy) for contest in comparison.contests]
        fewest = min(len(one.seeds) for one in ran if one is not None)
        if fewest < FEW:
            made[-1] = f"{made[-1][:-1]}; with {several(fewest, 'seed')} that is a hint, no proof."
    return made


def notes(entrants: Sequence[Entrant]) -> list[str]:
    """What a reader must know before trusting the tests of one dataset."""
    made = []
    every = sorted({seed for one in entrants for seed in one.seeds})
    for one in entrants:
        lacking = [seed for seed in every if seed not in one.seeds]
        if lacking:
            which = ", ".join(map(str, lacking))
            made.append(
                f"{one.strategy} lacks seed{'s' if len(lacking) > 1 else ''} {which}: its means "
                "are over fewer seeds, and its tests use those it shares."
            )
        made += _lost(one)
    counts = sorted({count for one in entrants for count in one.members})
    if len(counts) > 1:
        made.append(
            f"Between {counts[0]:,} and {counts[-1]:,} members were trained: variances over few "
            "members are the less certain, so compare those strategies with care."
        )
    fewest = min((len(one.seeds) for one in entrants), default=0)
    if len(entrants) > 1 and 1 < fewest < FEW:
        made.append(
            f"A test of {fewest} seeds proves little: read p-values as hints, and add seeds to "
            "settle it."
        )
    elif len(entrants) > 1 and fewest == 1:
        made.append("One seed cannot be tested: what looks like a lead may be luck. Add seeds.")
    return made


def _lost(one: Entrant) -> list[str]:
    """Seeds that a metric could not be had for: those left may be the luckier ones."""
    made = []
    for score in one.scores:
        held = {seed for seed, _ in score.areas}
        lost = [seed for seed in one.seeds if seed not in held] if held else []
        if lost:
            which = ", ".join(map(str, lost))
            made.append(
                f"{MEASURES[score.metric].words} of {one.strategy} is without seed"
                f"{'s' if len(lost) > 1 else ''} {which}, where it is missing or infinite: did "
                "training diverge? Its other seeds may flatter it."
            )
    return [note[0].upper() + note[1:] for note in made]


def band(kinds: set[str]) -> str:
    """What the shaded bands of a figure are."""
    made = {
        "interval": "95 % intervals of the mean over seeds, by Student's t",
        "range": "the range over seeds, which are too few for an interval",
    }
    shown = [made[kind] for kind in made if kind in kinds]
    return "Bands are " + "; or ".join(shown) + "." if shown else "One seed, so there is no band."


def reached(saved: Saved | None) -> str:
    """With how many labels a strategy is where random ends.

    >>> reached(Saved(61.2, False, 100, 38.8)), reached(Saved(None, False, 100, None))
    ('62', 'not reached')
    """
    if saved is None:
        return "–"
    if saved.at is None:
        return "not reached"
    return f"{ceil(saved.at - 1e-9):,}" + (", the first batch" if saved.first else "")


def answer(saved: Saved, strategy: str, end: int, *, sure: bool = True) -> tuple[str, str]:
    """Would it have saved me labels? A figure, and what it means.

    `sure` says that a test tells the strategy from random, and the same way.

    >>> answer(Saved(62.0, False, 100, 38.0), "evgp", 100)
    ('38\u202f% fewer', '62 labels by evgp do what 100 by random do')
    >>> answer(Saved(10.0, True, 10, 0.0), "evgp", 100)[0]
    'cannot be told'
    """
    noise = "" if sure else "; it may be noise, as no test says so"
    if saved.at is None:
        return "no", f"{end:,} labels by {strategy} do not reach what {end:,} by random do{noise}"
    at, own = ceil(saved.at - 1e-9), ceil(saved.own - 1e-9)
    if saved.first and at == own:
        return (
            "cannot be told",
            f"{end:,} labels by random do no better than its first {own:,}; there are none to save",
        )
    share = abs(own - at) / own
    means = f"{at:,} labels by {strategy} do what {own:,} by random do"
    means += ", from the first batch on" if saved.first else ""
    if at == own:
        return "none", means
    figure = f"{round(100 * share)}{THIN}% {'fewer' if at < own else 'more'}"
    return figure if sure else f"perhaps {figure}", means + noise


def aligned(values: Sequence[float | None]) -> list[str]:
    """Numbers of one column with the same decimals: three digits for the largest, two for all.

    >>> aligned([12.34, 0.521, None]), aligned([0.12345, 0.1]), aligned([2e-9])
    (['12.34', '0.52', '–'], ['0.123', '0.100'], ['2e-9'])
    """
    sizes = [abs(value) for value in values if value is not None and isfinite(value) and value]
    if not sizes:
        return [number(value) for value in values]
    high, low = floor(log10(max(sizes))), floor(log10(min(sizes)))
    if not -4 <= high < 7:
        return [signed(number(value, 3)) for value in values]
    places = max(0, 2 - high, min(1 - low, 4 - high))
    return [
        "–" if value is None or not isfinite(value) else signed(f"{value:,.{places}f}")
        for value in values
    ]


def signed(text: str) -> str:
    """A number with a true minus, so that it stands as wide as the digits."""
    return text.replace("-", MINUS, 1) if text.startswith("-") else text


def chance(p: float | None) -> str:
    """A p-value; below a thousandth its digits mean nothing.

    >>> chance(0.0123), chance(0.62), chance(1e-9), chance(None)
    ('0.012', '0.620', '< 0.001', '–')
    """
    if p is None:
        return "–"
    return "< 0.001" if p < 0.001 else f"{p:.3f}"


def seconds(values: Sequence[float]) -> list[str]:
    """Seconds, as fine as matters to someone who waits.

    >>> seconds([0.0004, 0.25, 75.0])
    ['< 0.01', '0.25', '75.00']
    """
    return ["–" if not isfinite(v) else "< 0.01" if 0 < v < 0.005 else f"{v:,.2f}" for v in values]
