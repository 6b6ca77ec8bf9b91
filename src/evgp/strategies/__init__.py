"""From a pool to a selection."""

from evgp.strategies.evgp import EVGP as EVGP
from evgp.strategies.hybrid import Hybrid as Hybrid
from evgp.strategies.max_variance import MaxVariance as MaxVariance
from evgp.strategies.mlmoc import MLMOC as MLMOC
from evgp.strategies.names import whole as whole
from evgp.strategies.pick import pick as pick
from evgp.strategies.plan import Plan as Plan
from evgp.strategies.plan import plan as plan
from evgp.strategies.random import Random as Random
from evgp.strategies.spread import CoreSet as CoreSet
from evgp.strategies.spread import KMeansPlusPlus as KMeansPlusPlus
from evgp.strategies.strategy import Strategy as Strategy
from evgp.strategies.strategy import is_ahead as is_ahead
from evgp.strategies.strategy import labels as labels
from evgp.strategies.strategy import renewed as renewed
