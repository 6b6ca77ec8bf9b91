"""From the plain data of a report to one HTML file that needs nothing else."""

import base64
import hashlib
import json
from dataclasses import asdict
from functools import cache
from importlib.resources import files
from math import nan

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from evgp.report import figures, words
from evgp.report.summary import Summary, plain_json

_LITERAL = {ord(c): f"\\u{ord(c):04x}" for c in "<>&\u2028\u2029"}


def render(summary: Summary) -> str:
    """One self-contained page: no request leaves it, and it reads well without its script.

    Whatever a table holds is text here: Jinja escapes it, and a content security policy admits
    only this page's own style and script, by hash. Costs O(k) per column shown, and at most 4,000
    points of the pool.
    """
    style, script = asset("report", "page.css"), asset("report", "page.js")
    if summary.pictured:
        style += asset("report", "pictures.css")
        script = asset("report", "pictures.js") + script
    policy = (
        f"default-src 'none'; style-src '{digest(style)}'; script-src '{digest(script)}'; "
        f"{'img-src data:; ' if summary.pictured else ''}base-uri 'none'; form-action 'none'"
    )
    page = environment("report", words=words, figures=figures).get_template("page.html")
    return page.render(
        s=summary,
        policy=policy,
        style=Markup(style),
        script=Markup(script),
        data=_data(summary),
        gains=words.column([pick.gain for pick in summary.picks]),
        left=words.column([nan if pick.left is None else pick.left for pick in summary.picks]),
        most=max((pick.gain for pick in summary.picks), default=0.0),
    )


def environment(room: str, **known: object) -> Environment:
    """Templates of a room, in which every name that comes from outside is escaped."""
    made = Environment(
        loader=PackageLoader("evgp", room),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=StrictUndefined,
    )
    made.globals.update(known)
    return made


def _data(summary: Summary) -> Markup:
    """What the script reads, as JSON that no HTML parser can mistake for markup."""
    picks = summary.picks
    x, y = figures.scatter_axes(summary)
    plain = {
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
    text = json.dumps(plain_json(plain), ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return Markup(text.translate(_LITERAL))


def _pictures(summary: Summary) -> dict[str, object]:
    """How tiles lie on the sheet; nothing where there are no pictures, so that nothing changes."""
    tiles = summary.scatter.sheet
    if tiles is None or not summary.pictured:
        return {}
    # Mostly all tiles have one size, and need not say it thousands of times.
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
    """A file that lies beside the code of a room."""
    return files(f"evgp.{room}").joinpath(name).read_text(encoding="utf-8")


def digest(text: str) -> str:
    """As a content security policy names what it admits."""
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
