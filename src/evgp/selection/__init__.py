"""One road from a request to a selection: `Request`, `Plan`, a backend, `Selection`."""

from evgp.selection.pick import pick as pick
from evgp.selection.plan import Plan as Plan
from evgp.selection.plan import plan as plan
from evgp.selection.request import Request as Request
