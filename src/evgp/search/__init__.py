"""From gains to picks."""

from evgp._executor import Progress as Progress
from evgp._executor import silent as silent
from evgp.search._round import Opening as Opening
from evgp.search._round import Part as Part
from evgp.search.exact import Exact as Exact
from evgp.search.exchange import Exchange as Exchange
from evgp.search.greedy import Budget as Budget
from evgp.search.greedy import Greedy as Greedy
from evgp.search.greedy import best_of as best_of
from evgp.search.lazy import Lazy as Lazy
from evgp.search.sharded import Sharded as Sharded
from evgp.search.sharded import Taken as Taken
from evgp.search.stochastic import Stochastic as Stochastic
from evgp.search.two_rounds import TwoRounds as TwoRounds
