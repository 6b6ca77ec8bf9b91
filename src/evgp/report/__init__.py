"""From a selection to one page that tells it: `summarise`, then `render`."""

from evgp.report.pictures import Pictures as Pictures
from evgp.report.plot import plot_selection as plot_selection
from evgp.report.render import render as render
from evgp.report.summarise import summarise as summarise
from evgp.report.summary import Summary as Summary
