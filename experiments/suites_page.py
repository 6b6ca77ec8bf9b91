"""Write docs/suites.md, what the suites say, from their committed rows.

    python -m experiments.suites_page

Each suite is judged on its own and all pools together; pools are the unit of every interval and
test (`evgp.comparison.judge`).
"""

from collections.abc import Sequence
from pathlib import Path

from evgp.comparison import Row
from evgp.comparison.judge import Judgement, LostPlace, Savings, judge, savings, unit
from evgp.comparison.suite import COLD, SUITES, pools_of, recorded_rows, suite_pools
from evgp.comparison.summary import LEVEL, RANDOM, chance
from experiments.forecast import ABOUT, GOAL, TABLE, correlations

PAGE = Path(__file__).parents[1] / "docs" / "suites.md"
RESULTS = Path(__file__).parent / "results" / "suites"
MINE = "evgp"
_LOSSES = 10


def page() -> str:
    """The whole page."""
    recorded = {suite: recorded_rows(RESULTS / suite) for suite in SUITES}
    rows = {suite: _cold(own) for suite, own in recorded.items() if own}
    every = judge([row for own in rows.values() for row in own])
    parts = [_head(every, list(rows)), _losses(every), _savings(every)]
    parts += [_suite(suite, judge(own)) for suite, own in rows.items()]
    parts += [_rounds([row for own in recorded.values() for row in own]), _forecast()]
    parts += [_pools(), _run()]
    return "\n".join(parts)


def _cold(rows: Sequence[Row]) -> list[Row]:
    return [row for row in rows if row.batch == 0 and row.strategy in COLD]


def _head(every: Judgement, suites: Sequence[str]) -> str:
    fewest, most = every.seeds
    seeds = f"{fewest}" if fewest == most else f"{fewest} to {most}"
    best = min(every.savings.values(), key=lambda one: one.ratio)
    mine = every.savings[MINE].sentence()
    return f"""# Which strategy needs fewer labels

{len(every.pools)} pools of tables, images, text and embeddings, {len(every.strategies)} strategies,
{seeds} seeds, four learners: `evgp compare --suite` settles it, and anyone can run it again. No
labels at the start, one batch.

**Over all pools, {mine}. The fewest labels are needed by `{best.strategy}`: {_share(best)} of
random's.**

Labels needed are read off the mean learning curves of each pool, over the scores that both
strategies reach. Intervals are 95 %, by bootstrap over pools and seeds; tests are Wilcoxon's over
pools, with Holm's correction. A test needs six pools, so smaller suites are not tested on their
own. The pages of the suites in the repository ({_links(suites)})
have the curves of every pool, every pair of strategies, and tables that can be sorted.
"""


def _links(suites: Sequence[str]) -> str:
    return ", ".join(f"`experiments/results/suites/{suite}/page.html`" for suite in suites)


def _share(saved: Savings) -> str:
    return f"{100 * saved.ratio:.0f} % ({100 * saved.low:.0f} to {100 * saved.high:.0f})"


