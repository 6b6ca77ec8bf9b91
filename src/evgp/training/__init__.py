"""Many initialisations of one network, trained at once."""

from evgp.training.checks import TrainingError as TrainingError
from evgp.training.ensemble import Ensemble as Ensemble
from evgp.training.train import Recipe as Recipe
from evgp.training.train import paper_recipe as paper_recipe
from evgp.training.train import train as train
