"""What a comparison is about, and what it refuses before it begins."""

from dataclasses import replace

import pytest
import torch

from evgp.comparison import DatasetSource, Protocol
from evgp.errors import EvgpError
from evgp.training import paper_recipe
from tests.comparison.conftest import QUICK
from tests.messages import refused


@pytest.mark.parametrize(
    "wrong",
    [
        {"budget": 7},
        {"budget": 2},
        {"start": 2},
        {"members": 1},
        {"batch": 0},
    ],
)
def test_terms_are_checked(wrong) -> None:
    with refused(EvgpError):
        replace(QUICK, **wrong)


def test_a_dataset_is_named_or_a_table_with_a_label(prices) -> None:
    with refused(EvgpError):
        DatasetSource("kin9nm").load(0)
    with refused(EvgpError):
        DatasetSource(str(prices)).load(0)
    with refused(EvgpError):
        DatasetSource("kin8nm", label="y").load(0)
    assert DatasetSource(str(prices), "price", drop=("kind",)).load(0).kind == "regression"
    assert DatasetSource(str(prices), "kind").load(0).classes == 2
    assert len(DatasetSource(str(prices), "kind", test=10).load(0).x) == 30


def test_what_cannot_run_on_the_data_is_refused(numbers, kinds) -> None:
    data = numbers.load(0)
    with refused(EvgpError):
        replace(QUICK, budget=30).check(data, ("random",), 0)
    with refused(EvgpError):
        QUICK.check(data, ("evgp", "radnom"), 0)
    with refused(EvgpError):
        QUICK.check(data, ("batchbald",), 0)
    QUICK.check(kinds.load(0), ("batchbald", "evgp"), 0)


def test_a_network_of_ones_own_must_have_the_outputs(kinds, tmp_path, monkeypatch) -> None:
    (tmp_path / "own_net.py").write_text(
        "from torch import nn\n\n\ndef build():\n    return nn.Linear(4, 3)\n"
    )
    monkeypatch.chdir(tmp_path)
    data = replace(kinds, drop=()).load(0)
    with refused(EvgpError):
        replace(QUICK, network="own_net:build").check(data, ("random",), 0)


def test_the_recipe_is_the_papers_by_default() -> None:
    usual, message = Protocol(), Protocol(lr=0.5, steps=7)
    net = torch.nn.Linear(1, 1)
    assert usual.recipe(net, 0) == paper_recipe(net)
    assert usual.recipe(net, 3) == paper_recipe(net, classes=3)
    deep = replace(usual, network="resnet18").recipe(net, 3)
    assert deep == paper_recipe(net, classes=3, resnet=True)
    assert message.recipe(net, 0).settings == {"optimiser": "gd", "lr": 0.5, "steps": 7}
    assert message.recipe(net, 0).gentler == usual.recipe(net, 3).gentler == 5
    assert message.recipe(net, 3).epochs == 7 and message.recipe(net, 3).settings["lr"] == 0.5


def test_the_network_that_is_trained_is_the_one_whose_kernel_is_used(kinds) -> None:
    data = kinds.load(0)
    setting = QUICK.setting(data, 0)
    module = setting.recipe.untrained(tuple(data.x.shape[1:]))
    assert module(data.x[:5].float()).shape == (5, 2)
    widths = [part.out_features for part in module.modules() if isinstance(part, torch.nn.Linear)]
    assert widths == [8, 2]
