"""A survey with words: whom to call back. The answers are made up by this script.

Numbers, a category and a comment in one table: the numbers of the comment together count as much
as the other columns do.

python examples/survey.py FOLDER
"""

import sys
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

import evgp

folder = Path(sys.argv[1] if len(sys.argv) > 1 else ".")
COMMENTS = {
    "rent": "the rent rises every year and wages do not",
    "buses": "no bus after eight in the evening and none on Sunday",
    "park": "the new park is lovely for the children",
    "noise": "lorries pass at night and nobody sleeps",
}
random = np.random.default_rng(1)
about = random.choice(list(COMMENTS), 250, p=[0.45, 0.3, 0.2, 0.05])
answers = pd.DataFrame(
    {
        "age": random.integers(18, 85, 250),
        "district": random.choice(["north", "south", "harbour"], 250, p=[0.6, 0.3, 0.1]),
        "content": np.clip(random.normal(6, 2, 250).round(), 1, 10),
        "comment": [
            " ".join(random.permutation(COMMENTS[topic].split())[:6]) for topic in about
        ],
    }
)  # fmt: skip

data = evgp.read_pool(answers, text="comment")
print(*data.notes, sep="\n")
picked = evgp.pick(data, k=15)
print(picked)
print(answers.iloc[picked.indices[:5]].to_string(index=False))

figure, axis = plt.subplots(figsize=(6.5, 3.8), layout="constrained")
for topic, colour in zip(COMMENTS, plt.rcParams["axes.prop_cycle"].by_key()["color"], strict=False):
    rows = np.flatnonzero(about == topic)
    chosen = rows[np.isin(rows, picked.indices)]
    axis.scatter(answers["age"][rows], answers["content"][rows], s=8, color=colour, alpha=0.4)
    axis.scatter(answers["age"][chosen], answers["content"][chosen], s=70, color=colour,
                 edgecolor="k", label=f"{topic}: {len(chosen)} of {len(rows)}")  # fmt: skip
axis.set(xlabel="age", ylabel="how content, 1 to 10", ylim=(0.5, 10.5))
axis.legend(title="picked, by comment", frameon=False, bbox_to_anchor=(1, 1))
figure.savefig(folder / "survey.png", dpi=90)
