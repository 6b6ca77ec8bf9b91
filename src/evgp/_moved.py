"""Names of version 0.1 that moved: each still works for one release, or says where it is now."""

import sys
import warnings
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType

ROOMS = {  # to be removed after 0.2
    "evgp.arena": "evgp.comparison",
    "evgp.campaign": "evgp.labelling.campaign",
    "evgp.checkup": "evgp.doctor",
    "evgp.ensembles": "evgp.training",
    "evgp.greedy": "evgp.search",
    "evgp.integrations.label_studio": "evgp.labelling.label_studio",
    "evgp.theory": "evgp.bounds",
    "evgp.web": "evgp.labelling.web",
}
_HOMES = {  # where names of 0.1 are now; to be removed after 0.2
    ("evgp", "evgp.architectures"): ("Choice", "candidates"),
    ("evgp", "evgp.audits"): ("Audit", "Confirmation", "confirm"),
    ("evgp", "evgp.datasets"): ("subset",),
    ("evgp", "evgp.loop"): ("Round",),
    ("evgp", "evgp.nets"): ("Finite", "LeakyRelu", "wide_resnet", "without_batchnorm"),
    ("evgp", "evgp.posterior"): ("Prediction", "ntkgp", "trained"),
    ("evgp", "evgp.search"): ("Exact", "Exchange", "Lazy", "Sharded", "Stochastic", "TwoRounds"),
    ("evgp", "evgp.training"): ("Ensemble", "Recipe"),
    ("evgp.strategies", "evgp"): ("Plan", "pick", "plan"),
}
NAMES = {
    **{f"{old}.Subject": "evgp.comparison.DatasetSource" for old in ("evgp", "evgp.comparison")},
    **{f"{old}.Terms": "evgp.comparison.Protocol" for old in ("evgp", "evgp.comparison")},
    **{f"{old}.{x}": f"{new}.{x}" for (old, new), names in _HOMES.items() for x in names},
}
OUTSIDE = {  # names that left the package, and where they are in the repository
    "evgp.studies": "experiments/",
    **{f"evgp.datasets.{x}": "experiments/data.py" for x in ("random_model", "sinusoidal")},
    **{f"evgp.posterior.{x}": "experiments/sparse.py" for x in ("SparseNTKGP", "sntkgp")},
    **dict.fromkeys(
        (
            "evgp.bounds.Ratio",
            "evgp.bounds.Spread",
            "evgp.bounds.error_factor",
            "evgp.bounds.gain_ratio",
            "evgp.bounds.measured_ratio",
            "evgp.bounds.printed_ratio",
            "evgp.bounds.ratio_bound",
            "evgp.bounds.rkhs_norm",
            "evgp.bounds.spread_bound",
        ),
        "experiments/theorems.py",
    ),
}


def find(room: str, name: str, frames: int = 3) -> object:
    """Return the object of an old name, with a warning: `__getattr__` of rooms with old names."""
    old = f"{room}.{name}"
    if old in OUTSIDE:
        raise AttributeError(_left(old))
    if old not in NAMES:
        raise AttributeError(f"module {room!r} has no attribute {name!r}")
    _warn(old, NAMES[old], stacklevel=frames)
    home, _, now = NAMES[old].rpartition(".")
    return getattr(import_module(home), now)


def _warn(old: str, new: str, stacklevel: int) -> None:
    words = f"{old} is now {new}; the old name will be removed in the next release."
    warnings.warn(words, DeprecationWarning, stacklevel=stacklevel)


def _left(old: str) -> str:
    name = old.rpartition(".")[2]
    return f"{name} is no longer part of the package; it is in {OUTSIDE[old]} of the repository."


class OldNames(MetaPathFinder, Loader):
    """Imports `evgp.campaign.events` as `evgp.labelling.campaign.events`: one module, two names.

    `from evgp.datasets import sinusoidal` looks for a module of that name after the attribute, and
    ends here.
    """

    def find_spec(
        self, fullname: str, path: object, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        left = "evgp.studies" if fullname.startswith("evgp.studies.") else fullname
        if left in OUTSIDE:
            raise ModuleNotFoundError(_left(left))
        for old, new in ROOMS.items():
            if fullname == old:
                _warn(old, new, stacklevel=3)
            if f"{fullname}.".startswith(f"{old}."):
                return ModuleSpec(fullname, self, origin=new + fullname.removeprefix(old))
        return None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        module = import_module(str(spec.origin))
        spec.loader_state = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        """The module was executed under its new name; the import system only lent it a new spec."""
        assert module.__spec__ is not None
        module.__spec__ = module.__spec__.loader_state


# First, as a folder of an old version may have been left behind, without its files.
sys.meta_path.insert(0, OldNames())
