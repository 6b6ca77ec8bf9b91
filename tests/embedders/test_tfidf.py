"""Texts by their words: the same whatever their order, batches and copies."""

import numpy as np
import pytest

from evgp.embedders import Tfidf
from evgp.errors import EmbedderError
from tests.messages import refused

NOUNS = ["apple", "pear", "plum", "car", "train", "ship", "river", "lake", "stone", "cloud"]


def sentences(count: int, seed: int = 0) -> list[str]:
    random = np.random.default_rng(seed)
    return [" ".join(random.choice(NOUNS, 6)) + f" number {at % 97}" for at in range(count)]


def test_order_batches_and_copies_do_not_matter() -> None:
    texts = sentences(300)
    vectors = Tfidf(16).fit(texts).embed(texts)
    order = np.random.default_rng(1).permutation(300)
    other = Tfidf(16).fit([texts[at] for at in order] + texts[:50])
    np.testing.assert_array_equal(other.embed([texts[at] for at in order]), vectors[order])
    np.testing.assert_array_equal(np.concatenate([other.embed([t]) for t in texts]), vectors)


def test_the_fingerprint_follows_the_texts_and_the_width() -> None:
    texts = sentences(40)
    first = Tfidf(16).fit(texts).fingerprint()
    assert Tfidf(16).fit(texts[::-1]).fingerprint() == first
    assert Tfidf(8).fit(texts).fingerprint() != first
    assert Tfidf(16).fit([*texts[:-1], "another"]).fingerprint() != first


def test_texts_that_share_words_are_near() -> None:
    texts = ["the ship sails the river", "a ship on the river", "red apple pie", "apple and pear"]
    x = Tfidf(3).fit(texts).embed(texts)
    near = x @ x.T
    assert near[0, 1] > near[0, 2]
    assert near[2, 3] > near[1, 3]


def test_empty_and_unknown_texts_are_zero() -> None:
    vectors = Tfidf(16).fit(sentences(40)).embed(["", "!!!", "unheard"])
    assert not vectors.any()


def test_scripts_without_spaces_are_compared_by_character() -> None:
    texts = ["今日は天気がいい", "今日は天気が悪い", "電車が遅れた", "電車が来ない"]
    x = Tfidf(4).fit(texts).embed(texts)
    assert (x @ x.T)[0, 1] > (x @ x.T)[0, 2] + 0.2


def test_rare_words_alone_are_still_words() -> None:
    texts = [f"word{at}" for at in range(200)]
    assert Tfidf(8).fit(texts).embed(texts).any(axis=1).sum() >= 1


def test_texts_without_words_are_refused() -> None:
    with refused(EmbedderError):
        Tfidf().fit(["!!!", "???"]).embed(["!!!"])


@pytest.mark.parametrize("length", [999_999, 10_000_000])
def test_only_huge_texts_are_cut(length: int) -> None:
    huge = ("lake " * (length // 5 + 1))[:length]
    embedder = Tfidf(4).fit([*sentences(20), huge])
    assert embedder.cut([huge, "short"]).tolist() == [length > 1_000_000, False]
    assert embedder.embed([huge]).shape == (1, 4)
