"""Which points to label, in which order, before a single label or training run exists.

Names are loaded when they are first asked for, so that `evgp --help` does not wait for torch.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from evgp import datasets as datasets
    from evgp import metrics as metrics
    from evgp import strategies as strategies
    from evgp import theory as theory
    from evgp._errors import EvgpError as EvgpError
    from evgp._errors import EvgpWarning as EvgpWarning
    from evgp.architectures import Choice as Choice
    from evgp.architectures import candidates as candidates
    from evgp.architectures import choose as choose
    from evgp.arena import Subject as Subject
    from evgp.arena import Terms as Terms
    from evgp.arena import compare as compare
    from evgp.audits import Audit as Audit
    from evgp.audits import Confirmation as Confirmation
    from evgp.audits import audit as audit
    from evgp.audits import confirm as confirm
    from evgp.criteria import ExpectedVariance as ExpectedVariance
    from evgp.criteria import MutualInformation as MutualInformation
    from evgp.criteria import Percentile as Percentile
    from evgp.datasets import PoolData as PoolData
    from evgp.datasets import open_pool as open_pool
    from evgp.datasets import read_pool as read_pool
    from evgp.datasets import subset as subset
    from evgp.kernels import NNGP as NNGP
    from evgp.kernels import NTK as NTK
    from evgp.kernels import EmpiricalNTK as EmpiricalNTK
    from evgp.loop import Round as Round
    from evgp.loop import run as run
    from evgp.nets import Finite as Finite
    from evgp.nets import LeakyRelu as LeakyRelu
    from evgp.nets import Network as Network
    from evgp.nets import cnn as cnn
    from evgp.nets import mlp as mlp
    from evgp.nets import resnet18 as resnet18
    from evgp.nets import wide_resnet as wide_resnet
    from evgp.nets import without_batchnorm as without_batchnorm
    from evgp.pool import Certificate as Certificate
    from evgp.pool import Pool as Pool
    from evgp.pool import Selection as Selection
    from evgp.posterior import Prediction as Prediction
    from evgp.posterior import ntkgp as ntkgp
    from evgp.posterior import trained as trained
    from evgp.search import Exact as Exact
    from evgp.search import Exchange as Exchange
    from evgp.search import Lazy as Lazy
    from evgp.search import Sharded as Sharded
    from evgp.search import Stochastic as Stochastic
    from evgp.search import TwoRounds as TwoRounds
    from evgp.selection import Plan as Plan
    from evgp.selection import Request as Request
    from evgp.selection import pick as pick
    from evgp.selection import plan as plan
    from evgp.strategies import EVGP as EVGP
    from evgp.training import Ensemble as Ensemble
    from evgp.training import Recipe as Recipe
    from evgp.training import train as train

__version__ = "0.1.0"

_ROOMS = {
    "_errors": ("EvgpError", "EvgpWarning"),
    "architectures": ("Choice", "candidates", "choose"),
    "arena": ("Subject", "Terms", "compare"),
    "audits": ("Audit", "Confirmation", "audit", "confirm"),
    "criteria": ("ExpectedVariance", "MutualInformation", "Percentile"),
    "datasets": ("PoolData", "open_pool", "read_pool", "subset"),
    "training": ("Ensemble", "Recipe", "train"),
    "search": ("Exact", "Exchange", "Lazy", "Sharded", "Stochastic", "TwoRounds"),
    "kernels": ("EmpiricalNTK", "NNGP", "NTK"),
    "loop": ("Round", "run"),
    "nets": (
        "Finite",
        "LeakyRelu",
        "Network",
        "cnn",
        "mlp",
        "resnet18",
        "wide_resnet",
        "without_batchnorm",
    ),
    "pool": ("Certificate", "Pool", "Selection"),
    "posterior": ("Prediction", "ntkgp", "trained"),
    "selection": ("Plan", "Request", "pick", "plan"),
    "strategies": ("EVGP",),
}
_WHERE = {name: room for room, names in _ROOMS.items() for name in names}
_WHOLE = ("datasets", "metrics", "strategies", "theory")  # rooms that are public as they are
__all__ = sorted((*_WHERE, *_WHOLE))  # noqa: PLE0605  every name above, once


if not TYPE_CHECKING:  # which would see a name in every typo

    def __getattr__(name: str) -> object:
        if name in _WHOLE:
            return import_module(f"evgp.{name}")
        if name not in _WHERE:
            raise AttributeError(f"module 'evgp' has no attribute {name!r}")
        return getattr(import_module(f"evgp.{_WHERE[name]}"), name)


def __dir__() -> list[str]:
    return [*globals(), *__all__]
