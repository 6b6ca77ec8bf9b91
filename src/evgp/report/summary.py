"""The content of the page of a selection, as plain data, computed from the selection."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from math import isfinite
from typing import Any, Protocol, runtime_checkable

import numpy as np
from jaxtyping import Float, Int
from sklearn.utils.extmath import randomized_svd

from evgp._machine import own_version
from evgp.errors import PoolError, WrongCount
from evgp.pool import Selection
from evgp.report.pictures import Picture, Pictures, Sheet, picture, sheet


@dataclass(frozen=True)
class Pick:
    """One chosen row: its rank, its row in the pool, and its position on the map.

    `left` is the mean variance when this pick and all before it are labelled (None: unknown).
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

    No choice of fewer than `fewest` can do it (None: unknown); the first `enough` picks do it
    (None: more than all picks are needed).
    """

    share: float
    fewest: int | None
    enough: int | None


@dataclass(frozen=True)
class Scatter:
    """Pool rows on the two main components, and the share of variance that each explains.

    `sheet` has the images of the rows, in the same order.
    """

    points: tuple[tuple[float, float], ...]
    explained: tuple[float, float]
    sampled: bool
    sheet: Sheet | None = None


@dataclass(frozen=True)
class Histogram:
    """Test points by variance, before and after; the last bin includes all up to `highest`."""

    edges: tuple[float, ...]
    before: tuple[int, ...]
    after: tuple[int, ...]
    medians: tuple[float, float]
    highest: float


@dataclass(frozen=True)
class Summary:
    """All content of a report, ready for JSON.

    `floor` and `share` are the certificate, one value per pick, or None if there is none.
    `columns` are the names of the cells of each pick, and `shown` those that the table shows first;
    `left_out` counts the columns that would have made the page too large.
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
        """Mean variance before the first pick and after each; empty if it is unknown."""
        after = [pick.left for pick in self.picks if pick.left is not None]
        return (self.start, *after) if after and self.start is not None else ()

    @property
    def best(self) -> tuple[float, ...]:
        """The lower bound of `left`; empty without a certificate."""
        return (self.left[0], *self.floor) if self.left and self.floor is not None else ()

    @property
    def end(self) -> float | None:
        """Mean variance when all picks are labelled."""
        return self.picks[-1].left if self.picks else self.start

    @property
    def removed(self) -> float | None:
        """Share of the variance at the start that the picks remove."""
        if self.start is None or self.end is None or self.start <= 0:
            return None
        return 1 - self.end / self.start

    @property
    def reached(self) -> float | None:
        """Share of the best possible reduction that the picks provably reach."""
        return self.share[-1] if self.share and isfinite(self.share[-1]) else None

    @property
    def had_labels(self) -> bool:
        """Whether some points were labelled before the first pick."""
        if self.prior is None or self.start is None:
            return False
        return self.start < self.prior * (1 - 1e-9)  # more than by rounding

    @property
    def cost(self) -> float | None:
        """The cost of labelling all picks, if costs are known."""
        costs = [pick.cost for pick in self.picks if pick.cost is not None]
        return sum(costs) if costs else None

    @property
    def pictured(self) -> bool:
        """Whether there is an image of each pick."""
        return bool(self.picks) and all(pick.picture is not None for pick in self.picks)

    def as_dict(self) -> dict[str, object]:
        """The summary as dicts, lists, numbers and strings, ready for `json.dumps`."""
        return {key: plain_json(value) for key, value in asdict(self).items()}


