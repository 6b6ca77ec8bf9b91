"""Conditioning, one column at a time."""

from functools import partial
from typing import TYPE_CHECKING

from evgp._moved import find
from evgp.posterior.dense import DensePosterior as DensePosterior
from evgp.posterior.dense import Start as Start
from evgp.posterior.dense import condition as condition
from evgp.posterior.features import FeaturePosterior as FeaturePosterior
from evgp.posterior.features import FeatureStart as FeatureStart
from evgp.posterior.posterior import DENSE as DENSE
from evgp.posterior.posterior import Posterior as Posterior
from evgp.posterior.posterior import TestCovariance as TestCovariance
from evgp.posterior.regression import Prediction as Prediction
from evgp.posterior.regression import ntkgp as ntkgp
from evgp.posterior.regression import trained as trained

if not TYPE_CHECKING:
    __getattr__ = partial(find, __name__)
