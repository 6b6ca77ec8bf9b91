"""Embedders, which turn texts or images into vectors, and the checks that their vectors pass."""

from collections.abc import Sequence
from hashlib import blake2b
from importlib.metadata import PackageNotFoundError, version
from typing import Any, Literal, Protocol, TypeAlias, runtime_checkable

import numpy as np
from jaxtyping import Bool, Float, UInt8
from torch import Tensor

from evgp.errors import EmbedderError, EvgpError, Stopped

Kind: TypeAlias = Literal["text", "images"]
# Texts, or images as n x channels x height x width bytes.
Batch: TypeAlias = Sequence[str] | UInt8[np.ndarray, "b c h w"]
# Two runs of a network on the same input differ by rounding, relative to its largest output.
_NEAR = 1e-3


@runtime_checkable
class Embedder(Protocol):
    """Turns texts or images into vectors of one length.

    - `name`: its name in notes;
    - `reads`: "text" or "images";
    - `fingerprint()`: identifies what it computes. Two embedders with the same fingerprint give the
      same vector for the same input, so that vectors can be cached;
    - `batch`: how many inputs it is given at once;
    - `limit()`: the length at which a text is cut, such as "256 tokens"; empty if there is none;
    - `side`: width and height of the images it is given; 0 for text.

    If a class has a method `fit(texts)`, the embedder is the object that `fit` returns.
    """

    @property
    def name(self) -> str: ...

    @property
    def reads(self) -> Kind: ...

    def fingerprint(self) -> str:
        """Return a hash of what it computes."""

    @property
    def batch(self) -> int: ...

    def limit(self) -> str:
        """Return the maximum length of a text, beyond which it is cut; empty if there is none."""

    @property
    def side(self) -> int: ...

    def embed(self, batch: Any) -> Any:
        """Return one vector for each input."""

    def cut(self, batch: Any) -> Bool[np.ndarray, " b"]:
        """Return which inputs are longer than `limit`, so that only their beginning counts."""


def vectors_of(
    embedder: Embedder, batch: Batch, width: int | None = None
) -> Float[np.ndarray, "b d"]:
    """Return the vectors of a batch as float32; refuse anything but finite ones of one length."""
    raw = _called(embedder, batch)
    array = raw.detach().cpu().float().numpy() if isinstance(raw, Tensor) else _array(raw)
    name, length = embedder.name, "one length" if width is None else f"length {width:,}"
    if array.ndim != 2 or array.dtype.kind not in "fiu" or 0 in array.shape:
        got = f"an array of shape {array.shape} of {array.dtype}"
        raise EmbedderError(
            f"expected {len(batch)} vectors of {length} from the embedder {name} for a batch of "
            f"{len(batch)}, got {got}; return one row of numbers for each input"
        )
    if len(array) != len(batch) or (width is not None and array.shape[1] != width):
        got = f"{len(array):,} of length {array.shape[1]:,}"
        raise EmbedderError(
            f"expected {len(batch)} vectors of {length} from the embedder {name} for a batch of "
            f"{len(batch)}, got {got}; return one row of numbers for each input, always of the "
            "same length"
        )
    with np.errstate(over="ignore"):  # a number beyond float32 is refused as infinite
        vectors = np.array(array, dtype=np.float32, order="C")
    finite = np.isfinite(vectors).all(axis=1)
    if not finite.all():
        first = int(np.flatnonzero(~finite)[0])
        what = f" for the text {batch[first][:60]!r}" if isinstance(batch[first], str) else ""
        raise EmbedderError(
            f"expected finite numbers from the embedder {name}, got NaN or infinite ones{what}; "
            "check its weights and the scale of its inputs"
        )
    return vectors


def steady_vectors(
    embedder: Embedder, batch: Batch, width: int | None = None
) -> Float[np.ndarray, "b d"]:
    """Return the vectors of a batch; refuse an embedder that returns different ones the second
    time.

    The second time, half of the inputs come in the opposite order, so that an embedder whose
    vectors depend on the rest of the batch is refused too.
    """
    vectors = vectors_of(embedder, batch, width)
    half = batch[: -(-len(batch) // 2)]
    again = vectors_of(embedder, half[::-1], vectors.shape[1])[::-1]
    apart = float(np.abs(again - vectors[: len(again)]).max())
    if apart > _NEAR * float(np.abs(vectors).max()):
        raise EmbedderError(
            f"expected the same vectors from the embedder {embedder.name} each time, got others "
            f"when the first batch was embedded again (they differ by up to {apart:.2g}); an "
            "embedder must not be random or depend on the rest of a batch: switch off dropout, or "
            "call .eval()"
        )
    return vectors


def hashed(*parts: object) -> str:
    """Return a hash of some values, for fingerprints.

    >>> hashed("tfidf", 256) == hashed("tfidf", 256) != hashed("tfidf", 128)
    True
    """
    return blake2b(repr(parts).encode("utf-8", "backslashreplace"), digest_size=16).hexdigest()


def versions(*packages: str) -> tuple[str, ...]:
    """Return the versions of some packages, which fingerprints contain; empty if not installed."""
    return tuple(_version(package) for package in packages)


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return ""


def _called(embedder: Embedder, batch: Batch) -> Any:
    try:
        return embedder.embed(batch)
    except EvgpError:
        raise
    except (Exception, SystemExit) as error:  # user code may raise anything
        raise Stopped.of(EmbedderError)(
            f"the embedder {embedder.name}", f"{type(error).__name__}: {error}"
        ) from error


def _array(raw: Any) -> np.ndarray:
    try:
        return np.asarray(raw)
    except ValueError:  # vectors of several lengths
        return np.empty(0, dtype=object)
