"""From the options of `evgp pick` and `evgp plan`, and what was read, to one request."""

from evgp._executor import Executor
from evgp.cli._inputs import Inputs
from evgp.cli._network import Described
from evgp.cli._streamed import Opened
from evgp.cli._wanted import Wanted
from evgp.greedy import Progress, silent
from evgp.nets.named import Named
from evgp.selection import Request


def request_of(
    wanted: Wanted,
    described: Described,
    network: Named,
    given: Inputs | Opened,
    *,
    executor: Executor | None = None,
    progress: Progress = silent,
) -> Request:
    """What the command line asks for."""
    return Request.of(
        given.x,
        wanted.k,
        budget=wanted.budget,
        costs=given.costs,
        x_test=given.x_test,
        labelled=given.labelled.rows,
        x_labelled=given.outside,
        network=network,
        kernel=described.kernel(network, given.shape, wanted.seed),
        criterion=wanted.criterion,
        greedy=wanted.greedy,
        noise=wanted.noise,
        standardise=given.raw and not wanted.no_standardise,
        storage=wanted.storage,
        thin=wanted.thin,
        features=wanted.features,
        method=wanted.method if wanted.dask is None else "sharded",
        memory=wanted.memory,
        executor=executor,
        cache=wanted.cache,
        seed=wanted.seed,
        progress=progress,
    )
