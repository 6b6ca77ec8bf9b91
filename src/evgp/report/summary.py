"""What a report says, as plain data: no arrays, no HTML."""

from dataclasses import asdict, dataclass
from math import isfinite


@dataclass(frozen=True)
class Picture:
    """What a pick looks like: data URIs, large and as a tile, and its width and height if large."""

    large: str
    tile: str
    width: int
    height: int


@dataclass(frozen=True)
class Pick:
    """One chosen row: its place in the order, in the pool and on the map.

    `left` is the mean variance once this pick and all before it are labelled (None: not known).
    """

    rank: int
    row: int
    id: str
    gain: float
    left: float | None
    cost: float | None
    at: tuple[float, float]
    cells: tuple[str, ...]
    picture: Picture | None = None


@dataclass(frozen=True)
class Need:
    """How many labels remove `share` of the prior variance.

    No choice of fewer than `fewest` can (None: not known); the first `enough` picks do
    (None: more than there are picks).
    """

    share: float
    fewest: int | None
    enough: int | None


@dataclass(frozen=True)
class Sheet:
    """Tiles of many rows in one image, a data URI, row by row in square cells of `cell` pixels.

    `sizes` are the width and height of each tile in the upper left of its cell, `names` the rows'.
    """

    image: str
    cell: int
    columns: int
    sizes: tuple[tuple[int, int], ...]
    names: tuple[str, ...]


@dataclass(frozen=True)
class Scatter:
    """Pool rows on the plane of the two main components, and the variance each component holds.

    `sheet` shows what the rows look like, in their order.
    """

    points: tuple[tuple[float, float], ...]
    explained: tuple[float, float]
    sampled: bool
    sheet: Sheet | None = None


@dataclass(frozen=True)
class Histogram:
    """Test points counted by their variance, in shared bins; the last takes all up to `highest`."""

    edges: tuple[float, ...]
    before: tuple[int, ...]
    after: tuple[int, ...]
    medians: tuple[float, float]
    highest: float


@dataclass(frozen=True)
class Summary:
    """Everything a report says, ready for JSON.

    `floor` and `share` are the certificate, one value per pick, or None where there is none.
    `columns` name the cells of each pick, and `shown` those that the table opens with;
    `left_out` counts the columns that were too many to carry.
    """

    source: str
    network: str
    criterion: str
    command: str
    version: str
    rows: int
    inputs: int
    test_points: int
    has_ids: bool
    prior: float | None
    start: float | None
    picks: tuple[Pick, ...]
    floor: tuple[float, ...] | None
    share: tuple[float, ...] | None
    needs: tuple[Need, ...]
    scatter: Scatter
    histogram: Histogram | None
    columns: tuple[str, ...]
    shown: tuple[int, ...]
    left_out: int
    settings: tuple[tuple[str, str], ...]
    warnings: tuple[str, ...]

    @property
    def left(self) -> tuple[float, ...]:
        """Mean variance before the first pick and after each, or nothing where it is not known."""
        after = [pick.left for pick in self.picks if pick.left is not None]
        return (self.start, *after) if after and self.start is not None else ()

    @property
    def best(self) -> tuple[float, ...]:
        """The floor under `left`, or nothing where there is no certificate."""
        return (self.left[0], *self.floor) if self.left and self.floor is not None else ()

    @property
    def end(self) -> float | None:
        """Mean variance once everything picked is labelled."""
        return self.picks[-1].left if self.picks else self.start

    @property
    def removed(self) -> float | None:
        """Share of the variance there was at the start that the picks remove."""
        if self.start is None or self.end is None or self.start <= 0:
            return None
        return 1 - self.end / self.start

    @property
    def reached(self) -> float | None:
        """Share of the best possible fall that the picks certainly reach."""
        return self.share[-1] if self.share and isfinite(self.share[-1]) else None

    @property
    def had_labels(self) -> bool:
        """Were some points labelled before the first pick?"""
        if self.prior is None or self.start is None:
            return False
        return self.start < self.prior * (1 - 1e-9)  # not by rounding

    @property
    def cost(self) -> float | None:
        """What labelling every pick costs, where costs are known."""
        costs = [pick.cost for pick in self.picks if pick.cost is not None]
        return sum(costs) if costs else None

    @property
    def pictured(self) -> bool:
        """Is there a picture of each pick?"""
        return bool(self.picks) and all(pick.picture is not None for pick in self.picks)

    def as_dict(self) -> dict[str, object]:
        """The summary in lists, numbers and strings that `json.dumps` takes as they are."""
        return {key: plain_json(value) for key, value in asdict(self).items()}


def plain_json(value: object) -> object:
    """The same in dicts and lists, with None for what JSON has no number for."""
    if isinstance(value, dict):
        return {key: plain_json(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain_json(item) for item in value]
    return None if isinstance(value, float) and not isfinite(value) else value
