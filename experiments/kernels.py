"""Kernels and scalings other than the default that the study of picks compares, by name."""

from dataclasses import dataclass, replace

import torch
from torch import Generator

from evgp import EVGP, NNGP, NTK, Pool, Selection, mlp
from evgp.strategies import Setting


def nngp(setting: Setting) -> EVGP:
    """EV-GP with the covariance of the outputs at initialisation, and biases as large as weights.

    The strategy "experiments.kernels:nngp".
    """
    return EVGP(NNGP(mlp(b_std=1.0)), greedy=setting.search, noise=setting.noise)


@dataclass(frozen=True)
class EachPixel:
    """EV-GP on pixels that are standardised one by one, as version 0.1 did with rows of pixels."""

    setting: Setting

    def __call__(self, pool: Pool, k: int, *, generator: Generator) -> Selection:
        """Pick k rows."""
        x = pool.x.flatten(1).double()
        spread = x.std(0, correction=0)
        scaled = replace(pool, x=(x - x.mean(0)) / spread.where(spread > 0, torch.inf))
        search, noise = self.setting.search, self.setting.noise
        return EVGP(NTK(mlp()), greedy=search, noise=noise)(scaled, k, generator=generator)


def each_pixel(setting: Setting) -> EachPixel:
    """Return the strategy "experiments.kernels:each_pixel@common"."""
    return EachPixel(setting)
