"""Audit a labelled set: predict where trained networks will disagree, and confirm it."""

from evgp.audits.results import Audit as Audit
from evgp.audits.results import Confirmation as Confirmation
from evgp.audits.results import confirm as confirm
from evgp.audits.run import audit as audit
