"""What this machine has: free memory and speed."""

import time
from collections.abc import Callable
from functools import cache
from pathlib import Path

import psutil
import torch


def available_memory() -> int:
    """Bytes that can be had without swapping, within the limit of a container."""
    free = int(psutil.virtual_memory().available)
    limit, used = Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory.current")
    try:
        return min(free, max(0, int(limit.read_text()) - int(used.read_text())))
    except (OSError, ValueError):
        return free


@cache
def speed() -> tuple[float, float]:
    """Operations in float64 and bytes read, each a second, measured once in a few hundredths."""
    square = torch.ones(512, 512, dtype=torch.float64)
    tall, vector = torch.ones(8192, 1024), torch.ones(1024)
    product = seconds(lambda: square @ square)
    return 2 * 512**3 / product, tall.numel() * 4 / seconds(lambda: tall @ vector)


def seconds(work: Callable[[], object], times: int = 4) -> float:
    """How long a piece of work takes, once it is warm."""
    work()
    began = time.perf_counter()
    for _ in range(times):
        work()
    return (time.perf_counter() - began) / times
