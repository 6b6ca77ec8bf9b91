"""From the plain data of an audit to one HTML file that needs nothing else."""

from markupsafe import Markup

from evgp.report import audit_figures, audit_words, words
from evgp.report.audit_summary import AuditSummary
from evgp.report.figures import share
from evgp.report.render import asset, digest, environment


def render_audit(summary: AuditSummary) -> str:
    """One self-contained page without a script: no request leaves it.

    Whatever a table holds is text here: Jinja escapes it, and a content security policy admits
    only this page's own style, by hash. Its size does not grow with the tables.
    """
    style = asset("report", "page.css") + asset("report", "audit_page.css")
    known = {"told": audit_words, "words": words, "figures": audit_figures, "share": share}
    return environment("report", **known).get_template("audit_page.html").render(
        s=summary,
        policy=(
            f"default-src 'none'; style-src '{digest(style)}'; base-uri 'none'; form-action 'none'"
        ),
        style=Markup(style),
    )  # fmt: skip
