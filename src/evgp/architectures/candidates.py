"""The architectures to choose from.

Hemachandra et al., Training-Free Neural Active Learning with Initialization-Robustness
Guarantees, ICML 2023, appendix on model selection.
"""

from collections.abc import Sequence

from evgp._checks import shown
from evgp._errors import NetworkError
from evgp.nets import Network, mlp


def candidates(
    depths: tuple[int, ...] = (1, 2, 3, 4),
    activations: tuple[str, ...] = ("relu", "gelu", "leaky_relu", "erf"),
    *,
    width: int = 512,
    outputs: int = 1,
) -> dict[str, Network]:
    """The paper's 16 by name; with "sin" among the activations its 20 for sinusoidal data.

    >>> list(candidates(depths=(1, 2), activations=("relu", "erf")))
    ['relu-1', 'relu-2', 'erf-1', 'erf-2']
    """
    for name, given in (("depths", depths), ("activations", activations)):
        if not isinstance(given, Sequence) or isinstance(given, str) or not given:
            raise NetworkError(f"expected {name} as a list of them, got {shown(given)}")
    return {
        f"{activation}-{depth}": mlp(depth, width, activation, outputs=outputs)
        for activation in activations
        for depth in depths
    }
