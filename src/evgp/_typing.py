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

from collections.abc import Sequence
from typing import TypeAlias, TypeVar

import numpy as np
from torch import Tensor

Array: TypeAlias = np.ndarray | Tensor
ArrayLike: TypeAlias = np.ndarray | Tensor | Sequence[object]  # what people type
AnyArray = TypeVar("AnyArray", np.ndarray, Tensor)  # NumPy in, NumPy out; torch in, torch out
