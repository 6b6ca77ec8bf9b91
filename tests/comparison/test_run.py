"""Cells against plain loops, and studies that are stopped, resumed, grown and spread."""

import hashlib
import json
import os
import signal
import subprocess
import sys
import time
import warnings
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from evgp import comparison, metrics, train
from evgp.comparison import DatasetSource, Protocol, Row, compare, read_rows
from evgp.comparison.cells import Store
from evgp.comparison.run import _check_same_tables, finished_rows, open_store, play, warn_of_damage
from evgp.datasets import signed
from evgp.errors import DamageWarning, EvgpError
from evgp.strategies import strategy_named
from tests.comparison.conftest import QUICK
from tests.messages import refused, warned

SECONDS = {"pick_seconds": 0.0, "train_seconds": 0.0}


def rows_in(folder: Path) -> tuple[Row, ...]:
    return finished_rows(open_store(folder))


def untimed(rows: tuple[Row, ...]) -> list[str]:
    return [repr(replace(row, **SECONDS)) for row in rows]


@pytest.mark.parametrize("kind", ["numbers", "kinds"])
def test_a_cell_is_a_plain_loop(kind, request) -> None:
    source: DatasetSource = request.getfixturevalue(kind)
    played = play(source, "evgp", 1, QUICK)
    data = source.load(1)
    setting = QUICK.setting(data, 1)
    from evgp import Pool

    pool = Pool(data.scaled("auto")[0])
    picks = strategy_named("evgp", setting)(pool, 6, generator=torch.Generator()).indices
    assert played.picks.tolist() == picks.tolist()
    settings = dict(setting.recipe.settings)
    for row, count in zip(played.rows, (3, 6), strict=True):
        known = torch.from_numpy(picks[:count])
        if setting.recipe.epochs:
            settings["steps"] = setting.recipe.epochs
        net = train(
            setting.recipe.network, data.x[known], data.y[known], members=2, seed=1, **settings
        )
        out = net.predict(data.x_test)
        assert (row.labels, row.batch, row.members, row.seed) == (count, 3, 2, 1)
        if kind == "numbers":
            assert row.mse == pytest.approx(metrics.mse(out, data.y_test), rel=1e-5)
            expected = metrics.output_variance(out, 90)
            assert row.output_variance_p90 == pytest.approx(expected, rel=1e-4)
            assert row.mse == pytest.approx(row.bias + row.output_variance, rel=1e-6)
        else:
            assert row.accuracy == metrics.accuracy(out, data.y_test)
            assert row.output_entropy == pytest.approx(metrics.output_entropy(out))


def test_labels_at_the_start_are_the_same_for_all_strategies(numbers) -> None:
    protocol = replace(QUICK, start=3)
    result = [play(numbers, name, 0, protocol) for name in ("random", "evgp", "badge")]
    assert len({tuple(item.picks[:3].tolist()) for item in result}) == 1
    assert [row.labels for row in result[0].rows] == [6]


@pytest.mark.parametrize("name", ["badge", "evgp"])
def test_only_the_last_round_may_be_measured(name, numbers) -> None:
    """Nothing but measuring is left out: the same picks, the same last row."""
    every, last = (play(numbers, name, 1, QUICK, last_only=only) for only in (False, True))
    assert len(every.rows) > len(last.rows) == 1
    assert untimed(last.rows) == untimed(every.rows[-1:])
    assert last.picks.tolist() == every.picks.tolist()


