"""A setting has the same default everywhere, except for those listed here."""

import inspect
from collections.abc import Callable
from typing import Any

import pytest
import torch

import evgp
from evgp.cli._options import PickOptions
from evgp.cli.audit import AuditOptions
from evgp.cli.choose import ChooseOptions
from evgp.cli.compare import CompareOptions
from evgp.comparison import Protocol
from evgp.criteria import criterion_named
from evgp.datasets import ReadOptions
from evgp.integrations.skactiveml import EVGPQuery
from evgp.integrations.sklearn import EVGPSelector
from evgp.labelling.campaign.campaign import Campaign
from evgp.search import choose_greedy
from evgp.selection.request import Model
from evgp.strategies import EVGPMS
from evgp.strategies.named import Setting

DOORS: dict[str, Callable[..., Any]] = {
    "plan": evgp.plan,
    "read_pool": evgp.read_pool,
    "open_pool": evgp.open_pool,
    "ReadOptions": ReadOptions,
    "audit": evgp.audit,
    "choose": evgp.choose,
    "Protocol": Protocol,
    "Setting": Setting,
    "EVGP": evgp.EVGP,
    "EVGPMS": EVGPMS,
    "Campaign": Campaign.create,
    "EVGPSelector": EVGPSelector,
    "EVGPQuery": EVGPQuery,
    "evgp pick": PickOptions,
    "evgp audit": AuditOptions,
    "evgp choose": ChooseOptions,
    "evgp compare": CompareOptions,
}
# docs/architecture.md says why.
OTHER = {
    ("choose", "noise"): 1e-4,
    ("choose", "scale"): "columns",
    ("evgp choose", "scale"): "columns",
    ("audit", "scale"): "columns",
    ("evgp audit", "scale"): "columns",
    ("EVGP", "storage"): torch.float64,
}
SIZES = ("k", "budget")  # how much, which is no setting
# Options whose words mean the same as those of `evgp.pick`.
SAME = {
    "network": lambda value: Model().network_and_kernel()[0] if value in (None, "mlp") else value,
    "kernel": lambda value: None if value == "ntk" else value,
    "criterion": criterion_named,
    "greedy": lambda value: choose_greedy(value, criterion_named("ev")),
    "seed": lambda value: value or 0,
    "random_state": lambda value: value or 0,
    "drop": lambda value: tuple(value or ()),
    "text": lambda value: tuple(value or ()),
    "labelled": lambda value: None if value is None or len(value) == 0 else value,
    "budget": lambda value: None if value == float("inf") else value,
}


def defaults(door: Callable[..., Any]) -> dict[str, Any]:
    parameters = inspect.signature(door).parameters.values()
    return {
        parameter.name: SAME.get(parameter.name, lambda value: value)(parameter.default)
        for parameter in parameters
        if parameter.default is not inspect.Parameter.empty
        and "factory" not in repr(parameter.default)
    }


@pytest.mark.parametrize("door", DOORS)
def test_a_setting_has_one_default_at_every_door(door) -> None:
    usual, here = defaults(evgp.pick), defaults(DOORS[door])
    names = {*usual} & {*here} - {*SIZES}
    shared = {name: here[name] for name in names}
    assert shared
    other = {(door, name): value for name, value in shared.items() if value != usual[name]}
    assert other == {place: value for place, value in OTHER.items() if place[0] == door}
