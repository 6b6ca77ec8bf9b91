"""Check what the packages on docs/peers.md do, and print one line per check.

Run it in a separate environment, which does not need evgp:

    pip install bmdal-reg scikit-activeml modAL-python baal small-text apricot-select
    python docs/peers_check.py
"""

import warnings
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, distribution, files

import numpy as np

warnings.simplefilter("ignore")
X = np.random.default_rng(0).normal(size=(60, 4))
PACKAGES = (
    "bmdal-reg", "scikit-activeml", "modAL-python", "baal", "small-text", "apricot-select",
)  # fmt: skip
WORDS = ("torch.func", "jacrev", "certificate", "memmap", "parquet", "fastapi", "flask")


def bmdal(kind: str, labels: int) -> Callable[[], object]:
    """Five picks by `bait` with the gradients of a torch module and some labelled points."""

    def ask() -> object:
        import torch
        from torch import nn

        np.Inf = np.inf  # 3.0.2 was written for NumPy 1
        from bmdal_reg.bmdal.algorithms import select_batch
        from bmdal_reg.bmdal.feature_data import TensorFeatureData

        x = torch.from_numpy(X).float()
        first = nn.Linear(4, 8)
        if kind == "convolution":
            x, first = x[:, None], nn.Sequential(nn.Conv1d(1, 2, 2), nn.Flatten(), nn.Linear(6, 8))
        model = nn.Sequential(first, nn.ReLU(), nn.Linear(8, 1))
        data = {"train": TensorFeatureData(x[:labels]), "pool": TensorFeatureData(x[10:])}
        picks, _ = select_batch(5, [model], data, None, "grad", [], "bait", sel_with_train=False)
        return picks.tolist()

    return ask


def activeml() -> object:
    """Five picks without labels."""
    from skactiveml.pool import CoreSet, TypiClust

    none = np.full(60, np.nan)
    return [
        item(random_state=0).query(X, none, batch_size=5).tolist() for item in (TypiClust, CoreSet)
    ]


def modal(fitted: bool) -> Callable[[], object]:
    """Three picks by the default strategy, with and without labels."""

    def ask() -> object:
        from modAL.models import ActiveLearner
        from sklearn.ensemble import RandomForestClassifier

        learner = ActiveLearner(RandomForestClassifier(random_state=0))
        if fitted:
            learner.teach(X[:10], X[:10, 0] > 0)
        return np.asarray(learner.query(X, n_instances=3)[0]).tolist()

    return ask


def smalltext() -> object:
    """Five picks by k-means on embeddings, without labels or a trained classifier."""
    from small_text import EmbeddingKMeans, TextDataset

    rows = np.arange(60)
    none = np.array([], dtype=int)
    data = TextDataset.from_arrays(["a"] * 60, np.zeros(60, int), target_labels=np.arange(2))
    picks = EmbeddingKMeans().query(None, data, rows, none, none, n=5, embeddings=X)
    return picks.tolist()


def apricot(how: str) -> Callable[[], object]:
    """Five picks by facility location, from the whole pool or from parts in sequence."""

    def ask() -> object:
        from apricot import FacilityLocationSelection

        selector = FacilityLocationSelection(5, random_state=0)
        if how == "in parts":
            for part in np.array_split(X, 3):
                selector.partial_fit(part)
        else:
            selector.fit(X)
        return [int(row) for row in selector.ranking]

    return ask


def baal() -> object:
    """Five picks by BALD from given predictions (samples x classes x draws)."""
    from baal.active.heuristics import BALD

    result = np.random.default_rng(0).dirichlet(np.ones(3), size=(60, 20)).swapaxes(1, 2)
    parts = (result[i : i + 10] for i in range(0, 60, 10))  # as a stream of predictions
    return BALD()(result)[:5].tolist(), BALD()(parts)[:5].tolist()


ASKED: dict[str, Callable[[], object]] = {
    "bmdal-reg: gradients of dense layers, 10 labelled": bmdal("dense", 10),
    "bmdal-reg: the same, nothing labelled": bmdal("dense", 0),
    "bmdal-reg: gradients of a convolution": bmdal("convolution", 10),
    "scikit-activeml: TypiClust and CoreSet, no label": activeml,
    "modAL: default query, no label": modal(False),
    "modAL: default query, 10 labels": modal(True),
    "small-text: EmbeddingKMeans, no label, no classifier": smalltext,
    "apricot: facility location": apricot("at once"),
    "apricot: the same, in parts": apricot("in parts"),
    "baal: BALD on given predictions, whole and in parts": baal,
}


def source(package: str) -> dict[str, int]:
    """How often words that would reveal a feature occur in the code."""
    text = "".join(
        path.read_binary().decode(errors="replace").lower()
        for path in files(package) or ()
        if path.suffix == ".py" and "test" not in path.name
    )
    return {word: text.count(word) for word in WORDS if word in text}


def main() -> None:
    """Print versions, commands and words, then the results of the checks."""
    for package in PACKAGES:
        try:
            values = distribution(package)
        except PackageNotFoundError:
            print(f"{package}: not installed")
            continue
        commands = [
            entry_point.name
            for entry_point in values.entry_points
            if entry_point.group == "console_scripts"
        ]
        print(f"{package} {values.version}: commands {commands}, words {source(package)}")
    for what, ask in ASKED.items():
        try:
            print(f"{what}: {ask()}")
        except Exception as error:
            print(f"{what}: {type(error).__name__}: {str(error).splitlines()[:1]}")


if __name__ == "__main__":
    main()
