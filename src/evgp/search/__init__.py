"""From gains to picks."""

from evgp._executor import Progress as Progress
from evgp._executor import silent as silent
from evgp.search.exchange import Exchange as Exchange
from evgp.search.greedy import Budget as Budget
from evgp.search.greedy import Exact as Exact
from evgp.search.greedy import Greedy as Greedy
from evgp.search.greedy import Lazy as Lazy
from evgp.search.greedy import Stochastic as Stochastic
from evgp.search.greedy import best_of as best_of
from evgp.search.named import GREEDIES as GREEDIES
from evgp.search.named import choose_greedy as choose_greedy
from evgp.search.named import greedy_named as greedy_named
from evgp.search.named import greedy_of as greedy_of
from evgp.search.one_per_cell import OnePerCell as OnePerCell
from evgp.search.shard import Shard as Shard
from evgp.search.shard import ShardStart as ShardStart
from evgp.search.sharded import FeaturePicks as FeaturePicks
from evgp.search.sharded import Sharded as Sharded
from evgp.search.sharded import TwoRounds as TwoRounds
