"""Cores, threads, memory, and devices, as this process sees them."""

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil

from evgp._machine import limits
from evgp.checkup.facts import Device, Memory, Threads


def threads() -> Threads:
    """How many threads torch and the linear algebra take, beside the cores that they may use."""
    return Threads(_cores(), _torch_threads(), tuple(_blas()), os.environ.get("OMP_NUM_THREADS"))


def memory(root: Path = Path("/sys/fs/cgroup"), own: Path = Path("/proc/self/cgroup")) -> Memory:
    """Of the machine, and of the narrowest container around this process."""
    now = psutil.virtual_memory()
    around = limits(root, own)
    limit, used = min(around, key=lambda pair: pair[0] - pair[1], default=(None, None))
    return Memory(int(now.total), int(now.available), limit, used)


def devices() -> tuple[Device, ...]:
    """The processor, and what else torch can compute on."""
    found = [Device("cpu", f"{_cores()} cores")]
    try:
        import torch

        for i in range(torch.cuda.device_count()):
            about = torch.cuda.get_device_properties(i)
            found.append(Device(f"cuda:{i}", f"{about.name}, {about.total_memory / 1e9:.0f} GB"))
        if torch.backends.mps.is_available():
            found.append(Device("mps", "Apple's graphics processor"))
    except Exception as error:  # a driver that does not fit may raise anything
        found.append(Device("others", f"cannot be asked for ({type(error).__name__}: {error})"))
    return tuple(found)


def _cores() -> int:
    if sys.platform == "linux":
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _torch_threads() -> int | None:
    try:
        import torch

        return int(torch.get_num_threads())
    except Exception:  # said where packages are tried
        return None


def _blas() -> Iterator[tuple[str, int]]:
    """The libraries under NumPy, SciPy and torch, each once, with its threads."""
    try:
        import scipy.linalg  # noqa: F401  loads those of NumPy too
        from threadpoolctl import threadpool_info

        found = {_library(one): int(one["num_threads"]) for one in threadpool_info()}
    except Exception:
        return
    yield from sorted(found.items())
    try:
        import torch

        if torch.backends.mkl.is_available():  # type: ignore[no-untyped-call]
            yield "mkl in torch", int(torch.get_num_threads())
    except Exception:
        return


def _library(one: dict[str, object]) -> str:
    return f"{one['internal_api']} {one.get('version') or ''}".strip()
