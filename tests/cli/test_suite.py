"""`evgp compare --suite` as a person runs it."""

import re

from evgp.comparison import suite as suites

QUICK = ("random", "evgp", "kmeans")


def test_the_command_plans_runs_and_prints(small_suite, tmp_path, run) -> None:
    out = tmp_path / "out"
    planned = run("compare", "--suite", "tables", "--plan", "--out", out, "--seeds", 3)
    assert planned.code == 0 and "core-hours" in planned.err and not out.exists()
    names = ",".join(QUICK)
    call = ("compare", "--suite", "tables", "--out", out, "--seeds", 3, "--strategies", names)
    ran = run(*call, "--jobs", 1)
    assert ran.code == 0, ran.err
    assert "labels_needed" in ran.out and "kmeans" in ran.out
    assert re.search(r"\d of 9 cells, about .* left", ran.err) and "9 of 9 cells\n" in ran.err
    assert "too few for a test" in ran.err and (out / "page.html").exists()
    refused = run(*call, "prices.csv")
    assert refused.code == 1 and "DATA or --suite" in refused.err
    assert run("compare").code == 1


def test_a_stopped_run_says_that_its_cells_are_kept(
    small_suite, tmp_path, run, monkeypatch
) -> None:
    out, whole = tmp_path / "out", suites.run_cells

    def stopped(store, cells, **options) -> None:
        whole(store, cells[:2], **options)
        raise KeyboardInterrupt

    names = ",".join(QUICK)
    given = ("compare", "--suite", "tables", "--out", out, "--seeds", 1, "--strategies", names)
    monkeypatch.setattr(suites, "run_cells", stopped)
    ended = run(*given, "--jobs", 1)
    assert ended.code == 130 and "cells are kept" in ended.err and str(out) in ended.err
    monkeypatch.undo()
    assert len(list((out / "cells").iterdir())) == 2
