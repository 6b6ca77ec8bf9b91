"""scikit-activeml: EV-GP in its loop, compared with its own strategies.

    python examples/with_scikit_activeml.py

Each strategy queries five batches of ten from 600 digits. After each batch, the script prints the
accuracy of the same classifier on other digits.
"""

import numpy as np
from skactiveml.classifier import SklearnClassifier
from skactiveml.pool import CoreSet, RandomSampling, UncertaintySampling
from skactiveml.utils import MISSING_LABEL
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split

from evgp.integrations.skactiveml import EVGPQuery

x, truth = load_digits(return_X_y=True)
x, x_test, truth, y_test = train_test_split(x / 16, truth, train_size=600, random_state=0)
strategies = {
    "EV-GP": EVGPQuery(random_state=0),
    "random": RandomSampling(random_state=0),
    "core-set": CoreSet(random_state=0),
    "EV-GP, then uncertainty": UncertaintySampling(random_state=0),  # needs labels
}

print(f"{'labels':<24}" + "".join(f"{10 * batch:7d}" for batch in range(1, 6)))
for name, strategy in strategies.items():
    y = np.full(len(x), MISSING_LABEL)
    classifier = SklearnClassifier(LogisticRegression(max_iter=500), classes=range(10))
    print(f"{name:<24}", end="")
    for batch in range(5):
        if isinstance(strategy, UncertaintySampling) and batch > 0:
            rows = strategy.query(x, y, classifier, batch_size=10)
        elif isinstance(strategy, UncertaintySampling):
            rows = strategies["EV-GP"].query(x, y, batch_size=10)
        else:
            rows = strategy.query(x, y, batch_size=10)
        y[rows] = truth[rows]
        print(f"{classifier.fit(x, y).score(x_test, y_test):7.3f}", end="")
    print()
