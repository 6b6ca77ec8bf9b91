"""What a labelled set leaves open: predicted before training, and confirmed by training."""

from evgp.audits.confirm import Confirmation as Confirmation
from evgp.audits.confirm import confirm as confirm
from evgp.audits.findings import Audit as Audit
from evgp.audits.run import audit as audit
