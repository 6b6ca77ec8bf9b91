"""The optional parts: what each is for, which packages it needs, and how to install it."""

from dataclasses import dataclass
from importlib.util import find_spec


@dataclass(frozen=True)
class Extra:
    """What `pip install "evgp[name]"` adds: the names to import, and what they are for."""

    name: str
    modules: tuple[str, ...]
    purpose: str

    @property
    def install(self) -> str:
        """The line that installs it."""
        return f'pip install "evgp[{self.name}]"'

    def absent(self) -> tuple[str, ...]:
        """Those of its packages that are not installed; none is imported to find out."""
        return tuple(module for module in self.modules if find_spec(module) is None)


EXTRAS = {
    extra.name: extra
    for extra in (
        Extra("web", ("fastapi", "uvicorn"), "the page on which people label: evgp campaign serve"),
        Extra("dask", ("dask", "distributed"), "pools on several machines: --dask"),
        Extra("weights", ("safetensors",), "weights from safetensors files: --weights"),
        Extra("fast", ("numba",), "picks in feature space by compiled code"),
        Extra(
            "label-studio",
            ("httpx", "fastapi", "uvicorn"),
            "Label Studio: evgp campaign push, pull, serve --label-studio",
        ),
        Extra(
            "adapters",
            ("skactiveml", "modAL", "skorch", "lightning", "datasets", "pandas", "polars"),
            "the tools of docs/adapters.md, all at once; each serves alone too",
        ),
    )
}


def lacking(name: str) -> str:
    """What to tell a user who needs an extra that is not there.

    >>> lacking("weights")
    'expected safetensors, which is not installed; do `pip install "evgp[weights]"`'
    """
    extra = EXTRAS[name]
    modules = extra.absent() or extra.modules
    verb = "is" if len(modules) == 1 else "are"
    return f"expected {' and '.join(modules)}, which {verb} not installed; do `{extra.install}`"
