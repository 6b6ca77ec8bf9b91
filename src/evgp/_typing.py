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
from typing import Any, Protocol, TypeAlias, TypeVar, runtime_checkable

import numpy as np
from torch import Tensor


@runtime_checkable
class Arrayed(Protocol):
    """What NumPy makes an array of when asked, such as a frame or a column of one."""

    def __len__(self) -> int: ...
    def __array__(self, *args: Any, **kwargs: Any) -> Any: ...


Array: TypeAlias = np.ndarray | Tensor
ArrayLike: TypeAlias = np.ndarray | Tensor | Sequence[object] | Arrayed  # what people hand over
AnyArray = TypeVar("AnyArray", np.ndarray, Tensor)  # NumPy in, NumPy out; torch in, torch out
