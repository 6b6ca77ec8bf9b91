"""How each strategy is drawn: colours that the colour-blind tell apart, and dashes besides."""

from collections.abc import Sequence
from dataclasses import dataclass

from evgp.arena.summary import RANDOM


@dataclass(frozen=True)
class Look:
    """One line: its class in the style sheet, colour on paper, dashes, marker and width."""

    name: str
    colour: str
    dashes: tuple[float, ...]
    marker: str
    width: float


_OURS = (
    ("#3d4fd1", (), "o"),
    ("#8a2fb0", (3.5, 1.2), "o"),
    ("#1f6fb5", (1.2, 0.9), "o"),
    ("#0d8080", (6, 1.5, 1.2, 1.5), "h"),
    ("#c03a8c", (5, 2), "p"),
)
_GREY = Look("random", "#6b7080", (), "x", 1.8)
_OTHERS = (
    ("#b35c00", (), "s"),
    ("#00785a", (6, 2), "^"),
    ("#b8265e", (2, 1.5), "v"),
    ("#0b7fab", (7, 2, 2, 2), "D"),
    ("#7a6a00", (4, 3), "P"),
    ("#5b3a1e", (1, 1.5), "*"),
)


def looks(strategies: Sequence[str]) -> dict[str, Look]:
    """A look for each strategy; evgp and its kin are strongest, random is grey.

    The alphabet decides, not the rank, so that more seeds do not change colours.

    >>> [look.name for look in looks(["badge", "random", "evgp"]).values()]
    ['other0', 'random', 'ours0']
    """
    kin = sorted(name for name in strategies if name.startswith("evgp"))
    others = sorted(name for name in strategies if name not in (*kin, RANDOM))
    made = {name: _look("ours", _OURS, i, 2.6) for i, name in enumerate(kin)}
    made |= {name: _look("other", _OTHERS, i, 1.5) for i, name in enumerate(others)}
    return {name: made.get(name, _GREY) for name in strategies}


def _look(
    kind: str, looks: Sequence[tuple[str, tuple[float, ...], str]], i: int, width: float
) -> Look:
    i %= len(looks)
    colour, dashes, marker = looks[i]
    return Look(f"{kind}{i}", colour, dashes, marker, width)
