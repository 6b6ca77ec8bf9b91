"""Every parameter of every public callable, with values that it should not get.

Run as a script, in a process of its own, without the checks of types that the tests add: prints as
JSON how many calls were made, how many did what they should, and what the others did. A call should
work, or raise an `EvgpError` with one sentence, within seconds.
"""

import contextlib
import json
import resource
import signal
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from scipy import sparse
from torch import nn

import evgp
from evgp import EvgpError, comparison, datasets, metrics, strategies

_SECONDS = 20
# A call that takes more memory than this fails, and is counted as such.
_BYTES = 4_000_000_000


@dataclass(frozen=True)
class Case:
    """A callable, arguments with which it works, and those that are left as they are."""

    name: str
    call: Callable[..., Any]
    valid: dict[str, Any]
    kept: tuple[str, ...] = ()


def values() -> dict[str, Callable[[], Any]]:
    """What to give in place of a right value, made afresh for each call."""
    frame = _frame()
    return {
        "None": lambda: None,
        "True": lambda: True,
        "3.0": lambda: 3.0,
        "2.5": lambda: 2.5,
        "0": lambda: 0,
        "-1": lambda: -1,
        "10**30": lambda: 10**30,
        "2**63": lambda: 2**63,
        "nan": lambda: float("nan"),
        "-inf": lambda: float("-inf"),
        "1e300": lambda: 1e300,
        "1e-320": lambda: 1e-320,
        "uint8": lambda: np.uint8(3),
        "int64": lambda: np.int64(3),
        "float32": lambda: np.float32(0.5),
        "bool_": lambda: np.bool_(True),
        "word": lambda: "2 apples",
        "empty word": lambda: "",
        "bytes": lambda: b"\x00",
        "empty list": list,
        "ragged": lambda: [[1], [2, 3]],
        "words": lambda: ["a", "b"],
        "dict": lambda: {"a": 1},
        "set": lambda: {1, 2},
        "generator": lambda: (i for i in range(3)),
        "object": object,
        "class": lambda: int,
        "function": lambda: lambda *args, **kwargs: None,
        "complex": lambda: 1 + 2j,
        "0-d": lambda: np.array(3),
        "no rows": lambda: np.empty((0, 3)),
        "no columns": lambda: np.empty((4, 0)),
        "3-d": lambda: np.ones((4, 2, 2)),
        "object array": lambda: np.array([[1, "a"], [None, 2]], dtype=object),
        "dates": lambda: np.array([["2026-01-01"]], dtype="M8[D]"),
        "complex array": lambda: np.ones((4, 3), dtype=complex),
        "NaN array": lambda: np.full((12, 3), np.nan),
        "huge array": lambda: np.full((12, 3), 1e200),
        "masked": lambda: np.ma.masked_array(np.ones((12, 3)), mask=np.eye(12, 3, dtype=bool)),
        "sparse": lambda: sparse.csr_matrix(np.ones((12, 3))),
        "frame": lambda: frame,
        "tensor": lambda: torch.ones(12, 3, dtype=torch.complex64),
        "module": lambda: nn.Linear(3, 1),
    }


def _frame() -> Any:
    try:
        import pandas as pd
    except ImportError:
        return [["a", 1]]
    return pd.DataFrame([[1, "a"], [2, "b"]], columns=["twice", "twice"])


def cases(folder: Path) -> Iterator[Case]:
    """Everything public that takes arguments, with a small call that works."""
    x = np.random.default_rng(0).normal(size=(12, 3))
    np.save(folder / "pool.npy", x)
    rows = "".join(f"{a},{b},{a + b}\n" for a, b, _ in x.round(3))
    (folder / "table.csv").write_text("a,b,y\n" + rows, encoding="utf-8")
    for subset in (
        _selection,
        _networks,
        _kernels,
        _training,
        _strategies,
        _rest,
        _results,
        _adapters,
    ):
        yield from subset(x, folder)


