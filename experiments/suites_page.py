"""Write docs/suites.md, what the suites say, and the page of each suite, from committed rows.

    python -m experiments.suites_page

Each suite is judged on its own and all pools together; pools are the unit of every interval and
test (`evgp.comparison.judge`).
"""

import re
from collections.abc import Sequence
from pathlib import Path
from statistics import median

from evgp import __version__
from evgp.comparison import Row
from evgp.comparison.judge import (
    Judgement,
    LostPlace,
    Savings,
    judge,
    pool_scores,
    rivals,
    standing,
    unit,
)
from evgp.comparison.rows import NETWORK
from evgp.comparison.suite import COLD, SUITES, pools_of, recorded_rows, suite_pools
from evgp.comparison.suite_page import PAGE as SUITE_PAGE
from evgp.comparison.suite_page import publish_suite
from evgp.comparison.summary import LEVEL, chance
from experiments.forecast import ABOUT, GOAL, TABLE, correlations, forecasts
from experiments.rule import CELLS, Trial, trials

PAGE = Path(__file__).parents[1] / "docs" / "suites.md"
RESULTS = Path(__file__).parent / "results" / "suites"
MINE = "evgp"
_LOSSES = 10


def page() -> str:
    """Return the whole page."""
    recorded = {suite: recorded_rows(RESULTS / suite) for suite in SUITES}
    rows = {suite: _cold(own) for suite, own in recorded.items() if own}
    whole = [row for own in rows.values() for row in own]
    every = judge(whole, _everywhere(whole))
    parts = [_head(every, list(rows)), _losses(every), _savings(every)]
    parts += [_rule(whole)]
    parts += [_suite(suite, judge(own, _everywhere(own))) for suite, own in rows.items()]
    parts += [_rounds([row for own in recorded.values() for row in own]), _forecast()]
    parts += [_pools(), _run()]
    return "\n".join(parts)


def _everywhere(rows: Sequence[Row]) -> list[str]:
    """The strategies that all pools have, with at least half as many seeds as any other."""
    pools = pool_scores(rows)
    return sorted(set.intersection(*(pool.strategies for pool in pools)))


def _cold(rows: Sequence[Row]) -> list[Row]:
    return [row for row in rows if row.batch == 0 and row.strategy in COLD]


def _head(every: Judgement, suites: Sequence[str]) -> str:
    fewest, most = every.seeds
    seeds = f"{fewest}" if fewest == most else f"{fewest} to {most}"
    best = min(every.savings.values(), key=lambda value: value.ratio)
    mine = every.savings[MINE].sentence()
    return f"""# Which strategy needs fewer labels

{len(every.pools)} pools of tables, images, text and embeddings, {len(every.strategies)} strategies,
{seeds} seeds, four learners: `evgp compare --suite` settles it, and anyone can run it again. No
labels at the start, one batch.

**Over all pools, {mine}. The fewest labels are needed by `{best.strategy}`: {_share(best)} of
random's.** By tests of `evgp` against each rival: {_standing(every)}

Labels needed are read off the mean learning curves of each pool, over the scores that both
strategies reach. Intervals are 95 %, by bootstrap over pools and seeds; tests are Wilcoxon's over
pools, with Holm's correction. A test needs six pools, so smaller suites are not tested on their
own. Mails and four sets of rated texts are there twice, as vectors of words and of a language
model, and count as two pools each. Pools with fewer seeds say less about themselves, and count as
much. The pages of the suites in the repository ({_links(suites)})
have the curves of every pool, every pair of strategies, and tables that can be sorted.

{_seeds(every)}
"""


def _seeds(every: Judgement) -> str:
    """A table of how many seeds the pools of each suite have."""
    suites = {pool.name: pool.suite for pool in suite_pools()}
    lines = ["| suite | pools | seeds of each strategy |", "| --- | --- | --- |"]
    for suite in SUITES:
        pools = [pool for pool in every.pools if suites[pool.name] == suite]
        counts = sorted({pool.finished[name] for pool in pools for name in every.strategies})
        if counts:
            span = " to ".join(str(count) for count in dict.fromkeys((counts[0], counts[-1])))
            lines.append(f"| `{suite}` | {len(pools)} | {span} |")
    return "\n".join(lines)


def _links(suites: Sequence[str]) -> str:
    return ", ".join(f"`experiments/results/suites/{suite}/page.html`" for suite in suites)


def _share(saved: Savings, words: str = "") -> str:
    return f"{100 * saved.ratio:.0f} % ({words}{100 * saved.low:.0f} to {100 * saved.high:.0f})"


def _standing(every: Judgement) -> str:
    """The sentence of `standing`, with names as code."""
    words = standing(rivals(every.pools, MINE, every.strategies))
    for name in sorted(every.strategies, key=len, reverse=True):
        words = re.sub(rf"(?<![\w@`-]){re.escape(name)}(?![\w@`-])", f"`{name}`", words)
    return words


