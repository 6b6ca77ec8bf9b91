"""Defaults shared by the Python functions and the command line.

Nothing is imported from the package here: `evgp --help` shows them. docs/architecture.md says why
the last two differ from those of `evgp.pick`; a test compares all doors.
"""

from typing import Final

# Variance of the noise in a label, as a fraction of the mean prior variance.
NOISE = 1e-6
# Maximum number of distinct values in a categorical column.
MAX_CATEGORIES = 50
# Noise when architectures are ranked, as in the paper.
CHOICE_NOISE = 1e-4
# Scale of what networks are trained on, in audits and choices: as people usually train them.
TRAINING_SCALE: Final = "columns"