def _selection(x: np.ndarray, folder: Path) -> Iterator[Case]:
    pick = {
        "x": x,
        "k": 2,
        "budget": None,
        "costs": None,
        "x_test": None,
        "test_weights": None,
        "labelled": None,
        "x_labelled": None,
        "candidates": None,
        "network": evgp.mlp(1),
        "kernel": None,
        "criterion": "ev",
        "greedy": "auto",
        "noise": 1e-6,
        "scale": "auto",
        "storage": "float64",
        "thin": None,
        "features": None,
        "method": "auto",
        "memory": None,
        "executor": None,
        "cache": None,
        "seed": 0,
        "progress": None,
    }
    yield Case("pick", evgp.pick, pick)
    money = {"x": x, "budget": 3.0, "costs": np.ones(12), "k": None}
    yield Case("pick with costs", evgp.pick, money, ("x",))
    more = {
        "x": x,
        "k": 2,
        "x_test": x[:4],
        "test_weights": np.ones(4),
        "labelled": [1],
        "candidates": [2, 3, 4],
        "x_labelled": x[:1],
    }
    yield Case("pick with test points", evgp.pick, more, ("x", "k"))
    for name in ("p90", "mi"):
        rule = {"x": x, "k": 2, "criterion": name, "noise": 1e-6, "thin": None}
        yield Case(f"pick by {name}", evgp.pick, rule, ("criterion",))
    filed = {
        "x": str(folder / "pool.npy"),
        "k": 2,
        "features": "raw",
        "method": "sharded",
        "x_test": None,
        "labelled": None,
        "candidates": None,
        "costs": None,
        "budget": None,
    }
    yield Case("pick from files", evgp.pick, filed, ("features", "method"))
    yield Case("plan", evgp.plan, pick)
    wide = {"x": (1000, 4), "k": 2, "x_test": (10, 4), "memory": "2GB"}
    yield Case("plan of a shape", evgp.plan, wide)
    opened = {
        "where": folder / "pool.npy",
        "id": None,
        "drop": (),
        "costs": None,
        "max_categories": 50,
        "scale": "auto",
    }
    yield Case("open_pool", evgp.open_pool, opened)
    selection = evgp.pick(x, 2)
    yield Case("subset", evgp.datasets.subset, {"dataset": x, "selection": selection})


def _networks(x: np.ndarray, folder: Path) -> Iterator[Case]:
    mlp = {"depth": 1, "width": 4, "activation": "relu", "w_std": 1.0, "b_std": 0.1, "outputs": 1}
    yield Case("mlp", evgp.mlp, mlp)
    yield Case(
        "LeakyRelu",
        lambda slope: evgp.mlp(1, activation=evgp.nets.LeakyRelu(slope)),
        {"slope": 0.1},
    )
    plain = {"outputs": 2, "init": "kaiming", "parametrisation": "standard"}
    for name in ("cnn", "resnet18"):
        yield Case(name, getattr(evgp, name), plain)
    yield Case("wide_resnet", evgp.nets.wide_resnet, {"depth": 10, "width": 1, **plain})
    yield Case("without_batchnorm", evgp.nets.without_batchnorm, {"module": nn.Linear(2, 1)})
    listed = {"depths": (1, 2), "activations": ("relu",), "width": 4, "outputs": 1}
    yield Case("candidates", evgp.architectures.candidates, listed)
    yield Case("Network", evgp.Network, {"layers": evgp.mlp(1).layers})
    shape = {"shape": (3,), "generator": torch.Generator()}
    yield Case("Network.build", evgp.mlp(1, 4).build, shape)
    yield Case("Network.standard", evgp.mlp(1, 4).standard, {"init": "kaiming"})