def test_a_comparison_is_never_run_twice_and_grows(numbers, tmp_path, monkeypatch) -> None:
    played: list[tuple[str, int, int]] = []
    play_cell = comparison.play_cell

    def counted(**settings) -> object:
        played.append((settings["strategy"], settings["seed"], settings["members"]))
        return play_cell(**settings)

    monkeypatch.setattr(comparison, "play_cell", counted)
    calls: list[tuple[int, int]] = []
    first = compare([numbers], ["random"], out=tmp_path, protocol=QUICK, seeds=[0, 1], jobs=1)
    again = compare(
        [numbers], ["random", "evgp"], out=tmp_path, protocol=QUICK, seeds=[0, 1], jobs=1,
        progress=lambda stage, done, total: calls.append((done, total)),
    )  # fmt: skip
    assert played == [("random", 0, 2), ("random", 1, 2), ("evgp", 0, 2), ("evgp", 1, 2)]
    assert set(untimed(first)) < set(untimed(again)) and len(again) == 8
    assert calls[0] == (4, 8) and calls[-1] == (8, 8)
    more = compare(
        [numbers], ["random"], out=tmp_path, protocol=replace(QUICK, members=3), seeds=[0], jobs=1
    )
    assert played[-1] == ("random", 0, 3) and len(more) == 10


def test_another_protocol_needs_another_folder(numbers, tmp_path) -> None:
    compare([numbers], ["random"], out=tmp_path, protocol=QUICK, seeds=[0], jobs=1)
    for change in ({"batch": 2}, {"width": 16}, {"lr": 0.5}, {"scale": "columns"}):
        with refused(EvgpError):
            compare(
                [numbers], ["random"], out=tmp_path, protocol=replace(QUICK, **change), seeds=[0]
            )


def test_rows_of_version_0_1_say_which_scale_continues_them(numbers, tmp_path) -> None:
    as_then = replace(QUICK, scale="columns")
    compare([numbers], ["random"], out=tmp_path, protocol=as_then, seeds=[0], jobs=1)
    with refused(EvgpError):
        compare([numbers], ["random"], out=tmp_path, protocol=QUICK, seeds=[0], jobs=1)
    compare([numbers], ["random"], out=tmp_path, protocol=as_then, seeds=[0, 1], jobs=1)


def test_a_damaged_cell_is_run_again(numbers, tmp_path) -> None:
    whole = compare(
        [numbers], ["random", "coreset"], out=tmp_path, protocol=QUICK, seeds=[0], jobs=1
    )
    for file, damage in zip(sorted((tmp_path / "cells").iterdir()), ("{", "{}"), strict=True):
        file.write_text(damage)
    assert rows_in(tmp_path) == ()
    with warned(DamageWarning) as caught:
        again = compare(
            [numbers], ["random", "coreset"], out=tmp_path, protocol=QUICK, seeds=[0], jobs=1
        )
    assert len(caught) == 2
    assert untimed(again) == untimed(whole)


def test_every_flipped_bit_of_a_cell_is_noticed(numbers, tmp_path) -> None:
    whole = compare([numbers], ["random"], out=tmp_path, protocol=QUICK, seeds=[0], jobs=1)
    (file,) = (tmp_path / "cells").iterdir()
    content, noticed = file.read_bytes(), 0
    for at in range(len(content)):
        damaged = bytearray(content)
        damaged[at] ^= 1 << (at % 7)
        file.write_bytes(damaged)
        actual = rows_in(tmp_path)
        # Neither the last digit of a number nor the text between numbers may make a difference.
        noticed += actual == ()
        assert actual == () or [repr(row) for row in actual] == [repr(row) for row in whole]
    assert noticed > 0.95 * len(content)


def test_cells_that_changed_places_are_noticed(numbers, tmp_path) -> None:
    whole = compare(
        [numbers], ["random", "coreset"], out=tmp_path, protocol=QUICK, seeds=[0], jobs=1
    )
    first, other = sorted((tmp_path / "cells").iterdir())
    contents = first.read_bytes(), other.read_bytes()
    for kept in (True, False):  # as it is now, and as cells without a digest were
        for file, content in zip((other, first), contents, strict=True):
            document = json.loads(content)
            if not kept:
                del document["digest"]
            file.write_text(json.dumps(document))
        with warned(DamageWarning):
            again = compare(
                [numbers], ["random", "coreset"], out=tmp_path, protocol=QUICK, seeds=[0], jobs=1
            )
        assert untimed(again) == untimed(whole)


