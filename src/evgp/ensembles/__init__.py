"""Many initialisations of one network, trained at once."""

from evgp.ensembles.checks import TrainingError as TrainingError
from evgp.ensembles.ensemble import Ensemble as Ensemble
from evgp.ensembles.recipe import Recipe as Recipe
from evgp.ensembles.recipe import by_the_paper as by_the_paper
from evgp.ensembles.train import train as train
