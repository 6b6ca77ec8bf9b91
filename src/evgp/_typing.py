"""The axis letters and array kinds that signatures use.

| letter | axis | | letter | axis |
|---|---|---|---|---|
| n | pool points | | o | network outputs |
| m | test points | | p | features or parameters |
| c | candidates of a search | | u | inducing points |
| r | requested rows | | e | ensemble members |
| k | picks | | l | labelled points |
| *d | input axes | | s | shard |
"""

from collections.abc import Sequence
from typing import Any, Protocol, TypeAlias, TypeVar, runtime_checkable

import numpy as np
from torch import Tensor


@runtime_checkable
class Arrayed(Protocol):
    """Anything that converts itself to a NumPy array, such as a frame or one of its columns."""

    def __len__(self) -> int: ...
    def __array__(self, *args: Any, **kwargs: Any) -> Any: ...


Array: TypeAlias = np.ndarray | Tensor
ArrayLike: TypeAlias = np.ndarray | Tensor | Sequence[object] | Arrayed  # what people pass
AnyArray = TypeVar("AnyArray", np.ndarray, Tensor)  # NumPy in, NumPy out; torch in, torch out
