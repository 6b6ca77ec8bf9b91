r"""Few labels: one pick in each of k cells of the pool, by the variance of the cells' means.

With about one label per class, it matters more that picks stand for different groups of points than
that they lower the variance of single points. The pool is cut into k cells by Ward's method, and
one row of each cell is picked such that

$$ \sum_c n_c \, \mathrm{Var}\Big[\tfrac{1}{n_c} \sum_{t \in c} f(t) \,\Big|\, \text{labels}\Big] $$

is least, $n_c$ being the number of test points in cell $c$. Ward, Hierarchical Grouping to Optimize
an Objective Function, JASA 1963.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch
from jaxtyping import Float, Int, Shaped
from torch import Generator, Tensor

from evgp._checks import integer, keep
from evgp._executor import Progress, silent
from evgp._linalg import unit_for
from evgp.criteria import Criterion, ExpectedVariance
from evgp.errors import PoolError
from evgp.kernels import Kernel
from evgp.pool import Pool, Selection
from evgp.posterior import DensePosterior, Start
from evgp.search.greedy import Budget, Exact, Opens, gains_of, rounding, selection, winner

# Ward's method takes O(n²) memory: larger pools are cut by a sample of this many rows.
_WARD = 5_000
_BLOCK = 1_024  # points whose covariances with all test points are computed at once
_PAYS = 1e-6  # least share of its own gain that a swap must add


@dataclass(frozen=True, eq=False)
class Partition:
    """Points cut into cells: the cell of each point, and the mean of each cell, in `unit`."""

    cell: Int[np.ndarray, " n"]
    means: Float[np.ndarray, "g p"]
    unit: float

    @classmethod
    def of(cls, x: Shaped[Tensor, " n *d"], count: int, *, generator: Generator) -> "Partition":
        """Cut points into cells by Ward's method; fewer if there are fewer distinct points.

        O(n² d) time and O(n²) memory for up to 5,000 points. Of more, 5,000 drawn at random are
        cut, and every point joins the cell with the nearest mean.

        >>> x = torch.tensor([[0.0], [5.0], [0.1], [5.1]])
        >>> Partition.of(x, 2, generator=torch.Generator()).cell.tolist()
        [0, 1, 0, 1]
        """
        from scipy.cluster.hierarchy import fcluster, linkage  # which take a second to import

        unit = unit_for(x)
        points = _flat(x, unit)
        part, most = points, max(_WARD, 2 * count)
        if len(points) > most:
            rows = torch.randperm(len(points), generator=generator)[:most]
            part = points[rows.sort().values.numpy()]
        labels = fcluster(linkage(part, "ward"), count, "maxclust") if len(part) > 1 else [1]
        _, first, at = np.unique(labels, return_index=True, return_inverse=True)
        cell = np.argsort(np.argsort(first))[at]  # numbered in the order of their first rows
        means = np.zeros((len(first), points.shape[1]))
        np.add.at(means, cell, part)
        means /= np.bincount(cell)[:, None]
        if len(part) < len(points):
            cell = _nearest(points, means)
        return cls(cell, means, unit)

    def nearest(self, x: Shaped[Tensor, " m *d"]) -> Int[np.ndarray, " m"]:
        """Return the cell with the nearest mean for each of other points."""
        return _nearest(_flat(x, self.unit), self.means)

    def middle(self, x: Shaped[Tensor, " n *d"], rows: Int[np.ndarray, " r"]) -> int:
        """Return the position of the row that is nearest to the mean of its cell."""
        points = _flat(x[torch.from_numpy(rows)], self.unit)
        return int(np.square(points - self.means[self.cell[rows[0]]]).sum(1).argmin())


def _flat(x: Shaped[Tensor, " n *d"], unit: float) -> Float[np.ndarray, "n p"]:
    return (x.double() / unit).reshape(len(x), -1).numpy()


def _nearest(
    points: Float[np.ndarray, "n p"], means: Float[np.ndarray, "g p"]
) -> Int[np.ndarray, " n"]:
    from sklearn.metrics import pairwise_distances_argmin  # which takes seconds to import

    return np.asarray(pairwise_distances_argmin(points, means))


@dataclass(frozen=True, eq=False)
class CellKernel:
    """A kernel between points and the means over cells; its inputs are numbers.

    Points are 0, 1, ..., and the means over cells are -1, -2, .... `means` holds the covariance of
    each point with each mean, and `variances` the variance of each mean.
    """

    kernel: Kernel
    points: Shaped[Tensor, " n *d"]
    means: Float[Tensor, "n g"]
    variances: Float[Tensor, " g"]
    is_checked: ClassVar[bool] = True

    @classmethod
    def of(
        cls,
        kernel: Kernel,
        points: Shaped[Tensor, " n *d"],
        tests: Shaped[Tensor, " m *d"],
        shares: Float[Tensor, "m g"],
    ) -> "CellKernel":
        """Average a kernel over cells: O((n + m) m) kernel values, O((n + m) g) memory."""

        def averaged(x: Tensor) -> Tensor:
            parts = torch.split(x, _BLOCK)
            return torch.cat([kernel(part, tests).double() @ shares for part in parts])

        means = averaged(points)
        inside = means if points is tests else averaged(tests)
        return cls(kernel, points, means, (shares * inside).sum(0))

    def __call__(
        self, x1: Float[Tensor, "n 1"], x2: Float[Tensor, "m 1"] | None = None
    ) -> Float[Tensor, "n m"]:
        """Return the covariance between points, or between points and means."""
        rows = x1[:, 0].long()
        if x2 is None:
            return self.kernel(self.points[rows])
        others = x2[:, 0].long()
        if bool((others < 0).any()):
            return self.means[rows][:, -1 - others]
        return self.kernel(self.points[rows], self.points[others])

    def diag(self, x: Float[Tensor, "n 1"]) -> Float[Tensor, " n"]:
        """Return the variance of each point, or of each mean."""
        at = x[:, 0].long()
        if bool((at < 0).any()):
            return self.variances[-1 - at]
        return self.kernel.diag(self.points[at])


@dataclass(frozen=True)
class OnePerCell:
    """One pick in each of k cells, swapped within the cells until no swap helps.

    The pool is cut into k cells, and one more for each labelled point; cells with a labelled point
    need no pick, and of the others the k largest get one. The first picks are the rows nearest to
    the means of their cells. Picks for k + 1 do not contain those for k. `noise` is a share of the
    mean prior variance. O(n²) kernel values; a pass over k picks of n rows costs O(k² n).
    """

    noise: float = 0.01
    passes: int = 20

    def __post_init__(self) -> None:
        keep(self, passes=integer(self.passes, "passes", 0))

    def __call__(
        self,
        start: Opens,
        criterion: Criterion,
        candidates: Int[Tensor, " c"],
        budget: Budget,
        *,
        generator: Generator,
        progress: Progress = silent,
    ) -> Selection:
        """Return picks among the candidates, with their gains."""
        if budget.costs is not None:
            raise PoolError("expected no costs with one pick per cell; give k, or another search")
        if not isinstance(start, Start):
            raise PoolError("expected an exact kernel for one pick per cell, got features")
        inputs, k = start.inputs or start.pool, budget.k
        outside = inputs.x_labelled
        known = len(inputs.labelled) + (0 if outside is None else len(outside))
        parts = Partition.of(inputs.x, k + known, generator=generator)
        cell = torch.from_numpy(parts.cell)
        done = set(cell[inputs.labelled].tolist())
        if outside is not None:
            done |= set(parts.nearest(outside).tolist())
        kernel, sizes = _averaged(start, inputs, parts)
        posterior = self._posterior(start, kernel, sizes, candidates)
        of_candidates = cell[candidates]
        open_cells = [g for g in torch.unique(of_candidates).tolist() if g not in done]
        chosen = sorted(open_cells, key=lambda g: (-float(sizes[g]), g))[:k]
        rows = []
        for group in chosen:
            inside = (of_candidates == group).nonzero().squeeze(1)
            rows.append(int(inside[parts.middle(inputs.x, candidates[inside].numpy())]))
        rows = self._swapped(posterior, criterion, of_candidates, rows, progress)
        posterior = self._posterior(start, kernel, sizes, candidates)
        free = torch.zeros(len(candidates), dtype=torch.bool)
        free[rows] = True
        ranked, gains = Exact().fill_(posterior, criterion, free, Budget(len(rows)))
        if len(ranked) < k:  # fewer distinct rows than picks: the others by the expected variance
            more, further = self._others(start, candidates, ranked, k)
            ranked, gains = ranked + more, gains + further
        return selection(candidates, ranked, gains, budget)

    def _posterior(
        self,
        start: Start,
        kernel: CellKernel,
        sizes: Float[Tensor, " g"],
        candidates: Int[Tensor, " c"],
    ) -> DensePosterior:
        """Return a posterior over candidates and cell means."""
        pool = start.pool
        known = torch.cat([pool.labelled, torch.arange(len(pool.x), len(kernel.points))])
        x = candidates.double()[:, None]
        means = -1 - torch.arange(len(sizes), dtype=torch.float64)[:, None]
        prior = float(pool.test_weights() @ start.kernel.diag(pool.test_points()).double())
        return DensePosterior(
            kernel,
            x,
            means,
            kernel(x, means),
            noise=max(start.noise, self.noise * prior),
            weights=sizes,
            known=known.double()[:, None] if len(known) else None,
        )

    def _swapped(
        self,
        posterior: DensePosterior,
        criterion: Criterion,
        cell: Int[Tensor, " c"],
        rows: list[int],
        progress: Progress,
    ) -> list[int]:
        """Swap picks for better rows of their own cells, until no swap helps."""
        rows = list(rows)
        for row in rows:
            posterior.observe_(row)
        for done in range(self.passes):
            swaps = 0
            for place, row in enumerate(rows):
                posterior.forget_(row)
                own = float(gains_of(criterion, posterior, torch.tensor([row])))
                best = winner(posterior, criterion, cell == cell[row])
                least = own + _PAYS * abs(own) + rounding(criterion, posterior)
                if best is not None and best[1] > least:
                    rows[place] = best[0]
                    swaps += 1
                posterior.observe_(rows[place])
            progress("exchanging", done + 1, self.passes)
            if swaps == 0:
                break
        return rows

    @staticmethod
    def _others(
        start: Start, candidates: Int[Tensor, " c"], rows: list[int], k: int
    ) -> tuple[list[int], list[float]]:
        posterior = start(candidates)
        free = torch.ones(len(candidates), dtype=torch.bool)
        for row in rows:
            posterior.observe_(row)
        free[rows] = False
        return Exact().fill_(posterior, ExpectedVariance(), free, Budget(k), taken=tuple(rows))


def _averaged(
    start: Start, inputs: Pool, parts: Partition
) -> tuple[CellKernel, Float[Tensor, " g"]]:
    """Return the kernel between points and cell means, and the weight of each cell."""
    pool, count = start.pool, len(parts.means)
    rows = inputs.test_rows()
    cell = parts.cell[rows.numpy()] if rows is not None else parts.nearest(inputs.test_points())
    at, weights = torch.from_numpy(cell), pool.test_weights().double()
    sizes = torch.zeros(count, dtype=torch.float64).index_add_(0, at, weights)
    shares = torch.zeros(len(at), count, dtype=torch.float64)
    shares[torch.arange(len(at)), at] = weights / sizes[at].clamp(min=1e-300)
    points = pool.x if pool.x_labelled is None else torch.cat([pool.x, pool.x_labelled])
    return CellKernel.of(start.kernel, points, pool.test_points(), shares), sizes
