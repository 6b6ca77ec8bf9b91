"""DropQuery: clusters of the rows whose class changes when inputs are dropped.

Gupte, Aklilu, Nirschl & Yeung-Levy, Revisiting Active Learning in the Era of Vision Foundation
Models, TMLR 2024.
"""

import warnings
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from torch import Generator, Tensor

from evgp._checks import integer, keep, number
from evgp.errors import PoolError
from evgp.pool import Pool, Selection
from evgp.strategies._cells import clustered, points_of
from evgp.strategies._trained import labels_of, seed_from
from evgp.strategies.diversity import Embed, flat
from evgp.strategies.kmeans import KMeans
from evgp.strategies.strategy import unlabelled


@dataclass(frozen=True)
class DropQuery:
    """The row nearest to each of k centres of the rows whose predicted class is not stable.

    A logistic regression is trained on the labelled points, as the paper has a linear classifier on
    embeddings. For each row a share `dropout` of the inputs is set to zero, `draws` times; rows
    whose class changes in more than half of these are clustered by k-means (ten starts). If they
    are fewer than k, those that change most often are added, as in scikit-activeml. Gains are the
    shares of changes. Without labels, or with labels of one class, picks are those of k-means on
    all rows, the start of the paper. Classes only.

    O(n d (draws + k)) for each step of k-means on top of the regression; O(n d) memory. Picks
    depend on k. Ties go to the lowest row.

    Parameters
    ----------
    classes : int
        Number of classes.
    dropout : float
        Share of the inputs set to zero.
    draws : int
    embed : callable
        Features in which distances are measured; the inputs by default.

    Examples
    --------
    >>> x, ends = torch.arange(6.0)[:, None], torch.tensor([0, 5])
    >>> pool = Pool(x, labelled=ends, y=torch.tensor([0, 1]))
    >>> len(DropQuery(classes=2)(pool, 3, generator=torch.Generator()))
    3
    """

    classes: int
    dropout: float = 0.75
    draws: int = 3
    embed: Embed = flat
    learns: ClassVar[bool] = True

    def __post_init__(self) -> None:
        integer(self.classes, "classes", 0)
        if self.classes < 2:
            raise PoolError(
                "expected at least 2 classes for DropQuery, which compares predicted classes, got "
                f"{self.classes}; for numbers use a strategy such as BADGE or EVGP"
            )
        keep(self, dropout=number(self.dropout, "dropout", 0, 1, above=True))
        keep(self, draws=integer(self.draws, "draws", 1, 1000))

    def __call__(self, pool: Pool, k: int, *, generator: Generator) -> Selection:
        """Return k picks, each with the share of draws in which its class changes."""
        free = unlabelled(pool, k, generator)
        y = labels_of(pool, self.classes, "DropQuery")
        if y is None or int(y.min()) == int(y.max()):
            return KMeans(self.embed)(pool, k, generator=generator)
        x, known, _ = points_of(self.embed, pool)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            model = LogisticRegression(max_iter=1000).fit(x[known].numpy(), y.numpy())
        rows = x[free]
        guess = model.predict(rows.numpy())
        changes = np.zeros(len(rows))
        for _ in range(self.draws):
            drawn = torch.rand(rows.shape, generator=generator, dtype=torch.float32)
            changes += model.predict(dropped(rows, drawn < self.dropout).numpy()) != guess
        share = changes / self.draws
        picks = spread(rows, share, k, seed_from(generator))
        return Selection(free.numpy()[picks], share[picks])


def dropped(x: Float[Tensor, "n p"], mask: Bool[Tensor, "n p"]) -> Float[Tensor, "n p"]:
    """The rows with zeros where the mask says so.

    >>> dropped(torch.ones(1, 2).double(), torch.tensor([[True, False]])).tolist()
    [[0.0, 1.0]]
    """
    return torch.where(mask, 0.0, x)


def spread(
    x: Float[Tensor, "n p"], share: Float[np.ndarray, " n"], k: int, seed: int
) -> Int[np.ndarray, " k"]:
    """Return k rows, each nearest to a centre of those with a share above one half.

    >>> spread(torch.eye(3).double(), np.array([1.0, 0.0, 0.6]), 2, 0).tolist()
    [0, 2]
    """
    order = np.argsort(-share, kind="stable")
    among = np.sort(order[: max(k, int((share > 0.5).sum()))])
    _, centres = clustered(x[torch.from_numpy(among)], k, seed)
    points, left = x.numpy()[among], np.ones(len(among), dtype=bool)
    picks = []
    for at in range(k):
        centre = centres[at % len(centres)]
        apart = np.where(left, np.square(points - centre).sum(1), np.inf)
        picks.append(int(apart.argmin()))
        left[picks[-1]] = False
    return among[picks]