def _kernels(x: np.ndarray, folder: Path) -> Iterator[Case]:
    points, ntk = torch.from_numpy(x), evgp.NTK(evgp.mlp(1, 4))
    for kind in (evgp.NTK, evgp.NNGP):
        result = {"network": evgp.mlp(1), "storage": None}
        yield Case(kind.__name__, lambda kind=kind, **inputs: kind(**inputs)(points), result)
        yield Case(f"{kind.__name__}()", kind(evgp.mlp(1)), {"x1": x, "x2": x})
        yield Case(f"{kind.__name__}.diag", kind(evgp.mlp(1)).diag, {"x": x})
    module = nn.Linear(3, 1)
    empirical = {
        "network": module,
        "output": "random",
        "draws": 1,
        "seed": 0,
        "memory": None,
        "storage": None,
        "anew": False,
    }
    yield Case("EmpiricalNTK", lambda **inputs: evgp.EmpiricalNTK(**inputs)(points), empirical)
    own = evgp.EmpiricalNTK(module)
    yield Case("EmpiricalNTK()", own, {"x1": points, "x2": points})
    yield Case("EmpiricalNTK.diag", own.diag, {"x": points})
    gp = {"kernel": ntk, "x": x, "y": x[:, 0], "x_test": x, "noise": 1e-6, "full": False}
    yield Case("ntkgp", evgp.posterior.ntkgp, gp)
    both = {
        "ntk": ntk,
        "nngp": evgp.NNGP(evgp.mlp(1)),
        **{k: v for k, v in gp.items() if k != "kernel"},
    }
    yield Case("trained", evgp.posterior.trained, both)


def _training(x: np.ndarray, folder: Path) -> Iterator[Case]:
    net = evgp.mlp(1, 4)
    train = {
        "network": net,
        "x": x,
        "y": x[:, 0],
        "members": 2,
        "loss": "auto",
        "optimiser": "gd",
        "lr": 0.01,
        "steps": 2,
        "batch": None,
        "momentum": 0.0,
        "weight_decay": 0.0,
        "clip": None,
        "stop": None,
        "dtype": torch.float32,
        "memory": None,
        "seed": 0,
        "progress": None,
    }
    yield Case("train", evgp.train, train)
    ensemble = evgp.train(net, x, x[:, 0], members=2, steps=1)
    yield Case("Ensemble.predict", ensemble.predict, {"x": x, "memory": None})
    yield Case("Ensemble.module", ensemble.module, {"member": 0})
    recipe = {"network": net, "settings": {"steps": 1}, "epochs": None, "gentler": 0}
    yield Case("Recipe", lambda **inputs: evgp.training.Recipe(**inputs)(x, x[:, 0]), recipe)
    yield Case(
        "Recipe()",
        evgp.training.Recipe(net, {"steps": 1}),
        {"x": x, "y": x[:, 0], "members": 1, "seed": 0},
    )
    outputs, labels = rng_outputs()
    for name, inputs in (
        ("mse", {"outputs": outputs, "y": outputs[0]}),
        ("bias", {"outputs": outputs, "y": outputs[0]}),
        ("variances", {"outputs": outputs}),
        ("output_variance", {"outputs": outputs, "percentile": 90}),
        ("accuracy", {"outputs": outputs, "labels": labels}),
        ("output_entropy", {"outputs": outputs}),
        ("disagreement", {"outputs": outputs}),
        ("nll", {"outputs": outputs, "labels": labels}),
        ("calibration_error", {"outputs": outputs, "labels": labels, "bins": 5}),
        ("area", {"labels": [1, 2, 3], "scores": [1, 2, 3]}),
        ("pearson", {"a": [1, 2, 3], "b": [1, 3, 2]}),
        ("spearman", {"a": [1, 2, 3], "b": [1, 3, 2]}),
    ):
        yield Case(f"metrics.{name}", getattr(metrics, name), inputs)


def rng_outputs() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(1)
    return rng.normal(size=(3, 5, 2)), rng.integers(0, 2, size=5)


