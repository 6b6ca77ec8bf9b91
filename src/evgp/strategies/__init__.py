"""From a pool to a selection."""

from evgp.strategies.evgp import EVGP as EVGP
from evgp.strategies.pick import pick as pick
from evgp.strategies.plan import Plan as Plan
from evgp.strategies.plan import plan as plan
