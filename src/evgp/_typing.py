"""The axis letters and array kinds that signatures use.

| letter | axis | | letter | axis |
|---|---|---|---|---|
| n | pool points | | o | network outputs |
| m | test points | | p | features or parameters |
| c | candidates given to a greedy | | u | inducing points |
| r | rows asked about | | e | ensemble members |
| k | picks | | l | labelled points |
| *d | input axes | | s | shard |
"""

from typing import Literal, TypeAlias

import numpy as np
from jaxtyping import Float, Int
from torch import Tensor

Array: TypeAlias = np.ndarray | Tensor
Storage: TypeAlias = Literal["float64", "float32", "auto"]
Indices: TypeAlias = Int[np.ndarray, " k"]
Values: TypeAlias = Float[np.ndarray, " k"]
