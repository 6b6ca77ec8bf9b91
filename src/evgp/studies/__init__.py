"""The figures and tables of the paper, each reproduced by name."""

from evgp.studies.named import NAMES as NAMES
from evgp.studies.named import study_named as study_named
from evgp.studies.record import claims_of as claims_of
from evgp.studies.runner import Reproduced as Reproduced
from evgp.studies.runner import reproduce as reproduce
from evgp.studies.study import SCALES as SCALES
from evgp.studies.study import Claim as Claim
from evgp.studies.study import Scale as Scale
from evgp.studies.study import Study as Study
