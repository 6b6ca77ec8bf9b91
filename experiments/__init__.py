"""The figures and tables of the paper, each reproduced by name."""

from experiments.runner import Reproduced as Reproduced
from experiments.runner import claims_of as claims_of
from experiments.runner import reproduce as reproduce
from experiments.study import NAMES as NAMES
from experiments.study import SCALES as SCALES
from experiments.study import Claim as Claim
from experiments.study import Scale as Scale
from experiments.study import Study as Study
from experiments.study import study_named as study_named
