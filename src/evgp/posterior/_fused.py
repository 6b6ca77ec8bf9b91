"""One read of the features for a change to all sums: by numba where it is there, else by torch."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from inspect import unwrap

import numpy as np
import torch

# Compiling takes a second or two: not for what is read in a blink.
_WORTH = 1 << 24

Fused = Callable[..., None]


def fused(size: int, dtype: torch.dtype) -> Fused | None:
    """A function that does it in one pass over float32 rows, if numba is there and it pays.

    `size` is how many numbers the whole matrix has.
    """
    return _compiled() if size >= _WORTH and dtype == torch.float32 else None


def in_parallel(work: Callable[[int, int], object], n: int) -> None:
    """Work on n rows in as many threads as torch would use.

    Plain threads, because two pools that wait by spinning stand in each other's way.
    """
    threads = torch.get_num_threads()
    step = -(-n // threads)
    if threads == 1 or step == n:
        work(0, n)
        return
    done = [_threads(threads).submit(work, i, min(n, i + step)) for i in range(0, n, step)]
    for one in done:
        one.result()


@cache
def _threads(count: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(count, thread_name_prefix="evgp")


@cache
def _compiled() -> Fused | None:
    try:
        import numba
    except ImportError:
        return None

    def apply(block, u, w, size, sign, a, b, exact, norm, f, v, f_slack, v_slack):  # type: ignore[no-untyped-def]  # noqa: PLR0917
        for i in range(block.shape[0]):
            s0 = np.float32(0)
            s1 = np.float32(0)
            for j in range(block.shape[1]):
                x = block[i, j]
                s0 += x * u[j]
                s1 += x * w[j]
            q0 = np.float64(s0)
            q1 = np.float64(s1)
            change = q0 * (size * q0 + 2 * sign * q1)
            f_slack[i] += exact * (abs(f[i]) + abs(change))
            v_slack[i] += exact * (abs(v[i]) + q0 * q0)
            f[i] += change
            v[i] += sign * q0 * q0
            q0 = abs(q0)
            q1 = abs(q1)
            v_slack[i] += norm[i] * a * (2 * q0 + a * norm[i])
            lost = 2 * (b + size * a) * q0 + 2 * a * q1 + a * (2 * b + size * a) * norm[i]
            f_slack[i] += norm[i] * lost

    # Tests wrap every function to check its types, which numba cannot compile.
    plain = unwrap(apply)
    return numba.njit(nogil=True, fastmath={"reassoc", "contract", "nsz"}, cache=True)(plain)
