"""Selections: rows in order, their gains, and a certificate of how good they provably are."""

import operator
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from importlib import import_module
from math import isnan, nan
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, SupportsIndex, overload
from weakref import ReferenceType

import numpy as np
from jaxtyping import Float, Int

from evgp._checks import instance, numbers, shown, vector
from evgp._repr import guaranteed, html_card, several
from evgp.errors import BadArgument, PoolError, WrongCount


def same_fields(a: Any, b: Any) -> bool:
    """Whether two records of one class are equal, field by field."""
    return all(_same(getattr(a, part.name), getattr(b, part.name)) for part in fields(a))


def _same(a: object, b: object) -> bool:
    """Whether two values are equal; NaN is equal to NaN."""
    if isinstance(a, np.ndarray) or isinstance(b, np.ndarray):
        both = np.asarray(a), np.asarray(b)
        return np.array_equal(*both, equal_nan=all(array.dtype.kind == "f" for array in both))
    if isinstance(a, Mapping) and isinstance(b, Mapping):
        return a.keys() == b.keys() and all(_same(a[key], b[key]) for key in a)
    if isinstance(a, list | tuple) and type(a) is type(b):
        return len(a) == len(b) and all(map(_same, a, b))
    if isinstance(a, float) and isinstance(b, float) and isnan(a):
        return isnan(b)
    return bool(a == b)


class Needed(NamedTuple):
    """How many labels it takes to remove a share of the variance.

    No choice of fewer than `at_least` labels can do it; the first `at_most` picks do it, or None
    if these picks are not enough.
    """

    at_least: int
    at_most: int | None


@dataclass(frozen=True, eq=False)
class Certificate:
    r"""How good the picks provably are, compared with the best possible choice.

    Attributes
    ----------
    lowest : array, shape (k,)
        Lower bound on the mean variance that *any* $j$ points could leave, for $j = 1, \dots, k$.
    share : array, shape (k,)
        The first $j$ picks achieve at least this share of the largest reduction that any $j$ points
        could achieve.
    needed : mapping from float to Needed
        For a share of the variance to remove (0.5, 0.8, ...), the number of labels that takes: at
        least `needed[0.5].at_least` for any method; our first `needed[0.5].at_most` picks do it
        (None: these picks are not enough).

    Examples
    --------
    >>> import evgp
    >>> x = np.random.default_rng(0).normal(size=(40, 3))
    >>> certificate = evgp.pick(x, k=4).certificate
    >>> certificate.share.shape, bool((certificate.share > 0.5).all())
    ((4,), True)
    """

    lowest: Float[np.ndarray, " k"]
    share: Float[np.ndarray, " k"]
    needed: Mapping[float, Needed]

    def __post_init__(self) -> None:
        for name in ("lowest", "share"):
            object.__setattr__(self, name, vector(getattr(self, name), name))
        such_as = "{0.5: (3, 5)}"
        items = instance(self.needed, "needed", Mapping, such_as).items()
        try:
            needed = {share: Needed(*labels) for share, labels in items}
        except TypeError as error:
            raise BadArgument.of(PoolError)(
                "needed", f"as {such_as}", shown(self.needed)
            ) from error
        object.__setattr__(self, "needed", needed)

    def __eq__(self, other: object) -> bool:
        return same_fields(self, other) if isinstance(other, Certificate) else NotImplemented

    __hash__ = None  # type: ignore[assignment]

    def _repr_html_(self) -> str:
        k = len(self.share)
        shares = sorted(self.needed)
        labels = [self.needed[share] for share in shares]
        columns: dict[str, list[object]] = {
            "variance removed": [f"{share:.0%}" for share in shares],
            "labels, at least": [count.at_least for count in labels],
            "labels, at most": [
                f"more than {k:,}" if count.at_most is None else count.at_most for count in labels
            ],
        }
        return html_card(
            f"Certificate of {several(k, 'pick')}", columns, [promise(self.share)] if k else []
        )


def prefix(certificate: Certificate, k: int) -> Certificate:
    """The certificate of the first k picks."""
    needed = {
        share: Needed(low, high if high is not None and high <= k else None)
        for share, (low, high) in certificate.needed.items()
    }
    return Certificate(certificate.lowest[:k], certificate.share[:k], needed)


def promise(share: Float[np.ndarray, " k"], *, costs: bool = False) -> str:
    """The guarantee for k picks as a sentence; with `costs` they are compared at equal cost.

    >>> promise(np.array([0.7, 0.8129]))
    'At least 81.2 % of the largest reduction any 2 rows could achieve.'
    """
    k = len(share)
    rivals = "the same budget" if costs else "any other row" if k == 1 else f"any {k:,} rows"
    reached = guaranteed(float(share[-1]))
    return f"At least {reached} of the largest reduction {rivals} could achieve."


