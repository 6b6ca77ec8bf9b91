"""The web page on which people label a campaign: FastAPI and a small script, nothing external."""

from evgp.labelling.web.app import make_app as make_app
from evgp.labelling.web.auth import Sessions as Sessions
from evgp.labelling.web.service import LabellingService as LabellingService
