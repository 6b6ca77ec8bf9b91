"""How good picks provably are."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from evgp._checks import instance, shown, vector
from evgp._errors import PoolError
from evgp._repr import guaranteed, html_card
from evgp.pool.equality import same_fields


class Needed(NamedTuple):
    """How many labels it takes to remove a share of the variance.

    No choice of fewer than `at_least` labels can do it; the first `at_most` picks do it, or None
    where that takes more picks than there are.
    """

    at_least: int
    at_most: int | None


@dataclass(frozen=True, eq=False)
class Certificate:
    r"""What no other choice could have beaten, for every prefix of the picks.

    `lowest` is a floor under the mean variance that *any* $j$ points could leave, for
    $j = 1, \dots, k$; `share` the fraction of the largest possible reduction that the picks
    certainly achieve. `needed` maps a share of the variance to remove (0.5, 0.8, ...) to the number
    of labels that takes: no fewer than `needed[0.5].at_least` can do it, our first
    `needed[0.5].at_most` picks do it (None: more than k).
    """

    lowest: Float[np.ndarray, " k"]
    share: Float[np.ndarray, " k"]
    needed: Mapping[float, Needed]

    def __post_init__(self) -> None:
        for name in ("lowest", "share"):
            object.__setattr__(self, name, vector(getattr(self, name), name))
        such_as = "{0.5: (3, 5)}"
        given = instance(self.needed, "needed", Mapping, such_as).items()
        try:
            needed = {share: Needed(*labels) for share, labels in given}
        except TypeError as error:
            raise PoolError(f"expected needed as {such_as}, got {shown(self.needed)}") from error
        object.__setattr__(self, "needed", needed)

    def __eq__(self, other: object) -> bool:
        return same_fields(self, other) if isinstance(other, Certificate) else NotImplemented

    __hash__ = None  # type: ignore[assignment]

    def _repr_html_(self) -> str:
        k = len(self.share)
        shares = sorted(self.needed)
        labels = [self.needed[share] for share in shares]
        columns: dict[str, list[object]] = {
            "variance removed": [f"{share:.0%}" for share in shares],
            "labels, at least": [one.at_least for one in labels],
            "labels, at most": [
                f"more than {k:,}" if one.at_most is None else one.at_most for one in labels
            ],
        }
        return html_card(f"Certificate of {k:,} picks", columns, [promise(self.share)] if k else [])


def prefix(certificate: Certificate, k: int) -> Certificate:
    """The certificate of the first k picks."""
    needed = {
        share: Needed(low, high if high is not None and high <= k else None)
        for share, (low, high) in certificate.needed.items()
    }
    return Certificate(certificate.lowest[:k], certificate.share[:k], needed)


def promise(share: Float[np.ndarray, " k"], *, costs: bool = False) -> str:
    """What is certain of k picks, in a sentence; with `costs` they are compared at their price.

    >>> promise(np.array([0.7, 0.8129]))
    'At least 81.2 % of the largest reduction any 2 rows could achieve.'
    """
    k = len(share)
    rivals = "the same budget" if costs else "any other row" if k == 1 else f"any {k:,} rows"
    reached = guaranteed(float(share[-1]))
    return f"At least {reached} of the largest reduction {rivals} could achieve."
