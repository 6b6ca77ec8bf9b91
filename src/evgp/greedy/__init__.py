"""From gains to picks."""

from evgp._executor import Progress as Progress
from evgp._executor import silent as silent
from evgp.greedy._round import Opening as Opening
from evgp.greedy._round import Part as Part
from evgp.greedy.exact import Exact as Exact
from evgp.greedy.exchange import Exchange as Exchange
from evgp.greedy.greedy import Greedy as Greedy
from evgp.greedy.greedy import Purse as Purse
from evgp.greedy.greedy import best_of as best_of
from evgp.greedy.lazy import Lazy as Lazy
from evgp.greedy.sharded import Sharded as Sharded
from evgp.greedy.sharded import Taken as Taken
from evgp.greedy.stochastic import Stochastic as Stochastic
from evgp.greedy.two_rounds import TwoRounds as TwoRounds
