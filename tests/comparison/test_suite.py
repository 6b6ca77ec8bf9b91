"""Suites: their pools, what is left to run, recorded rows, and the page."""

import re
import shutil
from dataclasses import replace

import pyarrow.parquet as pq

from evgp.comparison import suite as suites
from evgp.comparison.suite import (
    COLD,
    SUITES,
    fingerprint,
    plan_suite,
    pools_of,
    recorded_rows,
    run_suite,
    suite_pools,
)
from evgp.comparison.suite_page import parts_of, publish_suite, render_suite
from evgp.errors import DatasetError
from tests.comparison.test_judge import planted
from tests.messages import refused

QUICK = ("random", "evgp")


def test_every_pool_says_where_it_comes_from() -> None:
    for pool in suite_pools():
        assert pool.suite in SUITES and pool.source and pool.licence and pool.citation, pool
        assert pool.rows > 100 and pool.seconds > 0 and len(pool.budgets) >= 2, pool
        assert pool.is_named or len(pool.sha256) == 16, f"{pool.name} has no checksum"
    tables = pools_of("tables")
    assert sum(not pool.classes for pool in tables) >= 10
    assert sum(bool(pool.classes) for pool in tables) >= 6
    assert sum(pool.rounds for pool in suite_pools()) == 6


def test_all_suites_together_take_at_most_forty_core_hours() -> None:
    seconds = 0.0
    for pool in suite_pools():
        for protocol, strategies in pool.protocols():
            trains = suites.NETWORK in protocol.learners
            each = suites._NETWORKS[pool.kind] if trains else pool.seconds
            seconds += suites.SEEDS * len(strategies) * each
    assert suites.SEEDS == 30 and 5 < seconds / 3600 < 40


def test_a_stopped_suite_goes_on_and_is_one_table(small_suite, tmp_path) -> None:
    out = tmp_path / "out"
    plan = plan_suite("tables", out, 2, QUICK)
    assert (len(plan.cells), plan.finished) == (4, 0)
    run_suite("tables", out=out, seeds=1, strategies=QUICK, jobs=1)
    assert [path.name for path in out.iterdir() if path.is_file()] == ["rows.parquet"]
    assert not list((out / "cells").iterdir())
    plan = plan_suite("tables", out, 2, QUICK)
    assert (len(plan.cells), plan.finished) == (2, 2)
    seen: list[tuple[int, int]] = []
    rows = run_suite(
        "tables", out=out, seeds=2, strategies=QUICK, jobs=1,
        watch=lambda done, total, left: seen.append((done, total)),
    )  # fmt: skip
    assert seen[0] == (2, 4) and seen[-1] == (4, 4)
    whole = run_suite("tables", out=tmp_path / "again", seeds=2, strategies=QUICK, jobs=1)
    scores = [[(r.strategy, r.seed, r.labels, r.learner, r.accuracy) for r in every]
              for every in (rows, whole)]  # fmt: skip
    assert scores[0] == scores[1] and len(rows) == 4 * len(small_suite.budgets) * 4
    assert not plan_suite("tables", out, 2, QUICK).cells


def test_finished_cells_of_a_killed_run_are_collected(small_suite, tmp_path) -> None:
    out = tmp_path / "out"
    cells = plan_suite("tables", out, 1, QUICK).cells
    store = suites.Store(out, check=suites.check_rows)
    suites.run_cells(store, cells[:1], jobs=1)  # killed here
    run_suite("tables", out=out, seeds=1, strategies=QUICK, jobs=1)
    assert {row.strategy for row in recorded_rows(out)} == set(QUICK)
    assert not list((out / "cells").iterdir())


def test_another_table_under_the_same_name_is_refused(small_suite, tmp_path) -> None:
    assert small_suite.path is not None
    pq.write_table(pq.read_table(small_suite.path).slice(1), small_suite.path)
    with refused(DatasetError):
        run_suite("tables", out=tmp_path / "out", seeds=1, strategies=QUICK)


def test_a_checksum_is_of_the_contents(small_suite, tmp_path) -> None:
    assert small_suite.path is not None
    other = tmp_path / "other.parquet"
    pq.write_table(pq.read_table(small_suite.path), other, compression="none", row_group_size=7)
    assert fingerprint(other) == small_suite.sha256


def test_pools_that_are_not_there(small_suite, tmp_path) -> None:
    assert small_suite.path is not None
    small_suite.path.unlink()
    plan = plan_suite("tables", tmp_path / "out", 1)
    assert plan.absent == (small_suite,) and "not on this machine: small" in str(plan)
    with refused(DatasetError):
        run_suite("tables", out=tmp_path / "out", seeds=1)
    with refused(DatasetError):
        plan_suite("tabels", tmp_path / "out")


def test_a_damaged_table_is_named(small_suite, tmp_path) -> None:
    out = tmp_path / "out"
    run_suite("tables", out=out, seeds=1, strategies=("random",), jobs=1)
    (out / "rows.parquet").write_bytes(b"PAR1 nonsense")
    with refused(DatasetError):
        run_suite("tables", out=out, seeds=1, strategies=("random",), jobs=1)


def test_all_cold_strategies_run(small_suite, tmp_path) -> None:
    rows = run_suite("tables", out=tmp_path / "out", seeds=1, jobs=1)
    assert {row.strategy for row in rows} == set(COLD)


def test_the_page_shows_losses_before_savings_and_escapes_names() -> None:
    rows = planted({"random": 1.0, "evgp": 0.6, "kmeans": 0.5})
    rows = [replace(row, dataset=f"<b>{row.dataset}") for row in rows]
    page = render_suite("tables", parts_of(rows), command="evgp compare --suite tables")
    assert page.index("Where evgp loses") < page.index("Labels needed")
    assert "<b>pool" not in page and "&lt;b&gt;pool" in page
    assert re.search(r"evgp needs (5[89]|6[012]) % of the labels of random", page)
    assert "evgp compare --suite tables" in page and "http" not in page.replace("http-equiv", "")


def test_the_page_says_which_rivals_need_fewer_labels_by_the_test() -> None:
    rows = planted({"random": 1.0, "evgp": 0.6, "kmeans": 0.5, "lcmd": 0.6})
    (part,) = parts_of(rows)
    assert part.against == (
        "Fewer labels than evgp: kmeans. More: random. No clear difference: lcmd."
    )
    page = render_suite("tables", [part])
    assert page.index(part.against) < page.index("Labels needed")
    few = [replace(row, dataset="one") for row in rows if row.dataset == "pool1"]
    assert parts_of(few)[0].against == "" and ">nan<" not in render_suite("tables", parts_of(few))


def test_rounds_are_judged_by_the_network_and_show_the_other_learners() -> None:
    rows = planted({"random": 1.0, "evgp": 0.5})
    turned = planted({"random": 0.5, "evgp": 1.0})  # what trees say must not decide
    rows = [replace(row, batch=10, learner="network") for row in rows]
    rows += [replace(row, batch=10, learner="trees") for row in turned]
    (part,) = parts_of(rows)
    assert part.judgement.savings["evgp"].verdict == "fewer"
    assert part.by_learner["trees"]["evgp"].verdict == "more"


def test_publishing_again_needs_no_pool(small_suite, tmp_path) -> None:
    out = tmp_path / "out"
    run_suite("tables", out=out, seeds=2, strategies=QUICK, jobs=1)
    assert small_suite.path is not None
    shutil.rmtree(small_suite.path.parent)
    assert publish_suite("tables", out)[0].judgement.strategies
