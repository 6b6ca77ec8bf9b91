"""Text: which messages to a help desk to read first. The messages are made up by this script.

python examples/text.py FOLDER
"""

import sys
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

import evgp

folder = Path(sys.argv[1] if len(sys.argv) > 1 else ".")
TOPICS = {  # how often each is asked about, and in which words
    "parcel": (0.40, "parcel delivery tracking courier late address arrived box"),
    "refund": (0.25, "refund money return card charged twice receipt bank"),
    "login": (0.15, "password login account email reset locked code link"),
    "app": (0.10, "app crashes screen update phone button freezes photo"),
    "advice": (0.06, "which size colour fits recommend gift material washing"),
    "press": (0.04, "interview newspaper article journalist question founder quote"),
}
random = np.random.default_rng(0)
topics = random.choice(list(TOPICS), 400, p=[share for share, _ in TOPICS.values()])
messages = pd.DataFrame(
    {"body": ["please " + " ".join(random.choice(TOPICS[t][1].split(), 6)) for t in topics]}
)

data = evgp.read_pool(messages, text="body")
print(*data.notes, sep="\n")
picked = evgp.pick(data, k=20)
print(picked)
print(messages.iloc[picked.indices[:6]].to_string(index=False, header=False))


def found(rows: np.ndarray) -> list[int]:
    """The number of topics among the first rows."""
    return [len({*topics[rows[:k]]}) for k in range(1, len(rows) + 1)]


by_chance = [found(random.permutation(400)[:20]) for _ in range(200)]
figure, axis = plt.subplots(figsize=(6, 3.2), layout="constrained")
axis.step(range(1, 21), found(picked.indices), where="mid", label="picks")
axis.plot(range(1, 21), np.mean(by_chance, axis=0), "--", label="random, mean of 200")
axis.set(xlabel="messages read", ylabel="topics found (of 6)", ylim=(0, 6.4))
axis.xaxis.set_major_locator(plt.MaxNLocator(integer=True))
axis.legend(frameon=False, loc="lower right")
figure.savefig(folder / "text.png", dpi=90)
