"""Fifty members trained at once against one by one, in plain loops of torch."""

from collections.abc import Callable, Mapping
from functools import partial

import torch
from torch import Tensor, nn

from benchmarks.common import Options, in_turns, record, timed
from evgp import mlp, train
from evgp._machine import seconds
from evgp.training.members import initialised

CASES = ((64, 20, 10.0), (64, 200, None), (128, 100, None), (256, 50, None), (512, 200, 1.0))
MEMBERS, D, LR = 50, 8, 0.01


def run(options: Options) -> None:
    """Seconds of a step of all members, in turns with the quickest plain loop, and their ratio."""
    rows: list[dict[str, object]] = []
    for width, n, goal in CASES:
        if options.small and (width, n) not in ((64, 20), (512, 200)):
            continue
        generator = torch.Generator().manual_seed(0)
        x, y = torch.randn(n, D, generator=generator), torch.randn(n, generator=generator)
        count = 6 * n * (D * width + width * width + width)  # operations of a member's step
        steps = 100 if width < 128 else 20 if options.small else 40
        loops: Mapping[str, Callable[[int], object]] = {
            "torch.optim": partial(by_optimiser, x, y, width),
            "autograd.grad": partial(by_hand, x, y, width),
        }
        way = min(loops, key=lambda name: timed(partial(loops[name], 2)))
        at_once = partial(together, x, y, width)
        at_once(2)
        works: dict[str, Callable[[], float]] = {
            "evgp_s": partial(timed, partial(at_once, steps)),
            "one_by_one_s": partial(timed, partial(loops[way], steps)),
            "peak": partial(_product, 1024),
        }
        best, others = in_turns(works, options.repeats)
        peak = 2 * 1024**3 / best.pop("peak")
        rows.append(
            {
                "width": width,
                "n": n,
                "members": MEMBERS,
                "steps": steps,
                **best,
                "loop": way,
                "step_ms": 1000 * best["evgp_s"] / steps,
                "speedup": best["one_by_one_s"] / best["evgp_s"],
                "goal": "" if goal is None else goal,
                "peak_percent": 100 * MEMBERS * count * steps / best["evgp_s"] / peak,
                "difference": _difference(x, y, width),
                "others": others,
            }
        )
    record(
        options,
        "ensembles",
        "Fifty networks trained at once",
        rows,
        [
            f"MLPs with two hidden layers, {D} inputs, one output, NTK parametrisation, float32; "
            "gradient descent on all points. Both times hold the initialisation of the networks.",
            "one_by_one: the quicker of torch.optim.SGD and of autograd.grad with one fused "
            "update, each network after the other, as `loop` says.",
            "peak_percent: of the speed of a product of two 1024 x 1024 matrices, in the same run.",
            "difference: the largest, of predictions after 20 steps, relative to the largest.",
        ],
    )


def together(x: Tensor, y: Tensor, width: int, steps: int) -> Tensor:
    """All members at once."""
    return train(mlp(2, width), x, y, members=MEMBERS, lr=LR, steps=steps).predict(x)


def by_optimiser(x: Tensor, y: Tensor, width: int, steps: int) -> Tensor:
    """What people write: an optimiser for each network."""
    results = []
    for module in _modules(x, width):
        optimiser = torch.optim.SGD(module.parameters(), lr=LR)
        for _ in range(steps):
            optimiser.zero_grad()
            nn.functional.mse_loss(module(x), y[:, None]).backward()
            optimiser.step()
        results.append(module(x).detach())
    return torch.stack(results)


def by_hand(x: Tensor, y: Tensor, width: int, steps: int) -> Tensor:
    """The same with less around it."""
    results = []
    for module in _modules(x, width):
        params = list(module.parameters())
        for _ in range(steps):
            loss = nn.functional.mse_loss(module(x), y[:, None])
            gradients = torch.autograd.grad(loss, params)
            with torch.no_grad():
                torch._foreach_add_(params, gradients, alpha=-LR)
        results.append(module(x).detach())
    return torch.stack(results)


def _modules(x: Tensor, width: int) -> list[nn.Module]:
    return [initialised(mlp(2, width), tuple(x.shape[1:]), 0, member) for member in range(MEMBERS)]


def _difference(x: Tensor, y: Tensor, width: int) -> float:
    ours, theirs = together(x, y, width, 20), by_hand(x, y, width, 20)
    return float((ours - theirs).abs().max() / theirs.abs().max())


def _product(size: int) -> float:
    square = torch.ones(size, size)
    return seconds(lambda: square @ square)
