"""What a comparison is about, and what it refuses before it begins."""

from dataclasses import replace

import pytest
import torch

from evgp._errors import EvgpError
from evgp.arena import Subject, Terms
from evgp.training import by_the_paper
from tests.arena.conftest import QUICK


@pytest.mark.parametrize(
    ("wrong", "match"),
    [
        ({"budget": 7}, "whole batches, got 7 labels in batches of 3; take 6"),
        ({"budget": 2}, "whole batches, got 2 labels in batches of 3; take 3"),
        ({"start": 2}, "of which 2 are there at the start in batches of 3; take 5"),
        ({"members": 1}, "members as an integer from 2"),
        ({"batch": 0}, "batch as an integer from 1"),
    ],
)
def test_terms_are_checked(wrong, match) -> None:
    with pytest.raises(EvgpError, match=match):
        replace(QUICK, **wrong)


def test_a_dataset_is_named_or_a_table_with_a_label(prices) -> None:
    with pytest.raises(EvgpError, match=r"a dataset among boston, naval, .*got 'kin9nm'"):
        Subject("kin9nm").load(0)
    with pytest.raises(EvgpError, match="column that holds the labels, got none; say it with"):
        Subject(str(prices)).load(0)
    with pytest.raises(EvgpError, match="knows its labels"):
        Subject("kin8nm", label="y").load(0)
    assert Subject(str(prices), "price", drop=("kind",)).load(0).kind == "regression"
    assert Subject(str(prices), "kind").load(0).classes == 2
    assert len(Subject(str(prices), "kind", test=10).load(0).x) == 30


def test_what_cannot_run_on_the_data_is_refused(numbers, kinds) -> None:
    data = numbers.load(0)
    with pytest.raises(EvgpError, match=r"budget of at most 20, .*prices; got 30"):
        replace(QUICK, budget=30).check(data, ("random",), 0)
    with pytest.raises(EvgpError, match=r"strategies among evgp, random, .*got 'radnom'.*random"):
        QUICK.check(data, ("evgp", "radnom"), 0)
    with pytest.raises(EvgpError, match="classification"):
        QUICK.check(data, ("batchbald",), 0)
    QUICK.check(kinds.load(0), ("batchbald", "evgp"), 0)


def test_a_network_of_ones_own_must_have_the_outputs(kinds, tmp_path, monkeypatch) -> None:
    (tmp_path / "own_net.py").write_text(
        "from torch import nn\n\n\ndef build():\n    return nn.Linear(4, 3)\n"
    )
    monkeypatch.chdir(tmp_path)
    data = replace(kinds, drop=()).load(0)
    with pytest.raises(EvgpError, match="2 outputs for prices, got a network with 3"):
        replace(QUICK, network="own_net:build").check(data, ("random",), 0)


def test_the_recipe_is_the_papers_unless_said() -> None:
    usual, said = Terms(), Terms(lr=0.5, steps=7)
    net = torch.nn.Linear(1, 1)
    assert usual.recipe(net, 0) == by_the_paper(net)
    assert usual.recipe(net, 3) == by_the_paper(net, classes=3)
    deep = replace(usual, network="resnet18").recipe(net, 3)
    assert deep == by_the_paper(net, classes=3, resnet=True)
    assert said.recipe(net, 0).settings == {"optimiser": "gd", "lr": 0.5, "steps": 7}
    assert said.recipe(net, 0).gentler == usual.recipe(net, 3).gentler == 5
    assert said.recipe(net, 3).epochs == 7 and said.recipe(net, 3).settings["lr"] == 0.5


def test_the_network_that_is_trained_is_the_one_whose_kernel_is_used(kinds) -> None:
    data = kinds.load(0)
    setting = QUICK.setting(data, 0)
    module = setting.recipe.untrained(tuple(data.x.shape[1:]))
    assert module(data.x[:5].float()).shape == (5, 2)
    widths = [part.out_features for part in module.modules() if isinstance(part, torch.nn.Linear)]
    assert widths == [8, 2]
