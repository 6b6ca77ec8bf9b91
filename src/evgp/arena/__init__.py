"""Where strategies meet: one protocol, real data, networks that are really trained."""

from evgp.arena.publish import PAGE as PAGE
from evgp.arena.publish import check_publishable as check_publishable
from evgp.arena.publish import publish as publish
from evgp.arena.row import MEASURES as MEASURES
from evgp.arena.row import Row as Row
from evgp.arena.study import Study as Study
from evgp.arena.study import compare as compare
from evgp.arena.summarise import summarise as summarise
from evgp.arena.summary import Comparison as Comparison
from evgp.arena.table import read_rows as read_rows
from evgp.arena.terms import Subject as Subject
from evgp.arena.terms import Terms as Terms