def _strategies(x: np.ndarray, folder: Path) -> Iterator[Case]:
    points, net, ntk = torch.from_numpy(x), evgp.mlp(1, 4), evgp.NTK(evgp.mlp(1, 4))
    pool = evgp.Pool(points)
    labelled = evgp.Pool(points, labelled=torch.arange(4), y=points[:4, 0])
    classes = evgp.Pool(points, labelled=torch.arange(4), y=torch.tensor([0, 1, 0, 1]))
    recipe = evgp.training.Recipe(net, {"steps": 1})
    two = evgp.training.Recipe(evgp.mlp(1, 4, outputs=2), {"steps": 1})

    def used(kind: type, pool: evgp.Pool = labelled) -> Callable[..., Any]:
        return lambda **arguments: kind(**arguments)(pool, 2, generator=torch.Generator())

    evgp_like = {
        "kernel": ntk,
        "criterion": evgp.ExpectedVariance(),
        "greedy": evgp.search.Exact(),
        "noise": 1e-6,
        "storage": torch.float64,
    }
    yield Case("EVGP", used(evgp.EVGP), evgp_like)
    yield Case("Random", used(strategies.Random), {})
    yield Case(
        "KMeansPlusPlus",
        used(strategies.KMeansPlusPlus),
        {"most": 5, "seed": 0, "embed": torch.clone},
    )
    yield Case("CoreSet", used(strategies.CoreSet), {"embed": torch.clone})
    yield Case("KMeans", used(strategies.KMeans), {"embed": torch.clone})
    yield Case("LCMD", used(strategies.LCMD), {"embed": torch.clone})
    yield Case(
        "BAIT", used(strategies.BAIT), {"noise": 0.01, "backward": False, "embed": torch.clone}
    )
    yield Case(
        "TypiClust",
        used(strategies.TypiClust),
        {"neighbours": 5, "most": 9, "least": 2, "embed": torch.clone},
    )
    yield Case(
        "ProbCover",
        used(strategies.ProbCover),
        {"classes": 2, "purity": 0.9, "radius": 1.0, "seed": 0, "embed": torch.clone},
    )
    yield Case(
        "MaxHerding",
        used(strategies.MaxHerding),
        {"gamma": 1.0, "normalise": True, "embed": torch.clone},
    )
    yield Case("MaxVariance", used(strategies.MaxVariance), {"kernel": ntk, "noise": 1e-6})
    yield Case("BADGE", used(strategies.BADGE), {"recipe": recipe, "classes": 0, "accuracy": 0.9})
    yield Case(
        "MLMOC",
        used(strategies.MLMOC),
        {
            "recipe": recipe,
            "classes": 0,
            "noise": 0.01,
            "sequential": False,
            "first": 0,
            "most": 5,
            "clip": 1.0,
            "output": 0,
        },
    )
    yield Case(
        "BatchBALD",
        used(strategies.BatchBALD, classes),
        {"recipe": two, "classes": 2, "members": 2, "dropout": 0.0, "exact": 10, "samples": 10},
    )
    for kind in (strategies.Margin, strategies.Entropy):
        yield Case(
            kind.__name__,
            used(kind, classes),
            {"recipe": two, "classes": 2, "members": 2, "accuracy": 0.9},
        )
    yield Case(
        "DropQuery",
        used(strategies.DropQuery, classes),
        {"classes": 2, "dropout": 0.5, "draws": 3, "embed": torch.clone},
    )
    yield Case(
        "EVGPMS",
        used(strategies.EVGPMS),
        {
            "networks": {"one": net},
            "first": "one",
            "criterion": evgp.ExpectedVariance(),
            "greedy": evgp.search.Exact(),
            "noise": 1e-6,
            "folds": 3,
            "kappa": 0.3,
            "one_error": False,
            "least": 4,
            "seed": 0,
        },
    )
    yield Case(
        "Hybrid",
        used(strategies.Hybrid),
        {"first": strategies.Random(), "then": strategies.CoreSet(), "after": 5},
    )
    yield Case(
        "Thinned", used(strategies.Thinned), {"inner": strategies.Random(), "points": 4, "seed": 0}
    )
    for strategy in (
        evgp.EVGP(ntk),
        strategies.Random(),
        strategies.KMeansPlusPlus(),
        strategies.CoreSet(),
        strategies.MaxVariance(ntk),
        strategies.BADGE(recipe),
        strategies.MLMOC(recipe),
        strategies.EVGPMS({"one": net}, "one"),
    ):
        call = {"pool": labelled, "k": 2, "generator": torch.Generator()}
        yield Case(f"{type(strategy).__name__}()", strategy, call)
    arguments = {
        "pool": pool,
        "k": 2,
        "generator": torch.Generator(),
        "costs": torch.ones(12),
        "budget": 3.0,
        "candidates": torch.arange(5),
        "progress": None,
    }
    yield Case("EVGP() with costs", evgp.EVGP(ntk), arguments, ("pool",))
    setting = strategies.Setting(points, net, recipe)
    yield Case("strategy_named", strategies.strategy_named, {"name": "random", "setting": setting})
    yield Case(
        "Setting",
        lambda **arguments: strategies.strategy_named("evgp", strategies.Setting(**arguments)),
        {
            "x": points,
            "kernel": net,
            "recipe": recipe,
            "classes": 0,
            "most": 5,
            "batch": 2,
            "seed": 0,
        },
    )
    for name, item in (
        ("Percentile", {"r": 90}),
        ("ExpectedVariance", {}),
        ("MutualInformation", {}),
    ):
        kind = getattr(evgp, name)
        yield Case(
            name,
            lambda kind=kind, **arguments: evgp.pick(points, 2, criterion=kind(**arguments)),
            item,
        )
    for name, item in (
        ("Exact", {}),
        ("Lazy", {}),
        ("Exchange", {"passes": 2}),
        ("Stochastic", {"sample": 3}),
    ):
        kind = getattr(evgp, name)
        yield Case(
            name,
            lambda kind=kind, **arguments: evgp.pick(points, 2, greedy=kind(**arguments)),
            item,
        )
    for name in ("Sharded", "TwoRounds"):
        kind = getattr(evgp, name)
        yield Case(
            name,
            lambda kind=kind, **arguments: evgp.pick(
                points, 2, greedy=kind(**arguments), features="raw"
            ),
            {"shards": 2},
        )


