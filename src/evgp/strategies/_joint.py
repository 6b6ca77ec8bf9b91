r"""The information that labels of a growing batch give about which member is right.

With members $w_1 \dots w_E$ equally likely, a configuration $c = (y_1 \dots y_b)$ of labels has the
probability $q_c = \frac1E \sum_e \prod_i p_e(y_i)$ and makes member $e$ likely with the weight
$\pi_{ce} \propto \prod_i p_e(y_i)$. One more label $y$ then adds

$$ I(y; w \mid y_1 \dots y_b)
   = \sum_c q_c \Big[ H\Big(\sum_e \pi_{ce}\, p_e(y)\Big) - \sum_e \pi_{ce} H(p_e(y)) \Big] $$

to $I(y_1 \dots y_b; w)$, so greedy maximisation of the joint information needs no joint of b + 1.
"""

from dataclasses import dataclass
from math import log

import torch
from jaxtyping import Float
from torch import Generator, Tensor

_TILE = 2**18  # entries in a tile of candidates: more do not stay in the cache
_LEAST = 1e-300  # so that 0 log 0 is 0


@dataclass(frozen=True, eq=False)
class Joint:
    """Configurations of labels of the picks: all of them, or a sample.

    `likelihood` is the log-likelihood of each configuration under each member, `weights` are the
    probabilities of all configurations or one over the number of those sampled.

    >>> sure = torch.tensor([[[0.0, -torch.inf]], [[-torch.inf, 0.0]]]).double()
    >>> joint = Joint.empty(2)
    >>> joint.information(sure).tolist(), log(2)
    ([0.6931471805599453], 0.6931471805599453)
    >>> float(joint.extended(sure[:, 0]).information(sure)) == 0
    True
    """

    likelihood: Float[Tensor, "c e"]
    weights: Float[Tensor, " c"]
    sampled: bool = False

    @classmethod
    def empty(cls, members: int) -> "Joint":
        """Of no labels at all: one configuration, as likely under every member."""
        one = torch.zeros(1, members, dtype=torch.float64)
        return cls(one, torch.ones(1, dtype=torch.float64))

    def posterior(self) -> Float[Tensor, "c e"]:
        """How likely each member is once a configuration is known."""
        return torch.softmax(self.likelihood, dim=1)

    def information(self, logs: Float[Tensor, "e n o"]) -> Float[Tensor, " n"]:
        """What the label of each candidate would add; O(c e n o) in tiles of candidates."""
        posterior = self.posterior()
        share = self.weights @ posterior
        step = max(1, _TILE // (len(posterior) * logs.shape[2]))
        found = []
        for some in torch.split(logs, step, dim=1):
            p = some.exp()
            mixed = posterior @ p.flatten(1)
            part = mixed.clamp(min=_LEAST).log_().mul_(mixed)
            whole = -(self.weights @ part).view(p.shape[1:]).sum(1)
            found.append(whole - share @ torch.special.entr(p).sum(2))
        return torch.cat(found).clamp(min=0)

    def extended(self, logs: Float[Tensor, "e o"]) -> "Joint":
        """With every label of one more point: o times as many configurations."""
        likelihood = (self.likelihood[:, None] + logs.T).flatten(0, 1)
        likelihood = likelihood[(likelihood > -torch.inf).any(1)]  # what no member can give is out
        weights = (torch.logsumexp(likelihood, dim=1) - log(likelihood.shape[1])).exp()
        return Joint(likelihood, weights)

    def drawn(self, logs: Float[Tensor, "e o"], samples: int, *, generator: Generator) -> "Joint":
        """With a label of one more point for each of so many sampled configurations.

        The label is drawn given those of the configuration, so that samples come from $q$ itself.
        """
        before = self if self.sampled else self._thinned(samples, generator)
        chances = (before.posterior() @ logs.exp()).cumsum(1)
        at = torch.rand(len(chances), 1, generator=generator, dtype=torch.float64)
        label = (chances <= at * chances[:, -1:]).sum(1).clamp(max=logs.shape[1] - 1)
        return Joint(before.likelihood + logs.T[label], before.weights, sampled=True)

    def _thinned(self, samples: int, generator: Generator) -> "Joint":
        """Samples of all configurations, each as often as is due, to within one."""
        total = self.weights.cumsum(0)
        at = torch.rand((), generator=generator, dtype=torch.float64) + torch.arange(samples)
        rows = torch.searchsorted(total, at / samples * total[-1], right=True)
        rows = rows.clamp(max=len(total) - 1)
        return Joint(self.likelihood[rows], total.new_full((samples,), 1 / samples), sampled=True)
