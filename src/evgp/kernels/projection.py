"""Seeded random projections: the same numbers for the same layer, whatever the block."""

from dataclasses import dataclass, field

import torch
from jaxtyping import Float, Int, Shaped
from torch import Tensor


@dataclass(frozen=True)
class Projection:
    """To p random features, for one layer in one pass through a network.

    `count` says whether gradients are formed and counted into bins, or never formed.
    """

    p: int
    count: bool
    seeds: tuple[int, ...]
    _made: dict[str, tuple[Tensor, ...]] = field(default_factory=dict, repr=False, compare=False)

    def signs(self, role: str, size: int, like: Tensor) -> Float[Tensor, "s p"]:
        """Random signs, one column a feature."""
        if role not in self._made:
            drawn = torch.randint(0, 2, (size, self.p), generator=self._generator(role))
            self._made[role] = ((2 * drawn - 1).to(like),)
        return self._made[role][0]

    def project(self, role: str, x: Float[Tensor, " *b s"]) -> Float[Tensor, " *b p"]:
        """Inner products with the signs; their products over all roles are unbiased."""
        return x @ self.signs(role, x.shape[-1], x)

    def scale(self) -> float:
        """What a product of projections is multiplied by."""
        return float(self.p**-0.5)

    def bins(self, size: int) -> tuple[Int[Tensor, " s"], Int[Tensor, " s"]]:
        """For each entry of a gradient of this size its bin and its sign."""
        if "bins" not in self._made:
            generator = self._generator("bins")
            at = torch.randint(0, self.p, (size,), generator=generator)
            signs = 2 * torch.randint(0, 2, (size,), generator=generator) - 1
            self._made["bins"] = (at, signs)
        at, signs = self._made["bins"]
        return at, signs

    def add_(
        self, out: Float[Tensor, "b p"], slab: Shaped[Tensor, "b q"], low: int, size: int
    ) -> None:
        """Count the entries from `low` on of gradients of this size into their bins."""
        at, signs = (part[low : low + slab.shape[1]] for part in self.bins(size))
        out.index_add_(1, at.to(out.device), slab * signs.to(slab))

    def _generator(self, role: str) -> torch.Generator:
        text = ":".join(map(str, (*self.seeds, role)))
        # A stable hash: Python's own differs from process to process.
        seed = 0
        for letter in text.encode():
            seed = (seed * 1_000_003 + letter) % (2**63 - 25)
        return torch.Generator().manual_seed(seed)
