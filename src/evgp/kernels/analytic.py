r"""Infinite-width kernels of a network: NNGP and NTK.

$$ K^{(0)}(x, x') = x \cdot x' / d, \qquad \Theta^{(0)} = 0 $$

pushed through the layers (`evgp.nets`). Everything is computed in float64, in tiles that stay in
the cache, and stored in the requested type: in float32 the ReLU angle at coinciding points would
lose half its digits. Points that are equal to the bit get the exact diagonal value, wherever they
are. The tangent kernel of ReLU has a kink where points coincide: $\arccos$ of a correlation near
one would turn rounding of $10^{-16}$ into $10^{-8}$. There the angle comes from the difference of
the points, so that rounding changes no value by more than some $10^{-15}$.
"""

import warnings
from collections.abc import MutableMapping
from dataclasses import dataclass
from math import inf, prod
from typing import ClassVar

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.utils.weak import WeakIdKeyDictionary

from evgp._checks import instance
from evgp._linalg import as_tensor, like, mirror_, tiles
from evgp._typing import AnyArray, Array
from evgp.errors import NetworkError, NumericalWarning, PoolError
from evgp.kernels.kernel import check_storage
from evgp.nets import Dense, Erf, Layer, LeakyRelu, Network, Sin

# Beyond this input variance erf and sin have fewer than six correct digits in float64.
_DELICATE = 1e9
# Where one minus the correlation is below this, the angle is computed from the points themselves.
_NEAR = 1e-6
# Numbers in one block of differences.
_DIFFERENCES = 1 << 20
_VARIANCES: MutableMapping[Tensor, tuple[int, Tensor]] = WeakIdKeyDictionary()


