"""From a selection to the plain data of its report."""

from collections.abc import Mapping, Sequence
from math import isfinite
from typing import Any, Protocol, runtime_checkable

import numpy as np
from jaxtyping import Float, Int

from evgp._errors import PoolError
from evgp._machine import own_version
from evgp.pool import Selection
from evgp.report.components import backdrop, project
from evgp.report.pictures import Pictures, picture, sheet
from evgp.report.summary import Histogram, Need, Pick, Scatter, Sheet, Summary

SHARES = (0.5, 0.8, 0.9, 0.95)
SHOWN = 12
LONGEST = 200
LONGEST_HOVERED = 60
CHARACTERS = 800_000
BINS = 32


@runtime_checkable
class Column(Protocol):
    """Anything with a length whose items are found by position: a list, an array."""

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
    r"""Everything the report of a selection says, as plain data.

    `ids` and the values of `columns` run over the whole pool, like `x`; only those of the picks are
    read and kept, as they are written. So do `pictures`: one of each pick is kept, and a small tile
    of each row on the map. Costs $O(\min(n, 20000)\, d)$ for the map, $O(k)$ per column and a
    thumbnail of up to $k + 4000$ rows; what is kept does not grow with the pool. Where `x` is only
    a part of a pool of `total` rows, `numbers` are the rows that it has.

    >>> left = np.array([0.4])
    >>> chosen = Selection(np.array([1]), np.array([0.6]), 1.0, 1.0, left)
    >>> summary = summarise(chosen, x=np.eye(2), ids=["ann", "bob"], columns={"age": [31, 58]})
    >>> summary.picks[0].id, summary.picks[0].cells, summary.removed
    ('bob', ('58',), 0.6)
    """
    columns = columns or {}
    _check(len(x), selection, ids, columns, pictures)
    columns = _besides(ids, columns, selection)
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
        raise PoolError(f"expected {n} ids, one for each row of x, got {len(ids)}")
    for name, values in columns.items():
        if len(values) != n:
            raise PoolError(f"expected {n} values in column {name!r}, got {len(values)}")
    if pictures is not None and len(pictures) != n:
        raise PoolError(f"expected {n} pictures, one for each row of x, got {len(pictures)}")


def _test_points(selection: Selection) -> int:
    """How many there were; a selection in feature space knows their mean alone."""
    told = selection.settings.get("test_points", 0)
    return len(selection.test_before) or (told if isinstance(told, int) else 0)


def _names(
    selection: Selection, ids: Sequence[str] | None, numbers: Int[np.ndarray, " n"] | None
) -> list[tuple[int, str]]:
    """The row of each pick in the pool, and its name."""
    found = []
    for at in selection.indices.tolist():
        row = at if numbers is None else int(numbers[at])
        found.append((row, str(row) if ids is None else text(ids[at])))
    return found


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


def _besides(
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
    """The picks' cells, column by column until the page would grow too heavy."""
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
    """A dozen columns, first those in which the picks differ."""
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
    # The end of a path tells more than its beginning.
    short = [
        "…" + name[1 - LONGEST_HOVERED :] if len(name) > LONGEST_HOVERED else name for name in names
    ]
    return sheet(pictures, rows, short)


def _needs(selection: Selection) -> tuple[Need, ...]:
    """The certificate's answer; without one, only what the picks themselves show."""
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
    """Where the last bin of a histogram from zero ends; it takes all beyond.

    One far value would squeeze all others into a bin.

    >>> highest_bin(np.array([*199 * [1.0], 50.0])), highest_bin(np.array([*999 * [0.0], 0.2]))
    (1.5, 0.2)
    """
    highest = float(values.max())
    return min(highest, 1.5 * float(np.quantile(values, 0.99))) or highest or 1.0


def text(value: object, *, longest: int | None = LONGEST) -> str:
    """A value as it is written, unless it is long: floats keep eight digits, text 200 characters.

    Missing is empty, and what UTF-8 cannot hold becomes a question mark.
    """
    plain = value.item() if isinstance(value, np.generic) else value
    made = "" if plain is None else str(plain)
    if isinstance(plain, float) and len(made) > 12:
        made = f"{plain:.8g}"
    if longest is not None and len(made) > longest:
        made = made[: longest - 1] + "…"
    return made.encode("utf-8", "replace").decode()


def _finite(value: float) -> float | None:
    return float(value) if isfinite(value) else None
