"""The budget curve and the map as one picture, for papers and READMEs."""

from typing import TYPE_CHECKING

from evgp.report.summary import Summary

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

OURS, FLOOR, POOL, INK = "#3d4fd1", "#0f766e", "#b9bdc9", "#1c1e26"


def plot_selection(summary: Summary) -> "Figure":
    """Draw the budget curve beside the map of the pool; `.savefig(...)` writes it.

    Costs O(k) and at most 4,000 points, whatever the pool.
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 4), dpi=160, layout="constrained")
    left, right = figure.subplots(1, 2, width_ratios=(1, 1.15))
    _curve(left, summary)
    _map(right, summary)
    left.spines[["top", "right"]].set_visible(False)
    right.spines[:].set_visible(False)
    return figure


def _curve(axes: "Axes", summary: Summary) -> None:
    labels = range(len(summary.left))
    if summary.best:
        axes.fill_between(labels, summary.best, summary.left, color=OURS, alpha=0.12, linewidth=0)
        axes.plot(
            labels, summary.best, "--", color=FLOOR, linewidth=1.2, label="no choice does better"
        )
    if summary.left:
        axes.plot(labels, summary.left, color=OURS, linewidth=2, label="these picks")
        axes.legend(frameon=False)
    axes.set(xlabel="labels", ylabel="mean variance left", xlim=(0, None), ylim=(0, None))


def _map(axes: "Axes", summary: Summary) -> None:
    picks = tuple(pick.at for pick in summary.picks)
    for points, size, colour in ((summary.scatter.points, 4, POOL), (picks, 44, OURS)):
        across, up = [a for a, _ in points], [b for _, b in points]
        axes.scatter(across, up, s=size, color=colour, linewidths=0)
    for pick in summary.picks[:60]:
        axes.annotate(str(pick.rank), pick.at, color="white", size=5, ha="center", va="center")
    first, second = summary.scatter.explained
    axes.set_xlabel(f"first component ({first:.0%} of the spread)")
    axes.set_ylabel(f"second component ({second:.0%})")
    axes.set(xticks=[], yticks=[], aspect="equal", anchor="C")