if TYPE_CHECKING:
    import pandas
    from matplotlib.axes import Axes

_SHOWN = 10  # picks in a notebook


@dataclass(frozen=True, eq=False)
class Selection(Sequence[int]):
    """Picks in order, each with its gain, and how good they provably are.

    A selection is a sequence of row numbers, best first: `len(selection)`, `selection[0]`,
    `for row in selection`, `x[selection]` for arrays and tensors, `frame.iloc[selection]`.
    `selection[:10]` is the selection of the first ten picks.

    Attributes
    ----------
    indices : array of int64, shape (k,)
        Row numbers of the pool, best first.
    gains : array, shape (k,)
        Gain of each pick by the criterion, given the picks before it.
    prior_variance, start_variance : float
        Mean variance over the test points without any label, and with the labels at the start.
    variance_left : array, shape (k,) or (0,)
        Mean variance after each pick; empty for strategies that do not compute it.
    test_before, test_after : array, shape (m,) or (0,)
        Variance of each test point before the first pick and after the last.
    costs : array, shape (k,), or None
        Cost of each pick, if rows have costs.
    ids : tuple, length k or 0
        Names of the picks, if the pool has a column or file names for them.
    certificate : Certificate or None
        How good the picks provably are, if the criterion is the mean variance.
    settings : mapping
        Settings to repeat the run.
    warnings : tuple of str
        Warnings of the run.

    Examples
    --------
    >>> selection = Selection(np.array([7, 2, 5]), np.array([0.5, 0.2, 0.1]))
    >>> len(selection), selection[0], list(selection), 5 in selection
    (3, 7, [7, 2, 5], True)
    >>> selection[:2]
    Selection(2 picks: [7, 2])
    >>> np.arange(10)[selection]
    array([7, 2, 5])
    """

    indices: Int[np.ndarray, " k"]
    gains: Float[np.ndarray, " k"]
    prior_variance: float = nan
    start_variance: float = nan
    # Separate axis letters, as each of these may be empty.
    variance_left: Float[np.ndarray, " v"] = field(default_factory=lambda: np.empty(0))
    test_before: Float[np.ndarray, " b"] = field(default_factory=lambda: np.empty(0))
    test_after: Float[np.ndarray, " a"] = field(default_factory=lambda: np.empty(0))
    costs: Float[np.ndarray, " k"] | None = None
    certificate: Certificate | None = None
    ids: tuple[str | int, ...] = ()
    settings: Mapping[str, object] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        rows = numbers(self.indices, "indices").numpy()
        if rows.ndim != 1 or (len(rows) and rows.dtype.kind not in "iu"):
            raise BadArgument.of(PoolError)(
                "indices",
                "as a list of row numbers",
                f"an array of shape {rows.shape} with {rows.dtype}",
            )
        object.__setattr__(self, "indices", rows.astype(np.int64, copy=False))
        for name in ("gains", "variance_left", "test_before", "test_after"):
            object.__setattr__(self, name, vector(getattr(self, name), name))
        if self.costs is not None:
            object.__setattr__(self, "costs", vector(self.costs, "costs"))
        k, certificate = len(self.indices), self.certificate
        if certificate is not None:
            instance(certificate, "a certificate", Certificate, "that of another selection")
        counts = {"gains": len(self.gains), "variance_left": len(self.variance_left) or k}
        if self.costs is not None:
            counts["costs"] = len(self.costs)
        if self.ids:
            counts["ids"] = len(self.ids)
        if certificate is not None:
            counts["certificate.lowest"] = len(certificate.lowest)
            counts["certificate.share"] = len(certificate.share)
        for name, count in counts.items():
            if count != k:
                each = "one for each pick"
                raise WrongCount.of(PoolError)(f"values in {name}", k, count, each)

    def picked_from(self, source: Any, rows: Any, features: Sequence[str]) -> "Selection":
        """Remember the pool, as a path or weak reference, its picked rows, and all features.

        `rows` is a table of the picks as they were given, or an array of the first few of them.
        """
        self.__dict__.update(_source=source, _rows=rows, _features=features)
        return self

    @property
    def pool(self) -> Any:
        """The pool of the picks: its path or the object that was passed; None if that no longer
        exists.

        A selection does not keep its pool in memory, only the columns of the picks.
        """
        source = self.__dict__.get("_source")
        return source() if isinstance(source, ReferenceType) else source

    def __getstate__(self) -> dict[str, Any]:
        """Everything except the pool, which is not pickled."""
        return {name: value for name, value in self.__dict__.items() if name != "_source"}

    def __len__(self) -> int:
        return len(self.indices)

    def __iter__(self) -> Iterator[int]:
        return iter(self.indices.tolist())

    @overload
    def __getitem__(self, key: SupportsIndex) -> int: ...
    @overload
    def __getitem__(self, key: slice) -> "Selection": ...
    def __getitem__(self, key: SupportsIndex | slice) -> "int | Selection":
        """The row number at a position, or a selection of consecutive picks.

        A prefix keeps everything that holds for it: gains, variances, costs, `test_before` and its
        part of the certificate; `test_after` is known for the whole list only, and is empty. Picks
        from the middle are a later batch: gains and variances hold once the picks before them are
        labelled, so `start_variance` is what those leave; certificate, `test_before` and
        `test_after` are dropped. Settings and warnings are those of the run.

        Parameters
        ----------
        key : int or slice
            A position in the list, from 0, or a slice with step 1.

        Returns
        -------
        int or Selection

        Examples
        --------
        >>> left = np.array([0.5, 0.3, 0.2])
        >>> selection = Selection(np.array([7, 2, 5]), np.array([0.5, 0.2, 0.1]), 1.0, 1.0, left)
        >>> selection[-1]
        5
        >>> selection[:2]
        Selection(2 picks: [7, 2]; variance 1 -> 0.3)
        >>> selection[1:]
        Selection(2 picks: [2, 5]; variance 0.5 -> 0.2)
        """
        if isinstance(key, slice):
            start, stop, step = key.indices(len(self))
            if step != 1:
                raise PoolError(
                    "expected consecutive picks, such as selection[:10], as gains hold in this "
                    f"order only; got a slice with step {step}; index selection.indices instead"
                )
            return self._batch(start, max(start, stop))
        if not hasattr(key, "__index__"):
            raise PoolError(
                "expected a position such as selection[0] or a slice such as selection[:10], got "
                f"{type(key).__name__}; index selection.indices instead"
            )
        return int(self.indices[operator.index(key)])

    def _batch(self, start: int, stop: int) -> "Selection":
        if start == 0 and stop == len(self):
            return self
        first, left = start == 0, self.variance_left
        certificate = self.certificate if first else None
        return replace(
            self,
            indices=self.indices[start:stop],
            gains=self.gains[start:stop],
            start_variance=self.start_variance
            if first or not len(left)
            else left[start - 1].item(),
            variance_left=left[start:stop],
            test_before=self.test_before if first else np.empty(0),
            test_after=np.empty(0),
            costs=None if self.costs is None else self.costs[start:stop],
            certificate=None if certificate is None else prefix(certificate, stop),
            ids=self.ids[start:stop],
        ).picked_from(
            self.__dict__.get("_source"),
            None if (rows := self.__dict__.get("_rows")) is None else rows[start:stop],
            self.__dict__.get("_features", ()),
        )

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        """The row numbers, for `np.asarray(selection)` and `x[selection]`."""
        return np.array(self.indices, dtype=dtype, copy=copy)

    def __eq__(self, other: object) -> bool:
        return same_fields(self, other) if isinstance(other, Selection) else NotImplemented

    __hash__ = None  # type: ignore[assignment]

    def to_frame(self, pool: Any = None) -> "pandas.DataFrame":
        """The picks as a pandas DataFrame, with the pool's own columns.

        Parameters
        ----------
        pool : optional
            The pool of the picks; not needed if it was given to `evgp.pick` and its columns have
            names. A pandas or polars frame, an Arrow table, an array or tensor, a Hugging Face
            dataset, the path of a file, or `evgp.open_pool(...)`. It may have other columns than
            the picks were made by, but must have the same rows in the same order.

        Returns
        -------
        pandas.DataFrame
            One line for each pick, best first: `rank` (from 1), `row` (from 0), `gain`,
            `variance_left`, `cost` where rows have costs, then the columns of the pool. A pandas
            pool keeps its index, so that `pool.loc[frame.index]` are the picked rows. Columns of
            the pool whose name is one of these get the suffix `_pool`.

        Examples
        --------
        >>> import pandas as pd
        >>> people = pd.DataFrame({"age": [31, 58, 44]}, index=["ann", "bob", "cay"])
        >>> Selection(np.array([2, 0]), np.array([0.5, 0.2])).to_frame(people)
             rank  row  gain  variance_left  age
        cay     1    2   0.5            NaN   44
        ann     2    0   0.2            NaN   31
        """
        return _room("datasets").picked_frame(self, pool)

    def report(
        self, path: str | Path, pool: Any = None, *, x: Any = None, id: str | None = None
    ) -> None:
        """Write the picks as one HTML page, the same as that of `evgp pick --report`.

        Parameters
        ----------
        path : str or Path
            The file to write; its name ends in .html or .htm.
        pool : optional
            The pool of the picks, as in `to_frame`, by default the one that was given to
            `evgp.pick`. Its columns are shown for each pick, an
            array of images (rows, channels, height, width) as pictures.
        x : array, optional
            Numbers to draw the map of the pool from, such as embeddings, one row for each row of
            the pool. By default the columns of the pool, scaled; words become categories, and
            columns that are different in every row, such as free text, are left out.
        id : str, optional
            The column that names the rows. By default the index of a pandas frame, if it is more
            than a count of the rows; else rows are numbered.

        Examples
        --------
        >>> import tempfile
        >>> x = np.random.default_rng(0).normal(size=(20, 3))
        >>> selection = Selection(np.array([7, 2]), np.array([0.5, 0.2]))
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     selection.report(Path(folder, "report.html"), pool=x)
        ...     Path(folder, "report.html").read_text().splitlines()[0]
        '<!doctype html>'
        """
        pool = self.pool if pool is None else pool
        if pool is None:
            raise PoolError(
                "expected the pool of the picks, which is no longer in memory; pass it as pool="
            )
        _room("report").write_report(self, path, pool, x=x, id=id)

    def plot(self, ax: "Axes | None" = None) -> "Axes":
        """Draw the mean variance left against the number of labels, with the certificate's floor.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; by default a new figure.

        Returns
        -------
        matplotlib Axes

        Examples
        --------
        >>> from matplotlib.figure import Figure
        >>> left = np.array([0.5, 0.3])
        >>> selection = Selection(np.array([7, 2]), np.array([0.5, 0.2]), 1.0, 1.0, left)
        >>> selection.plot(Figure().subplots()).lines[0].get_ydata().tolist()
        [1.0, 0.5, 0.3]
        """
        return _room("report").plot_curve(self, ax)

    def save(self, path: str | Path) -> None:
        """Write the whole selection to one JSON file, which `Selection.load` reads.

        The format is JSON, because a selection is small, and other programs and people can read it
        too; unlike a pickle it cannot run code. Numbers keep every digit, so a loaded selection is
        equal to the bit. The file has a version and a checksum, and is written completely or not at
        all.

        Parameters
        ----------
        path : str or Path
            The file to write; its name ends in .json.

        Examples
        --------
        >>> import tempfile
        >>> selection = Selection(np.array([7, 2]), np.array([0.5, 0.2]))
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     selection.save(Path(folder, "picks.json"))
        ...     Selection.load(Path(folder, "picks.json")) == selection
        True
        """
        _room("datasets").save_selection(self, path)

    @classmethod
    def load(cls, path: str | Path) -> "Selection":
        """Read a selection that `save` wrote.

        Parameters
        ----------
        path : str or Path
            The file to read. A file that is damaged, of another kind, or written by a newer version
            of evgp is refused.

        Returns
        -------
        Selection

        Examples
        --------
        See `save`.
        """
        return _room("datasets").load_selection(path)

    def __repr__(self) -> str:
        shown = ", ".join(str(row) for row in self.indices[:5]) + (", ..." if len(self) > 5 else "")
        parts = [f"{several(len(self), 'pick')}: [{shown}]"]
        if len(self.variance_left):
            parts.append(f"variance {self.start_variance:.4g} -> {self.variance_left[-1]:.4g}")
        if self.certificate is not None and len(self):
            share = guaranteed(float(self.certificate.share[-1]))
            parts.append(f"at least {share} of the best possible")
        return f"Selection({'; '.join(parts)})"

    def _repr_html_(self) -> str:
        k, shown = len(self), min(len(self), _SHOWN)
        columns: dict[str, Sequence[object]] = {
            "rank": range(1, shown + 1),
            "row": [str(row) for row in self.indices[:shown]],
            **({"id": list(self.ids[:shown])} if self.ids else {}),
            "gain": self.gains[:shown].tolist(),
        }
        remarks = [f"… and {k - shown:,} more."] if k > shown else []
        if len(self.variance_left):
            columns["variance left"] = self.variance_left[:shown].tolist()
            before, after = self.start_variance, self.variance_left[-1]
            remarks.append(f"Mean variance {before:.4g} before, {after:.4g} after all picks.")
        if self.costs is not None:
            columns["cost"] = self.costs[:shown].tolist()
        if self.certificate is not None and k:
            remarks.append(promise(self.certificate.share, costs=self.costs is not None))
        rows = self.settings.get("rows")
        of = f" of {rows:,} rows" if isinstance(rows, int) else ""
        title = several(k, "pick") + of
        return html_card(title, columns, [*remarks, *self.warnings])


def _room(name: str) -> Any:
    """A room of the package that imports this one.

    Files are written in `datasets` and pages in `report`. Both import `Selection`, so they
    are looked up by name when a method needs them.
    """
    return import_module(f"evgp.{name}")