def test_a_damaged_cell_that_was_not_requested_is_named_and_left_out(numbers, tmp_path) -> None:
    compare([numbers], ["random", "coreset"], out=tmp_path, protocol=QUICK, seeds=[0], jobs=1)
    (other,) = (tmp_path / "cells").glob("*coreset*")
    other.write_bytes(other.read_bytes().replace(b"0.", b"1.", 1))
    with warned(DamageWarning):
        rows = compare([numbers], ["random"], out=tmp_path, protocol=QUICK, seeds=[0], jobs=1)
    assert {row.strategy for row in rows} == {"random"}


def test_recorded_cells_without_a_digest_stay_valid() -> None:
    for name, count in (("mnist", 18), ("regression", 72)):
        folder = Path(__file__).parents[2] / "experiments" / "results" / name
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            warn_of_damage(open_store(folder))
        rows = rows_in(folder)
        assert len({(row.dataset, row.strategy, row.seed) for row in rows}) == count
        published = read_rows(folder / "rows.parquet")
        assert sorted(map(repr, rows)) == sorted(map(repr, published))


@pytest.mark.parametrize(
    "damage",
    [
        lambda cell: cell | {"rows": []},
        lambda cell: {"rows": cell["rows"]},
        lambda cell: cell | {"cell": {"name": "prices"}},
        lambda cell: cell | {"rows": [row | {"mse": "low"} for row in cell["rows"]]},
        lambda cell: cell | {"rows": [row | {"strategy": None} for row in cell["rows"]]},
        lambda cell: [cell],
    ],
)
def test_a_cell_that_is_json_but_no_cell_is_run_again(damage, numbers, tmp_path) -> None:
    whole = compare([numbers], ["random"], out=tmp_path, protocol=QUICK, seeds=[0], jobs=1)
    (file,) = (tmp_path / "cells").iterdir()
    document = json.loads(file.read_text())
    del document["digest"]  # as cells were before there were any
    file.write_text(json.dumps(damage(document)))
    with warned(DamageWarning):
        again = compare([numbers], ["random"], out=tmp_path, protocol=QUICK, seeds=[0], jobs=1)
    assert untimed(again) == untimed(whole)


def as_before(file: Path, *, digest: bool) -> Path:
    """A cell as it was kept before version 0.2, in place of one of today."""
    document = json.loads(file.read_text())
    settings = document["settings"]
    free = {name: settings.pop(name) for name in ("members", "strategy", "seed")}
    name = settings.pop("dataset")
    cell = {"name": name, "terms": settings, **free}
    rows = [{"accuracy": None, **row} for row in document["rows"]]
    former = {"cell": cell, "rows": rows, "picks": document["extra"]["picks"]}
    key = hashlib.sha256(json.dumps(cell, sort_keys=True).encode()).hexdigest()[:12]
    path = file.with_name(f"{name}-{free['strategy']}-{free['seed']}-{free['members']}-{key}.json")
    path.write_text(json.dumps(signed(former) if digest else former))
    file.unlink()
    return path


@pytest.mark.parametrize("digest", [True, False])
def test_cells_from_before_are_not_run_again(digest, numbers, tmp_path, monkeypatch) -> None:
    whole = compare([numbers], ["random"], out=tmp_path, protocol=QUICK, seeds=[0], jobs=1)
    (file,) = (tmp_path / "cells").iterdir()
    picks = json.loads(file.read_text())["extra"]["picks"]
    as_before(file, digest=digest)
    monkeypatch.setattr(comparison, "play_cell", lambda **_: pytest.fail("it ran"))
    again = compare([numbers], ["random"], out=tmp_path, protocol=QUICK, seeds=[0], jobs=1)
    assert [repr(row) for row in again] == [repr(row) for row in whole]
    assert list((tmp_path / "cells").iterdir()) == [file]
    assert json.loads(file.read_text())["extra"]["picks"] == picks


