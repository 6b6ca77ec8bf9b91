"""The budget curve of a selection as a matplotlib figure, for notebooks and papers."""

from typing import TYPE_CHECKING

from evgp._errors import PoolError
from evgp.pool import Selection

if TYPE_CHECKING:
    from matplotlib.axes import Axes

OURS, FLOOR = "#3d4fd1", "#0f766e"


def plot_curve(selection: Selection, ax: "Axes | None" = None) -> "Axes":
    """Draw the mean variance left by number of labels, above the certificate's floor. O(k)."""
    if not len(selection.variance_left):
        raise PoolError(
            "expected a selection with variance_left to plot, got one without; strategies other "
            "than EV-GP do not compute it"
        )
    if ax is None:
        import matplotlib.pyplot as plt

        _, ax = plt.subplots()
    labels = range(len(selection) + 1)
    left = [selection.start_variance, *selection.variance_left]
    if selection.certificate is not None:
        floor = [selection.start_variance, *selection.certificate.lowest]
        ax.fill_between(labels, floor, left, color=OURS, alpha=0.12, linewidth=0)
        ax.plot(labels, floor, "--", color=FLOOR, linewidth=1.2, label="no choice does better")
    ax.plot(labels, left, color=OURS, linewidth=2, label="these picks")
    ax.legend(frameon=False)
    ax.set(xlabel="labels", ylabel="mean variance left", xlim=(0, len(selection)), ylim=(0, None))
    ax.spines[["top", "right"]].set_visible(False)
    return ax
