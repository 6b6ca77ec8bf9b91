"""Other training-free scores of an architecture: NASWOT, and the evidence of its NTKGP.

Mellor et al., Neural Architecture Search without Training, ICML 2021; Rasmussen & Williams,
Gaussian Processes for Machine Learning, 2006, chapter 5.
"""

import math

import torch
from jaxtyping import Float
from torch import Tensor, nn

from evgp._linalg import JITTER, as_tensor, safe_cholesky
from evgp._typing import Array
from evgp.errors import NetworkError
from evgp.kernels import NTK
from evgp.nets import Activation, Network


def naswot(network: Network, x: Array, *, seed: int = 0, draws: int = 1) -> float:
    r"""How well the signs inside untrained networks distinguish points; higher is better.

    $$ \log |\det K_H|, \qquad K_H(i, j) = N - d_H(c_i, c_j) $$

    with $c_i$ the signs of all N pre-activations at a point (defined by ReLU, and used for other
    activations too) and $d_H$ the Hamming distance. The mean over `draws` networks.
    O(n d width + n² N) time, n N memory.

    >>> from evgp import mlp
    >>> x = torch.randn(8, 3, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    >>> naswot(mlp(width=64), x) > naswot(mlp(width=64), x / x.norm(dim=1, keepdim=True) + 5)
    True
    """
    x = as_tensor(x).double()
    scores = []
    for draw in range(draws):
        generator = torch.Generator().manual_seed(seed + draw)
        codes = _codes(network.build(tuple(x.shape[1:]), generator=generator), x)
        equal = codes @ codes.T + (1 - codes) @ (1 - codes).T
        scores.append(float(torch.linalg.slogdet(equal)[1]))
    return sum(scores) / draws


def _codes(module: nn.Module, x: Float[Tensor, " n *d"]) -> Float[Tensor, "n c"]:
    """The signs of all inputs of activations, as zeros and ones."""
    signs: list[Tensor] = []
    hooks = [
        part.register_forward_pre_hook(lambda _, inputs: signs.append(inputs[0] > 0))
        for part in module.modules()
        if isinstance(getattr(part, "activation", None), Activation)
    ]
    if not hooks:
        raise NetworkError("NASWOT needs a network with activations, got a linear one")
    with torch.no_grad():
        module(x.float())
    for hook in hooks:
        hook.remove()
    return torch.cat([part.flatten(1) for part in signs], 1).double()


def evidence(network: Network, x: Array, y: Array, *, noise: float = 1e-4) -> float:
    r"""Log marginal likelihood of the labels under the NTKGP at its best scale; higher is better.

    $$ \log p = -\frac{n}{2} \left( \log \frac{2 \pi e\, y^\top A^{-1} y}{n} \right)
       - \frac12 \log |A|, \qquad A = \Theta + s I $$

    The scale of the kernel is the most likely one, $y^\top A^{-1} y / n$, so that scores of
    networks can be compared. A sum over outputs. O(n² (d + depth) + n³).

    >>> from evgp import mlp
    >>> x = torch.linspace(-2, 2, 12, dtype=torch.float64)[:, None]
    >>> evidence(mlp(1), x, x.abs()) > evidence(mlp(1), x, torch.sin(40 * x))
    True
    """
    x, y = as_tensor(x).double(), as_tensor(y).double()
    y = y[:, None] if y.ndim == 1 else y
    matrix = NTK(network)(x)
    factor = safe_cholesky(matrix, max(noise, JITTER) * float(matrix.diagonal().mean()))
    half = torch.linalg.solve_triangular(factor, y, upper=False)
    n, scales = len(x), half.square().mean(0)
    logs = -n / 2 * (scales.clamp(min=1e-300).log() + math.log(2 * math.pi) + 1)
    return float((logs - factor.diagonal().log().sum()).sum())
