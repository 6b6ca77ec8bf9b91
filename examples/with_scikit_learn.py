"""scikit-learn: pick at the end of a pipeline, then train on the picks.

    python examples/with_scikit_learn.py [FOLDER]

Labels 10 to 60 of 1,400 digits, and prints and plots the accuracy on other digits.
"""

import sys
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from sklearn.compose import ColumnTransformer
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler

from evgp.integrations.sklearn import EVGPSelector

folder = Path(sys.argv[1] if len(sys.argv) > 1 else "examples/output")
folder.mkdir(parents=True, exist_ok=True)

x, y = load_digits(return_X_y=True)
x, x_test, y, y_test = train_test_split(x, y, train_size=1400, random_state=0, stratify=y)
pixels = ColumnTransformer([("pixels", MinMaxScaler(), slice(0, 64))])
counts = range(10, 61, 10)

pipeline = make_pipeline(pixels, EVGPSelector(k=max(counts))).fit(x)
picks = pipeline[-1].indices_  # best first: every prefix is a smaller batch


def accuracy(rows: np.ndarray) -> float:
    model = make_pipeline(pixels, LogisticRegression(max_iter=1000))
    return model.fit(x[rows], y[rows]).score(x_test, y_test)


random = np.random.default_rng(0)
drawn = [random.permutation(len(x)) for _ in range(5)]
ours = [accuracy(picks[:k]) for k in counts]
theirs = np.array([[accuracy(rows[:k]) for k in counts] for rows in drawn])

print("labels  EV-GP  random (mean of 5)")
for k, one, others in zip(counts, ours, theirs.T, strict=True):
    print(f"{k:6d}  {one:5.3f}  {others.mean():5.3f}")

figure = Figure(figsize=(5, 3.5), layout="constrained")
axes = figure.subplots()
axes.plot(counts, ours, "o-", label="EV-GP")
axes.plot(counts, theirs.mean(0), "s--", label="random, mean of 5")
axes.fill_between(
    counts, theirs.min(0), theirs.max(0), alpha=0.2, color="C1", label="random, worst to best"
)
axes.set(xlabel="labels", ylabel="accuracy on 397 digits")
axes.legend()
figure.savefig(folder / "with_scikit_learn.png", dpi=120)
print(f"wrote {folder / 'with_scikit_learn.png'}")