def _rest(x: np.ndarray, folder: Path) -> Iterator[Case]:
    points, net, table = torch.from_numpy(x), evgp.mlp(1, 4), folder / "table.csv"
    pool = evgp.Pool(points)
    audit = {
        "x_train": x[:6],
        "x_test": x[6:],
        "network": net,
        "pool": None,
        "k": 2,
        "noise": 1e-6,
        "scale": "columns",
        "standardise": None,
        "seed": 0,
        "progress": None,
    }
    yield Case("audit", evgp.audit, audit)
    yield Case("audit with a pool", evgp.audit, {**audit, "pool": x[3:]}, ("x_train", "network"))
    result = evgp.audit(x[:6], x[6:], net)
    yield Case("confirm", evgp.audits.confirm, {"audit": result, "outputs": np.ones((2, 6, 1))})
    for name in ("at_risk", "matter"):
        yield Case(f"Audit.{name}", getattr(result, name), {"k": 2})
    choose = {
        "networks": {"one": net},
        "x": x,
        "y": x[:, 0],
        "folds": 3,
        "kappa": 0.3,
        "noise": 1e-4,
        "scale": "columns",
        "standardise": None,
        "current": None,
        "one_error": False,
        "seed": 0,
        "progress": None,
    }
    yield Case("choose", evgp.choose, choose)
    arguments = {
        "x": points,
        "x_test": None,
        "test": None,
        "weights": None,
        "labelled": torch.tensor([1]),
        "x_labelled": None,
        "y": None,
    }
    yield Case("Pool", evgp.Pool, arguments)
    yield Case("Pool.reveal", pool.reveal, {"rows": torch.tensor([1]), "y": torch.ones(1)})
    rounds = {
        "pool": pool,
        "strategy": strategies.Random(),
        "oracle": lambda rows: points[rows, 0],
        "rounds": 2,
        "k": 2,
        "seed": 0,
    }
    yield Case("run", lambda **arguments: list(evgp.run(**arguments)), rounds)
    source = {
        "source": str(table),
        "label": "y",
        "task": None,
        "id": None,
        "drop": (),
        "impute": False,
        "pool": None,
        "test": None,
        "delimiter": None,
    }
    load = lambda **arguments: evgp.comparison.DatasetSource(**arguments).load(0)  # noqa: E731
    yield Case("DatasetSource", load, source)
    protocol = {
        "budget": 4,
        "batch": 2,
        "start": 0,
        "members": 2,
        "network": "mlp",
        "depth": 1,
        "width": 4,
        "lr": None,
        "steps": None,
        "learners": ("1nn",),
        "budgets": (),
    }
    data = evgp.comparison.DatasetSource(str(table), "y").load(0)
    yield Case(
        "Protocol",
        lambda **arguments: evgp.comparison.Protocol(**arguments).check(data, ("random",), 0),
        protocol,
    )
    compare = {
        "data": evgp.comparison.DatasetSource(str(table), "y"),
        "strategies": "random",
        "out": folder / "runs",
        "protocol": evgp.comparison.Protocol(
            budget=2, batch=2, members=2, depth=1, width=4, steps=1
        ),
        "seeds": 1,
        "jobs": 1,
        "progress": None,
    }
    yield Case("compare", evgp.compare, compare)
    load = {
        "path": table,
        "label": "y",
        "task": "auto",
        "test": 0.5,
        "seed": 0,
        "id": None,
        "drop": (),
        "impute": False,
        "max_categories": 50,
        "delimiter": None,
    }
    yield Case("load_csv", datasets.load_csv, load)
    yield Case("load", datasets.load, {"name": "none", "seed": 0, "pool": None, "test": None})


