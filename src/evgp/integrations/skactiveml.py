"""EV-GP as a query strategy of scikit-activeml, for use in its loop and beside its strategies."""

from typing import Any

import numpy as np
import torch
from jaxtyping import Shaped
from torch import Tensor

from evgp._checks import flag, noise_of
from evgp._errors import PoolError
from evgp._extras import EXTRAS
from evgp.datasets import ReadOptions, read_with
from evgp.nets import Network, mlp
from evgp.selection import Request
from evgp.selection.plan import planned
from evgp.selection.stepwise import stepwise

try:
    from skactiveml.base import SingleAnnotatorPoolQueryStrategy
    from skactiveml.utils import MISSING_LABEL, is_labeled
except ImportError as error:
    raise ImportError(
        "expected scikit-activeml 1.0 or newer, which is not installed; do "
        f"`{EXTRAS['adapters'].install}`"
    ) from error


class EVGPQuery(SingleAnnotatorPoolQueryStrategy):  # type: ignore[misc]
    """Query what lowers the mean variance over X most, given what is labelled.

    A utility is the fall of the mean variance that a label would bring. Labels themselves play no
    part, so this serves classes and numbers, and the start without any label. `network=None` is
    `evgp.mlp()`; columns are scaled to mean 0 and deviation 1 over X, unless `standardise=False`.
    `thin` keeps that many test points of X, for large ones.

    >>> from sklearn.datasets import load_iris
    >>> x = load_iris().data
    >>> EVGPQuery(random_state=0).query(x, np.full(len(x), MISSING_LABEL), batch_size=2)
    array([  7, 102])
    """

    def __init__(
        self,
        *,
        network: Any = None,
        kernel: Any = None,
        noise: Any = 1e-6,
        standardise: Any = True,
        thin: Any = None,
        missing_label: Any = MISSING_LABEL,
        random_state: Any = None,
    ) -> None:
        # Anything is stored, as that package has it; it is checked when it is used.
        super().__init__(missing_label=missing_label, random_state=random_state)
        self.network = network
        self.kernel = kernel
        self.noise = noise
        self.standardise = standardise
        self.thin = thin

    def query(
        self,
        X: Any,
        y: Any,
        candidates: Any = None,
        batch_size: int = 1,
        return_utilities: bool = False,
    ) -> Any:
        """Rows of X (or of `candidates`, if these are samples) to label, and their utilities."""
        X, y, candidates, batch_size, return_utilities = self._validate_data(
            X, y, candidates, batch_size, return_utilities, reset=True
        )
        offered, mapping = self._transform_candidates(candidates, X, y)
        if not len(offered):
            raise PoolError("expected samples without a label to query, got none; all are labelled")
        fixed = self.kernel is not None or not isinstance(self.network, Network | None)
        standardise = flag(self.standardise, "standardise")
        data = read_with(X, ReadOptions(standardise=standardise, fixed=fixed), name="X")
        x, free = data.in_memory, data.tensor_like(offered, "candidates")
        known = x[torch.from_numpy(is_labeled(y, missing_label=self.missing_label_))]
        picks, gains = self._picks(x, free, known, batch_size, return_utilities)
        if mapping is None:
            return (picks, gains) if return_utilities else picks
        picks, told = mapping[picks], np.full((len(picks), len(X)), np.nan)
        told[:, mapping] = gains
        return (picks, told) if return_utilities else picks

    def _picks(
        self,
        x: Shaped[Tensor, " n *d"],
        free: Shaped[Tensor, " c *d"],
        known: Shaped[Tensor, " l *d"],
        k: int,
        with_gains: bool,
    ) -> tuple[Any, Any]:
        request = Request.of(
            free,
            k,
            x_test=x,
            x_labelled=known if len(known) else None,
            network=mlp() if self.network is None else self.network,
            kernel=self.kernel,
            noise=noise_of(self.noise),
            standardise=False,
            storage="float64",
            thin=self.thin,
            method="dense",
            seed=int(self.random_state_.randint(2**31)),
        )
        return stepwise(planned(request), with_gains=with_gains)
