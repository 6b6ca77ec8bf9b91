"""One Dask cluster of processes for all tests: each of its workers takes seconds to start."""

from collections.abc import Iterator

import distributed
import pytest

HOST = "127.0.0.1"


def local_cluster(workers: int) -> distributed.LocalCluster:
    """A cluster whose nannies restart workers that are killed."""
    return distributed.LocalCluster(
        n_workers=workers,
        threads_per_worker=1,
        processes=True,
        dashboard_address=f"{HOST}:0",
        host=HOST,
        memory_limit=0,
        silence_logs=50,
    )


@pytest.fixture(scope="session")
def cluster() -> Iterator[distributed.LocalCluster]:
    """Grows to as many workers as a test needs."""
    with local_cluster(0) as growing:
        yield growing


@pytest.fixture(scope="session")
def client(cluster) -> Iterator[distributed.Client]:
    with distributed.Client(cluster, set_as_default=False) as connected:
        yield connected


def grow(cluster, client, workers: int) -> None:
    """Start workers until there are at least this many, all of them up."""
    cluster.scale(max(workers, len(cluster.workers)))
    client.wait_for_workers(len(cluster.worker_spec), timeout=60)
