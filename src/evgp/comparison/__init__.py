"""Compare strategies on labelled data, by training networks on what each strategy picks."""

from functools import partial
from typing import TYPE_CHECKING

from evgp._moved import find
from evgp.comparison.page import PAGE as PAGE
from evgp.comparison.page import check_publishable as check_publishable
from evgp.comparison.page import publish as publish
from evgp.comparison.protocol import DatasetSource as DatasetSource
from evgp.comparison.protocol import Protocol as Protocol
from evgp.comparison.rows import MEASURES as MEASURES
from evgp.comparison.rows import Row as Row
from evgp.comparison.rows import read_rows as read_rows
from evgp.comparison.run import compare as compare
from evgp.comparison.run import play_cell as play_cell
from evgp.comparison.statistics import summarise as summarise
from evgp.comparison.summary import Comparison as Comparison

if not TYPE_CHECKING:
    __getattr__ = partial(find, __name__)
