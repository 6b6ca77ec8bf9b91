"""Embed texts and images: each distinct one once, and not if it is in the cache."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from time import monotonic

import numpy as np
from jaxtyping import Bool, Float

from evgp._executor import Progress, silent
from evgp._reading import check_memory
from evgp.datasets.columns import shown
from evgp.datasets.vector_cache import VectorCache
from evgp.embedders import Embedder, steady_vectors, vectors_of
from evgp.embedders.embedder import Batch
from evgp.errors import Stopped

_SECONDS = 5.0  # seconds between two writes to the cache, so at most this much work is lost
_ROWS = 4_096


@dataclass(frozen=True, eq=False)
class Embedded:
    """One vector for each row, and which rows were cut at the embedder's limit."""

    x: Float[np.ndarray, "n d"]
    cut: Bool[np.ndarray, " n"]


def embedded(
    embedder: Embedder,
    keys: Sequence[bytes],
    load: Callable[[Sequence[int]], Batch],
    *,
    size: Callable[[int], int] = lambda row: 0,
    progress: Progress = silent,
    source: str = "",
    cache: VectorCache | None = None,
) -> Embedded:
    """Return the vectors of rows with these hashes; `load` returns the contents of some rows.

    Equal rows are embedded once, and rows of similar `size` together. The batches depend on the
    contents, not on the order of the rows. If the run is interrupted, finished vectors are kept.
    """
    first: dict[bytes, int] = {}
    for row, key in enumerate(keys):
        first.setdefault(key, row)
    cache = VectorCache(embedder.fingerprint()) if cache is None else cache
    known = cache.find(list(first))
    width = len(next(iter(known.values()))[1]) if known else None
    todo = sorted((key for key in first if key not in known), key=lambda k: (-size(first[k]), k))
    pending: list[tuple[list[bytes], Bool[np.ndarray, " b"], Float[np.ndarray, "b d"]]] = []
    saved = monotonic()

    def save() -> None:
        if pending:
            parts, cuts, vectors = zip(*pending, strict=True)
            joined = [key for part in parts for key in part]
            cache.add(joined, np.concatenate(cuts), np.concatenate(vectors))
            pending.clear()

    try:
        for start in range(0, len(todo), embedder.batch):
            part = todo[start : start + embedder.batch]
            batch = load([first[key] for key in part])
            try:
                vectors = (vectors_of if start else steady_vectors)(embedder, batch, width)
            except Stopped as error:
                blamed = _blamed(embedder, load, sorted(first[key] for key in part))
                error.name += f", given {shown(blamed)},"
                raise
            width = vectors.shape[1]
            cut = embedder.cut(batch)
            pending.append((part, cut, vectors))
            known |= zip(part, zip(cut.tolist(), vectors, strict=True), strict=True)
            progress("embedding", len(known), len(first))
            if monotonic() - saved > _SECONDS or sum(len(done[0]) for done in pending) >= _ROWS:
                save()
                saved = monotonic()
    except KeyboardInterrupt as error:
        save()
        if cache.broken:
            raise
        kept = f"{len(known):,} of {len(first):,} vectors are cached for the next run"
        raise KeyboardInterrupt(kept) from error
    finally:
        save()
    cache.tidy()
    check_memory(12 * len(keys) * (width or 0), source)
    x = np.stack([known[key][1] for key in first])
    place = {key: at for at, key in enumerate(first)}
    rows = np.array([place[key] for key in keys])
    cuts = np.array([known[key][0] for key in first])
    return Embedded(x[rows], cuts[rows])


def _blamed(
    embedder: Embedder, load: Callable[[Sequence[int]], Batch], rows: list[int]
) -> list[int]:
    """Return the first row that an embedder raises on by itself, or all rows of a batch."""
    for row in rows:
        try:
            embedder.embed(load([row]))
        except Exception:  # user code may raise anything
            return [row]
    return rows


def key_of(content: bytes) -> bytes:
    """Return the hash by which a content is found in the cache."""
    return blake2b(content, digest_size=16).digest()
