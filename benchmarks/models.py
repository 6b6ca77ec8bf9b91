"""Picks with the kernels of convolutional networks, end to end, next to the paper's Table 2."""

import json
import sys
import time

import evgp
from benchmarks.common import Options, fresh, record
from benchmarks.data import images
from benchmarks.memory import resident

# Picks, of how many images, and the paper's seconds for as many with ResNet18 on SVHN.
CASES = (("wrn-10-1", 2000, 200, ""), ("resnet18", 2000, 200, 3768))


def run(options: Options) -> None:
    """Planned and measured seconds and memory, each in a process of its own."""
    rows: list[dict[str, object]] = []
    for name, size, most, paper in CASES:
        n, k = (size // 10, most // 10) if options.small else (size, most)
        measured = fresh("benchmarks.models", name, n, k)
        rows.append({"network": name, "n": n, "k": k, **measured, "paper_s": paper})
    record(
        options,
        "models",
        "Picks of SVHN images with the kernel of a convolutional network",
        rows,
        [
            "From the images to the picks: kernel, 200 exchanged picks, certificate. One run each.",
            "planned: what `evgp.plan` says before. peak_mb: resident memory of the process.",
            "paper_s: Table 2 of the paper, 200 picks with ResNet18, on other hardware and with "
            "other pool sizes.",
        ],
    )


def main(name: str, n: str, k: str) -> None:
    """One run, as JSON."""
    from evgp.nets import network_named

    x = images("svhn", int(n))
    network = network_named(name)
    planned = evgp.plan(len(x), x.shape[1:], int(k), network=network)
    marks: dict[str, float] = {}
    began = time.perf_counter()

    def stamp(stage: str, done: int, total: int) -> None:
        marks[stage] = time.perf_counter() - began

    selection = evgp.pick(x, int(k), network=network, progress=stamp)
    values = {
        "total_s": time.perf_counter() - began,
        "kernel_s": marks["kernel"],
        "planned_s": planned.seconds,
        "peak_mb": resident("VmHWM"),
        "planned_mb": planned.memory / 1e6,
        "variance_left": float(selection.variance_left[-1] / selection.prior_variance),
    }
    print(json.dumps(values))


if __name__ == "__main__":
    main(*sys.argv[1:])
