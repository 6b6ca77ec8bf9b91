"""Hugging Face datasets: pick among embeddings, then `select` the picks.

    python examples/with_hugging_face.py

The dataset is made from 20 small texts here; yours comes from `datasets.load_dataset(...)`, and its
embeddings from a language model.
"""

from math import floor

from datasets import Dataset
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.pipeline import make_pipeline

import evgp

subjects = ["the cat", "my dog", "a train", "the market"]
events = ["sleeps at noon", "wakes the street", "is late again", "was sold", "likes the rain"]
texts = Dataset.from_dict({"text": [f"{one} {did}" for one in subjects for did in events]})

embed = make_pipeline(TfidfVectorizer(), TruncatedSVD(8, random_state=0))
texts = texts.add_column("embedding", embed.fit_transform(texts["text"]).tolist())

selection = evgp.pick(texts, k=6)  # the input column is found by its name
chosen = texts.select(selection)  # or evgp.datasets.subset(texts, selection)

for text, left in zip(chosen["text"], selection.variance_left, strict=True):
    print(f"{text:<28} variance left: {left:.3f}")
share = selection.certificate.share[-1]
print(f"at least {floor(100 * share)} % of the largest reduction any 6 texts could achieve")
