"""From the plain data of a comparison to one HTML file that needs nothing else."""

from collections.abc import Mapping
from math import ceil

from markupsafe import Markup

from evgp.arena import figures, words
from evgp.arena.looks import looks
from evgp.arena.row import MEASURES
from evgp.arena.summarise import central
from evgp.arena.summary import RANDOM, Comparison, Contest, Score
from evgp.report.render import asset, digest, environment
from evgp.report.words import number

_MANY = 3


def render(comparison: Comparison, settings: Mapping[str, object]) -> str:
    """One self-contained page without a script: no request leaves it.

    Of the settings, "command" and "version" have places of their own; the rest are listed. Names
    are text here: Jinja escapes them, and a content security policy admits only the page's style.
    """
    style = asset("report", "page.css") + asset("arena", "page.css")
    known = {
        "words": words, "figures": figures, "MEASURES": MEASURES, "RANDOM": RANDOM,
        "central": central, "further": _further, "table": _table,
    }  # fmt: skip
    return environment("arena", **known).get_template("page.html").render(
        c=comparison,
        policy=(
            f"default-src 'none'; style-src '{digest(style)}'; base-uri 'none'; form-action 'none'"
        ),
        style=Markup(style),
        looks=looks(comparison.strategies),
        answers=_answers(comparison),
        settings=[(k, v) for k, v in settings.items() if k not in ("command", "version")],
        command=settings.get("command", ""),
        version=settings.get("version", ""),
    )  # fmt: skip


def _answers(comparison: Comparison) -> list[tuple[str, str, str, str]]:
    """Would it have saved me labels? By dataset and metric; of many datasets the first metric."""
    made = []
    mine = comparison.ours or ""
    for contest in comparison.contests:
        one = contest.entrant(mine)
        asked = central(contest)[: 1 if len(comparison.contests) > _MANY else None]
        for score in [one.score(metric) for metric in asked] if one is not None else []:
            if score.saved is not None:
                wanted = "better" if _saves(score) else "worse"
                sure = score.paired is not None and score.paired.verdict == wanted
                told = words.answer(score.saved, mine, contest.labels[-1], sure=sure)
                made.append((contest.dataset, MEASURES[score.metric].words, *told))
    return made


def _further(contest: Contest) -> list[str]:
    return [metric for metric in contest.metrics if not MEASURES[metric].central]


def _table(contest: Contest, metric: str) -> list[dict[str, object]]:
    """The cells of one metric's table, ready to be shown, a row for each strategy."""
    scores = [one.score(metric) for one in contest.entrants]
    heights = words.aligned([score.mean for score in scores])
    places = max((len(text.partition(".")[2]) for text in heights), default=0)
    finals = words.aligned([score.final for score in scores])
    tests = [score.paired for score in scores]
    spans = [(None,) * 3 if t is None else (t.difference, t.low, t.high) for t in tests]
    # One column for the decimals: a difference and its interval are read together.
    flat = words.aligned([value for span in spans for value in span])
    gaps, lows, highs = flat[::3], flat[1::3], flat[2::3]
    lower = MEASURES[metric].lower
    best_area = _best([score.mean for score in scores], lower)
    best_final = _best([score.final for score in scores], lower)
    best_saved = _best([_labels(score) for score in scores], True)
    made: list[dict[str, object]] = []
    for i, (one, score) in enumerate(zip(contest.entrants, scores, strict=True)):
        spread = score.deviation
        made.append(
            {
                "entrant": one,
                "score": score,
                "area": heights[i],
                "deviation": "" if spread is None else _places(spread, places),
                "final": finals[i],
                "difference": gaps[i],
                "interval": "–" if lows[i] == "–" else f"{lows[i]} to {highs[i]}",
                "best_area": i in best_area,
                "best_final": i in best_final,
                "best_saved": i in best_saved and _saves(score),
            }
        )
    return made


def _places(value: float, places: int) -> str:
    text = f"{value:,.{places}f}"
    return text if float(text.replace(",", "")) or not value else number(value, 1)


def _saves(score: Score) -> bool:
    """Does it need fewer labels than random itself, which may be where it ends long before?"""
    return score.saved is not None and (score.saved.fewer or 0.0) > 0


def _labels(score: Score) -> float | None:
    saved = score.saved
    # Whole labels, as they are shown: equal numbers are equally good.
    return None if saved is None or saved.at is None else ceil(saved.at - 1e-9)


def _best(column: list[float | None], lower: bool) -> set[int]:
    """Where the best of a column stands; nothing is best of one."""
    known = {i: value for i, value in enumerate(column) if value is not None}
    if len(known) < 2:
        return set()
    most = min(known.values()) if lower else max(known.values())
    return {i for i, value in known.items() if value == most}
