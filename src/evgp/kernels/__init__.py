"""Covariances between inputs."""

from evgp.kernels.analytic import NNGP as NNGP
from evgp.kernels.analytic import NTK as NTK
from evgp.kernels.empirical import EmpiricalNTK as EmpiricalNTK
from evgp.kernels.empirical import Source as Source
from evgp.kernels.features import Inducing as Inducing
from evgp.kernels.features import Raw as Raw
from evgp.kernels.features import Sketch as Sketch
from evgp.kernels.kernel import Features as Features
from evgp.kernels.kernel import Kernel as Kernel
from evgp.kernels.kernel import Storing as Storing
from evgp.kernels.kernel import Tabulated as Tabulated
from evgp.kernels.kernel import Wide as Wide
from evgp.kernels.kernel import check_storage as check_storage
from evgp.kernels.kernel import checked as checked
from evgp.kernels.kernel import is_random as is_random
from evgp.kernels.kernel import redrawn as redrawn
from evgp.kernels.named import OF_NETWORKS as OF_NETWORKS
from evgp.kernels.named import kernel_named as kernel_named
