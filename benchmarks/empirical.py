"""The empirical NTK, layer by layer, against `torch.func`: vmap(grad), then one product."""

import json
import sys
from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor, nn

from benchmarks.common import Options, fresh, in_turns, record, timed
from benchmarks.data import images
from benchmarks.memory import resident
from evgp import EmpiricalNTK, cnn, mlp, resnet18

CASES: dict[str, tuple[str, int, float]] = {
    "MLP 784-512-512-1": ("mnist", 2000, 50.0),
    "CNN": ("mnist", 200, 3.0),
    "ResNet18": ("svhn", 50, 3.0),
}
CHUNKS = (10, 25, 100)  # samples that vmap takes at once


def run(options: Options) -> None:
    """Seconds of both in turns, their ratio, and how far they differ."""
    rows: list[dict[str, object]] = []
    for name, (data, size, goal) in CASES.items():
        n = size // 10 if options.small else size
        x, module = torch.from_numpy(images(data, n)).float(), build(name)
        kernel = EmpiricalNTK(module, output=0)
        chunk = min(CHUNKS, key=lambda subset: timed(partial(by_jacobian, module, x, subset)))
        ours, theirs = kernel(x), by_jacobian(module, x, chunk)
        works: dict[str, Callable[[], float]] = {
            "evgp_s": partial(timed, partial(kernel, x)),
            "torch_func_s": partial(timed, partial(by_jacobian, module, x, chunk)),
        }
        best, others = in_turns(works, options.repeats)
        rows.append(
            {
                "network": name,
                "parameters": sum(p.numel() for p in module.parameters()),
                "n": n,
                **best,
                "chunk": chunk,
                "speedup": best["torch_func_s"] / best["evgp_s"],
                "goal": goal,
                "difference": float(((ours - theirs).abs() / theirs.abs().max()).max()),
                "others": others,
            }
        )
    large = 1000 if options.small else 10_000
    measured = fresh("benchmarks.empirical", large)
    rows.append({"network": "MLP 784-512-512-1", "n": large, **measured})
    record(
        options,
        "empirical",
        "Empirical NTK against vmap(grad) and a product",
        rows,
        [
            "Both in float32, one output, the whole symmetric matrix. torch_func: per-sample "
            "gradients by torch.func.vmap(torch.func.grad), in chunks of 10, 25 or 100 samples, "
            "whichever is fastest, gathered as n x p, then one product.",
            "difference: the largest, relative to the largest entry.",
            "extra_mb: peak memory above the process before the call, result included.",
        ],
    )


def build(name: str) -> nn.Module:
    """The networks of the benchmark, with ten outputs where the data have ten classes."""
    generator = torch.Generator().manual_seed(0)
    if name.startswith("MLP"):
        return mlp(2, 512).build((1, 28, 28), generator=generator)
    if name == "CNN":
        return cnn().build((1, 28, 28), generator=generator)
    return resnet18().build((3, 32, 32), generator=generator)


def by_jacobian(module: nn.Module, x: Tensor, chunk: int) -> Tensor:
    """What people write: the n x p Jacobian of the first output, times itself."""
    params = {name: value.detach() for name, value in module.named_parameters()}

    def one(some: dict[str, Tensor], sample: Tensor) -> Tensor:
        return torch.func.functional_call(module, some, (sample[None],))[0, 0]

    gradient = torch.func.vmap(torch.func.grad(one), (None, 0))
    total = sum(value.numel() for value in params.values())
    jacobian = torch.empty(len(x), total)
    for start in range(0, len(x), chunk):
        parts = gradient(params, x[start : start + chunk])
        torch.cat(
            [part.flatten(1) for part in parts.values()],
            dim=1,
            out=jacobian[start : start + chunk],
        )
    return jacobian @ jacobian.T


def main(n: str) -> None:
    """`python -m benchmarks.empirical 10000`: the MLP alone, its seconds and memory as JSON."""
    x = torch.from_numpy(images("mnist", int(n))).float()
    kernel = EmpiricalNTK(build("MLP 784-512-512-1"), output=0, memory=200_000_000)
    kernel(x[:64])
    before = resident("VmRSS")
    seconds = timed(lambda: kernel(x))
    print(json.dumps({"evgp_s": seconds, "extra_mb": resident("VmHWM") - before}))


if __name__ == "__main__":
    main(*sys.argv[1:])
