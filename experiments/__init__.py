"""The figures and tables of the paper, each reproduced by name."""

from experiments.named import NAMES as NAMES
from experiments.named import study_named as study_named
from experiments.record import claims_of as claims_of
from experiments.runner import Reproduced as Reproduced
from experiments.runner import reproduce as reproduce
from experiments.study import SCALES as SCALES
from experiments.study import Claim as Claim
from experiments.study import Scale as Scale
from experiments.study import Study as Study
