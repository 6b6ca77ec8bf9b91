"""EV-GP as a query strategy for scikit-activeml."""

from typing import Any

import numpy as np
import torch
from jaxtyping import Shaped
from torch import Tensor

from evgp._checks import noise_of
from evgp._defaults import NOISE
from evgp._extras import EXTRAS
from evgp.datasets import ReadOptions, read_with
from evgp.datasets.scaling import scale_of
from evgp.errors import PoolError
from evgp.nets import Network, mlp
from evgp.selection import Request
from evgp.selection.plan import planned, stepwise

try:
    from skactiveml.base import SingleAnnotatorPoolQueryStrategy
    from skactiveml.utils import MISSING_LABEL, is_labeled
except ImportError as error:
    raise ImportError(
        f"scikit-activeml 1.0 or newer is not installed; run `{EXTRAS['adapters'].install}`"
    ) from error


class EVGPQuery(SingleAnnotatorPoolQueryStrategy):  # type: ignore[misc]
    """Query the samples that reduce the mean variance over X most, given the labelled ones.

    A utility is how much a label would reduce the mean variance. The labels themselves are not
    used, so this works for classes and numbers, and without any label.

    Parameters
    ----------
    network, kernel, noise, scale
        As for `evgp.pick`; `network=None` is `evgp.mlp()`.
    thin : int, optional
        Keeps that many test points of X.
    missing_label
        Marks samples without a label.
    random_state : int or RandomState, optional
    standardise : bool, optional
        The former name of `scale`.

    Examples
    --------
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
        noise: Any = NOISE,
        scale: Any = "auto",
        thin: Any = None,
        missing_label: Any = MISSING_LABEL,
        random_state: Any = None,
        standardise: Any = None,
    ) -> None:
        # By convention of that package, arguments are stored as they are and checked when used.
        super().__init__(missing_label=missing_label, random_state=random_state)
        self.network = network
        self.kernel = kernel
        self.noise = noise
        self.scale = scale
        self.thin = thin
        self.standardise = standardise

    def query(
        self,
        X: Any,
        y: Any,
        candidates: Any = None,
        batch_size: Any = 1,
        return_utilities: Any = False,
    ) -> Any:
        """Rows of X (or of `candidates`, if these are samples) to label, and their utilities."""
        X, y, candidates, batch_size, return_utilities = self._validate_data(
            X, y, candidates, batch_size, return_utilities, reset=True
        )
        offered, mapping = self._transform_candidates(candidates, X, y)
        if not len(offered):
            raise PoolError("there is nothing to query: all samples are labelled")
        fixed = self.kernel is not None or not isinstance(self.network, Network | None)
        scale = scale_of(self.scale, self.standardise)
        data = read_with(X, ReadOptions(scale=scale, fixed=fixed), name="X")
        x, free = data.in_memory, data.tensor_like(offered, "candidates")
        known = x[torch.from_numpy(is_labeled(y, missing_label=self.missing_label_))]
        picks, gains = self._picks(x, free, known, batch_size, return_utilities)
        if mapping is None:
            return (picks, gains) if return_utilities else picks
        picks, utilities = mapping[picks], np.full((len(picks), len(X)), np.nan)
        utilities[:, mapping] = gains
        return (picks, utilities) if return_utilities else picks

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
            scale=None,
            storage="float64",
            thin=self.thin,
            method="dense",
            seed=int(self.random_state_.randint(2**31)),
        )
        return stepwise(planned(request), with_gains=with_gains)
