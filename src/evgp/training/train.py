"""Training of all members at once."""

import copy
from dataclasses import replace

import torch
from torch import Tensor, nn

from evgp._executor import Progress
from evgp._progress import reporting
from evgp._typing import Array
from evgp.nets import check_source, deterministic_outputs
from evgp.training.checks import (
    Diverged,
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
