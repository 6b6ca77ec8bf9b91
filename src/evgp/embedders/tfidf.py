"""Embed texts by their words: TF-IDF, reduced by a singular value decomposition (LSA).

Deerwester et al., Indexing by Latent Semantic Analysis, JASIS 1990.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import blake2b
from typing import Any, ClassVar

import numpy as np
from jaxtyping import Bool, Float

from evgp.embedders.embedder import Kind, hashed, versions
from evgp.errors import EmbedderError

WIDTH = 256
LONGEST = 1_000_000  # characters; what follows is not read
_MOST_TEXTS = 50_000  # texts that words and directions are learnt from
_MOST_WORDS = 50_000
_RARE = 100  # with so many texts, a word that only one of them has is left out
# A character of a script that is written without spaces counts as a word.
_SOLID = r"\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff"
WORD = rf"(?u)[{_SOLID}]|[^\W{_SOLID}]+"


@dataclass(frozen=True)
class Tfidf:
    """Learns words and directions from the texts of a pool.

    >>> texts = ["red apples", "green apples", "blue cars", "fast cars"]
    >>> apples, cars, none = Tfidf(2).fit(texts).embed(["apples", "cars", ""])
    >>> bool(apples @ apples > 0.99), bool(abs(apples @ cars) < 0.01), none.tolist()
    (True, True, [0.0, 0.0])
    """

    width: int = WIDTH

    def fit(self, texts: Iterable[str]) -> "FittedTfidf":
        """Return an embedder for these texts and others; their order and copies do not matter."""
        distinct: set[str] = set()
        for text in texts:
            distinct.add(text[:LONGEST])
            if len(distinct) > 2 * _MOST_TEXTS:
                distinct = _chosen(distinct)
        return FittedTfidf(self.width, tuple(sorted(_chosen(distinct))))


@dataclass(frozen=True, eq=False)
class FittedTfidf:
    """Embeds texts as unit vectors by the words they share; a text without known words is zero.

    Words are learnt when the first text is embedded, with one thread, so that the vectors do not
    depend on the machine's number of cores.
    """

    width: int
    texts: tuple[str, ...] = field(repr=False)
    name: ClassVar[str] = "tfidf"
    reads: ClassVar[Kind] = "text"
    batch: ClassVar[int] = 1_024
    side: ClassVar[int] = 0

    def fingerprint(self) -> str:
        """Return a hash of the texts that were learnt from, and of the packages that learn."""
        state = blake2b(digest_size=16)
        for text in self.texts:
            state.update(_digest(text))
        packages = versions("scikit-learn", "scipy", "numpy")
        return hashed("tfidf", 1, self.width, WORD, packages, state.hexdigest())

    def embed(self, batch: Sequence[str]) -> Float[np.ndarray, "b d"]:
        """Return one unit vector for each text."""
        vectorizer, directions = self._learnt
        counts = vectorizer.transform([text[:LONGEST] for text in batch])
        vectors = np.asarray(counts @ directions)
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        # Words outside all directions leave only rounding errors.
        return np.where(lengths > 1e-9, vectors / np.maximum(lengths, 1e-9), 0.0)

    def limit(self) -> str:
        """Return how much of a text is read."""
        return f"{LONGEST:,} characters"

    def cut(self, batch: Sequence[str]) -> Bool[np.ndarray, " b"]:
        """Return which texts are longer than a million characters."""
        return np.array([len(text) > LONGEST for text in batch], dtype=bool)

    @cached_property
    def _learnt(self) -> tuple[Any, Float[np.ndarray, "w d"]]:
        from sklearn.feature_extraction.text import TfidfVectorizer
        from sklearn.utils.extmath import randomized_svd
        from threadpoolctl import threadpool_limits

        def counted(least: int) -> tuple[Any, Any]:
            vectorizer = TfidfVectorizer(
                token_pattern=WORD,
                strip_accents="unicode",
                sublinear_tf=True,
                min_df=least,
                max_features=_MOST_WORDS,
            )
            return vectorizer, vectorizer.fit_transform(self.texts)

        try:
            vectorizer, counts = counted(2 if len(self.texts) >= _RARE else 1)
        except ValueError:  # no word occurs twice
            try:
                vectorizer, counts = counted(1)
            except ValueError as error:
                raise EmbedderError(
                    "expected texts with words for tfidf, got none with letters or digits; use "
                    "another embedder (embed=)"
                ) from error
        rank = max(1, min(self.width, *counts.shape))
        with threadpool_limits(limits=1):
            _, _, directions = randomized_svd(counts, rank, n_iter=5, random_state=0)
        return vectorizer, np.ascontiguousarray(directions.T)


def _chosen(texts: set[str]) -> set[str]:
    """Return the texts to learn from: chosen by their content, not by their place."""
    few = len(texts) <= _MOST_TEXTS
    return texts if few else {*sorted(texts, key=_digest)[:_MOST_TEXTS]}


def _digest(text: str) -> bytes:
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()
