"""The results of a comparison, as plain data and in words."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from math import ceil, floor, isfinite, isnan, log10

from evgp._repr import several
from evgp.comparison.rows import MEASURES, NETWORK
from evgp.report.summary import plain_json
from evgp.report.words import THIN, number

RANDOM = "random"
MEAN = "mean"  # over learners
LEVEL = 0.05
MINUS = "\u2212"
FEW = 5
UNCLEAR = "no clear difference"
_AGAINST = {
    "better": "better than random",
    "worse": "worse than random",
    "unclear": "not clearly different from random",
}


@dataclass(frozen=True)
class Curve:
    """Mean over seeds after each round, with a band around it.

    `band` says what the band is: "interval" (95 %, of the mean, by Student's t) from five seeds
    on, "range" (least to most) for fewer, and "none" for one.
    """

    mean: tuple[float, ...]
    low: tuple[float, ...]
    high: tuple[float, ...]
    band: str


@dataclass(frozen=True)
class Paired:
    """One strategy against another on the seeds they share; differences are first minus second.

    `wins` counts the seeds on which the first is better, `better` whether it is on average. `p` is
    that of the paired t-test and `low`..`high` its 95 % interval (None: the difference does not
    vary); `holm` is p once adjusted for all strategies of the dataset and metric.
    """

    seeds: int
    wins: int
    difference: float
    low: float | None
    high: float | None
    p: float | None
    better: bool
    holm: float | None = None

    @property
    def verdict(self) -> str:
        """Better, worse, or no clear difference, by the adjusted p."""
        if self.holm is None or self.holm >= LEVEL:
            return "unclear"
        return "better" if self.better else "worse"


@dataclass(frozen=True)
class Saved:
    """The number of labels at which a mean curve first reaches the end of random's mean curve.

    `at` is None if it never does; `first` says that it does from the first batch on. `own` is where
    random's own curve first has its final value, and `fewer` the difference in labels.
    """

    at: float | None
    first: bool
    own: float
    fewer: float | None


@dataclass(frozen=True)
class Score:
    """One strategy and one metric: its curve, the area under it for each seed, and the tests.

    `mean` and `deviation` are over the areas of the seeds; an area is the mean height of a curve.
    `reason` explains why there is no area, or no test against random.
    """

    metric: str
    curve: Curve | None = None
    areas: tuple[tuple[int, float], ...] = ()
    mean: float | None = None
    deviation: float | None = None
    rank: float | None = None
    final: float | None = None
    paired: Paired | None = None
    saved: Saved | None = None
    reason: str = ""


@dataclass(frozen=True)
class Entrant:
    """One strategy on one dataset: its seeds, their numbers of members, and its scores.

    Seconds (per round) and the training loss (of the last round) are means over seeds.
    """

    strategy: str
    seeds: tuple[int, ...]
    members: tuple[int, ...]
    pick_seconds: float
    train_seconds: float
    train_loss: float
    scores: tuple[Score, ...]
    rank: float | None = None

    def score(self, metric: str) -> Score:
        """The score by one metric; empty if there is none."""
        scores = (score for score in self.scores if score.metric == metric)
        return next(scores, Score(metric, reason=f"no {metric}"))


@dataclass(frozen=True)
class Lead:
    """The best strategy by one metric, and whether its lead is more than noise.

    `paired` is the best against the second (unadjusted), None where it cannot be tested.
    """

    metric: str
    best: str
    second: str | None
    paired: Paired | None

    @property
    def clear(self) -> bool:
        """Whether the lead over the second is more than noise."""
        test = self.paired
        return test is not None and test.better and test.p is not None and test.p < LEVEL


@dataclass(frozen=True)
class Contest:
    """One dataset and learner: the strategies, best first, and the result.

    `learner` may be the mean over several, `MEAN`. `shown` describes the learner, and is empty if
    there are only networks. `batch` is 0 if each number of labels was picked as one batch.
    """

    dataset: str
    kind: str
    batch: int
    labels: tuple[int, ...]
    metrics: tuple[str, ...]
    entrants: tuple[Entrant, ...]
    leads: tuple[Lead, ...]
    notes: tuple[str, ...]
    verdict: str = ""
    learner: str = NETWORK
    shown: str = ""

    @property
    def title(self) -> str:
        """The dataset, and the learner unless there are only networks."""
        return f"{self.dataset}, {self.shown}" if self.shown else self.dataset

    def entrant(self, strategy: str) -> Entrant | None:
        """The results of one strategy, or None if it was not run."""
        return next(
            (each for each in self.entrants if each.strategy == strategy),
            None,
        )


@dataclass(frozen=True)
class Standing:
    """One strategy over all datasets: its mean rank, and how often it differs from random.

    `tested` counts datasets times central metrics on which it was tested against random.
    """

    strategy: str
    rank: float | None
    datasets: int
    better: int
    worse: int
    tested: int


@dataclass(frozen=True)
class Comparison:
    """All results of a comparison, ready for JSON; standings are in order of mean rank.

    With several learners, each dataset has a contest for their mean, which counts for the
    standings, and one for each learner; `by_learner` has the standings of each.
    """

    contests: tuple[Contest, ...]
    standings: tuple[Standing, ...]
    by_learner: tuple[tuple[str, tuple[Standing, ...]], ...] = ()

    @property
    def main(self) -> tuple[Contest, ...]:
        """One contest for each dataset: that of the only learner, or of the mean over several."""
        first: dict[str, Contest] = {}
        for contest in self.contests:
            first.setdefault(contest.dataset, contest)
        return tuple(first.values())

    def parts(self, dataset: str) -> tuple[Contest, ...]:
        """The contests of single learners behind the mean of a dataset; empty for one learner."""
        return tuple(
            contest
            for contest in self.contests
            if contest.dataset == dataset and contest not in self.main
        )

    @property
    def strategies(self) -> tuple[str, ...]:
        """All strategies, best mean rank first."""
        return tuple(standing.strategy for standing in self.standings)

    @property
    def ours(self) -> str | None:
        """The strategy that the page is about: evgp, a variant of it, or the best except random."""
        return ours(self.strategies)

    def contest(self, dataset: str, learner: str | None = None) -> Contest:
        """The result on one dataset, with one learner or on average over all."""
        named = (contest for contest in self.contests if contest.dataset == dataset)
        return next(contest for contest in named if learner in (None, contest.learner))

    def as_dict(self) -> dict[str, object]:
        """Return the comparison as lists, numbers and strings, for `json.dumps`."""
        return {key: plain_json(value) for key, value in asdict(self).items()}


def ours(strategies: tuple[str, ...]) -> str | None:
    """Return the first that is listed of: evgp, a variant of evgp, a strategy other than random.

    >>> ours(("badge", "evgp-p90", "evgp")), ours(("random", "badge")), ours(("random",))
    ('evgp', 'badge', None)
    """
    kin = [name for name in strategies if name.startswith("evgp")]
    others = [name for name in strategies if name != RANDOM]
    return "evgp" if "evgp" in kin else next(iter([*kin, *others]), None)


def verdict(contest: Contest) -> str:
    """The result on one dataset in one sentence, and the rank of evgp if it did not win."""
    where, entrants = f"On {contest.dataset}", contest.entrants
    if contest.shown:
        where += f" ({contest.shown})"
    if len(entrants) == 1:
        return f"{where}, only {entrants[0].strategy} was run, so there is nothing to compare."
    if not contest.leads:
        return f"{where}, nothing can be ranked: the central metrics are missing."
    mine = ours(tuple(entrant.strategy for entrant in entrants))
    before = [None, *(lead.best for lead in contest.leads)]
    clauses = [
        _clause(contest, lead, mine, "it also" if lead.best == last else lead.best)
        for lead, last in zip(contest.leads, before, strict=False)
    ]
    span = f"at {contest.labels[0]:,} labels" if len(contest.labels) == 1 else "over the whole run"
    return f"{where}, {span}, {'; '.join(clauses)}."


def _clause(contest: Contest, lead: Lead, mine: str | None, who: str) -> str:
    measure = MEASURES[lead.metric]
    what, _, detail = measure.words.partition(", ")
    remarks = [detail, _margin(lead)]
    if RANDOM not in (lead.best, lead.second):
        remarks.append(_against(contest, lead.best, lead.metric))
    most = "lowest" if measure.lower else "highest"
    clause = f"{who} has the {most} {what}{_in_brackets(remarks)}"
    if mine is None or mine == lead.best:
        return clause
    place, test = _place(contest, mine, lead.metric), _against(contest, mine, lead.metric)
    return f"{clause}, while {mine} {place}{_in_brackets([test])}" if place else clause


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
    ran = sum(other.score(metric).rank is not None for other in contest.entrants)
    return f"comes {ordinal(int(rank))} of {ran}" if rank % 1 == 0 else f"shares rank {rank:g}"


def ordinal(place: int) -> str:
    """A rank as a word.

    >>> [ordinal(place) for place in (1, 2, 3, 4, 11, 22)]
    ['1st', '2nd', '3rd', '4th', '11th', '22nd']
    """
    ending = {1: "st", 2: "nd", 3: "rd"}.get(place % 10, "th")
    return f"{place}{'th' if 11 <= place % 100 <= 13 else ending}"


def title(comparison: Comparison) -> str:
    """Name the strategies and datasets in one line."""
    count = len(comparison.main)
    where = comparison.main[0].dataset if count == 1 else several(count, "dataset")
    strategies = several(len(comparison.strategies), "strategy").replace("ys", "ies")
    if comparison.by_learner:
        strategies += f" and {len(comparison.by_learner)} learners"
    return f"{strategies} on {where}"


def spent(contest: Contest) -> str:
    """How the labels of a contest were picked."""
    first, last, rounds = contest.labels[0], contest.labels[-1], len(contest.labels)
    span = f"{first} to {last:,}" if rounds > 1 else f"{first}"
    if contest.batch == 0:
        return f"{span} labels, {'each in one batch' if rounds > 1 else 'in one batch'}"
    return f"{span} labels in {several(rounds, 'round')} of {contest.batch}"


def lead(comparison: Comparison) -> list[str]:
    """The whole of it in one or two sentences."""
    if len(comparison.main) == 1:
        return [comparison.main[0].verdict]
    first = comparison.standings[0]
    if first.rank is None:
        return ["Nothing could be ranked; the reasons are given below for each dataset."]
    among = f"Over {several(len(comparison.main), 'dataset')}, {first.strategy} has the best"
    sentences = [f"{among} mean rank, {first.rank:.2g} of {len(comparison.standings)}"]
    mine = next((s for s in comparison.standings if s.strategy == comparison.ours), first)
    if mine is not first and mine.rank is not None:
        place = ordinal(1 + comparison.standings.index(mine))
        sentences[0] += f"; {mine.strategy} comes {place} with {mine.rank:.2g}"
    sentences[0] += "."
    if mine.tested:
        sentences.append(
            f"Against random, {mine.strategy} is clearly better in {mine.better} of "
            f"{several(mine.tested, 'comparison')} and clearly worse in {mine.worse or 'none'}."
        )
        ran = [contest.entrant(mine.strategy) for contest in comparison.main]
        fewest = min(len(entrant.seeds) for entrant in ran if entrant is not None)
        if fewest < FEW:
            sentences[-1] = (
                f"{sentences[-1][:-1]}; with {several(fewest, 'seed')} that is a hint, not a proof."
            )
    return sentences


def notes(entrants: Sequence[Entrant]) -> list[str]:
    """Caveats for the tests on one dataset."""
    remarks = []
    every = sorted({seed for entrant in entrants for seed in entrant.seeds})
    for entrant in entrants:
        lacking = [seed for seed in every if seed not in entrant.seeds]
        if lacking:
            which = ", ".join(map(str, lacking))
            remarks.append(
                f"{entrant.strategy} lacks seed{'s' if len(lacking) > 1 else ''} {which}: its "
                "means are over fewer seeds, and its tests use those it shares."
            )
        remarks += _lost(entrant)
    counts = sorted({count for entrant in entrants for count in entrant.members})
    if len(counts) > 1:
        remarks.append(
            f"Between {counts[0]:,} and {counts[-1]:,} members were trained: variances over few "
            "members are less certain, so compare those strategies with care."
        )
    fewest = min((len(entrant.seeds) for entrant in entrants), default=0)
    if len(entrants) > 1 and 1 < fewest < FEW:
        remarks.append(
            f"A test of {fewest} seeds proves little: treat p-values as hints, and add seeds."
        )
    elif len(entrants) > 1 and fewest == 1:
        remarks.append("One seed cannot be tested: what looks like a lead may be luck. Add seeds.")
    return remarks


def _lost(entrant: Entrant) -> list[str]:
    """Seeds without a value of a metric: the others may be the luckier ones."""
    notes = []
    for score in entrant.scores:
        held = {seed for seed, _ in score.areas}
        lost = [seed for seed in entrant.seeds if seed not in held] if held else []
        if lost:
            which = ", ".join(map(str, lost))
            notes.append(
                f"{MEASURES[score.metric].words} of {entrant.strategy} is without seed"
                f"{'s' if len(lost) > 1 else ''} {which}, where it is missing or infinite: did "
                "training diverge? Its other seeds may flatter it."
            )
    return [note[0].upper() + note[1:] for note in notes]


def band(kinds: set[str]) -> str:
    """Explain the shaded bands of a figure."""
    descriptions = {
        "interval": "95 % intervals of the mean over seeds, by Student's t",
        "range": "the range over seeds, which are too few for an interval",
    }
    shown = [descriptions[kind] for kind in descriptions if kind in kinds]
    return "Bands are " + "; or ".join(shown) + "." if shown else "One seed, so there is no band."


def reached(saved: Saved | None) -> str:
    """The number of labels at which a strategy reaches random's final value, in words.

    >>> reached(Saved(61.2, False, 100, 38.8)), reached(Saved(None, False, 100, None))
    ('62', 'not reached')
    """
    if saved is None:
        return "–"
    if saved.at is None:
        return "not reached"
    return f"{ceil(saved.at - 1e-9):,}" + (", the first batch" if saved.first else "")


def answer(saved: Saved, strategy: str, end: int, *, sure: bool = True) -> tuple[str, str]:
    """The answer to "would it have saved labels?": a figure, and what it means.

    `sure` says that a test confirms the difference from random; without it there is no clear
    difference, whatever the curves look like.

    >>> answer(Saved(62.0, False, 100, 38.0), "evgp", 100)
    ('38\u202f% fewer', '62 labels by evgp do what 100 by random do')
    >>> answer(Saved(10.0, True, 10, 0.0), "evgp", 100)[0]
    'unclear'
    """
    if saved.at is None:
        means = f"{end:,} labels by {strategy} do not reach what {end:,} by random do"
        return ("no", means) if sure else (UNCLEAR, f"{means}, by the mean curves")
    at, own = ceil(saved.at - 1e-9), ceil(saved.own - 1e-9)
    if saved.first and at == own:
        return (
            "unclear",
            f"{end:,} labels by random do no better than the first {own:,}, so no labels can be "
            "saved",
        )
    share = abs(own - at) / own
    means = f"{at:,} labels by {strategy} do what {own:,} by random do"
    means += ", from the first batch on" if saved.first else ""
    if not sure:
        return UNCLEAR, f"{means}, by the mean curves, but no test confirms it"
    if at == own:
        return "none", means
    return f"{round(100 * share)}{THIN}% {'fewer' if at < own else 'more'}", means


def aligned(values: Sequence[float | None]) -> list[str]:
    """Format a column with equal decimals: three digits for the largest, at least two for all.

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
    """Format a number with a minus sign as wide as a digit."""
    return text.replace("-", MINUS, 1) if text.startswith("-") else text


def chance(p: float | None) -> str:
    """Format a p-value; digits below a thousandth mean nothing.

    >>> chance(0.0123), chance(0.62), chance(1e-9), chance(None), chance(float("nan"))
    ('0.012', '0.620', '< 0.001', '–', '–')
    """
    if p is None or isnan(p):
        return "–"
    return "< 0.001" if p < 0.001 else f"{p:.3f}"


def seconds(values: Sequence[float]) -> list[str]:
    """Format seconds with a sensible precision.

    >>> seconds([0.0004, 0.25, 75.0])
    ['< 0.01', '0.25', '75.00']
    """
    return ["–" if not isfinite(v) else "< 0.01" if 0 < v < 0.005 else f"{v:,.2f}" for v in values]
