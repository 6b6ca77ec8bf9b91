"""From the options of `evgp pick` and `evgp plan` to one request, with the network described."""

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from inspect import signature
from pathlib import Path

import numpy as np
from jaxtyping import Int

from evgp._checks import bytes_of
from evgp._errors import NetworkError
from evgp._executor import Executor, Progress, silent
from evgp._reading import reading_within
from evgp.cli._output import in_flags
from evgp.cli._wanted import PickOptions
from evgp.datasets import FileData, PoolData, ReadOptions, read_with
from evgp.kernels import EmpiricalNTK, Kernel, is_of_network, kernel_named
from evgp.nets import Finite, Network, load_weights, mlp, network_named
from evgp.nets.named import Named
from evgp.pool import Selection
from evgp.selection import Request
from evgp.selection.request import either_seed


@dataclass(frozen=True)
class Described:
    """What the options say of the network; those of the mlp are for it alone, and so are others."""

    name: str = "mlp"
    depth: int = 2
    activation: str = "relu"
    w_std: float = 1.0
    b_std: float = 0.1
    weights: Path | None = None
    unit: str = "random"
    draws: int = 1
    kernel_name: str = "ntk"

    def network(self) -> Named:
        """The network, before its weights; a kernel of one's own takes its place."""
        if not is_of_network(self.kernel_name) and self != Described(kernel_name=self.kernel_name):
            raise NetworkError(
                f"--kernel {self.kernel_name} takes the place of the network, so leave out what "
                "describes one: --network, --depth, --activation, --w-std, --b-std, --weights, "
                "--unit and --draws"
            )
        plain = Described()
        if self.name == "mlp":
            made: Named = mlp(self.depth, 512, self.activation, self.w_std, self.b_std)
        elif (self.depth, self.activation, self.w_std, self.b_std) == (
            plain.depth,
            plain.activation,
            plain.w_std,
            plain.b_std,
        ):
            made = network_named(self.name)
        else:
            raise NetworkError(
                "--depth, --activation, --w-std and --b-std describe the mlp; leave them out with "
                f"--network {self.name}"
            )
        if isinstance(made, Network) and (self.weights or self.unit != "random" or self.draws > 1):
            raise NetworkError(
                "--weights, --unit and --draws are for finite networks; the kernel of an mlp is "
                "that of infinite width, so leave them out"
            )
        if self.weights is not None and self.draws > 1:
            raise NetworkError("--weights fix the network, so --draws has nothing to draw")
        return made

    def kernel(self, network: Named, shape: tuple[int, ...], seed: int) -> Kernel:
        """The kernel for samples of this shape."""
        if isinstance(network, Network) or self.kernel_name != "ntk":
            return kernel_named(self.kernel_name, network)
        if self.weights is not None:
            network = load_weights(network, self.weights, shape)
        if self.unit not in ("random", "trace") and not self.unit.isdecimal():
            raise NetworkError(f"expected --unit random, trace or a number, got {self.unit!r}")
        unit = int(self.unit) if self.unit.isdecimal() else self.unit
        return EmpiricalNTK(network, unit, self.draws, seed)

    def told(self, network: Named) -> str:
        """Its name for a person."""
        if self.kernel_name != "ntk":
            kind = f"kernel {self.kernel_name}"
            return f"{kind} of {network}" if is_of_network(self.kernel_name) else kind
        return str(network) if isinstance(network, Network) else self.name


# Rows besides the picks that the map of a report shows.
_MAP = 5_000


@dataclass(frozen=True)
class PickCall:
    """The options of the command, with the network that they describe."""

    wanted: PickOptions
    described: Described
    network: Named
    seed: int

    @classmethod
    def of(cls, wanted: PickOptions) -> "PickCall":
        """What these options say."""
        described = wanted.described()
        seed = either_seed(wanted.seed, wanted.random_state)
        return cls(wanted, described, described.network(), seed)

    def reading(self) -> AbstractContextManager[None]:
        """What is read meanwhile stays within --memory, too."""
        return reading_within(None if self.wanted.memory is None else bytes_of(self.wanted.memory))

    def pool(self, progress: Progress) -> PoolData:
        """Read the pool."""
        wanted, network = self.wanted, self.network
        options = ReadOptions(
            id=wanted.id,
            drop=tuple(wanted.drop or ()),
            costs=wanted.costs,
            impute=wanted.impute,
            max_categories=wanted.max_categories,
            standardise=not wanted.no_standardise and wanted.features != "raw",
            delimiter=wanted.delimiter,
            array=wanted.array,
            image_size=wanted.image_size,
            fixed=not isinstance(network, Network) or not is_of_network(wanted.kernel),
            channels_first=isinstance(network, Finite),
            looks_up=None if isinstance(network, Network) else self._looks_up,
        )
        pool = read_with(
            wanted.pool,
            options,
            in_files=wanted.dask is not None or wanted.method == "sharded",
            memory=None if wanted.memory is None else bytes_of(wanted.memory),
            progress=progress,
        )
        return replace(pool, notes=tuple(map(in_flags, pool.notes)))

    def _looks_up(self, shape: tuple[int, ...]) -> bool:
        """Whether samples of this shape are whole numbers that the network looks up."""
        kernel = self.described.kernel(self.network, shape, self.seed)
        return bool(getattr(kernel, "looks_up", lambda _: False)(shape))

    @contextmanager
    def executor(self) -> Iterator[Executor | None]:
        """The workers of a Dask cluster, where one is named."""
        if self.wanted.dask is None:
            yield None
            return
        from evgp.integrations.dask import connect, executor

        with connect(self.wanted.dask) as client:
            yield executor(client)

    def request(
        self, pool: PoolData, *, executor: Executor | None = None, progress: Progress = silent
    ) -> Request:
        """What the command line asks for."""
        wanted, parameters = self.wanted, signature(Request.of).parameters
        named = {name: value for name, value in vars(wanted).items() if name in parameters}
        others = {
            "costs": pool.costs,
            "drop": (),  # what is about columns was seen to when the pool was read
            "x_test": wanted.test,
            "network": self.network,
            "kernel": self.described.kernel(self.network, pool.shape, self.seed),
            "standardise": not wanted.no_standardise,
            "method": wanted.method if wanted.dask is None else "sharded",
        }
        return Request.of(pool, **{**named, **others}, executor=executor, progress=progress)


@dataclass(frozen=True)
class PoolView:
    """The rows of a pool that can be shown: all, or of `total` in files those in `numbers`."""

    pool: PoolData
    total: int
    numbers: Int[np.ndarray, " r"] | None = None

    @classmethod
    def of(cls, pool: PoolData, selection: Selection, *, shown: bool) -> "PoolView":
        """All that is in memory; else the picks, and with `shown` some other rows for a map."""
        if not isinstance(pool, FileData):
            return cls(pool, len(pool))
        rows = np.unique(selection.indices)
        if shown:
            random = np.random.default_rng(0)
            rows = np.union1d(rows, random.choice(len(pool), min(_MAP, len(pool)), replace=False))
        part = pool.part(rows) if shown else pool
        return cls(replace(part, ids=pool.ids_of(rows) or None), len(pool), rows)

    @property
    def names(self) -> Sequence[object] | None:
        """What the rows that can be shown are called."""
        return self.pool.ids

    def place(self, rows: Int[np.ndarray, " k"]) -> Int[np.ndarray, " k"]:
        """Where rows of the pool are among those that can be shown."""
        return rows if self.numbers is None else np.searchsorted(self.numbers, rows)
