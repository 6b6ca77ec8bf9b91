"""The page of a comparison: one HTML file, with tables and plots in its folder."""

import platform
from collections.abc import Mapping, Sequence
from math import ceil
from pathlib import Path

import torch

from evgp._reading import check_plain, read_bytes
from evgp.comparison import curves as figures
from evgp.comparison import summary as words
from evgp.comparison.curves import looks, save_plots
from evgp.comparison.rows import LEARNERS, MEASURES, NETWORK, write_rows
from evgp.comparison.run import finished_rows, open_store, warn_of_damage
from evgp.comparison.statistics import central, summarise
from evgp.comparison.summary import RANDOM, Comparison, Contest, Score
from evgp.datasets import write_text
from evgp.report.render import asset, environment, self_contained
from evgp.report.words import number

_MANY = 3


def render(comparison: Comparison, settings: Mapping[str, object]) -> str:
    """Return one self-contained page without scripts, which sends no requests.

    The settings "command" and "version" have their own places; the others are listed. Names can
    only be text: Jinja escapes them, and a content security policy allows only the page's style.
    """
    style = asset("report", "page.css") + asset("comparison", "page.css")
    known = {
        "words": words, "figures": figures, "MEASURES": MEASURES, "RANDOM": RANDOM,
        "central": central, "further": _further, "table": _table, "by_learner": _by_learner,
        "ranks": _ranks, "NETWORK": NETWORK, "LEARNERS": LEARNERS,
    }  # fmt: skip
    return self_contained(
        environment("comparison", **known),
        "page.html",
        style=style,
        c=comparison,
        looks=looks(comparison.strategies),
        answers=_answers(comparison),
        settings=[(k, v) for k, v in settings.items() if k not in ("command", "version")],
        command=settings.get("command", ""),
        version=settings.get("version", ""),
    )


def _answers(comparison: Comparison) -> list[tuple[str, str, str, str]]:
    """Answers to "would it have saved labels?" by dataset and metric (the first few of many)."""
    answers = []
    mine = comparison.ours or ""
    for contest in comparison.main:
        entrant = contest.entrant(mine)
        asked = central(contest)[: 1 if len(comparison.main) > _MANY else None]
        for score in [entrant.score(metric) for metric in asked] if entrant is not None else []:
            if score.saved is not None:
                better = "better" if _saves(score) else "worse"
                sure = score.paired is not None and score.paired.verdict == better
                answer = words.answer(score.saved, mine, contest.labels[-1], sure=sure)
                answers.append((contest.dataset, MEASURES[score.metric].words, *answer))
    return answers


def _further(contest: Contest) -> list[str]:
    return [metric for metric in contest.metrics if not MEASURES[metric].central]


def _table(contest: Contest, metric: str) -> list[dict[str, object]]:
    """The formatted cells of one metric's table, one row per strategy."""
    scores = [entrant.score(metric) for entrant in contest.entrants]
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
    table: list[dict[str, object]] = []
    for i, (entrant, score) in enumerate(zip(contest.entrants, scores, strict=True)):
        spread = score.deviation
        table.append(
            {
                "entrant": entrant,
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
    return table


def _by_learner(
    mean: Contest, parts: Sequence[Contest], metric: str
) -> list[tuple[str, list[dict[str, object]]]]:
    """The areas of one metric: for each strategy the mean over learners, and each learner."""
    every = [mean, *parts]
    names = [entrant.strategy for entrant in mean.entrants]
    columns = []
    for contest in every:
        entrants = [contest.entrant(name) for name in names]
        scores = [
            Score(metric) if entrant is None else entrant.score(metric) for entrant in entrants
        ]
        areas = words.aligned([score.mean for score in scores])
        best = _best([score.mean for score in scores], MEASURES[metric].lower)
        tests = [score.paired.verdict if score.paired else "unclear" for score in scores]
        columns.append(
            [
                {"area": area, "best": i in best, "verdict": test}
                for i, (area, test) in enumerate(zip(areas, tests, strict=True))
            ]
        )
    return [(name, [column[i] for column in columns]) for i, name in enumerate(names)]


def _ranks(comparison: Comparison, strategy: str) -> list[str]:
    """The mean rank of a strategy with each learner."""
    ranks = [
        next((standing.rank for standing in standings if standing.strategy == strategy), None)
        for _, standings in comparison.by_learner
    ]
    return ["–" if rank is None else f"{rank:.2f}" for rank in ranks]


def _places(value: float, places: int) -> str:
    text = f"{value:,.{places}f}"
    return text if float(text.replace(",", "")) or not value else number(value, 1)


def _saves(score: Score) -> bool:
    """Whether it needs fewer labels than random needs to first reach its own final value."""
    return score.saved is not None and (score.saved.fewer or 0.0) > 0


def _labels(score: Score) -> float | None:
    saved = score.saved
    # Rounded to whole labels, as shown, so that equal numbers are equally good.
    return None if saved is None or saved.at is None else ceil(saved.at - 1e-9)


def _best(column: list[float | None], lower: bool) -> set[int]:
    """Positions of the best values of a column, if there is more than one value."""
    known = {i: value for i, value in enumerate(column) if value is not None}
    if len(known) < 2:
        return set()
    most = min(known.values()) if lower else max(known.values())
    return {i for i, value in known.items() if value == most}


PAGE, COMMANDS, ROWS = "page.html", "commands.txt", ("rows.csv", "rows.parquet")
_MOST_BYTES = 10_000_000


def check_publishable(folder: str | Path) -> None:
    """Raise, before anything runs, if something else has the name of a file to be written.

    >>> check_publishable("a-folder-that-is-not-there-yet")
    """
    place = Path(folder)
    for name in (*ROWS, PAGE):
        if (place / name).exists():
            check_plain(place / name)
    _commands(place)


def publish(
    folder: str | Path,
    *,
    command: str = "",
    version: str = "",
    settings: Mapping[str, object] | None = None,
) -> Comparison:
    """Write `rows.csv`, `rows.parquet`, plots and `page.html` from the finished cells of a folder.

    Plots can be redrawn without running anything. `commands.txt` lists all commands that wrote to
    the folder.
    """
    place = Path(folder)
    store = open_store(place)
    warn_of_damage(store)
    rows = finished_rows(store)
    comparison = summarise(rows)
    for name in ROWS:
        write_rows(place / name, rows)
    save_plots(comparison, place)
    shown_settings = {
        **(settings or {}),
        "torch": torch.__version__.split("+")[0],
        "python": platform.python_version(),
    }
    # Bytes of a file's name that are not UTF-8 are question marks, as in the names of datasets.
    shown = command.encode("utf-8", "replace").decode()
    commands = "\n".join(_remembered(place, shown))
    page = render(comparison, {"command": commands, "version": version, **shown_settings})
    write_text(place / PAGE, page)
    return comparison


def _remembered(folder: Path, command: str) -> list[str]:
    """Return all commands so far, each once, ending with this one."""
    every = [line for line in _commands(folder) if line != command] + ([command] if command else [])
    write_text(folder / COMMANDS, "".join(f"{line}\n" for line in every))
    return every


def _commands(folder: Path) -> list[str]:
    path = folder / COMMANDS
    if not path.exists():
        return []
    return read_bytes(path, most=_MOST_BYTES).decode("utf-8", "replace").splitlines()
