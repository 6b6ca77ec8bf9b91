"""What the page of an audit says, as plain data: no arrays, no HTML."""

from dataclasses import asdict, dataclass

from evgp.report.summary import plain_json


@dataclass(frozen=True)
class AuditRow:
    """A row of one of the tables: its place in a list, its number there, its name and cells."""

    rank: int
    row: int
    id: str
    cells: tuple[str, ...]


@dataclass(frozen=True)
class Risk:
    """A test row: how much networks will differ there, the NTKGP's say, and what was observed."""

    at: AuditRow
    deviation: float
    ceiling: float
    observed: float | None


@dataclass(frozen=True)
class Matter:
    """A training row: how much more variance there would be without it, as a share of it."""

    at: AuditRow
    influence: float


@dataclass(frozen=True)
class Help:
    """A row of the pool: the mean variance of trained networks once it has its label too."""

    at: AuditRow
    left: float


@dataclass(frozen=True)
class Bars:
    """Test rows counted by deviation; the last bin takes all up to `highest`."""

    edges: tuple[float, ...]
    counts: tuple[int, ...]
    median: float
    highest: float


@dataclass(frozen=True)
class TrainedNetworks:
    """Networks that were trained: predicted and observed deviation of test rows, and how they fit.

    `loss` is the training loss as a share of the labels' variance; `error` the test error of one
    network on average and `together` that of their mean, where the labels of the test are known.
    """

    points: tuple[tuple[float, float], ...]
    pearson: float
    spearman: float
    attainable: float
    ratio: float
    members: int
    loss: float
    error: float | None
    together: float | None


@dataclass(frozen=True)
class AuditSummary:
    """Everything the page of an audit says, ready for JSON.

    Deviations are those of targets with deviation 1, and `unit` turns them into the label's; for
    classes it is None, and they are those of outputs that are 1 for a class and 0 for the others.
    `inputs` is how many features the `sources`, columns of the table, became. `influence` is
    sorted, largest first, as shares of the mean NTKGP variance, and thinned where it is long;
    `places` say of which rank each is.
    """

    source: str
    test_source: str
    pool_source: str
    label: str
    unit: float | None
    network: str
    command: str
    version: str
    rows: int
    sources: int
    inputs: int
    test_rows: int
    pool_rows: int
    has_ids: bool
    variance: float
    prior: float
    bars: Bars
    risks: tuple[Risk, ...]
    influence: tuple[float, ...]
    places: tuple[int, ...]
    limit: float
    redundant: int
    redundant_ids: tuple[str, ...]
    matters: tuple[Matter, ...]
    helps: tuple[Help, ...]
    chance: tuple[tuple[float, ...], ...]
    random: tuple[float, ...]
    seen: TrainedNetworks | None
    columns: tuple[str, ...]
    train_columns: tuple[str, ...]
    left_out: int
    settings: tuple[tuple[str, str], ...]
    warnings: tuple[str, ...]

    @property
    def share(self) -> float | None:
        """Of the variance without labels, what is left."""
        return self.variance / self.prior if self.prior > 0 else None

    @property
    def after(self) -> tuple[float, ...]:
        """Mean variance now and after each further label; nothing without a pool."""
        return (self.variance, *(one.left for one in self.helps)) if self.helps else ()

    @property
    def fall(self) -> float | None:
        """The share of the variance that the further labels remove."""
        return 1 - self.after[-1] / self.variance if self.after and self.variance > 0 else None

    @property
    def by_chance(self) -> float | None:
        """Mean variance after as many labels drawn at random."""
        ends = [one[-1] for one in self.chance if one]
        return sum(ends) / len(ends) if ends else None

    @property
    def beaten(self) -> int:
        """Random sets of the training set's size that leave more variance than it does."""
        return sum(one > self.variance for one in self.random)

    def as_dict(self) -> dict[str, object]:
        """The summary in lists, numbers and strings that `json.dumps` takes as they are."""
        return {key: plain_json(value) for key, value in asdict(self).items()}
