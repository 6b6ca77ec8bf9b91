"""From a selection, or an audit, to one page that tells it: `summarise`, then `render`."""

from evgp.report.audit_render import render_audit as render_audit
from evgp.report.audit_summarise import Rows as Rows
from evgp.report.audit_summarise import Trained as Trained
from evgp.report.audit_summarise import summarise_audit as summarise_audit
from evgp.report.audit_summary import AuditSummary as AuditSummary
from evgp.report.pictures import Pictures as Pictures
from evgp.report.plot import plot_selection as plot_selection
from evgp.report.render import render as render
from evgp.report.summarise import summarise as summarise
from evgp.report.summary import Summary as Summary
