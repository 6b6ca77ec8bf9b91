"""`python -m benchmarks [name ...] [--small] [--repeats 3]`: measure, print and record."""

import argparse
import importlib
from pathlib import Path

from benchmarks.common import Options

NAMES = (
    "kernel",
    "picks",
    "growth",
    "exchange",
    "bait",
    "empirical",
    "models",
    "quality",
    "features",
    "sparse",
    "rank",
    "scale",
    "checksums",
    "rounds",
    "ensembles",
    "choose",
    "labelling",
    "command",
    "busy",
)


def main() -> None:
    """Run the named benchmarks, or all of them, one after another."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="name", help=", ".join(NAMES) + " (all)")
    parser.add_argument("--small", action="store_true", help="n = 2,000: a look, not a record")
    parser.add_argument("--repeats", type=int, default=3, help="the best of this many (3)")
    parser.add_argument("--out", type=Path, help="folder of the records (benchmarks/results)")
    arguments = parser.parse_args()
    wrong = [name for name in arguments.names if name not in NAMES]
    if wrong:
        parser.error(f"expected names among {', '.join(NAMES)}; got {', '.join(wrong)}")
    for name in arguments.names or NAMES:
        options = Options(arguments.small, arguments.repeats, arguments.out)
        importlib.import_module(f"benchmarks.{name}").run(options)


if __name__ == "__main__":
    main()
