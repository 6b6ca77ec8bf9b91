"""From a selection, or an audit, to one page that tells it: `summarise`, then `render`."""

from evgp.report.audit_render import render_audit as render_audit
from evgp.report.audit_summarise import AuditRows as AuditRows
from evgp.report.audit_summarise import Trained as Trained
from evgp.report.audit_summarise import summarise_audit as summarise_audit
from evgp.report.audit_summary import AuditSummary as AuditSummary
from evgp.report.of_selection import write_report as write_report
from evgp.report.pictures import Pictures as Pictures
from evgp.report.plot import plot_curve as plot_curve
from evgp.report.render import render as render
from evgp.report.summarise import summarise as summarise
from evgp.report.summary import Summary as Summary
