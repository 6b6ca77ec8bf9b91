"""What every strategy answers to."""

from typing import Protocol, runtime_checkable

from jaxtyping import Int
from torch import Generator, Tensor

from evgp._errors import PoolError
from evgp.pool import Pool, Selection


@runtime_checkable
class Strategy(Protocol):
    """From a pool to k of its unlabelled rows, in order."""

    def __call__(self, pool: Pool, k: int, *, generator: Generator) -> Selection:
        """k picks; all that is random comes from the generator."""
        ...


def unlabelled(pool: Pool, k: int) -> Int[Tensor, " c"]:
    """The rows that may be picked, if there are k of them.

    >>> import torch
    >>> unlabelled(Pool(torch.zeros(4, 1), labelled=torch.tensor([1])), 2).tolist()
    [0, 2, 3]
    """
    free = pool.unlabelled()
    if not 1 <= k <= len(free):
        raise PoolError(
            f"expected k from 1 to {len(free)}, the rows that may be picked; got k={k!r}"
        )
    return free