def _losses(every: Judgement) -> str:
    lines = [
        "## Losses first\n",
        "Where `evgp`, the default, is below each rival: places (a pool and a number of labels) at",
        "the level of 5 %, how many remain with Holm's correction, and of how many; then the pools",
        "on which its mean score is clearly worse, not clearly different, and clearly better.",
        "Errors are compared in log-percent, 100 times the logarithm of the ratio of two RMSEs:",
        "+10 is 9.5 % less RMSE, -12 is 12.7 % more.\n",
        "| rival | places below | with Holm | of | pools lost | tied | won |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    for rival in (RANDOM, *(name for name in every.strategies if name not in (RANDOM, MINE))):
        losses, tested = every.losses(MINE, rival)
        clear = [loss for loss in losses if loss.holm < LEVEL]
        duel = every.duel(MINE, rival)
        lines.append(
            f"| `{rival}` | {len(losses)} | {len(clear)} | {tested} | {duel.losses} | {duel.ties} "
            f"| {duel.wins} |"
        )
    worst = [loss for loss in every.losses(MINE)[0] if loss.holm < LEVEL]
    worst += [loss for loss in every.losses(MINE)[0] if loss not in worst]
    return "\n".join([*lines, "", "Below random picks:", "", _table(worst[:_LOSSES]), ""])


def _table(losses: Sequence[LostPlace]) -> str:
    if not losses:
        return "nowhere."
    lines = [
        "| pool | labels | difference to random | with Holm's correction |",
        "| --- | --- | --- | --- |",
    ]
    for one in losses:
        gap = f"{one.difference:+.1f} {unit(one.kind)} ({one.low:+.1f} to {one.high:+.1f})"
        clear = "worse" if one.holm < LEVEL else "not clear"
        lines.append(f"| {one.pool} | {one.labels} | {gap} | {clear} |")
    return "\n".join(lines)


def _savings(every: Judgement) -> str:
    lines = [
        "## Labels needed, all pools\n",
        "As a share of those of random picks; lower is better. The last column is the share of",
        "that rival's labels that `evgp` needs.\n",
        "| strategy | mean rank | labels needed | p, Holm | verdict | `evgp` against it |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for name in every.strategies:
        rank = f"{every.ranks[name]:.1f}" if name in every.ranks else "–"
        saved = every.savings.get(name)
        against = savings(every.pools, [MINE], name).get(MINE) if name != MINE else None
        cells = ["100 %", "", ""]
        if saved is not None:
            verdict = {"unclear": "no clear difference"}.get(saved.verdict, saved.verdict)
            cells = [_share(saved), chance(saved.holm), verdict]
        own = "" if against is None else _share(against)
        lines.append(f"| `{name}` | {rank} | {' | '.join(cells)} | {own} |")
    groups = "; ".join(", ".join(f"`{name}`" for name in group) for group in every.cliques)
    return "\n".join([*lines, "", f"Not clearly different from each other: {groups}.", ""])


def _suite(suite: str, made: Judgement) -> str:
    lines = [
        f"## {suite.capitalize()}\n",
        f"{len(made.pools)} pools: {', '.join(pool.name for pool in made.pools)}.\n",
        "| strategy | mean rank | labels needed |",
        "| --- | --- | --- |",
    ]
    for name in made.strategies:
        rank = f"{made.ranks[name]:.1f}" if name in made.ranks else "–"
        saved = made.savings.get(name)
        lines.append(f"| `{name}` | {rank} | {'100 %' if saved is None else _share(saved)} |")
    return "\n".join([*lines, ""])


def _rounds(recorded: Sequence[Row]) -> str:
    rows = [row for row in recorded if row.batch and row.learner == "network"]
    if not rows:
        return ""
    made = judge(rows)
    lines = [
        "## Rounds, with trained networks\n",
        f"{len(made.pools)} pools, {made.seeds[0]} to {made.seeds[1]} seeds so far.\n",
        "| strategy | labels needed |",
        "| --- | --- |",
    ]
    lines += [f"| `{name}` | {_share(one)} |" for name, one in made.savings.items()]
    return "\n".join([*lines, ""])


def _forecast() -> str:
    if not TABLE.exists():
        return ""
    found = correlations()
    best = max(found, key=lambda one: abs(one[1]))
    verdict = (
        "No feature comes near, so no forecast is shown: it was tried, and left out."
        if abs(best[1]) < GOAL
        else "Fitted while leaving pools out, the best of them decides."
    )
    lines = [
        "## Will choosing pay here?\n",
        "Could the pool alone say, before any label, how many labels choosing will save? A",
        "forecast would be shown if its rank correlation with the labels saved by `evgp` were at",
        f"least {GOAL}. {verdict}",
        f"Spearman's rank correlations over {found[0][2]} pools:\n",
        "| what the pool says | rank correlation |",
        "| --- | --- |",
    ]
    lines += [f"| {ABOUT[name]} | {value:+.2f} |" for name, value, _ in found]
    return "\n".join([*lines, "", "`python -m experiments.forecast` computes the table.", ""])


def _pools() -> str:
    lines = [
        "## The pools\n",
        "| pool | suite | rows | labels | source | licence | cite |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    for pool in suite_pools():
        labels = f"{pool.classes} classes" if pool.classes else "numbers"
        about = (pool.name, pool.suite, f"{pool.rows:,}", labels, pool.source, pool.licence)
        lines.append(f"| {' | '.join((*about, pool.citation))} |")
    return "\n".join([*lines, ""])


def _run() -> str:
    names = ", ".join(f"`{suite}` ({len(pools_of(suite))} pools)" for suite in SUITES)
    return f"""## Run it

```bash
python -m experiments.pools
evgp compare --suite tables --plan --out runs/tables
evgp compare --suite tables --out runs/tables
```

The first command, in the repository, makes the pools in `$EVGP_DATA/suites` or the user's cache;
checksums are checked. The suites are {names}.
`--plan` prints the core-hours that are left; a stopped run goes on where it was. Rows are in
`runs/tables/rows.parquet`, and those of this page in `experiments/results/suites`.
"""


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
    print(PAGE)
