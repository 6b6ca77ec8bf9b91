"""Defaults that several doors share, so that each has one value whichever door is used.

Nothing is imported here: `evgp --help` shows them.
"""

# Variance of the noise in a label, as a fraction of the mean prior variance.
NOISE = 1e-6
# Maximum number of distinct values in a categorical column.
MAX_CATEGORIES = 50