def _results(x: np.ndarray, folder: Path) -> Iterator[Case]:
    """What comes back has methods, and can be made by hand."""
    points, net = torch.from_numpy(x), evgp.mlp(1, 4)
    selection = evgp.pick(x, 2)
    selection.save(folder / "kept.json")
    yield Case("Selection[]", selection.__getitem__, {"key": 0}, ("key",))
    yield Case("Selection.to_frame", selection.to_frame, {"pool": x})
    yield Case("Selection.save", selection.save, {"path": folder / "picks.json"})
    yield Case("Selection.load", evgp.Selection.load, {"path": folder / "kept.json"})
    page = {"path": folder / "page.html", "pool": x, "x": None, "id": None}
    yield Case("Selection.report", selection.report, page)
    own = {
        "indices": np.arange(2),
        "gains": np.ones(2),
        "prior_variance": 1.0,
        "start_variance": 1.0,
        "variance_left": np.ones(2),
        "test_before": np.ones(3),
        "test_after": np.ones(3),
        "costs": np.ones(2),
        "certificate": selection.certificate,
        "settings": {},
        "warnings": (),
    }
    yield Case("Selection", evgp.Selection, own)
    got = selection.certificate
    bound = {"lowest": got.lowest, "share": got.share, "needed": got.needed}
    yield Case("Certificate", evgp.Certificate, bound)
    yield Case("Plan.run", evgp.plan(x, 2).run, {"generator": torch.Generator()})
    yield Case("Recipe.untrained", evgp.training.Recipe(net).untrained,
               {"shape": (3,), "seed": 0, "member": 0})  # fmt: skip
    yield Case("Finite.build", evgp.mlp(1, 4).standard().build,
               {"shape": (3,), "generator": torch.Generator()})  # fmt: skip
    empirical = evgp.EmpiricalNTK(nn.Linear(3, 1))
    yield Case("EmpiricalNTK.tabulated", empirical.tabulated, {"x": points})
    yield Case("EmpiricalNTK.fresh", empirical.fresh, {"seed": 0})
    named = strategies.EVGPMS({"one": net}, "one", folds=3, least=4)
    labelled = evgp.Pool(points, labelled=torch.arange(4), y=points[:4, 0])
    for name in ("choice", "history"):
        yield Case(f"EVGPMS.{name}", getattr(named, name), {"pool": labelled, "k": 2})
    yield Case(
        "DatasetSource.load",
        evgp.comparison.DatasetSource(str(folder / "table.csv"), "y").load,
        {"seed": 0},
    )
    yield Case("locate", datasets.locate, {"name": "none"})
    (folder / "rows.csv").write_text("a,b\n1,2\n", encoding="utf-8")
    yield Case("read_rows", comparison.read_rows, {"path": folder / "rows.csv"})
    yield Case("comparison.summarise", comparison.summarise, {"rows": ()})


