"""What a comparison says, as plain data: no arrays, no HTML."""

from dataclasses import asdict, dataclass

from evgp.report.summary import plain_json

RANDOM = "random"
LEVEL = 0.05


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
        """Better, worse, or not told apart: by the adjusted p."""
        if self.holm is None or self.holm >= LEVEL:
            return "unclear"
        return "better" if self.better else "worse"


@dataclass(frozen=True)
class Saved:
    """With how many labels a mean curve first is where random's mean curve ends.

    `at` is None where it never is; `first` says that it is from the first batch on. `own` is where
    random's own curve first has its final value, and `fewer` how many labels lie between.
    """

    at: float | None
    first: bool
    own: float
    fewer: float | None


@dataclass(frozen=True)
class Score:
    """One strategy by one metric: its curve, the area under it for each seed, and the tests.

    `mean` and `deviation` are over the areas of the seeds; an area is the mean height of a curve.
    `reason` says why there is no area, or no test against random.
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
    """One strategy on one dataset: its seeds, the members of each, and its scores by metric.

    Seconds are those of a round, and the training loss that of the last, means over seeds.
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
        """The score by one metric, which is empty where there is none."""
        found = (score for score in self.scores if score.metric == metric)
        return next(found, Score(metric, reason=f"no {metric}"))


@dataclass(frozen=True)
class Lead:
    """Who is best by one metric, and whether that is more than noise.

    `paired` is the best against the second (unadjusted), None where it cannot be tested.
    """

    metric: str
    best: str
    second: str | None
    paired: Paired | None

    @property
    def clear(self) -> bool:
        """Is the lead over the second beyond noise?"""
        made = self.paired
        return made is not None and made.better and made.p is not None and made.p < LEVEL


@dataclass(frozen=True)
class Contest:
    """One dataset: who met there, best first, after how many labels, and how it ended."""

    dataset: str
    kind: str
    batch: int
    labels: tuple[int, ...]
    metrics: tuple[str, ...]
    entrants: tuple[Entrant, ...]
    leads: tuple[Lead, ...]
    notes: tuple[str, ...]
    verdict: str = ""

    def entrant(self, strategy: str) -> Entrant | None:
        """The strategy's part, or None where it was not run."""
        return next((one for one in self.entrants if one.strategy == strategy), None)


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
    """Everything a comparison says, ready for JSON; standings are in order of mean rank."""

    contests: tuple[Contest, ...]
    standings: tuple[Standing, ...]

    @property
    def strategies(self) -> tuple[str, ...]:
        """Every strategy, best mean rank first."""
        return tuple(standing.strategy for standing in self.standings)

    @property
    def ours(self) -> str | None:
        """Whom the page asks about: evgp, else a kin of it, else the best that is not random."""
        return ours(self.strategies)

    def contest(self, dataset: str) -> Contest:
        """What happened on one dataset."""
        return next(contest for contest in self.contests if contest.dataset == dataset)

    def as_dict(self) -> dict[str, object]:
        """The comparison in lists, numbers and strings that `json.dumps` takes as they are."""
        return {key: plain_json(value) for key, value in asdict(self).items()}


def ours(strategies: tuple[str, ...]) -> str | None:
    """Of strategies in order: evgp, else its first kin, else the first that is not random.

    >>> ours(("badge", "evgp-p90", "evgp")), ours(("random", "badge")), ours(("random",))
    ('evgp', 'badge', None)
    """
    kin = [name for name in strategies if name.startswith("evgp")]
    others = [name for name in strategies if name != RANDOM]
    return "evgp" if "evgp" in kin else next(iter([*kin, *others]), None)