@dataclass(frozen=True)
class _OfNetwork:
    """A kernel of a network at infinite width; `tangent` says which of the two."""

    network: Network
    storage: torch.dtype | None = None
    threadsafe: ClassVar[bool] = True
    any_width: ClassVar[bool] = True
    is_checked: ClassVar[bool] = True
    tangent: ClassVar[bool]

    def __post_init__(self) -> None:
        instance(self.network, "a network", Network, "evgp.mlp()", error=NetworkError)
        if self.storage is not None:
            check_storage(self.storage)

    def __call__(self, x1: AnyArray, x2: AnyArray | None = None) -> AnyArray:
        """The n x m matrix; with one argument the symmetric n x n one."""
        symmetric = x2 is None or x2 is x1
        a = _flat(x1)
        b = a if x2 is None or symmetric else _flat(x2)
        if a.shape[1] != b.shape[1]:
            raise PoolError(
                f"expected inputs with equally many features, got {a.shape[1]} and {b.shape[1]}"
            )
        va = _variance(self.network, x1, a)
        vb = va if x2 is None or symmetric else _variance(self.network, x2, b)
        out = torch.empty(len(a), len(b), dtype=self.storage or a.dtype)
        exact = self.network.diagonal(va)[int(self.tangent)]
        twins = _twins(a, b, va, vb, symmetric)
        kinked = self.tangent and any(isinstance(part, LeakyRelu) for part in self.network.layers)
        # Few rows, such as the one that a search asks for, go in one long tile.
        wide = max(1024, 512 * 1024 // max(1, min(len(a), 512)))
        for rows, columns in tiles(len(a), len(b), 512, wide):
            if symmetric and columns.stop <= rows.start:
                continue
            left, right = a[rows].double(), b[columns].double()
            # A few rows go one by one, which is several times faster than thin blocks.
            thin = 0 < len(left) <= 4
            cov = torch.stack([right @ row for row in left]) if thin else left @ right.T
            cov.div_(a.shape[1])
            same = None if twins is None else twins[0][rows, None] == twins[1][None, columns]
            apart = None
            if kinked:
                near = _near(self.network.layers[0], cov, va[rows], vb[columns])
                if same is not None:
                    near &= ~same
                elif symmetric:
                    near.diagonal(rows.start - columns.start).fill_(False)
                if bool(near.any()):
                    apart = _apart(left, right, cov, va[rows], vb[columns])
            moments = self.network.propagate(cov, va[rows], vb[columns], apart)
            tile = moments.ntk if self.tangent else moments.nngp
            tile = tile if same is None else torch.where(same, exact[rows, None], tile)
            out[rows, columns] = tile
        if symmetric:
            out.diagonal().copy_(exact)
            mirror_(out)
        return like(x1, out)

    def diag(self, x: AnyArray) -> AnyArray:
        """Each point with itself, exactly: O(n (d + depth))."""
        flat = _flat(x)
        both = self.network.diagonal(_variance(self.network, x, flat))
        return like(x, both[int(self.tangent)].to(self.storage or flat.dtype))


@dataclass(frozen=True)
class NTK(_OfNetwork):
    """The neural tangent kernel (NTK) of a network at infinite width.

    Call it with one batch of inputs for the symmetric n x n matrix, with two for the n x m matrix;
    `diag(x)` is the diagonal alone. NumPy in, NumPy out; torch in, torch out. O(n m (d + depth))
    time; memory for the result and about 50 MB.

    Parameters
    ----------
    network : Network
        The architecture, such as `evgp.mlp()`.
    storage : torch.dtype, optional
        Type of the result, by default that of the inputs; the computation is always float64.

    Examples
    --------
    >>> from evgp.nets import mlp
    >>> x = np.array([[1.0, 0.0], [0.0, 1.0]])
    >>> NTK(mlp(depth=1, b_std=0.0))(x).round(4)
    array([[0.5   , 0.0796],
           [0.0796, 0.5   ]])
    """

    tangent: ClassVar[bool] = True


@dataclass(frozen=True)
class NNGP(_OfNetwork):
    """The covariance of a network's outputs at initialisation, at infinite width (NNGP).

    Called like `NTK`, at the same cost.

    Parameters
    ----------
    network : Network
        The architecture, such as `evgp.mlp()`.
    storage : torch.dtype, optional
        Type of the result, by default that of the inputs; the computation is always float64.

    Examples
    --------
    >>> from evgp.nets import mlp
    >>> NNGP(mlp(depth=1, b_std=0.0)).diag(np.array([[1.0, 0.0]]))
    array([0.25])
    """

    tangent: ClassVar[bool] = False


def _flat(x: Array) -> Float[Tensor, "n d"]:
    tensor = as_tensor(x)
    if tensor.ndim < 2 or tensor.shape[1:].numel() == 0:
        raise PoolError(
            f"expected inputs of shape (rows, features), got {tuple(tensor.shape)}; "
            "reshape a single row to (1, features)"
        )
    # Contiguous rows, so that equal points have equal sums to the bit.
    return tensor.flatten(1).contiguous()


def _variance(network: Network, x: Array, flat: Float[Tensor, "n d"]) -> Float[Tensor, " n"]:
    """Mean square of each row, in float64, without a float64 copy of x, and checked.

    Cached for as long as the tensor exists unchanged: a search asks for one column after another.
    """
    # Inference tensors have no version counter.
    key = x if isinstance(x, Tensor) and not x.is_inference() else None
    known = None if key is None else _VARIANCES.get(key)
    if key is not None and known is not None and known[0] == key._version:
        variance = known[1]
    else:
        empty = flat.new_empty(0, dtype=torch.float64)
        blocks = (block.double().square().mean(1) for block in torch.split(flat, 4096))
        variance = torch.cat([empty, *blocks])
        if key is not None:
            _VARIANCES[key] = (key._version, variance)
    _check(network, variance)
    return variance


def _check(network: Network, variance: Float[Tensor, " n"]) -> None:
    if not bool(torch.isfinite(variance).all()):
        row = int((~torch.isfinite(variance)).nonzero()[0])
        raise PoolError(
            f"expected finite inputs of moderate size, got row {row} with NaN, inf or a norm "
            "beyond 1e150; clean or standardise the inputs"
        )
    if len(variance) == 0:
        return
    largest = float(variance.max())
    grown = prod(
        layer.w_std**2 + layer.b_std**2 + 1 for layer in network.layers if isinstance(layer, Dense)
    )
    if largest * grown > _DELICATE:
        _check_layers(network, variance)
    delicate = any(isinstance(layer, Erf | Sin) for layer in network.layers)
    if delicate and largest > _DELICATE:
        warnings.warn(
            f"inputs with mean square up to {largest:.1e} leave an erf or sin kernel few correct "
            "digits; standardise them",
            NumericalWarning,
            stacklevel=4,
        )


def _check_layers(network: Network, variance: Float[Tensor, " n"]) -> None:
    """Refuse inputs so large that some layer would have no correct digit left."""
    worst = variance.max()[None]
    var, ntk = worst, torch.zeros_like(worst)
    for layer in network.layers:
        if float(var) > getattr(layer, "most", inf):
            raise PoolError(
                f"expected inputs whose kernel float64 can hold, got row {int(variance.argmax())} "
                f"with mean square {float(worst):.1e}, too large for {layer}; scale the inputs"
            )
        var, ntk = layer.diagonal(var, ntk)
    if not float(ntk) < 1e290:
        raise PoolError(
            f"expected inputs whose kernel float64 can hold, got row {int(variance.argmax())} with "
            f"mean square {float(worst):.1e}; scale the inputs, or lower w_std or b_std"
        )


def _near(
    first: Layer, cov: Float[Tensor, "n m"], va: Float[Tensor, " n"], vb: Float[Tensor, " m"]
) -> Bool[Tensor, "n m"]:
    """Which pairs nearly coincide after the first layer, whose bias may bring them together."""
    w2, b2 = (first.w_std**2, first.b_std**2) if isinstance(first, Dense) else (1.0, 0.0)
    s1, s2 = (va * w2 + b2).sqrt(), (vb * w2 + b2).sqrt()
    return cov > torch.outer(s1 * ((1 - _NEAR) / w2), s2).sub_(b2 / w2)


def _apart(
    a: Float[Tensor, "n d"],
    b: Float[Tensor, "m d"],
    cov: Float[Tensor, "n m"],
    va: Float[Tensor, " n"],
    vb: Float[Tensor, " m"],
) -> Float[Tensor, "n m"]:
    r"""One minus the correlation; for near points $|u - u'|^2 / 2$ with $u$, $u'$ of length one.

    O(d) for each pair of near points.
    """
    s1, s2 = va.sqrt()[:, None], vb.sqrt()
    product = s1 * s2
    apart = torch.where(product > 0, 1 - cov / product, 1.0)
    i, j = ((apart < _NEAR) & (product > 0)).nonzero(as_tuple=True)
    if len(i) == 0:
        return apart
    a, b = a / s1, b / s2[:, None]
    size = max(1, _DIFFERENCES // a.shape[1])
    for rows, others in zip(torch.split(i, size), torch.split(j, size), strict=True):
        apart[rows, others] = (a[rows] - b[others]).square_().mean(1).div_(2)
    return apart


def _twins(
    a: Float[Tensor, "n d"],
    b: Float[Tensor, "m d"],
    va: Float[Tensor, " n"],
    vb: Float[Tensor, " m"],
    symmetric: bool,
) -> tuple[Int[Tensor, " n"], Int[Tensor, " m"]] | None:
    """Group numbers such that equal numbers mean equal rows; None where all rows differ.

    O((n + m) log n); only rows that share their variance with another are compared.
    """
    if symmetric:
        _, inverse, counts = torch.unique(va, return_inverse=True, return_counts=True)
        maybe = [(counts[inverse] > 1).nonzero().squeeze(1), torch.empty(0, dtype=torch.int64)]
    else:
        right_rows = torch.isin(vb, va).nonzero().squeeze(1)
        maybe = [torch.isin(va, vb[right_rows]).nonzero().squeeze(1), right_rows]
    if len(maybe[0]) == 0:
        return None
    # Adding zero turns -0.0 into 0.0, so that equal rows have equal bytes.
    rows = torch.cat([a[maybe[0]], b[maybe[1]]]).double().add_(0.0).numpy()
    keys = np.ascontiguousarray(rows).view(np.dtype((np.void, rows.shape[1] * 8))).ravel()
    _, index, counts = np.unique(keys, return_inverse=True, return_counts=True)
    if counts.max() == 1:
        return None
    groups = torch.from_numpy(index)
    # Rows outside `maybe` get unique numbers: negative, and different ones for a and b.
    left = -1 - torch.arange(len(a))
    left[maybe[0]] = groups[: len(maybe[0])]
    if symmetric:
        return left, left
    right = -1 - len(a) - torch.arange(len(b))
    right[maybe[1]] = groups[len(maybe[0]) :]
    return left, right
