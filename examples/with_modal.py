"""modAL: EV-GP as the `query_strategy` of an ActiveLearner.

    python examples/with_modal.py

Each round creates a new learner, because modAL's `teach` uses an argument that scikit-learn removed
in 1.8. A learner that is created with its training data works with any version.
"""

from functools import partial

import numpy as np
from modAL.models import ActiveLearner
from modAL.uncertainty import uncertainty_sampling
from sklearn.datasets import load_wine
from sklearn.ensemble import RandomForestClassifier
from sklearn.preprocessing import StandardScaler

from evgp.integrations.modal import query_strategy

x, truth = load_wine(return_X_y=True)
x = StandardScaler().fit_transform(x)
start = [0, 60, 140]  # a wine of each kind

for name, strategy in {
    "EV-GP": partial(query_strategy, x_test=x),
    "uncertainty": uncertainty_sampling,
}.items():
    labelled = list(start)
    print(f"{name:<12}", end="")
    for _ in range(5):
        learner = ActiveLearner(
            RandomForestClassifier(100, random_state=0),
            strategy,
            X_training=x[labelled],
            y_training=truth[labelled],
        )
        print(f"{len(labelled):3d}: {learner.score(x, truth):.3f}", end="  ")
        pool = np.setdiff1d(np.arange(len(x)), labelled)
        rows, _ = learner.query(x[pool], n_instances=3)
        labelled += pool[rows].tolist()
    print()
