"""Rooms with a new name; the old one can be imported for one more release, with a warning."""

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


class OldNames(MetaPathFinder, Loader):
    """Imports `evgp.campaign.events` as `evgp.labelling.campaign.events`: one module, two names."""

    def find_spec(
        self, fullname: str, path: object, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        for old, new in ROOMS.items():
            if fullname == old:
                warnings.warn(
                    f"{old} is now {new}; the old name will be removed in the next release.",
                    DeprecationWarning,
                    stacklevel=2,
                )
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
