"""A page on which people label a campaign: FastAPI, a little script, nothing from elsewhere."""

from evgp.web.app import make_app as make_app
from evgp.web.desk import Desk as Desk
from evgp.web.sessions import Sessions as Sessions