def plain_json(value: object) -> object:
    """The same value in dicts and lists, with None for NaN and infinity, which JSON lacks."""
    if isinstance(value, dict):
        return {key: plain_json(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain_json(item) for item in value]
    return None if isinstance(value, float) and not isfinite(value) else value


SHARES = (0.5, 0.8, 0.9, 0.95)
SHOWN = 12
LONGEST = 1_000
LONGEST_HOVERED = 60
CHARACTERS = 800_000
BINS = 32


@runtime_checkable
class Column(Protocol):
    """Anything with a length and items by position: a list, an array."""

    def __len__(self) -> int: ...
    def __getitem__(self, index: int, /) -> Any: ...


def summarise(
    selection: Selection,
    *,
    x: Float[np.ndarray, "n d"],
    ids: Sequence[str] | None = None,
    columns: Mapping[str, Column] | None = None,
    network: str = "",
    source: str = "",
    command: str = "",
    notes: Sequence[str] = (),
    pictures: Pictures | None = None,
    numbers: Int[np.ndarray, " n"] | None = None,
    total: int | None = None,
    seed: int = 0,
) -> Summary:
    r"""Collect the content of a report on a selection, as plain data.

    `ids`, the values of `columns` and `pictures` have one item for each row of `x`. Only those of
    the picks are read and kept, and a small image of each row on the map. Costs
    $O(\min(n, 20000)\, d)$ for the map, $O(k)$ per column, and thumbnails of up to $k + 4000$ rows;
    what is kept does not grow with the pool. If `x` is only a part of a pool of `total` rows,
    `numbers` are the row numbers of that part.

    >>> left = np.array([0.4])
    >>> chosen = Selection(np.array([1]), np.array([0.6]), 1.0, 1.0, left)
    >>> summary = summarise(chosen, x=np.eye(2), ids=["ann", "bob"], columns={"age": [31, 58]})
    >>> summary.picks[0].id, summary.picks[0].cells, summary.removed
    ('bob', ('58',), 0.6)
    """
    columns = columns or {}
    _check(len(x), selection, ids, columns, pictures)
    columns = _without_ids(ids, columns, selection)
    cells, carried = _cells(selection, columns)
    scatter, at = _scatter(x, selection, ids, pictures, total=total, seed=seed)
    certificate = selection.certificate if len(selection) else None
    start = _finite(selection.start_variance)
    criterion = selection.settings.get("criterion", "")
    return Summary(
        source=text(source),
        network=text(network),
        criterion=text(criterion).removesuffix("()"),
        command=text(command, longest=None),
        version=own_version(),
        rows=len(x) if total is None else total,
        inputs=x.shape[1],
        test_points=_test_points(selection),
        has_ids=ids is not None,
        prior=_finite(selection.prior_variance) if start is not None else None,
        start=start,
        picks=_picks(selection, _names(selection, ids, numbers), at, cells, pictures),
        floor=None if certificate is None else tuple(certificate.lowest.tolist()),
        share=None if certificate is None else tuple(certificate.share.tolist()),
        needs=_needs(selection),
        scatter=scatter,
        histogram=_histogram(selection),
        columns=tuple(text(name) for name in list(columns)[:carried]),
        shown=_shown(cells, carried),
        left_out=len(columns) - carried,
        settings=tuple(
            (text(key), text(item)) for key, item in selection.settings.items() if item is not None
        ),
        warnings=tuple(dict.fromkeys(map(text, (*selection.warnings, *notes)))),
    )


def _check(
    n: int,
    selection: Selection,
    ids: Sequence[str] | None,
    columns: Mapping[str, Column],
    pictures: Pictures | None,
) -> None:
    if len(selection) and int(selection.indices.max()) >= n:
        raise PoolError(f"expected picks below {n}, got {int(selection.indices.max())}; x must be "
                        "the pool that was picked from")  # fmt: skip
    if ids is not None and len(ids) != n:
        raise WrongCount.of(PoolError)("ids", n, len(ids), "one for each row of x")
    for name, values in columns.items():
        if len(values) != n:
            raise WrongCount.of(PoolError)(f"values in column {name!r}", n, len(values))
    if pictures is not None and len(pictures) != n:
        raise WrongCount.of(PoolError)("pictures", n, len(pictures), "one for each row of x")


def _test_points(selection: Selection) -> int:
    """The number of test points; a selection in feature space has it only in its settings."""
    count = selection.settings.get("test_points", 0)
    return len(selection.test_before) or (count if isinstance(count, int) else 0)


def _names(
    selection: Selection, ids: Sequence[str] | None, numbers: Int[np.ndarray, " n"] | None
) -> list[tuple[int, str]]:
    """The row of each pick in the pool, and its name."""
    names = []
    for at in selection.indices.tolist():
        row = at if numbers is None else int(numbers[at])
        names.append((row, str(row) if ids is None else text(ids[at])))
    return names


def _picks(
    selection: Selection,
    names: Sequence[tuple[int, str]],
    at: Float[np.ndarray, "k 2"],
    cells: Sequence[tuple[str, ...]],
    pictures: Pictures | None,
) -> tuple[Pick, ...]:
    left = selection.variance_left.tolist() or [None] * len(selection)
    costs = [None] * len(selection) if selection.costs is None else selection.costs.tolist()
    rows = selection.indices.tolist()
    return tuple(
        Pick(
            rank=j + 1,
            row=names[j][0],
            id=names[j][1],
            gain=float(selection.gains[j]),
            left=left[j],
            cost=costs[j],
            at=(float(at[j, 0]), float(at[j, 1])),
            cells=cells[j],
            picture=None if pictures is None else picture(pictures, row, len(rows)),
        )
        for j, row in enumerate(rows)
    )


def _without_ids(
    ids: Sequence[str] | None, columns: Mapping[str, Column], selection: Selection
) -> Mapping[str, Column]:
    """The columns without the one that the ids were taken from."""
    if ids is None:
        return columns
    rows = selection.indices.tolist()
    names = [text(ids[row]) for row in rows]
    return {
        name: values
        for name, values in columns.items()
        if [text(values[row]) for row in rows] != names
    }


def _cells(
    selection: Selection, columns: Mapping[str, Column]
) -> tuple[list[tuple[str, ...]], int]:
    """The cells of the picks, column by column until the page would become too large."""
    rows, room = selection.indices.tolist(), CHARACTERS
    kept: list[list[str]] = []
    for values in columns.values():
        column = [text(values[row]) for row in rows]
        room -= sum(len(cell) + 3 for cell in column)
        if kept and room < 0:
            break
        kept.append(column)
    return [tuple(column[j] for column in kept) for j in range(len(rows))], len(kept)


def _shown(cells: Sequence[tuple[str, ...]], carried: int) -> tuple[int, ...]:
    """Twelve columns, preferably those in which the picks differ."""
    alike = [len({row[c] for row in cells}) <= 1 for c in range(carried)]
    return tuple(sorted(sorted(range(carried), key=alike.__getitem__)[:SHOWN]))


def _scatter(
    x: Float[np.ndarray, "n d"],
    selection: Selection,
    ids: Sequence[str] | None,
    pictures: Pictures | None,
    *,
    total: int | None,
    seed: int,
) -> tuple[Scatter, Float[np.ndarray, "k 2"]]:
    behind = backdrop(len(x), selection.indices, seed=seed)
    at, explained = project(x, np.concatenate([behind, selection.indices]), seed=seed)
    points = tuple((float(a), float(b)) for a, b in at[: len(behind)])
    sampled = len(behind) + len(selection) < (len(x) if total is None else total)
    tiles = None if pictures is None else _sheet(behind.tolist(), ids, pictures)
    return Scatter(points, explained, sampled, tiles), at[len(behind) :]


def _sheet(rows: list[int], ids: Sequence[str] | None, pictures: Pictures) -> Sheet | None:
    names = [str(row) if ids is None else text(ids[row]) for row in rows]
    # The end of a path is more informative than its beginning.
    short = [
        "…" + name[1 - LONGEST_HOVERED :] if len(name) > LONGEST_HOVERED else name for name in names
    ]
    return sheet(pictures, rows, short)


def _needs(selection: Selection) -> tuple[Need, ...]:
    """Labels needed, by the certificate; without one, only what the picks themselves show."""
    if selection.certificate is not None:
        needed = selection.certificate.needed
        return tuple(Need(share, *needed[share]) for share in sorted(needed))
    prior = selection.prior_variance
    if not len(selection.variance_left) or not isfinite(prior):
        return ()
    curve = np.concatenate([[selection.start_variance], selection.variance_left])
    done = [np.flatnonzero(curve <= (1 - share) * prior) for share in SHARES]
    return tuple(
        Need(share, None, int(at[0]) if len(at) else None)
        for share, at in zip(SHARES, done, strict=True)
    )


def _histogram(selection: Selection) -> Histogram | None:
    before, after = selection.test_before, selection.test_after
    if not len(before) or not len(after):
        return None
    both = np.maximum(np.concatenate([before, after]), 0)  # rounding may leave -1e-17
    high = highest_bin(both)
    edges = np.linspace(0.0, high, BINS + 1)
    counts = [np.histogram(part.clip(0, high), edges)[0].tolist() for part in (before, after)]
    medians = (float(np.median(before)), float(np.median(after)))
    highest = float(both.max())
    return Histogram(tuple(edges.tolist()), tuple(counts[0]), tuple(counts[1]), medians, highest)


def highest_bin(values: Float[np.ndarray, " n"]) -> float:
    """Where the last bin of a histogram that starts at zero ends; it includes all higher values.

    Otherwise one outlier would squeeze all others into one bin.

    >>> highest_bin(np.array([*199 * [1.0], 50.0])), highest_bin(np.array([*999 * [0.0], 0.2]))
    (1.5, 0.2)
    """
    highest = float(values.max())
    return min(highest, 1.5 * float(np.quantile(values, 0.99))) or highest or 1.0


def text(value: object, *, longest: int | None = LONGEST) -> str:
    """A value as text, shortened: floats to eight digits, texts to 1,000 characters.

    A missing value is empty, and characters that UTF-8 cannot encode become question marks.
    """
    plain = value.item() if isinstance(value, np.generic) else value
    shown = "" if plain is None else str(plain)
    if isinstance(plain, float) and len(shown) > 12:
        shown = f"{plain:.8g}"
    if longest is not None and len(shown) > longest:
        shown = shown[: longest - 1] + "…"
    return shown.encode("utf-8", "replace").decode()


def _finite(value: float) -> float | None:
    return float(value) if isfinite(value) else None


FITTED = 20_000  # rows that the components are computed from
DRAWN = 4_000  # rows that a map shows


@dataclass(frozen=True, eq=False)
class Plane:
    """The two main directions of a pool, and the share of its variance that each explains."""

    mean: Float[np.ndarray, " d"]
    vectors: Float[np.ndarray, "q d"]
    explained: tuple[float, float]

    def place(self, x: Float[np.ndarray, "r d"]) -> Float[np.ndarray, "r 2"]:
        """The positions of rows on the plane."""
        at = np.zeros((len(x), 2))
        at[:, : len(self.vectors)] = (x - self.mean) @ self.vectors.T
        return at


def main_plane(x: Float[np.ndarray, "n d"], *, seed: int) -> Plane:
    r"""The plane of the two main components.

    They are the leading right singular vectors of $x - \bar x$, by a seeded randomised SVD over at
    most 20,000 rows; the largest loading of each is positive, so the map never flips. Costs
    $O(\min(n, 20000)\, d)$.
    """
    sample = _draw(len(x), FITTED, seed)
    mean = x[sample].mean(axis=0)
    centred = x[sample] - mean
    total = float((centred**2).sum())
    if not total > 0:
        return Plane(mean, np.zeros((0, x.shape[1])), (0.0, 0.0))
    count = min(2, *centred.shape)
    _, scales, vectors = randomized_svd(centred, count, random_state=seed)
    loadings = vectors[np.arange(count), np.abs(vectors).argmax(axis=1)]
    vectors *= np.where(loadings < 0, -1.0, 1.0)[:, None]
    first, second = [*np.minimum(scales**2 / total, 1.0).tolist(), 0.0][:2]
    return Plane(mean, vectors, (first, second))


def project(
    x: Float[np.ndarray, "n d"], rows: Int[np.ndarray, " r"], *, seed: int
) -> tuple[Float[np.ndarray, "r 2"], tuple[float, float]]:
    """Positions of rows on the two main components, and the share of variance of each.

    >>> at, explained = project(np.array([[0.0, 1.0], [2.0, 1.0]]), np.array([0, 1]), seed=0)
    >>> at.round(6).tolist(), np.round(explained, 6).tolist()
    ([[-1.0, 0.0], [1.0, 0.0]], [1.0, 0.0])
    """
    plane = main_plane(x, seed=seed)
    return plane.place(x[rows]), plane.explained


def backdrop(n: int, picked: Int[np.ndarray, " k"], *, seed: int) -> Int[np.ndarray, " r"]:
    """Rows to draw behind the picks: all others, or a random 4,000 of the pool."""
    return np.setdiff1d(_draw(n, DRAWN, seed), picked)


def _draw(n: int, most: int, seed: int) -> Int[np.ndarray, " r"]:
    if n <= most:
        return np.arange(n)
    return np.sort(np.random.default_rng(seed).choice(n, most, replace=False))
