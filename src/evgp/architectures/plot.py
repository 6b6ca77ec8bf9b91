"""The ranking as a picture."""

from typing import TYPE_CHECKING

from evgp.architectures.choose import Choice

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FIT, SPREAD, INK = "#3d4fd1", "#b9bdc9", "#1c1e26"


def plot_choice(choice: Choice) -> "Figure":
    """Each architecture's expected squared error, split into fit and spread, best on top.

    Whiskers are one standard error over folds.
    """
    from matplotlib.figure import Figure

    ranked = choice.ranked[::-1]
    figure = Figure(figsize=(7, 1.2 + 0.28 * len(ranked)), dpi=160, layout="constrained")
    axes = figure.subplots()
    places = range(len(ranked))
    fits, spreads = [one.fit for one in ranked], [one.spread for one in ranked]
    axes.barh(places, fits, color=FIT, height=0.7, label="fit: error of the mean prediction")
    axes.barh(
        places, spreads, left=fits, color=SPREAD, height=0.7, label="spread between initialisations"
    )
    axes.errorbar(
        [one.score for one in ranked],
        places,
        xerr=[one.error for one in ranked],
        fmt="none",
        ecolor=INK,
        elinewidth=1,
        capsize=2,
    )
    axes.set_xlabel("expected squared error on labels left out")
    axes.set_xlim(0, None)
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.tick_params(axis="y", length=0)
    # A name may hold a "$", which would be read as mathematics.
    axes.set_yticks(places, [one.name for one in ranked], parse_math=False)
    figure.legend(loc="outside upper right", frameon=False, ncols=2, fontsize="small")
    return figure
