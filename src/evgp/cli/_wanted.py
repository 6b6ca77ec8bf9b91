"""All that `evgp pick` can be asked, and `evgp plan` in the same words."""

import inspect
from collections.abc import Callable
from dataclasses import MISSING, dataclass, fields
from functools import wraps
from typing import TYPE_CHECKING, Any, get_type_hints

from evgp.cli import _options as options

if TYPE_CHECKING:
    from evgp.cli._asked import Described


@dataclass(frozen=True, kw_only=True)
class PickOptions:
    """The options of a pick, one field each, in the order of `--help`."""

    pool: options.PoolFile
    k: options.Count = None
    output: options.OutputFile = None
    report: options.ReportFile = None
    id: options.Id = None
    drop: options.Drop = None
    costs: options.Costs = None
    budget: options.Budget = None
    labelled: options.LabelledFile = None
    test: options.TestFile = None
    thin: options.Thin = None
    impute: options.Impute = False
    max_categories: options.MaxCategories = 50
    no_standardise: options.NoStandardise = False
    delimiter: options.Delimiter = None
    array: options.ArrayName = None
    image_size: options.ImageSize = None
    network: options.NetworkName = "mlp"
    weights: options.Weights = None
    unit: options.OutputUnit = "random"
    draws: options.Draws = 1
    kernel: options.KernelName = "ntk"
    features: options.FeatureName = None
    method: options.MethodName = "auto"
    memory: options.Memory = None
    dask: options.Dask = None
    cache: options.Cache = None
    depth: options.Depth = 2
    activation: options.Activation = "relu"
    w_std: options.WStd = 1.0
    b_std: options.BStd = 0.1
    criterion: options.CriterionName = "ev"
    greedy: options.GreedyName = "auto"
    noise: options.Noise = 1e-6
    storage: options.StorageName = "auto"
    seed: options.SeedOrNone = None
    random_state: options.RandomState = None
    json: options.AsJson = False
    quiet: options.Quiet = False

    def described(self) -> "Described":
        """What is said of the network and its kernel."""
        from evgp.cli._asked import Described

        return Described(
            self.network,
            self.depth,
            self.activation,
            self.w_std,
            self.b_std,
            self.weights,
            self.unit,
            self.draws,
            self.kernel,
        )


def wanting(run: Callable[[PickOptions], None]) -> Callable[..., None]:
    """A command with the options of `Wanted`, which it is given as one.

    >>> list(inspect.signature(wanting(lambda wanted: None)).parameters)[:2]
    ['pool', 'k']
    """

    @wraps(run)
    def command(**given: Any) -> None:
        wanted = PickOptions(**given)
        options.check_wish(wanted.k, wanted.costs, wanted.budget)
        run(wanted)

    hints = get_type_hints(PickOptions, include_extras=True)
    parameters = [
        inspect.Parameter(
            one.name,
            inspect.Parameter.KEYWORD_ONLY,
            default=inspect.Parameter.empty if one.default is MISSING else one.default,
            annotation=hints[one.name],
        )
        for one in fields(PickOptions)
    ]
    command.__annotations__ = {**hints, "return": None}
    command.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    return command
