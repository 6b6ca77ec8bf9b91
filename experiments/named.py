"""Studies by name, in the order of the paper."""

from importlib import import_module

from evgp._errors import DatasetError
from experiments.study import Study

# Modules beside this one, each with a STUDY of the same name.
NAMES = (
    "initialisation-illustration",
    "variance-correlation",
    "sequential-selection",
    "batch-regression",
    "fit-and-bias",
    "other-criteria",
    "approximations",
    "classification-mlp",
    "classification-convolutions",
    "batchbald",
    "batch-size",
    "running-time",
    "width",
    "initial-points",
    "model-selection",
    "map-of-picks",
    "exchange-and-certificate",
)


def study_named(name: str) -> Study:
    """The study of this name.

    >>> study_named("model-selection").title
    'Which network: chosen without training'
    """
    if name not in NAMES:
        raise DatasetError(f"expected a study among {', '.join(NAMES)}; got {name!r}")
    made = import_module(f"experiments.{name.replace('-', '_')}").STUDY
    assert isinstance(made, Study)
    return made