@pytest.mark.parametrize(
    ("old", "new", "digest"),
    [
        ('"mse": 0.', '"mse": 1.', True),
        ('"seed": 0', '"seed": 1', True),
        ('"seed": 0', '"seed": 1', False),
    ],
)
def test_a_damaged_cell_from_before_is_reported(old, new, digest, numbers, tmp_path) -> None:
    whole = compare([numbers], ["random"], out=tmp_path, protocol=QUICK, seeds=[0], jobs=1)
    (file,) = (tmp_path / "cells").iterdir()
    former = as_before(file, digest=digest)
    former.write_text(former.read_text().replace(old, new, 1))
    with warned(DamageWarning):
        again = compare([numbers], ["random"], out=tmp_path, protocol=QUICK, seeds=[0], jobs=1)
    assert untimed(again) == untimed(whole)


def test_former_names_work_and_warn(numbers, tmp_path) -> None:
    import evgp

    for room in (evgp, comparison):
        with warned(DeprecationWarning):
            assert room.Terms is Protocol
        with warned(DeprecationWarning):
            assert room.Subject is DatasetSource
        with refused(AttributeError):
            room.Trems  # noqa: B018
    with warned(DeprecationWarning):
        compare([numbers], ["random"], out=tmp_path, terms=QUICK, seeds=[0], jobs=1)


def test_a_pool_without_a_class_of_the_test_part_is_refused(kinds, tmp_path) -> None:
    few = replace(kinds, pool=6)
    with refused(EvgpError):
        compare([few], ["random"], out=tmp_path, protocol=QUICK, seeds=200, jobs=1)
    assert not list(tmp_path.iterdir())


def test_a_smaller_pool_is_scaled_by_itself(numbers, kinds) -> None:
    usual, few = numbers.load(3), replace(numbers, pool=10).load(3)
    assert torch.equal(few.x, usual.x[:10]) and torch.equal(few.x_test, usual.x_test)
    assert few.rows is not None and len(few.rows) == 10
    torch.testing.assert_close(few.y.mean(), torch.zeros((), dtype=torch.float64))
    torch.testing.assert_close(few.y.std(correction=0), torch.ones((), dtype=torch.float64))
    for item in ("y", "y_test"):
        mine, theirs = (getattr(data, item) * data.y_std + data.y_mean for data in (few, usual))
        torch.testing.assert_close(mine, theirs[: len(mine)])
    assert torch.equal(replace(kinds, pool=10).load(3).y, kinds.load(3).y[:10])


def test_nothing_to_compare_is_refused(numbers, tmp_path) -> None:
    for subjects, names, seeds in (
        ([], ["random"], [0]),
        ([numbers], [], [0]),
        ([numbers], ["random"], []),
        ([numbers, numbers], ["random"], [0]),
    ):
        with refused(EvgpError):
            compare(subjects, names, out=tmp_path, protocol=QUICK, seeds=seeds)
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
def test_processes_give_the_rows_of_one(numbers, tmp_path) -> None:
    names = ["random", "evgp", "badge"]
    first, two = (
        compare([numbers], names, out=tmp_path / str(jobs), protocol=QUICK, seeds=[0, 1], jobs=jobs)
        for jobs in (1, 2)
    )
    assert untimed(first) == untimed(two)


RUN = """
import sys
from evgp.comparison import DatasetSource, Protocol, compare
if __name__ == "__main__":
    source = DatasetSource(sys.argv[1], label="price", drop=("kind",))
    protocol = Protocol(budget=6, batch=3, members=2, depth=1, width=8, steps=2000)
    compare([source], ["random", "coreset", "evgp", "badge"], out=sys.argv[2], protocol=protocol,
            seeds=[0, 1], jobs=int(sys.argv[3]))
"""


