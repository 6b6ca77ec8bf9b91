"""From a request to a selection: `Request`, then `Plan`, then a backend, then `Selection`."""

from evgp.selection.plan import Plan as Plan
from evgp.selection.plan import pick as pick
from evgp.selection.plan import plan as plan
from evgp.selection.request import Request as Request
from evgp.selection.request import paper as paper
