"""What it costs to verify a cache: a run over shards with and without, side by side."""

import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from unittest.mock import patch

import evgp
from benchmarks.common import Options, in_turns, record, timed
from benchmarks.scale import P, table
from evgp.datasets import fingerprint, verify
from evgp.selection import shards


def run(options: Options) -> None:
    """Runs that find their features in the cache, of few and of more picks, and the look alone."""
    n = 30_000 if options.small else 1_000_000
    rows: list[dict[str, object]] = []
    with tempfile.TemporaryDirectory() as folder:
        pool, cache = table(Path(folder, "pool.parquet"), n), Path(folder, "cache")
        pick(pool, cache, 1)
        files = sorted(cache.glob("*/features-*.npy"))
        size = sum(file.stat().st_size for file in files)
        for k in (1, 10) if options.small else (1, 50):
            works: dict[str, Callable[[], float]] = {
                "with_s": partial(timed, partial(pick, pool, cache, k)),
                "without_s": partial(unverified, pool, cache, k),
                "alone_s": partial(timed, partial(look, cache)),
            }
            best, others = in_turns(works, options.repeats)
            rows.append(
                {
                    "n": n,
                    "p": P,
                    "k": k,
                    **best,
                    "ratio": best["with_s"] / best["without_s"],
                    "gb": size / 1e9,
                    "gb_per_s": size / 1e9 / best["alone_s"],
                    "others": others,
                }
            )
    record(options, "checksums", "Verifying a cache", rows, NOTES)


NOTES = [
    "A Parquet table of 64 columns whose nystrom-512 features are in the cache, on a warm page "
    "cache; each run reads the pool, opens all rows and makes k picks, none of which it remembers.",
    "with and without: the whole run, with its checksums verified or only their footers read; "
    "alone: all files of the cache verified, and nothing else, at gb_per_s.",
]


def pick(pool: Path, cache: Path, k: int) -> None:
    """A run that finds its features, but no picks."""
    for file in cache.glob("*/*.picks"):
        file.unlink()
    evgp.pick(pool, k, features=f"nystrom-{P}", method="sharded", cache=cache, memory="6GB")


def unverified(pool: Path, cache: Path, k: int) -> float:
    """Seconds of the same run when files are taken for what they say they are."""
    with patch.object(shards, "verify", lambda path, origin="": fingerprint(path)):
        return timed(partial(pick, pool, cache, k))


def look(cache: Path) -> None:
    """Verify all files of a cache, as a run does."""
    for file in cache.glob("*/*.npy"):
        if file.name.startswith(("features", "rest")):
            key = file.parent.name.removeprefix("features-")
            verify(file, f"{key}\n{file.name}")
