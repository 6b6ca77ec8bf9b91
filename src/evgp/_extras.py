"""Optional dependencies: what each extra is for, which packages it needs, how to install it."""

from dataclasses import dataclass
from importlib.util import find_spec


@dataclass(frozen=True)
class Extra:
    """An extra installed by `pip install "evgp[name]"`: its modules, and what they are for."""

    name: str
    modules: tuple[str, ...]
    purpose: str

    @property
    def install(self) -> str:
        """The command that installs this extra."""
        return f'pip install "evgp[{self.name}]"'

    def absent(self) -> tuple[str, ...]:
        """Return the modules that are not installed, without importing any."""
        return tuple(module for module in self.modules if find_spec(module) is None)


EXTRAS = {
    extra.name: extra
    for extra in (
        Extra("web", ("fastapi", "uvicorn"), "the page on which people label: evgp campaign serve"),
        Extra("dask", ("dask", "distributed"), "pools on several machines"),
        Extra("weights", ("safetensors",), "weights from safetensors files"),
        Extra("excel", ("openpyxl",), "Excel workbooks as pools and for picks: .xlsx"),
        Extra("text", ("sentence_transformers",), "texts by a language model"),
        Extra("fast", ("numba",), "picks in feature space by compiled code"),
        Extra("label-studio", ("httpx", "fastapi", "uvicorn"), "labelling in Label Studio"),
        Extra(
            "adapters",
            ("skactiveml", "modAL", "skorch", "lightning", "datasets", "pandas", "polars"),
            "all tools of docs/adapters.md; each also works alone",
        ),
    )
}


def lacking(name: str) -> str:
    """Return the message for a user who needs an extra that is not installed.

    >>> lacking("weights")
    'expected safetensors, which is not installed; do `pip install "evgp[weights]"`'
    """
    extra = EXTRAS[name]
    modules = extra.absent() or extra.modules
    verb = "is" if len(modules) == 1 else "are"
    return f"expected {' and '.join(modules)}, which {verb} not installed; do `{extra.install}`"
