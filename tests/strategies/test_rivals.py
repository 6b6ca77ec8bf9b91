"""Strategies that others wrote first: against their packages, and on awkward pools."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from skactiveml.base import SkactivemlClassifier
from skactiveml.pool import DropQuery as TheirDropQuery
from skactiveml.pool import MaxHerding as TheirMaxHerding
from skactiveml.pool import ProbCover as TheirProbCover
from skactiveml.pool import TypiClust as TheirTypiClust
from sklearn.base import BaseEstimator, ClusterMixin
from sklearn.cluster import KMeans as Clustering
from sklearn.linear_model import LogisticRegression

from evgp import EmpiricalNTK, Pool, mlp
from evgp.errors import PoolError
from evgp.loop import run
from evgp.strategies import (
    BAIT,
    LCMD,
    CoreSet,
    DropQuery,
    Entropy,
    Gradients,
    KMeans,
    Margin,
    MaxHerding,
    ProbCover,
    Random,
    Setting,
    TypiClust,
    strategy_named,
)
from evgp.strategies._cells import clustered
from evgp.strategies.dropquery import dropped, spread
from evgp.strategies.probcover import pure_radius
from evgp.strategies.typiclust import typicality
from evgp.strategies.uncertainty import closeness, entropies
from evgp.testing import check_strategy
from evgp.training import Recipe
from tests.messages import refused

RECIPE = Recipe(mlp(1, 8, outputs=2), {"steps": 3, "lr": 0.1})
PLAIN = [
    BAIT(),
    BAIT(backward=True),
    KMeans(),
    LCMD(),
    MaxHerding(),
    MaxHerding(normalise=False),
    ProbCover(),
    TypiClust(),
]
LEARNING = [DropQuery(2), Entropy(RECIPE, 2), Margin(RECIPE, 2)]


def named(one: object) -> str:
    return type(one).__name__


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def blobs(n: int = 90, d: int = 4, seed: int = 0) -> torch.Tensor:
    """Points around six centres, in order of centre."""
    centres = 3 * torch.randn(6, d, generator=seeded(seed), dtype=torch.float64)
    noise = torch.randn(n, d, generator=seeded(seed + 1), dtype=torch.float64)
    return centres[torch.arange(n) * 6 // n] + noise


class Given(ClusterMixin, BaseEstimator):
    """A clustering for scikit-activeml whose answer is known."""

    def __init__(self, cell=None, n_clusters=1):
        self.cell = cell
        self.n_clusters = n_clusters

    def fit_predict(self, X, y=None):
        return np.asarray(self.cell)


def unknown(n: int, labelled: list[int] | None = None) -> np.ndarray:
    y = np.full(n, np.nan)
    y[labelled or []] = 0.0
    return y


@pytest.mark.parametrize("labelled", [[], [3, 40, 41]])
@pytest.mark.parametrize("seed", range(3))
def test_typiclust_is_that_of_scikit_activeml_for_the_same_clusters(seed, labelled) -> None:
    x, k = blobs(seed=seed), 7
    cell, _ = clustered(x, len(labelled) + k, seed)
    theirs = TheirTypiClust(
        cluster_algo=Given, cluster_algo_dict={"cell": cell}, random_state=0, k=5
    )
    picks, utilities = theirs.query(
        x.numpy(), unknown(90, labelled), batch_size=k, return_utilities=True
    )
    known = torch.tensor(labelled, dtype=torch.int64)
    rows, gains = TypiClust(neighbours=5, least=1).walk(x, cell, known, k)
    sizes = np.bincount(cell)
    assert sizes[cell[rows]].tolist() == sizes[cell[picks]].tolist()
    best = {cell[row]: now for row, now in zip(picks, utilities, strict=True)}
    for row, gain in zip(rows, gains, strict=True):  # clusters of one size come at random there
        if cell[row] not in best:
            assert row == rows[-1]  # and one of them is left out
            continue
        now = best[cell[row]]
        assert gain == pytest.approx(np.nanmax(now), rel=1e-9)
        assert row == np.flatnonzero(now > np.nanmax(now) * (1 - 1e-10))[0]  # the lowest of equals


def test_typiclust_with_scikit_learns_own_clusters() -> None:
    x = blobs()
    strategy = TypiClust(neighbours=5, least=1)
    seed = int(torch.randint(2**31, (), generator=seeded(4)))
    theirs = TheirTypiClust(
        cluster_algo_dict={"n_init": 10, "random_state": seed}, random_state=0, k=5
    )
    ours = strategy(Pool(x), 6, generator=seeded(4)).indices
    assert sorted(ours) == sorted(theirs.query(x.numpy(), unknown(90), batch_size=6))


def test_small_clusters_are_left_for_the_end_and_large_ones_come_again() -> None:
    x = torch.cat([blobs()[:30], torch.full((2, 4), 50.0, dtype=torch.float64)])
    cell = np.array([0] * 20 + [1] * 10 + [2] * 2)
    none = torch.empty(0, dtype=torch.int64)
    rows, _ = TypiClust().walk(x, cell, none, 4)
    assert cell[rows].tolist() == [0, 1, 0, 1]
    rows, _ = TypiClust(least=2).walk(x, cell, none, 4)
    assert cell[rows].tolist() == [0, 1, 2, 0]
    rows, _ = TypiClust().walk(x, cell, torch.tensor([0, 30]), 29)
    assert cell[rows].tolist() == [1, 0] * 10 + [0] * 9 and len(set(rows.tolist())) == 29
    rows, _ = TypiClust().walk(x, cell, torch.tensor([0, 30]), 30)
    assert cell[rows].tolist()[-1] == 2


@pytest.mark.parametrize("labelled", [[], [3, 40, 41]])
@pytest.mark.parametrize("seed", range(3))
def test_probcover_is_that_of_scikit_activeml_for_the_same_radius(seed, labelled) -> None:
    x, k = blobs(seed=seed), 12
    strategy = ProbCover(classes=6, seed=seed)
    cell, _ = clustered(x - x.mean(0), 6, seed)
    radius = pure_radius(x, torch.from_numpy(cell), 0.95)
    theirs = TheirProbCover(
        n_classes=6, deltas=[radius / 2, radius, radius * (1 + 1e-6)], random_state=0,
        cluster_algo=Given, cluster_algo_dict={"cell": cell},
    )  # fmt: skip
    picks, utilities = theirs.query(
        x.numpy(), unknown(90, labelled), batch_size=k, return_utilities=True
    )
    assert theirs.delta_max_ == radius  # a little more, and too few balls are pure
    pool = Pool(x, labelled=torch.tensor(labelled, dtype=torch.int64))
    ours = strategy(pool, k, generator=seeded())
    edges = torch.cdist(x, x, compute_mode="donot_use_mm_for_euclid_dist") <= radius
    uncovered = ~edges[labelled].any(0)
    for row, gain, theirs_now in zip(ours.indices, ours.gains, utilities, strict=True):
        counts = edges[:, uncovered].sum(1)
        assert round(gain * 90) == int(counts[pool.unlabelled()].max()) == int(counts[row])
        uncovered &= ~edges[row]
        if row != picks[0]:
            break  # a tie, drawn at random there
        assert np.nanmax(theirs_now) == counts[row]
        picks = picks[1:]


def test_probcover_counts_are_those_of_scikit_activeml_at_the_first_pick() -> None:
    x = blobs()
    theirs = TheirProbCover(deltas=[1.7], random_state=0)
    with pytest.warns(UserWarning):  # it does not look at the purity of a single radius
        picks, utilities = theirs.query(x.numpy(), unknown(90), batch_size=1, return_utilities=True)
    ours = ProbCover(radius=1.7)(Pool(x), 1, generator=seeded())
    assert utilities[0, ours.indices[0]] == utilities[0, picks[0]] == round(ours.gains[0] * 90)
    assert ours.indices[0] == int(utilities[0].argmax())  # the lowest of equals


@pytest.mark.parametrize("gamma", [1.0, 0.25])
@pytest.mark.parametrize("labelled", [[], [3, 40, 41]])
@pytest.mark.parametrize("seed", range(3))
def test_maxherding_is_that_of_scikit_activeml(seed, labelled, gamma) -> None:
    x, k = blobs(300, seed=seed), 60
    pool = Pool(x, labelled=torch.tensor(labelled, dtype=torch.int64))
    ours = MaxHerding(gamma)(pool, k, generator=seeded())
    theirs = TheirMaxHerding(metric_dict={"gamma": gamma}, random_state=0)
    batch = theirs.query(x.numpy(), unknown(300, labelled), batch_size=k)
    ties = 0
    for at in range(k):  # rows that cover each other are equally good, and theirs draws one
        known = [*labelled, *ours.indices[:at].tolist()]
        _, (now,) = theirs.query(x.numpy(), unknown(300, known), return_utilities=True)
        most = np.nanmax(now)
        assert now[ours.indices[at]] == pytest.approx(most, rel=1e-12)
        assert ours.gains[at] == pytest.approx(most * (300 - len(known)) / 300, rel=1e-9)
        best = np.flatnonzero(now > most * (1 - 1e-10))
        assert best[0] == ours.indices[at]
        ties += len(best) > 1
    assert len(set(batch) - set(ours.indices)) <= ties < k / 5


class Linear(SkactivemlClassifier):
    """A logistic regression, as scikit-activeml wants it."""

    def __init__(self, model=None):
        super().__init__(classes=[0, 1, 2])
        self.model = model

    def fit(self, X, y, sample_weight=None):
        return self

    def predict_proba(self, X):
        return self.model.predict_proba(X)

    def predict(self, X):
        return self.model.predict(X)


def test_dropquery_is_that_of_scikit_activeml_for_the_same_draws() -> None:
    x, y = blobs(), torch.arange(90) * 3 // 90
    known = torch.tensor([0, 20, 40, 50, 70, 89])
    free = np.setdiff1d(np.arange(90), known)
    model = LogisticRegression(max_iter=1000).fit(x[known].numpy(), y[known].numpy())
    labels = np.full(90, np.nan)
    labels[known] = y[known]
    theirs = TheirDropQuery(
        n_dropout_samples=3, random_state=5, cluster_algo_dict={"n_init": 10, "random_state": 1}
    )
    picks = theirs.query(x.numpy(), labels, Linear(model), fit_clf=False, batch_size=6)
    draws = np.random.RandomState(5)
    rows = x[torch.from_numpy(free)]
    changes = np.zeros(len(free))
    for _ in range(3):
        mask = torch.from_numpy(draws.choice([True, False], size=rows.shape, p=[0.75, 0.25]))
        changes += model.predict(dropped(rows, mask).numpy()) != model.predict(rows.numpy())
    assert (changes >= 2).sum() > 6
    order = np.argsort(changes / 3)[-int((changes >= 2).sum()) :]  # their order, which k-means sees
    shuffled = torch.from_numpy(free[order])
    ours = spread(x[shuffled], changes[order] / 3, 6, 1)
    assert sorted(shuffled.numpy()[ours]) == sorted(picks)


def test_dropquery_picks_rows_whose_class_changes() -> None:
    x, y = blobs(), torch.arange(90) * 3 // 90
    known = torch.tensor([0, 20, 40, 50, 70, 89])
    pool = Pool(x, labelled=known, y=y[known])
    strategy = DropQuery(3)
    selection = strategy(pool, 6, generator=seeded())
    assert (selection.gains > 0.5).all()
    few = strategy(pool, 80, generator=seeded())  # more than change: the next most often
    assert len(set(few.indices.tolist())) == 80 and few.gains.min() < 0.5
    start = strategy(Pool(x), 6, generator=seeded())
    assert start.indices.tolist() == KMeans()(Pool(x), 6, generator=seeded()).indices.tolist()
    first = strategy(Pool(x, labelled=known[:1], y=y[:1]), 6, generator=seeded())
    same = KMeans()(Pool(x, labelled=known[:1]), 6, generator=seeded())
    assert first.indices.tolist() == same.indices.tolist()


def test_kmeans_takes_the_row_nearest_to_each_centre_of_scikit_learn() -> None:
    x = blobs()
    seed = int(torch.randint(2**31, (), generator=seeded(2)))
    fitted = Clustering(8, n_init=10, random_state=seed).fit(x.numpy())
    nearest = fitted.transform(x.numpy()).argmin(0)
    selection = KMeans()(Pool(x), 8, generator=seeded(2))
    assert sorted(selection.indices) == sorted(nearest)
    assert selection.gains.sum() == pytest.approx(1) and (np.diff(selection.gains) <= 0).all()


def test_kmeans_leaves_cells_that_have_labels() -> None:
    x = torch.tensor([[0.0], [0.1], [5.0], [5.1], [9.0], [9.1]]).double()
    inside = Pool(x, labelled=torch.tensor([0]))
    outside = Pool(x, x_labelled=torch.tensor([[5.05]]).double())
    for pool, first in ((inside, {2, 4}), (outside, {0, 4})):
        for strategy in (KMeans(), TypiClust(least=1)):
            rows = strategy(pool, 2, generator=seeded()).indices.tolist()
            assert {row - row % 2 for row in rows} == first


# Of bmdal-reg 3.0.2 (with np.Inf = np.inf), which needs an environment of its own:
#   pool, train = (Features(IdentityFeatureMap(d), TensorFeatureData(part)) for part in
#                  (x[labelled:], x[:labelled]))
#   "lcmd": LargestClusterMaxDistSelectionMethod(pool, train, sel_with_train=True)
#   "bait": BaitFeatureSpaceSelectionMethod(pool, train, sel_with_train=True, noise_sigma=sigma,
#           overselection_factor=1.0), sigma^2 a hundredth of the mean squared norm of x
#   "bait-fb": the same with overselection_factor=2.0
# picks = method.select(k) + labelled
BMDAL = json.loads((Path(__file__).parent / "bmdal.json").read_text())


def waves(n: int, d: int, seed: int) -> torch.Tensor:
    i = np.arange(n * d, dtype=float) + 1000 * seed
    return torch.from_numpy(np.sin(1.7 * i * i).reshape(n, d) * (1 + np.arange(d)))


@pytest.mark.parametrize("record", BMDAL, ids=lambda value: f"{value['method']}-{value['seed']}")
def test_lcmd_and_bait_are_those_of_bmdal(record) -> None:
    strategy = {"lcmd": LCMD(), "bait": BAIT(), "bait-fb": BAIT(backward=True)}[record["method"]]
    x = waves(record["n"], record["d"], record["seed"])
    pool = Pool(x, labelled=torch.arange(record["labelled"]))
    k = len(record["picks"])
    assert strategy(pool, k, generator=seeded()).indices.tolist() == record["picks"]


def test_gains_of_bait_are_falls_of_the_mean_variance() -> None:
    x, k = waves(40, 6, 7), 8
    pool = Pool(x, labelled=torch.tensor([1, 5]), x_labelled=waves(3, 6, 8))
    selection = BAIT(noise=0.05)(pool, k, generator=seeded())
    every = torch.cat([x, waves(3, 6, 8)])
    noise = 0.05 * float(every.square().sum(1).mean())

    def left(rows: list[int]) -> float:
        known = every[[1, 5, 40, 41, 42, *rows]]
        inner = known @ known.T + noise * torch.eye(len(known), dtype=torch.float64)
        cross = every @ known.T
        return float(
            (every.square().sum(1) - (cross @ torch.linalg.inv(inner) * cross).sum(1)).mean()
        )

    rows = selection.indices.tolist()
    values = [left(rows[:count]) for count in range(k + 1)]
    prior = float(every.square().sum(1).mean())
    assert -np.diff(values) / prior == pytest.approx(selection.gains, rel=1e-8)
    both = BAIT(noise=0.05, backward=True)(pool, k, generator=seeded()).indices.tolist()
    twice = BAIT(noise=0.05)(pool, 2 * k, generator=seeded()).indices.tolist()
    assert set(both) < set(twice)
    for at in range(2 * k, k, -1):  # those that are missed least go one by one
        costs = [left([row for row in twice if row != out]) for out in twice]
        twice.pop(int(np.argmin(costs)))
        assert len(twice) == at - 1
    assert both == twice


def test_rounds_do_not_matter_to_those_that_pick_ahead() -> None:
    x = blobs()
    for strategy in (BAIT(), LCMD(), MaxHerding(), ProbCover(radius=1.5)):
        assert strategy.ahead
        whole = strategy(Pool(x), 12, generator=seeded()).indices.tolist()
        calls: list[int] = []
        for _ in range(3):
            pool = Pool(x, labelled=torch.tensor(calls, dtype=torch.int64))
            calls += strategy(pool, 4, generator=seeded()).indices.tolist()
        assert calls == whole
    for strategy in (BAIT(backward=True), KMeans(), TypiClust(), *LEARNING):
        assert not getattr(strategy, "ahead", False)


@pytest.mark.parametrize("strategy", [*PLAIN, *LEARNING], ids=named)
def test_labels_outside_and_inside_obey_the_laws(strategy) -> None:
    outside = blobs(4, seed=3)
    y = torch.tensor([0, 1, 0, 1, 1, 0])
    check_strategy(
        strategy, Pool(blobs(30), labelled=torch.tensor([3, 17]), x_labelled=outside, y=y)
    )
    check_strategy(strategy, Pool(blobs(30)))


AWKWARD = {
    "copies": blobs(6).repeat(4, 1),
    "one point": torch.ones(12, 3, dtype=torch.float64),
    "zeros": torch.zeros(12, 3, dtype=torch.float64),
    "one column": blobs(24, 1),
    "constant columns": torch.cat([torch.full((24, 2), 7.0).double(), blobs(24, 1)], 1),
    "huge": 1e300 * blobs(24),
    "tiny": 1e-300 * blobs(24),
    "a huge column": torch.cat([blobs(24, 2), 1e300 * blobs(24, 1)], 1),
    "images": blobs(24).reshape(24, 2, 2),
    "integers": (10 * blobs(24)).long(),
    "float32": blobs(24).float(),
}


@pytest.mark.parametrize("name", AWKWARD)
@pytest.mark.parametrize("strategy", [*PLAIN, DropQuery(2)], ids=named)
def test_awkward_pools(strategy, name) -> None:
    x = AWKWARD[name]
    pool = Pool(x, labelled=torch.tensor([1, 2]), y=torch.tensor([0, 1]))
    for k in (1, 5, len(x) - 2):
        selection = strategy(pool, k, generator=seeded())
        assert len(set(selection.indices.tolist())) == k
        assert not {1, 2} & set(selection.indices.tolist())
        assert np.isfinite(selection.gains).all() or name == "tiny"
    assert len(strategy(Pool(x), len(x), generator=seeded())) == len(x)


@pytest.mark.parametrize("strategy", PLAIN, ids=named)
def test_copies_come_last(strategy) -> None:
    pool = Pool(blobs(6).repeat(4, 1))
    strategy = ProbCover(radius=0.1) if isinstance(strategy, ProbCover) else strategy
    rows = strategy(pool, 6, generator=seeded()).indices
    if not isinstance(strategy, BAIT):  # which may repeat a point to average its noise away
        assert len(set((rows % 6).tolist())) == 6
    assert len(set((strategy(pool, 24, generator=seeded()).indices % 6).tolist())) == 6


@pytest.mark.parametrize("strategy", PLAIN, ids=named)
def test_missing_values_are_refused(strategy) -> None:
    x = blobs(9)
    x[2, 1] = torch.nan
    with refused(PoolError):
        strategy(Pool(x), 2, generator=seeded())


@pytest.mark.parametrize("kind", [Entropy, Margin])
def test_uncertainty_takes_the_least_sure_rows_of_the_ensemble(kind) -> None:
    recipe = Recipe(mlp(1, 16, outputs=3), {"steps": 40, "lr": 0.1, "loss": "cross_entropy"})
    x, y = blobs(), torch.arange(90) * 3 // 90
    known = torch.tensor([0, 20, 40, 50, 70, 89])
    pool = Pool(x, labelled=known, y=y[known])
    selection = kind(recipe, 3, members=4)(pool, 7, generator=seeded(5))
    seed = int(torch.randint(2**31, (), generator=seeded(5)))
    ensemble = recipe(x[known], y[known], members=4, seed=seed, stop=lambda out, y: (
        (out.argmax(-1) == y).double().mean(-1) >= 0.99))  # fmt: skip
    chances = torch.softmax(ensemble.predict(x).double(), dim=2).mean(0)
    chances = chances.numpy()[free_rows := pool.unlabelled().numpy()]
    top = np.sort(chances, axis=1)
    score = 1 - (top[:, -1] - top[:, -2]) if kind is Margin else -(chances * np.log(chances)).sum(1)
    order = np.argsort(-score, kind="stable")[:7]
    assert selection.indices.tolist() == free_rows[order].tolist()
    assert selection.gains == pytest.approx(score[order], rel=1e-9)
    start = kind(recipe, 3)(Pool(x), 7, generator=seeded(5)).indices
    assert start.tolist() == Random()(Pool(x), 7, generator=seeded(5)).indices.tolist()


def test_margin_and_entropy_agree_for_two_classes() -> None:
    p = torch.linspace(0.01, 0.99, 40, dtype=torch.float64)
    chances = torch.stack([p, 1 - p], 1)
    assert closeness(chances).argsort().tolist() == entropies(chances).argsort().tolist()


WRONG = {
    "margin of numbers": lambda: Margin(RECIPE, 0),
    "entropy of one class": lambda: Entropy(RECIPE, 1),
    "dropquery of numbers": lambda: DropQuery(0),
    "no members": lambda: Margin(RECIPE, 2, members=0),
    "no accuracy": lambda: Entropy(RECIPE, 2, accuracy=0.0),
    "no dropout": lambda: DropQuery(2, dropout=0.0),
    "no draws": lambda: DropQuery(2, draws=0),
    "no neighbours": lambda: TypiClust(neighbours=0),
    "no clusters": lambda: TypiClust(most=0),
    "no least size": lambda: TypiClust(least=0),
    "fewer classes than none": lambda: ProbCover(classes=-1),
    "no purity": lambda: ProbCover(purity=0.0),
    "no radius": lambda: ProbCover(radius=0.0),
    "no gamma": lambda: MaxHerding(gamma=0.0),
    "negative noise": lambda: BAIT(noise=-1.0),
}


@pytest.mark.parametrize("make", WRONG.values(), ids=WRONG)
def test_wrong_arguments_are_errors(make) -> None:
    with refused(PoolError):
        make()


@pytest.mark.parametrize("kind", [DropQuery, Margin])
def test_labels_must_be_there_and_fit(kind) -> None:
    strategy = kind(2) if kind is DropQuery else kind(RECIPE, 2)
    x, rows = blobs(9), torch.tensor([0, 8])
    for y in (None, torch.tensor([0.0, 1.0]), torch.tensor([0, 2])):
        with refused(PoolError):
            strategy(Pool(x, labelled=rows, y=y), 2, generator=seeded())


def setting(x: torch.Tensor, classes: int = 2) -> Setting:
    net = mlp(1, 8, outputs=classes or 1)
    recipe = Recipe(net.standard("xavier"), {"steps": 3, "lr": 0.1})
    return Setting(x, net, recipe, classes=classes, most=20, batch=5)


def test_names_are_what_they_say() -> None:
    x = blobs()
    assert strategy_named("farthest-first", setting(x)) == CoreSet()
    assert strategy_named("lcmd", setting(x)) == LCMD()
    assert strategy_named("bait-linear", setting(x)) == BAIT()
    assert strategy_named("bait-fb-linear", setting(x)) == BAIT(backward=True)
    for name, kind in (("bait", BAIT), ("lcmd-grad", LCMD)):
        strategy = strategy_named(name, setting(x))
        assert isinstance(strategy, kind) and isinstance(strategy.embed, Gradients)
        phi = strategy.embed(x)
        exact = EmpiricalNTK(setting(x).recipe.network, anew=True)(x).double()
        assert float((phi @ phi.T - exact).norm() / exact.norm()) < 0.3
    for name in ("margin", "entropy", "dropquery"):
        with refused(PoolError):
            strategy_named(name, setting(x, 0))
    for name in ("kmeans-rows", "random-grad", "evgp-unit", "margin-grad"):
        with refused(PoolError):
            strategy_named(name, setting(x))


@pytest.mark.parametrize("name", ["evgp:10+margin", "typiclust:10+margin", "kmeans-grad:10+entropy",
                                  "kmeans+++dropquery", "maxherding:7+badge", "probcover+lcmd",
                                  "lcmd:5+bait-linear"])  # fmt: skip
def test_hand_overs(name) -> None:
    x, y = blobs(), torch.arange(90) * 2 // 90
    strategy = strategy_named(name, setting(x))
    rounds = list(run(Pool(x), strategy, lambda rows: y[rows], rounds=4, k=5))
    assert len(set(rounds[-1].pool.labelled.tolist())) == 20
    first = strategy_named(
        name.split(":")[0] if ":" in name else name.rsplit("+", 1)[0], setting(x)
    )
    alone = list(run(Pool(x), first, lambda rows: y[rows], rounds=4, k=5))
    assert alone[0].selection.indices.tolist() == rounds[0].selection.indices.tolist()
    assert alone[3].selection.indices.tolist() != rounds[3].selection.indices.tolist()


def test_typicality_does_not_need_more_neighbours_than_there_are() -> None:
    x = blobs(5).numpy()
    apart = np.linalg.norm(x[:, None] - x, axis=2)
    assert typicality(x, 20) == pytest.approx(4 / (apart.sum(1) + 1e-7))
    assert typicality(x[:1], 20).tolist() == [1.0]


def test_large_pools_are_clustered_in_batches(monkeypatch) -> None:
    monkeypatch.setattr("evgp.strategies._cells.LARGE", 80)
    x = blobs()
    rows = KMeans()(Pool(x), 6, generator=seeded()).indices
    assert len(set((rows * 6 // 90).tolist())) >= 5
    check_strategy(TypiClust(), Pool(x), 6)


def test_blocks_change_no_pick(monkeypatch) -> None:
    pool = Pool(blobs(300), labelled=torch.tensor([4, 7]))
    whole = [
        item(pool, 30, generator=seeded()).indices.tolist() for item in (ProbCover(), MaxHerding())
    ]
    for module in ("probcover", "maxherding"):
        monkeypatch.setattr(f"evgp.strategies.{module}._ROOM", 1000)
    parts = [
        item(pool, 30, generator=seeded()).indices.tolist() for item in (ProbCover(), MaxHerding())
    ]
    assert parts == whole
