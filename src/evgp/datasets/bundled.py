"""The old name of `evgp demo`; to be removed after 0.2."""

import runpy
import sys
import warnings
from typing import TYPE_CHECKING

from evgp.datasets import demo

if not TYPE_CHECKING:  # a type checker would otherwise accept any misspelt name

    def __getattr__(name: str) -> object:
        thing = getattr(demo, name)
        warnings.warn(
            f"evgp.datasets.bundled.{name} is now evgp.datasets.demo.{name}; the old name will be "
            "removed in the next release.",
            DeprecationWarning,
            stacklevel=2,
        )
        return thing


if __name__ == "__main__":
    print("note: `python -m evgp.datasets.bundled` is now `evgp demo`", file=sys.stderr)
    sys.argv = ["evgp", "demo", *sys.argv[1:]]
    runpy.run_module("evgp", run_name="__main__")
