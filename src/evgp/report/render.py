"""Pages from plain data: one HTML file each, with its style and script inside."""

import base64
import hashlib
import json
from dataclasses import asdict
from functools import cache
from importlib.resources import files
from math import nan

from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from evgp.report import audit_figures, audit_words, figures, words
from evgp.report.audit_summary import AuditSummary
from evgp.report.summary import Summary, plain_json

_ESCAPES = {ord(c): f"\\u{ord(c):04x}" for c in "<>&\u2028\u2029"}


def render(summary: Summary) -> str:
    """The page of a selection, which also reads well without its script.

    Costs O(k) per column shown, and at most 4,000 points of the pool.
    """
    style, script = asset("report", "page.css"), asset("report", "page.js")
    if summary.pictured:
        style += asset("report", "pictures.css")
        script = asset("report", "pictures.js") + script
    return self_contained(
        environment("report", words=words, figures=figures),
        "page.html",
        style=style,
        script=script,
        images=summary.pictured,
        s=summary,
        data=_data(summary),
        gains=words.column([pick.gain for pick in summary.picks]),
        left=words.column([nan if pick.left is None else pick.left for pick in summary.picks]),
        most=max((pick.gain for pick in summary.picks), default=0.0),
    )


def render_audit(summary: AuditSummary) -> str:
    """The page of an audit, which has no script; its size does not grow with the tables."""
    known = {
        "sentences": audit_words,
        "words": words,
        "figures": audit_figures,
        "share": figures.share,
    }
    style = asset("report", "page.css") + asset("report", "audit_page.css")
    return self_contained(environment("report", **known), "audit_page.html", style=style, s=summary)


def self_contained(
    templates: Environment,
    name: str,
    *,
    style: str,
    script: str = "",
    images: bool = False,
    **values: object,
) -> str:
    """One HTML page that sends no request.

    Table contents can only be text: Jinja escapes them, and a content security policy admits only
    this style and script, by hash, and images only inside the page.
    """
    policy = f"default-src 'none'; style-src '{digest(style)}'; "
    policy += f"script-src '{digest(script)}'; " if script else ""
    policy += "img-src data:; " if images else ""
    return templates.get_template(name).render(
        policy=f"{policy}base-uri 'none'; form-action 'none'",
        style=Markup(style),
        script=Markup(script),
        **values,
    )


def environment(room: str, **known: object) -> Environment:
    """Templates of a room, and the skeleton that all pages extend; every value is escaped."""
    templates = Environment(
        loader=ChoiceLoader([PackageLoader("evgp", folder) for folder in (room, "report")]),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=StrictUndefined,
    )
    templates.globals.update(known)
    return templates


def _data(summary: Summary) -> Markup:
    """The data for the script, as JSON that no HTML parser can mistake for markup."""
    picks = summary.picks
    x, y = figures.scatter_axes(summary)
    data = {
        "id": "id" if summary.has_ids else "row",
        "ids": [pick.id for pick in picks],
        "gains": [pick.gain for pick in picks],
        "left": [pick.left for pick in picks],
        "costs": None if summary.cost is None else [pick.cost for pick in picks],
        "at": [(round(x.at(a), 2), round(100 - y.at(b), 2)) for a, b in (p.at for p in picks)],
        "columns": summary.columns,
        "shown": summary.shown,
        "cells": [pick.cells for pick in picks],
        "start": summary.start,
        "high": figures.curve_axes(summary)[1].high,
        "floor": summary.floor,
        "share": summary.share,
        **_pictures(summary),
        "histogram": None if summary.histogram is None else asdict(summary.histogram),
    }
    text = json.dumps(plain_json(data), ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return Markup(text.translate(_ESCAPES))


def _pictures(summary: Summary) -> dict[str, object]:
    """The layout of the thumbnails on their sheet; empty without images."""
    tiles = summary.scatter.sheet
    if tiles is None or not summary.pictured:
        return {}
    # Usually all tiles have the same size, which need not be repeated thousands of times.
    sizes = tiles.sizes[:1] if len(set(tiles.sizes)) == 1 else tiles.sizes
    return {
        "sheet": {
            "cell": tiles.cell,
            "columns": tiles.columns,
            "sizes": sizes,
            "names": tiles.names,
        }
    }


@cache
def asset(room: str, name: str) -> str:
    """A file next to the code of a room, such as a style sheet."""
    return files("evgp").joinpath(room, name).read_text(encoding="utf-8")


def digest(text: str) -> str:
    """The hash of a style or script, in the form that a content security policy needs."""
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
