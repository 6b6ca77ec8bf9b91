"""Which points to label, in which order, before a single label or training run exists."""

from evgp._errors import EvgpError as EvgpError
from evgp._errors import EvgpWarning as EvgpWarning
from evgp.pool import Certificate as Certificate
from evgp.pool import Pool as Pool
from evgp.pool import Selection as Selection

__version__ = "0.1.0"
