"""Training of all members at once."""

import copy
from dataclasses import replace

import torch
from torch import Tensor, nn

from evgp._executor import Progress
from evgp._progress import reporting
from evgp._typing import Array
from evgp.nets import check_source, steady_outputs
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
from evgp.training.fresh import Source, fit_for_training, fresh
from evgp.training.groups import Groups, Tell
from evgp.training.roads import road_for, sample_bytes
from evgp.training.rules import Adam, Descent
from evgp.training.run import Run, Stop
from evgp.training.stack import Stack


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

    Each member is what it would be if it were trained alone, to rounding. Members differ by their
    initialisation only: mini-batches come in one seeded order for all. `network` is a description,
    a torch module (its layers are drawn anew, what is frozen is kept), or a function that makes
    one. Floats in `y` are fitted by mean squared error, whole numbers are classes for
    cross-entropy. "gd" takes all points at each step, "sgd" batches of 32 unless `batch` says
    otherwise; weight decay is added to the gradient, after each member's own is clipped to the
    norm `clip`. A member whose loss reaches `stop`, or for which `stop(outputs, y)` is true, is
    done; that is looked at before each step, and with batches before each pass over the points.
    O(members x steps x batch x parameters); working space stays within about `memory` bytes (a
    quarter of what is free), by training some members after others.

    >>> from evgp import mlp
    >>> x = torch.eye(3)
    >>> train(mlp(width=64), x, torch.tensor([1.0, 2.0, 3.0]), members=4, lr=0.5).members
    4
    """
    settings(
        members, optimiser, lr, steps, batch,
        seed=seed, momentum=momentum, weight_decay=weight_decay, clip=clip, memory=memory,
    )  # fmt: skip
    stop, dtype = stop_of(stop), dtype_of(dtype)
    lr, momentum, weight_decay = float(lr), float(momentum), float(weight_decay)
    members, steps, seed = int(members), int(steps), int(seed)
    clip = None if clip is None else float(clip)
    memory, batch = (None if one is None else int(one) for one in (memory, batch))
    check_source(network)
    given = raw("x", x)
    shape = tuple(given.shape[1:])

    def make(member: int) -> nn.Module:
        return fresh(network, shape, seed, member).to(dtype)

    template = make(0)
    fit_for_training(template)
    points = inputs(given, dtype, template)
    goals, measure = targets(y, len(points), loss, dtype)
    outputs_match(steady_outputs(template, points[:2]), goals, measure)
    batch = 32 if batch is None and optimiser == "sgd" else batch
    batch = None if batch is None or batch >= len(points) else batch
    sample, road = sample_bytes(template, points), road_for(template, points)
    adam, rows = optimiser == "adam", batch or len(points)
    kept = 2 if adam else int(momentum > 0)
    groups = Groups.of(
        road, template, members=members, rows=rows, sample=sample, kept=kept, memory=memory
    )
    stack = Stack.gathered(make, members, template)

    def work(ids: Tensor, tell: Tell) -> Tensor:
        own = copy.deepcopy(road)  # a module must not be called from two threads at once
        run = Run(own, measure, points, goals, steps, batch, lr, clip, stop, seed)
        rule = Adam(lr, weight_decay) if adam else Descent(lr, momentum, weight_decay)
        return run.train_(stack, ids, rule, tell)

    with reporting(progress) as report:
        taken = groups.each(work, steps, report)
    made = Ensemble(torch.zeros(members), taken, shape, lr, template, stack, road, sample)
    losses, _ = measure.both(made.predict(points, memory=memory), goals)
    for lost in (~torch.isfinite(losses)).nonzero()[:1, 0].tolist():
        raise Diverged(lost, int(taken[lost]), lr)
    return replace(made, losses=losses)
