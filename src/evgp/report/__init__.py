"""HTML reports of selections and audits: `summarise`, then `render`."""

from evgp.report.audit_summary import AuditRows as AuditRows
from evgp.report.audit_summary import AuditSummary as AuditSummary
from evgp.report.audit_summary import Trained as Trained
from evgp.report.audit_summary import summarise_audit as summarise_audit
from evgp.report.pictures import Pictures as Pictures
from evgp.report.render import render as render
from evgp.report.render import render_audit as render_audit
from evgp.report.selection import plot_curve as plot_curve
from evgp.report.selection import write_report as write_report
from evgp.report.summary import Summary as Summary
from evgp.report.summary import summarise as summarise
