"""Kernels other than the default that the study of picks compares, as strategies by name."""

from evgp import EVGP, NNGP, mlp
from evgp.strategies import Setting


def nngp(setting: Setting) -> EVGP:
    """EV-GP with the covariance of the outputs at initialisation, and biases as large as weights.

    A strategy of the name "experiments.kernels:nngp".
    """
    return EVGP(NNGP(mlp(b_std=1.0)), greedy=setting.search, noise=setting.noise)
