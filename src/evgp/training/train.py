"""Training of all members at once."""

import copy
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from inspect import signature
from math import ceil
from typing import Any

import torch
from torch import Tensor, nn

from evgp._checks import instance, integer, keep, seed_of, shown
from evgp._executor import Progress
from evgp._progress import reporting
from evgp._typing import Array
from evgp.nets import check_source, deterministic_outputs
from evgp.training.checks import (
    STEPS,
    Diverged,
    TrainingError,
    dtype_of,
    inputs,
    outputs_match,
    raw,
    settings,
    stop_of,
    targets,
)
from evgp.training.ensemble import Ensemble
from evgp.training.gradients import evaluator_for, sample_bytes
from evgp.training.members import Source, Stack, check_trainable, initialised
from evgp.training.optimisers import Adam, GradientDescent
from evgp.training.run import Groups, Report, Run, Stop


def train(
    network: Source,
    x: Array,
    y: Array,
    *,
    members: int = 50,
    loss: str = "auto",
    optimiser: str = "gd",
    lr: float = 0.01,
    steps: int = 1000,
    batch: int | None = None,
    momentum: float = 0.0,
    weight_decay: float = 0.0,
    clip: float | None = None,
    stop: float | Stop | None = None,
    dtype: torch.dtype = torch.float32,
    memory: int | None = None,
    seed: int = 0,
    progress: Progress | bool | None = None,
) -> Ensemble:
    r"""Train many initialisations of one network on the same data, all at once.

    $$ \theta_e \leftarrow \theta_e - \eta \nabla L(\theta_e), \qquad e = 1 \ldots E $$

    Each member is, up to rounding, what it would be if trained alone. Members only differ in their
    initialisation: mini-batches come in the same order for all. O(members x steps x batch x
    parameters).

    Parameters
    ----------
    network : torch.nn.Module, description or callable
        A description such as `evgp.mlp()`, a module (initialised again for each member; frozen
        parameters are kept), or a function without arguments that makes a module.
    x : array or tensor, shape (n, ...)
        Inputs.
    y : array or tensor, shape (n,) or (n, outputs)
        Targets: floats, or classes as integers from 0.
    members : int
        Number of networks.
    loss : {"auto", "mse", "cross_entropy"}
        "auto" is mean squared error for floats and cross-entropy for integers.
    optimiser : {"gd", "sgd", "adam"}
        "gd" uses all points in each step, "sgd" batches of 32 unless `batch` is set.
    lr : float
        Learning rate.
    steps : int
        Maximum number of steps.
    batch : int, optional
        Points in a batch, by default all of them ("gd", "adam") or 32 ("sgd").
    momentum, weight_decay : float
        As in `torch.optim`; weight decay is added to the gradient, after clipping.
    clip : float, optional
        Maximum norm of each member's gradient.
    stop : float or callable, optional
        A member is done when its loss reaches this number, or when `stop(outputs, y)` is true for
        it. Checked before each step, and with batches before each pass over the points.
    dtype : torch.dtype
        torch.float32 or torch.float64.
    memory : int, optional
        Bytes of working space, by default a quarter of the free memory; members that do not fit are
        trained later.
    seed : int
        Seed of initialisations and batches.
    progress : callable or bool, optional
        True shows a bar; a function is called with (stage, done, total).

    Returns
    -------
    evgp.training.Ensemble

    Raises
    ------
    evgp.training.TrainingError
        If an argument is wrong, or a loss diverges.

    Examples
    --------
    >>> from evgp import mlp
    >>> x = torch.eye(3)
    >>> train(mlp(width=64), x, torch.tensor([1.0, 2.0, 3.0]), members=4, lr=0.5).members
    4
    """
    settings(members, optimiser, lr, steps, batch, seed=seed, momentum=momentum,
             weight_decay=weight_decay, clip=clip, memory=memory)  # fmt: skip
    stop, dtype = stop_of(stop), dtype_of(dtype)
    lr, momentum, weight_decay = float(lr), float(momentum), float(weight_decay)
    members, steps, seed = int(members), int(steps), int(seed)
    clip = None if clip is None else float(clip)
    memory, batch = (None if value is None else int(value) for value in (memory, batch))
    check_source(network)
    values = raw("x", x)
    shape = tuple(values.shape[1:])

    def make(member: int) -> nn.Module:
        return initialised(network, shape, seed, member).to(dtype)

    template = make(0)
    check_trainable(template)
    points = inputs(values, dtype, template)
    goals, measure = targets(y, len(points), loss, dtype)
    outputs_match(deterministic_outputs(template, points[:2]), goals, measure)
    batch = _batch_of(batch, optimiser, len(points))
    sample, evaluator = sample_bytes(template, points), evaluator_for(template, points)
    adam, rows = optimiser == "adam", batch or len(points)
    kept = 2 if adam else int(momentum > 0)
    groups = Groups.of(
        evaluator, template, members=members, rows=rows, sample=sample, kept=kept, memory=memory
    )
    stack = Stack.gathered(make, members, template)

    def work(ids: Tensor, report: Report) -> Tensor:
        own = copy.deepcopy(evaluator)  # a module must not be called from two threads at once
        run = Run(own, measure, points, goals, steps, batch, lr, clip, stop, seed)
        method = Adam(lr, weight_decay) if adam else GradientDescent(lr, momentum, weight_decay)
        return run.train_(stack, ids, method, report)

    with reporting(progress) as show:
        taken = groups.each(work, steps, show)
    ensemble = Ensemble(torch.zeros(members), taken, shape, lr, template, stack, evaluator, sample)
    losses, _ = measure.both(ensemble.predict(points, memory=memory), goals)
    _check_converged(losses, taken, lr)
    return replace(ensemble, losses=losses)


def _batch_of(batch: int | None, optimiser: str, points: int) -> int | None:
    """Return the number of points in a batch; None for all of them."""
    if batch is None and optimiser == "sgd":
        batch = 32
    return None if batch is None or batch >= points else batch


def _check_converged(losses: Tensor, taken: Tensor, lr: float) -> None:
    for lost in (~torch.isfinite(losses)).nonzero()[:1, 0].tolist():
        raise Diverged(lost, int(taken[lost]), lr)


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