def _losses(every: Judgement) -> str:
    lines = [
        "## Losses first\n",
        "Labels that `evgp`, the default, needs as a share of each rival's: above 100 % it loses,",
        "and the verdict is that of Wilcoxon's test over pools, with Holm's correction for all",
        "rivals. Then the pools on which its mean score is clearly worse, not clearly different,",
        "and clearly better; and the places (a pool and a number of labels) at which it is below",
        "at the level of 5 %, how many remain with Holm's correction, and of how many.\n",
        "| rival | labels of the rival's | p, Holm | the rival needs | pools lost | tied | won "
        "| places below | with Holm | of |",
        "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    against = rivals(every.pools, MINE, every.strategies)
    for rival in sorted(against, key=lambda name: -against[name].ratio):
        losses, tested = every.losses(MINE, rival)
        clear = [loss for loss in losses if loss.holm < LEVEL]
        duel, saved = every.duel(MINE, rival), against[rival]
        verdict = {"more": "**fewer**", "fewer": "more", "unclear": "no clear difference"}
        lines.append(
            f"| `{rival}` | {_share(saved)} | {chance(saved.holm)} | {verdict[saved.verdict]} "
            f"| {duel.losses} | {duel.ties} | {duel.wins} | {len(losses)} | {len(clear)} "
            f"| {tested} |"
        )
    below = every.losses(MINE)[0]
    worst = [loss for loss in below if loss.holm < LEVEL]
    worst += [loss for loss in below if loss not in worst]
    more = f"The {_LOSSES} largest of {len(below)}. " if len(below) > _LOSSES else ""
    return "\n".join([
        *lines, "", f"Below random picks: {more}Errors are compared in log-percent, 100 times the",
        "logarithm of the ratio of two RMSEs: +10 is 9.5 % less RMSE, -12 is 12.7 % more.", "",
        _table(worst[:_LOSSES]), "",
    ])  # fmt: skip


def _table(losses: Sequence[LostPlace]) -> str:
    if not losses:
        return "nowhere."
    lines = [
        "| pool | labels | difference to random | with Holm's correction |",
        "| --- | --- | --- | --- |",
    ]
    for loss in losses:
        gap = f"{loss.difference:+.1f} {unit(loss.kind)} ({loss.low:+.1f} to {loss.high:+.1f})"
        clear = "worse" if loss.holm < LEVEL else "not clear"
        lines.append(f"| {loss.pool} | {loss.labels} | {gap} | {clear} |")
    return "\n".join(lines)


def _savings(every: Judgement) -> str:
    lines = [
        "## Labels needed, all pools\n",
        "As a share of those of random picks; lower is better.\n",
        "| strategy | mean rank | labels needed | p, Holm | verdict |",
        "| --- | --- | --- | --- | --- |",
    ]
    for name in every.strategies:
        rank = f"{every.ranks[name]:.1f}" if name in every.ranks else "–"
        saved = every.savings.get(name)
        cells = ["100 %", "", ""]
        if saved is not None:
            verdict = {"unclear": "no clear difference"}.get(saved.verdict, saved.verdict)
            cells = [_share(saved), chance(saved.holm), verdict]
        lines.append(f"| `{name}` | {rank} | {' | '.join(cells)} |")
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


def _rule(every: Sequence[Row]) -> str:
    tried = trials(every)
    best = tried[0]
    tuning, validation = len(best.tuning.pools), len(best.validation.pools)
    lines = [
        "## When to use cells\n",
        '`criterion="cells"` (`evgp-cells` above) must know the number of labels, and its lists',
        "are not nested; so it is not the default. A few plain rules for when to use it were",
        f"compared on the {tuning} pools that the scaling was tuned on; the best of them there is",
        f"tested on the other {validation}. Labels that each rule needs, as a share of the",
        "default's:\n",
        "| use cells | tuning pools | validation pools | p | fewer on | more on |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for trial in tried:
        own = trial.validation
        ratios = list(own.pools.values())
        lines.append(
            f"| {trial.words} | {_share(trial.tuning)} | {_share(own)} | {chance(own.p)} "
            f"| {sum(ratio < 1 for ratio in ratios)} | {sum(ratio > 1 for ratio in ratios)} |"
        )
    return "\n".join([*lines, "", advice(best), ""])


def advice(best: Trial) -> str:
    """The rule that was best on the tuning pools, as far as the validation pools confirm it."""
    own = best.validation
    middle = median(own.pools.values())
    shares = f"{_share(own)} of the default's labels, {100 * middle:.0f} % on the median pool"
    if own.p < LEVEL and own.ratio < 1:
        return (
            f"**If you know how many labels you will buy, use `--criterion cells` "
            f"{best.words}.** On the validation pools that needs {shares} "
            f"(p {chance(own.p)}). Otherwise, or if the list may be cut or continued, the default."
        )
    return (
        f"The validation pools do not confirm the rule that is best on the tuning pools (cells "
        f"{best.words}: {shares}, p {chance(own.p)}), so there is none."
    )


def _rounds(recorded: Sequence[Row]) -> str:
    rows = [row for row in recorded if row.batch and row.learner == NETWORK]
    if not rows:
        return ""
    judgement = judge(rows)
    fewest, most = judgement.seeds
    lines = [
        "## Rounds, with trained networks\n",
        f"{len(judgement.pools)} pools ({', '.join(pool.name for pool in judgement.pools)}), "
        f"{fewest if fewest == most else f'{fewest} to {most}'} seeds so far: a batch of two",
        "labels per class, or 20, then three more, with networks trained on all labels so far;",
        "scores are those of these networks. A test needs six pools, and with Holm's correction",
        "more.\n",
    ]
    if not judgement.savings:
        return "\n".join([*lines, "Too few seeds for intervals.", ""])
    lines += [
        "| strategy | pools | labels needed, of random's | `evgp` needs, of its labels |",
        "| --- | --- | --- | --- |",
    ]
    against = rivals(judgement.pools, MINE, judgement.strategies)
    for name, saved in sorted(judgement.savings.items(), key=lambda item: item[1].ratio):
        own = _share(against[name]) if name in against else ""
        lines.append(f"| `{name}` | {len(saved.pools)} | {_share(saved)} | {own} |")
    return "\n".join([*lines, ""])


def _forecast() -> str:
    if not TABLE.exists():
        return ""
    values, models = correlations(), forecasts()
    best = max(model.rank for model in models)
    verdict = (
        "None comes near, so no forecast is shown: it was tried, and left out."
        if best < GOAL
        else "The best of them reaches it."
    )
    lines = [
        "## Will choosing pay here?\n",
        "Could the pool alone say, before any label, how many labels choosing will save? A",
        "forecast would be shown if its rank correlation with the labels saved by `evgp` were at",
        f"least {GOAL} on pools that it was not fitted on. {verdict}",
        f"Models of all features below, over {values[0][2]} pools, fitted while each pool is",
        "left out, together with others made of the same data. (A model that learns nothing",
        "forecasts the mean of the other pools, which is low where the pool left out is high:",
        "hence ranks far below zero.)\n",
        "| model | rank correlation | error of the logarithm | of the mean of the other pools "
        "| 95 % intervals hold |",
        "| --- | --- | --- | --- | --- |",
    ]
    lines += [
        f"| {model.model} | {model.rank:+.2f} | {model.error:.2f} | {model.usual:.2f} "
        f"| {100 * model.covered:.0f} % |"
        for model in models
    ]
    lines += [
        "\nSpearman's rank correlations of single features, on all pools:\n",
        "| what the pool says | rank correlation |",
        "| --- | --- |",
    ]
    lines += [f"| {ABOUT[name]} | {value:+.2f} |" for name, value, _ in values]
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
`--plan` prints the core-hours that are left; a stopped run resumes where it stopped. Rows are in
`runs/tables/rows.parquet`, and those of this page in `experiments/results/suites`.
"""


def said_elsewhere() -> dict[str, str]:
    """What other pages say of the suites, by file: the text between two marks."""
    rows = [row for suite in SUITES for row in _cold(recorded_rows(RESULTS / suite))]
    every, best = judge(rows, _everywhere(rows)), trials(rows)[0]
    fewest, most = every.seeds
    over = (
        f"over {len(every.pools)} pools of tables, images, text and embeddings, {fewest} to {most} "
    )
    over += "seeds and four learners"
    shares = {name: _share(saved, "95 % interval ") for name, saved in every.savings.items()}
    others = ", ".join(
        f"{words} {100 * every.savings[name].ratio:.0f} %"
        for name, words in (("kmeans", "k-means"), ("bait", "BAIT"), ("typiclust", "TypiClust"),
                            ("lcmd", "LCMD"))
    )  # fmt: skip
    cells = (
        f'`criterion="cells"`, for a number of labels that is known before, '
        f"{_share(every.savings[CELLS])}"
    )
    readme = (
        f"{over}, `evgp` needs {shares[MINE]} of the labels of random picks, and {cells}; {others} "
        "([which strategy](docs/suites.md), losses first)"
    )
    faq = (
        f"On average, {over}, `evgp` needs {shares[MINE]} of the labels of random picks, and "
        f"{cells}. By tests over pools: {_standing(every)} [Which strategy](suites.md) has every "
        "pool and pair. Nothing that we tried on the pool alone forecasts how much will be saved."
    )
    return {"README.md": readme, "docs/faq.md": faq, "docs/compare.md": advice(best)}


def marked(text: str, words: str) -> str:
    """A page with another text between its marks."""
    pattern = r"(<!-- suites -->).*?(<!-- /suites -->)"
    return re.sub(pattern, lambda match: match[1] + words + match[2], text, flags=re.DOTALL)


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
    print(PAGE)
    for name, words in said_elsewhere().items():
        other = PAGE.parents[1] / name
        other.write_text(marked(other.read_text(encoding="utf-8"), words), encoding="utf-8")
        print(other)
    for named in (suite for suite in SUITES if recorded_rows(RESULTS / suite)):
        publish_suite(
            named, RESULTS / named, command=f"evgp compare --suite {named}", version=__version__
        )
        print(RESULTS / named / SUITE_PAGE)
