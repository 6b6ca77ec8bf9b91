"""Covariances between inputs."""

from evgp.kernels.analytic import NNGP as NNGP
from evgp.kernels.analytic import NTK as NTK
from evgp.kernels.empirical import EmpiricalNTK as EmpiricalNTK
from evgp.kernels.empirical import Source as Source
from evgp.kernels.kernel import Kernel as Kernel
from evgp.kernels.kernel import Storing as Storing
from evgp.kernels.tabulated import Tabulated as Tabulated
