"""The network that the command line describes, and its kernel."""

from dataclasses import dataclass
from pathlib import Path

from evgp._errors import NetworkError
from evgp.kernels import EmpiricalNTK, Kernel, is_of_network, kernel_named
from evgp.nets import Network, load_weights, mlp, network_named
from evgp.nets.named import Named


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
