"""Opening a posterior over candidates, given the labelled points."""

from dataclasses import dataclass, field, replace

import torch
from jaxtyping import Float, Int, Shaped
from torch import Tensor

from evgp.kernels import Kernel, Storing
from evgp.pool import Pool
from evgp.posterior.dense import DensePosterior
from evgp.posterior.posterior import DENSE, Posterior, TestCovariance


@dataclass
class Start:
    """Opens posteriors over candidates; computes the large matrix once.

    `noise` is the absolute variance of a label. `storage` is the type of the c x m matrix only:
    columns, sums and factors are float64. `inputs` is the pool before its points became row numbers
    of a tabulated kernel.
    """

    kernel: Kernel
    pool: Pool
    noise: float
    storage: torch.dtype = torch.float64
    inputs: Pool | None = None
    _kept: tuple[Int[Tensor, " c"], Float[Tensor, "c m"]] | None = field(default=None, repr=False)

    def __call__(self, candidates: Int[Tensor, " c"]) -> DensePosterior:
        """A posterior over these pool rows and the test points."""
        pool, rows, known = self.pool, self.pool.test_rows(), self.pool.known()
        shared = rows is not None and torch.equal(rows, candidates)
        every = torch.equal(candidates, torch.arange(len(pool)))
        x = pool.x if every else pool.x[candidates]
        place = None
        if rows is not None:
            place = torch.full((len(pool),), -1)
            place[rows] = torch.arange(len(rows))
        return DensePosterior(
            self.kernel,
            x,
            x if shared else pool.test_points(),
            self._matrix(candidates, x, None if shared else pool.test_points()),
            noise=self.noise,
            weights=pool.test_weights(),
            known=known if len(known) else None,
            in_test=None if place is None else place[candidates],
            test_labelled=None if rows is None else torch.isin(rows, pool.labelled),
            shared=shared,
        )

    def _matrix(
        self,
        candidates: Int[Tensor, " c"],
        x: Shaped[Tensor, " c *d"],
        x_test: Shaped[Tensor, " m *d"] | None,
    ) -> Float[Tensor, "c m"]:
        """Prior covariance between candidates and test points, cached for the next call."""
        if self._kept is not None and torch.equal(self._kept[0], candidates):
            return self._kept[1]
        matrix = stored(self.kernel, x, x_test, self.storage)
        if len(candidates) * 4 >= len(self.pool):  # few points do not evict the large matrix
            self._kept = (candidates, matrix)
        return matrix

    def __len__(self) -> int:
        return len(self.pool)

    def test_covariance(self, posterior: Posterior) -> TestCovariance:
        """Covariance of the test points given the labels at the start, before any pick."""
        assert isinstance(posterior, DensePosterior)
        pool, rows, weights = self.pool, self.pool.test_rows(), self.pool.test_weights()
        if by_pool(len(pool), len(weights)) and (small := self._known_by_pool()) is not None:
            return small
        if rows is not None and self._kept is not None and torch.equal(rows, self._kept[0]):
            matrix = self._kept[1]  # the test points are the candidates
        else:
            matrix = stored(self.kernel, pool.test_points(), None, self.storage)
        return TestCovariance(matrix, posterior.base(), weights, posterior.test_variance())

    def _known_by_pool(self) -> TestCovariance | None:
        r"""The covariance of test points that all rows of the pool explain, as a matrix of rows.

        $A_C = W^{1/2} \Theta_{TC} (\Theta_C + s)^{-1} \Theta_{CT} W^{1/2}$, given the labels at the
        start. No rows of the pool reduce the variance by more than the same number of its
        eigenvalues, which are those of the c x c matrix here. Rounding may raise them, by lowering
        $s$, and never lower them; None if $s$ is too small for that.
        """
        candidates = self.pool.unlabelled()
        posterior = self(candidates)
        inner = posterior.candidate_covariance()
        slack = 8 * len(inner) * torch.finfo(torch.float64).eps * float(inner.diagonal().sum())
        if not slack < self.noise / 4:
            return None
        inner.diagonal().add_(self.noise - slack)
        factor, failed = torch.linalg.cholesky_ex(inner)
        if int(failed):
            return None
        rows = torch.arange(len(candidates))
        cross = posterior.covariance(rows) * self.pool.test_weights().sqrt()
        seen = torch.linalg.solve_triangular(factor, cross, upper=False)
        matrix = (1 + 1e-9) * (seen @ seen.T)
        none, ones = matrix[:0], torch.ones(len(matrix), dtype=matrix.dtype)
        return TestCovariance(matrix, none, ones, matrix.diagonal().clone())


def condition(
    kernel: Kernel, pool: Pool, candidates: Int[Tensor, " c"], *, noise: float
) -> DensePosterior:
    """Posterior over candidates and test points, given the labelled points.

    >>> from evgp.kernels import NTK
    >>> from evgp.nets import mlp
    >>> pool = Pool(torch.eye(3, dtype=torch.float64), labelled=torch.tensor([2]))
    >>> posterior = condition(NTK(mlp()), pool, pool.unlabelled(), noise=1e-6)
    >>> posterior.variance().shape, posterior.test_variance().shape
    (torch.Size([2]), torch.Size([3]))
    """
    return Start(kernel, pool, noise)(candidates)


def by_pool(rows: int, tests: int) -> bool:
    """Whether a certificate is computed from the rows of the pool, as test points are many more.

    >>> by_pool(40, 60_000), by_pool(40, 2_000), by_pool(4_000, 5_000)
    (True, False, False)
    """
    return tests > DENSE and 2 * rows <= tests


def stored(
    kernel: Kernel, x1: Tensor, x2: Tensor | None, storage: torch.dtype
) -> Float[Tensor, "n m"]:
    """A kernel matrix in the requested type, without a second copy."""
    if x1.dtype == storage:
        return kernel(x1, x2)
    if isinstance(kernel, Storing):
        return replace(kernel, storage=storage)(x1, x2)
    other = x1 if x2 is None else x2
    out = torch.empty(len(x1), len(other), dtype=storage)
    for i in range(0, len(x1), 1024):
        out[i : i + 1024] = kernel(x1[i : i + 1024], other)
    return out
