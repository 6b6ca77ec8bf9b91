"""The pool to choose from, and the selection that comes out."""

from evgp.pool.pool import Pool as Pool
from evgp.pool.selection import Certificate as Certificate
from evgp.pool.selection import Needed as Needed
from evgp.pool.selection import Selection as Selection
