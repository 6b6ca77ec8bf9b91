"""Which points to label, in which order, before a single label or training run exists.

The names that most programs need are here; everything else that is public is in its room, such as
`evgp.search.Exact`. Both are imported on first use, so that `evgp --help` does not wait for torch.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from evgp import _moved

if TYPE_CHECKING:
    from evgp import architectures as architectures
    from evgp import audits as audits
    from evgp import bounds as bounds
    from evgp import comparison as comparison
    from evgp import criteria as criteria
    from evgp import datasets as datasets
    from evgp import doctor as doctor
    from evgp import errors as errors
    from evgp import integrations as integrations
    from evgp import kernels as kernels
    from evgp import labelling as labelling
    from evgp import loop as loop
    from evgp import metrics as metrics
    from evgp import nets as nets
    from evgp import pool as pool
    from evgp import posterior as posterior
    from evgp import report as report
    from evgp import search as search
    from evgp import selection as selection
    from evgp import strategies as strategies
    from evgp import testing as testing
    from evgp import training as training
    from evgp.architectures import choose as choose
    from evgp.audits import audit as audit
    from evgp.comparison import compare as compare
    from evgp.criteria import ExpectedVariance as ExpectedVariance
    from evgp.criteria import MutualInformation as MutualInformation
    from evgp.criteria import Percentile as Percentile
    from evgp.datasets import PoolData as PoolData
    from evgp.datasets import open_pool as open_pool
    from evgp.datasets import read_pool as read_pool
    from evgp.errors import EvgpError as EvgpError
    from evgp.errors import EvgpWarning as EvgpWarning
    from evgp.kernels import NNGP as NNGP
    from evgp.kernels import NTK as NTK
    from evgp.kernels import EmpiricalNTK as EmpiricalNTK
    from evgp.loop import run as run
    from evgp.nets import Network as Network
    from evgp.nets import cnn as cnn
    from evgp.nets import mlp as mlp
    from evgp.nets import resnet18 as resnet18
    from evgp.pool import Certificate as Certificate
    from evgp.pool import Pool as Pool
    from evgp.pool import Selection as Selection
    from evgp.selection import Plan as Plan
    from evgp.selection import paper as paper
    from evgp.selection import pick as pick
    from evgp.selection import plan as plan
    from evgp.strategies import EVGP as EVGP
    from evgp.training import train as train

__version__ = "0.1.0"

_NAMES = {
    "errors": ("EvgpError", "EvgpWarning"),
    "architectures": ("choose",),
    "comparison": ("compare",),
    "audits": ("audit",),
    "criteria": ("ExpectedVariance", "MutualInformation", "Percentile"),
    "datasets": ("PoolData", "open_pool", "read_pool"),
    "kernels": ("EmpiricalNTK", "NNGP", "NTK"),
    "loop": ("run",),
    "nets": ("Network", "cnn", "mlp", "resnet18"),
    "pool": ("Certificate", "Pool", "Selection"),
    "selection": ("Plan", "paper", "pick", "plan"),
    "strategies": ("EVGP",),
    "training": ("train",),
}
_ROOMS = (
    "architectures",
    "comparison",
    "audits",
    "bounds",
    "criteria",
    "datasets",
    "doctor",
    "errors",
    "integrations",
    "kernels",
    "labelling",
    "loop",
    "metrics",
    "nets",
    "pool",
    "posterior",
    "report",
    "search",
    "selection",
    "strategies",
    "testing",
    "training",
)
_ROOM_OF = {name: room for room, names in _NAMES.items() for name in names}
__all__ = sorted((*_ROOM_OF, *_ROOMS))  # noqa: PLE0605  every name above, once


if not TYPE_CHECKING:  # a type checker would otherwise accept any misspelt name

    def __getattr__(name: str) -> object:
        if name in _ROOMS or f"evgp.{name}" in _moved.ROOMS:
            return import_module(f"evgp.{name}")
        if name in _ROOM_OF:
            return getattr(import_module(f"evgp.{_ROOM_OF[name]}"), name)
        return _moved.find("evgp", name, 4)


def __dir__() -> list[str]:
    return sorted({*__all__, *(name for name in globals() if name.startswith("__"))})
