"""Strategies: EV-GP and others, from a pool to a selection."""

from functools import partial
from typing import TYPE_CHECKING

from evgp._moved import find
from evgp.strategies.badge import BADGE as BADGE
from evgp.strategies.bait import BAIT as BAIT
from evgp.strategies.batchbald import BatchBALD as BatchBALD
from evgp.strategies.diversity import CoreSet as CoreSet
from evgp.strategies.diversity import Gradients as Gradients
from evgp.strategies.diversity import KMeansPlusPlus as KMeansPlusPlus
from evgp.strategies.dropquery import DropQuery as DropQuery
from evgp.strategies.evgp import EVGP as EVGP
from evgp.strategies.evgp_ms import EVGPMS as EVGPMS
from evgp.strategies.hybrid import Hybrid as Hybrid
from evgp.strategies.kmeans import KMeans as KMeans
from evgp.strategies.lcmd import LCMD as LCMD
from evgp.strategies.max_variance import MaxVariance as MaxVariance
from evgp.strategies.maxherding import MaxHerding as MaxHerding
from evgp.strategies.mlmoc import MLMOC as MLMOC
from evgp.strategies.named import NAMES as NAMES
from evgp.strategies.named import Setting as Setting
from evgp.strategies.named import strategy_named as strategy_named
from evgp.strategies.probcover import ProbCover as ProbCover
from evgp.strategies.random import Random as Random
from evgp.strategies.strategy import Strategy as Strategy
from evgp.strategies.strategy import is_ahead as is_ahead
from evgp.strategies.strategy import labels as labels
from evgp.strategies.strategy import renewed as renewed
from evgp.strategies.thinned import Thinned as Thinned
from evgp.strategies.typiclust import TypiClust as TypiClust
from evgp.strategies.uncertainty import Entropy as Entropy
from evgp.strategies.uncertainty import Margin as Margin

if not TYPE_CHECKING:
    __getattr__ = partial(find, __name__)