@pytest.mark.slow
@pytest.mark.parametrize("jobs", [1, 2])
def test_a_killed_study_resumes(jobs, prices, tmp_path) -> None:
    script, out = tmp_path / "run.py", tmp_path / "study"
    script.write_text(RUN)
    command = [sys.executable, str(script), str(prices), str(out), str(jobs)]
    process = subprocess.Popen(command, start_new_session=True)
    for _ in range(600):
        if len(list(out.glob("cells/*.json"))) >= 2:
            break
        time.sleep(0.1)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    kept = {file: file.stat().st_mtime_ns for file in out.glob("cells/*.json")}
    assert 2 <= len(kept) < 8
    subprocess.run(command, check=True)
    assert all(file.stat().st_mtime_ns == at for file, at in kept.items())
    whole = tmp_path / "whole"
    subprocess.run([*command[:3], str(whole), "1"], check=True)
    assert untimed(rows_in(out)) == untimed(rows_in(whole))
    assert len(rows_in(out)) == 16


@pytest.mark.slow
def test_no_process_outlives_its_parent(prices, tmp_path) -> None:
    script, out = tmp_path / "run.py", tmp_path / "study"
    script.write_text(RUN)
    command = [sys.executable, str(script), str(prices), str(out), "2"]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, start_new_session=True
    )
    for _ in range(600):
        if list(out.glob("cells/*.json")):
            break
        time.sleep(0.1)
    process.kill()
    try:  # Workers hold the pipe as well: it ends when the last of them has.
        process.communicate(timeout=120)
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)


def test_settings_that_are_the_defaults_are_not_part_of_a_cell(numbers, tmp_path) -> None:
    usual = Protocol(budget=3, batch=3, members=2, depth=1, width=8, steps=1)
    compare([numbers], ["random"], out=tmp_path, protocol=usual, seeds=[0], jobs=1)
    assert isinstance(next(Path(tmp_path / "cells").iterdir()).stem, str)
    assert "start" not in next((tmp_path / "cells").iterdir()).read_text()


def test_a_table_that_has_changed_is_noticed(prices, tmp_path) -> None:
    own = tmp_path / "own.csv"
    own.write_bytes(prices.read_bytes())
    source, out = DatasetSource(str(own), label="price", drop=("kind",)), tmp_path / "out"
    compare([source], ["random"], out=out, protocol=QUICK, seeds=[0], jobs=1)
    compare([source], ["random"], out=out, protocol=QUICK, seeds=[0], jobs=1)
    own.write_text(own.read_text().replace("-", "", 1))
    with refused(EvgpError):
        compare([source], ["random"], out=out, protocol=QUICK, seeds=[0], jobs=1)


def test_a_strategy_of_ones_own_that_fails_is_named(numbers, tmp_path, monkeypatch) -> None:
    (tmp_path / "failing.py").write_text(
        "class Fails:\n    def __init__(self, setting):\n        pass\n\n"
        "    def __call__(self, pool, k, *, generator):\n"
        "        if pool.y is None:\n            raise ValueError('no labels to start with')\n"
    )
    monkeypatch.chdir(tmp_path)
    with refused(EvgpError):
        compare([numbers], ["failing:Fails"], out=tmp_path, protocol=QUICK, seeds=[0], jobs=1)


@pytest.mark.parametrize("content", ["{", "[1]", "\x00"])
def test_damaged_checksums_are_reported(numbers, tmp_path: Path, content) -> None:
    (tmp_path / "tables.json").write_text(content)
    with refused(EvgpError):
        _check_same_tables(Store(tmp_path), [numbers])


def test_a_seed_that_is_passed_twice_is_run_once(numbers, tmp_path: Path) -> None:
    calls: list[tuple[int, int]] = []
    rows = compare(
        numbers, "random", out=tmp_path, protocol=QUICK, seeds=[1, 1],
        progress=lambda stage, done, total: calls.append((done, total)),
    )  # fmt: skip
    assert [row.seed for row in rows] == [1] * QUICK.rounds
    assert calls[-1] == (QUICK.rounds, QUICK.rounds)


def test_rounds_are_reported(numbers, tmp_path, capsys) -> None:
    for jobs in (1, 2):
        out = tmp_path / str(jobs)
        compare([numbers], ["random"], out=out, protocol=QUICK, seeds=2, jobs=jobs, progress=True)
        lines = capsys.readouterr().err.splitlines()
        assert (lines[0], lines[-1]) == ("0 of 4 rounds", "4 of 4 rounds")