def _adapters(x: np.ndarray, folder: Path) -> Iterator[Case]:
    from evgp.integrations.modal import query_strategy
    from evgp.integrations.sklearn import EVGPSelector

    arguments = {
        "k": 2,
        "network": None,
        "kernel": None,
        "criterion": "ev",
        "greedy": "auto",
        "noise": 1e-6,
        "scale": "auto",
        "features": None,
        "random_state": 0,
    }
    yield Case("EVGPSelector", lambda **arguments: EVGPSelector(**arguments).fit(x), arguments)
    yield Case("EVGPSelector.fit", EVGPSelector(2).fit, {"X": x, "y": None, "labelled": None})
    fitted = EVGPSelector(2).fit(x)
    yield Case("EVGPSelector.transform", fitted.transform, {"X": x})
    yield Case("EVGPSelector.get_support", fitted.get_support, {"indices": False})
    yield Case("query_strategy", query_strategy, {"learner": None, "X_pool": x, "n_instances": 2})
    try:
        from evgp.integrations.skactiveml import EVGPQuery
    except ImportError:
        return
    query = {"network": None, "kernel": None, "noise": 1e-6, "scale": "auto", "thin": None}
    empty = np.full(12, np.nan)
    yield Case(
        "EVGPQuery",
        lambda **arguments: EVGPQuery(random_state=0, **arguments).query(x, empty),
        query,
    )


@dataclass
class Outcome:
    """What came of all calls."""

    tried: int = 0
    held: int = 0
    failures: list[str] = field(default_factory=list)


class _TooLong(BaseException):
    """A call that takes longer than it may."""


def _ended(signum: int, frame: object) -> None:
    raise _TooLong


def attempt(call: Callable[[], Any]) -> str:
    """What is wrong with what a call did; empty where nothing is."""
    signal.alarm(_SECONDS)
    try:
        call()
    except EvgpError as error:
        text = str(error)
        if not text.strip() or "\n" in text.strip() or len(text) > 1000:
            return f"{type(error).__name__} says {text[:200]!r}"
        return (
            ""
            if isinstance(
                error, (ValueError, TypeError, MemoryError, ArithmeticError, OSError, RuntimeError)
            )
            else "only an EvgpError"
        )
    except _TooLong:
        return f"took longer than {_SECONDS} s"
    except Exception as error:
        return f"{type(error).__name__}: {str(error)[:120]!r}"
    finally:
        signal.alarm(0)
    return ""


def tried(only: str = "") -> Outcome:
    """Call everything with everything."""
    result, every = Outcome(), values()
    # Some values are taken as paths: what is written to them goes with the folder.
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        for case in cases(Path(folder)):
            if only and not case.name.startswith(only):
                continue
            if wrong := attempt(partial(case.call, **case.valid)):
                if case.name not in ("load", "locate"):
                    result.failures.append(f"{case.name}: {wrong} with valid arguments")
            for name in case.valid:
                for what, value in every.items():
                    if name in case.kept or (name, what) == ("progress", "module"):
                        continue  # what a callback raises is its own
                    wrong = attempt(partial(case.call, **{**case.valid, name: value()}))
                    result.tried += 1
                    result.held += not wrong
                    if wrong:
                        result.failures.append(f"{case.name}({name}={what}): {wrong}")
                        print(result.failures[-1], file=sys.stderr, flush=True)
    return result


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    signal.signal(signal.SIGALRM, _ended)
    resource.setrlimit(resource.RLIMIT_DATA, (_BYTES, _BYTES))
    found = tried(*sys.argv[1:])
    print(json.dumps({"tried": found.tried, "held": found.held, "failures": found.failures}))
