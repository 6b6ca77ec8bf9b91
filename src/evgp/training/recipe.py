"""Recipes: all arguments of `train` except the data."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from inspect import signature
from math import ceil
from typing import Any

import torch
from torch import nn

from evgp._checks import instance, integer, keep, seed_of, shown
from evgp._executor import Progress
from evgp._typing import Array
from evgp.nets import check_source
from evgp.training.checks import STEPS, Diverged, TrainingError
from evgp.training.ensemble import Ensemble
from evgp.training.members import Source, initialised
from evgp.training.train import train


@dataclass(frozen=True)
class Recipe:
    """A network, and the settings of `evgp.train` to train it with.

    Parameters
    ----------
    network : Network, module or function
    settings : mapping
        Arguments of `evgp.train`, without the data, `members`, `seed` and `progress`.
    epochs : int, optional
        Passes over the points, in place of `steps`.
    gentler : int
        If training diverges, how often to start again with a quarter of the learning rate.

    Examples
    --------
    >>> from evgp import mlp
    >>> recipe = Recipe(mlp(1, 16), {"lr": 0.1, "steps": 5})
    >>> recipe(torch.eye(3), torch.ones(3), members=2)
    Ensemble(members=2, losses 0.402 to 1.57)
    """

    network: Source
    settings: Mapping[str, Any] = field(default_factory=dict)
    epochs: int | None = None
    gentler: int = 0

    def __post_init__(self) -> None:
        check_source(self.network)
        instance(self.settings, "settings", Mapping, "{'lr': 0.1}", error=TrainingError)
        if self.epochs is not None:
            keep(self, epochs=integer(self.epochs, "epochs", 0, STEPS, error=TrainingError))
        keep(self, gentler=integer(self.gentler, "gentler", 0, 100, error=TrainingError))
        if unknown := [name for name in self.settings if name not in signature(train).parameters]:
            raise TrainingError(f"expected settings of evgp.train, got {shown(unknown[0])}")
        if wrong := [name for name in ("members", "seed", "progress") if name in self.settings]:
            raise TrainingError(
                f"expected settings that all trainings share, got {', '.join(wrong)}; pass "
                f"{wrong[0]}= when the recipe is called"
            )

    def __call__(
        self,
        x: Array,
        y: Array,
        *,
        members: int = 1,
        seed: int = 0,
        progress: Progress | bool | None = None,
        **other: Any,
    ) -> Ensemble:
        """Members trained on these points; `other` settings override those of the recipe."""
        settings = {**self.settings, **other}
        if self.epochs is not None and "steps" not in other and len(x) > 0:
            batch = settings.get("batch") or (32 if settings.get("optimiser") == "sgd" else len(x))
            settings["steps"] = self.epochs * ceil(len(x) / min(batch, len(x)))
        for left in range(self.gentler, -1, -1):
            try:
                return train(
                    self.network, x, y, members=members, seed=seed, progress=progress, **settings
                )
            except Diverged as error:
                if not left:
                    raise
                settings["lr"] = error.lr / 4
        raise AssertionError

    def untrained(self, shape: tuple[int, ...], *, seed: int = 0, member: int = 0) -> nn.Module:
        """One member before training, as a call with the same seed would start from it.

        >>> from evgp import mlp
        >>> Recipe(mlp(1, 16)).untrained((3,))(torch.eye(3)).shape
        torch.Size([3, 1])
        """
        seed = seed_of(seed, error=TrainingError)
        member = integer(member, "member", 0, error=TrainingError)
        return initialised(self.network, shape, seed, member).to(
            self.settings.get("dtype", torch.float32)
        )


def paper_recipe(network: Source, *, classes: int = 0, resnet: bool = False) -> Recipe:
    """The training of the paper: gradient descent for numbers, SGD for classes.

    Hemachandra et al., ICML 2023: learning rate 0.01 and 1,000 steps on all points for regression;
    for classification 100 epochs with learning rate 0.1, batches of 32, weight decay 5e-4 and
    gradients clipped at 5, or with momentum 0.9, batches of 256 and weight decay 1e-4 for ResNet18
    (`resnet`). The paper does not say what happens if training diverges; here the learning rate is
    divided by four until it does not.
    """
    if not classes:
        return Recipe(network, {"optimiser": "gd", "lr": 0.01, "steps": 1000}, gentler=5)
    settings = {"optimiser": "sgd", "lr": 0.1, "batch": 32, "weight_decay": 5e-4, "clip": 5.0}
    if resnet:
        settings |= {"momentum": 0.9, "batch": 256, "weight_decay": 1e-4}
    return Recipe(network, settings, epochs=100, gentler=5)
