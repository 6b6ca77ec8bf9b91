"""A study's folder says how it was made, gives way to no other scale, and owns up to damage."""

import hashlib
import json
import lzma
import re
import shutil
from dataclasses import fields
from pathlib import Path

import pytest

from evgp.comparison.cells import Cell, Finished, Store, _read_lines
from evgp.comparison.protocol import DatasetSource, Protocol
from evgp.comparison.rows import read_records
from evgp.comparison.run import cell_of, open_store
from evgp.errors import DamageWarning, DatasetError
from experiments import NAMES, SCALES, claims_of, reproduce, study, study_named
from experiments.page import pages
from experiments.runner import drawn_with, how_made, read_record, rows_of
from experiments.study import Change, store_in, work_named
from tests.messages import refused, warned

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "experiments" / "results"
NAME = "exchange-and-certificate"  # of made-up data, in a second
PLAY = "evgp.studies.contests:play"


@pytest.fixture(scope="module")
def ran(tmp_path_factory):
    out = tmp_path_factory.mktemp("ran")
    reproduce(NAME, scale="smoke", out=out, jobs=1, command="evgp reproduce it")
    return out


@pytest.fixture
def out(ran, tmp_path):
    """A run that may be damaged."""
    return Path(shutil.copytree(ran, tmp_path / "studies"))


def edit(path: Path, **told) -> None:
    """Change a document, and leave out its digest, as those of an earlier version have none."""
    document = {**json.loads(path.read_text()), **told}
    path.write_text(json.dumps({key: item for key, item in document.items() if key != "digest"}))


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.mark.parametrize("draw_only", [False, True])
@pytest.mark.parametrize("there", SCALES)
@pytest.mark.parametrize("asked", SCALES)
def test_only_a_smoke_record_gives_way(out, there, asked, draw_only, monkeypatch) -> None:
    """A run is stopped before its first cell, so that expensive scales can be requested."""

    class Begun(Exception):
        pass

    def begin(*_, **__):
        raise Begun

    monkeypatch.setattr("experiments.runner._run", begin)
    monkeypatch.setattr("experiments.runner.draw", begin)
    edit(out / NAME / "study.json", scale=there)
    before = contents(out / NAME)
    if there == asked or (there == "smoke" and not draw_only):
        with pytest.raises(Begun):
            reproduce(NAME, scale=asked, out=out, draw_only=draw_only)
        return
    with pytest.raises(DatasetError) as error:
        reproduce(NAME, scale=asked, out=out, draw_only=draw_only)
    expected = (
        f"a record of scale {asked} to draw, got one of {there}; pass --scale {there}"
        if draw_only
        else f"no record of another scale than {asked}, got one of {there}; keep it, and pass "
        "another folder as --out"
    )
    assert str(error.value) == f"{out / NAME}: expected {expected}"
    assert contents(out / NAME) == before


def test_a_smoke_run_in_the_repository_leaves_its_record_alone(tmp_path) -> None:
    shutil.copytree(RESULTS / NAME, tmp_path / NAME)
    before = contents(tmp_path / NAME)
    with refused(DatasetError):
        reproduce(NAME, scale="smoke", out=tmp_path)
    assert contents(tmp_path / NAME) == before


def test_drawing_keeps_what_the_run_recorded(out) -> None:
    path = out / NAME / "study.json"
    document = json.loads(path.read_text())
    assert document["command"] == "evgp reproduce it"
    assert document["drawn_with"] == drawn_with()
    assert document["jobs"] == 1 and set(document["versions"]) == {
        "python",
        "torch",
        "numpy",
        "scipy",
    }
    cell = next((out / "cells").iterdir())
    parsed = json.loads(cell.read_text())["made"]
    edit(cell, made={**parsed, "cores": 96, "versions": {"torch": "1.0"}})
    edit(path, drawn_with="matplotlib 0")
    reproduce(NAME, scale="smoke", out=out, draw_only=True, command="evgp reproduce it --draw")
    reproduce(NAME, scale="smoke", out=out, jobs=1, command="nothing was left to run")
    again = json.loads(path.read_text())
    assert again.pop("digest") != document.pop("digest")
    assert again == {**document, "cores": 96, "versions": {"torch": "1.0"}}


def test_what_older_cells_do_not_say_is_taken_from_the_record(out) -> None:
    path, cell = out / NAME / "study.json", next((out / "cells").iterdir())
    document = json.loads(cell.read_text())
    del document["made"], document["digest"]
    cell.write_text(json.dumps(document))
    edit(path, cores=7, versions={"torch": "1.0"})
    reproduce(NAME, scale="smoke", out=out, draw_only=True)
    parsed = json.loads(path.read_text())
    assert (parsed["cores"], parsed["versions"]) == (7, {"torch": "1.0"})
    assert not {"clock_seconds", "cpu_seconds", "jobs"} & set(parsed)


def test_seconds_on_the_clock_are_those_in_which_a_cell_ran() -> None:
    def cell(begun, ended, **more):
        result = {"ended": ended, "cpu_seconds": 4.0, "jobs": 2, "cores": 2, "versions": {"a": "1"}}
        return Finished([{"x": 1}], ended - begun, {**result, **more})

    side_by_side = [cell(100.0, 110.0), cell(100.0, 130.0), cell(110.0, 125.0)]
    resumed = cell(900.0, 950.0, versions={"a": "2"}, jobs=1)
    reported = how_made([resumed, *side_by_side], {})
    assert reported["cell_seconds"] == 10 + 30 + 15 + 50
    assert reported["clock_seconds"] == 30 + 50
    assert reported["cpu_seconds"] == 16 and reported["jobs"] == 2
    assert reported["versions"] == {"a": "2, 1"}
    old = how_made([Finished([{"x": 1}], 5.0), resumed], {"cores": 2, "versions": {"a": "0"}})
    assert old["clock_seconds"] is None and old["versions"] == {"a": "0, 2"}


def test_a_run_reports_its_processor_time(ran) -> None:
    (cell,) = (ran / "cells").iterdir()
    document = json.loads(cell.read_text())
    assert (
        0 < document["made"]["cpu_seconds"] <= document["seconds"] * document["made"]["cores"] + 1
    )
    assert (read_record(ran / NAME) or {})["clock_seconds"] == round(document["seconds"])


def test_cells_that_were_taken_over_say_so(out) -> None:
    cell = next((out / "cells").iterdir())
    edit(cell, made={"by": "evgp compare x --out y"})
    reproduce(NAME, scale="smoke", out=out, draw_only=True)
    path = out / NAME / "study.json"
    assert json.loads(path.read_text())["taken_over"] == {"evgp compare x --out y": 1}
    edit(path, scale="laptop")
    message = "\n".join(pages(out).values())
    assert f"reused: {NAME} (1 of 1)" in message and "`evgp compare x --out y`" in message


def test_the_repository_says_which_of_its_cells_were_taken_over() -> None:
    store = store_in(RESULTS)
    for name, count, kept in (
        ("batch-regression", 60, "regression"),
        ("classification-mlp", 12, "mnist"),
    ):
        study = study_named(name)
        actual = [store.found(cell) for cell in study.cells(study.scales["laptop"])]
        by = [item.made["by"] for item in actual if item is not None and "by" in item.made]
        command = (RESULTS / kept / "commands.txt").read_text().splitlines()[0]
        assert by == [command] * count
        theirs = read_records(RESULTS / kept / "rows.csv")
        seconds = {f"{row['train_seconds']:.6g}" for row in theirs}
        ours = (item for item in actual if item is not None and "by" in item.made)
        assert {f"{row['train_seconds']:.6g}" for item in ours for row in item.rows} <= seconds


def test_every_cell_in_the_repository_belongs_to_a_study_and_is_found() -> None:
    store = store_in(RESULTS)
    known = {
        store.path(cell).name: cell
        for study in map(study_named, NAMES)
        for settings in study.scales.values()
        for cell in study.cells(settings)
    }
    kept = [name for table in (RESULTS / "cells").iterdir() for name in _read_lines(table, 0, 0)]
    assert len(kept) == 539 and set(kept) <= set(known)
    assert all(store.found(known[name]) is not None for name in kept)
    for work in {known[name].work for name in kept}:
        assert callable(work_named(work))


def as_asked_today(cell: Cell) -> Cell:
    """The cell that `evgp compare` makes today of the settings of a recorded one."""
    settings = {"scale": "columns", **cell.settings}
    strategy, seed, name = (settings.pop(key) for key in ("strategy", "seed", "dataset"))
    lists = {key: tuple(value) for key, value in settings.items() if isinstance(value, list)}
    settings |= lists
    source = settings.pop("source", name)
    own = [field.name for field in fields(DatasetSource) if field.name in settings]
    data = DatasetSource(source, **{key: settings.pop(key) for key in own})
    return cell_of(data, strategy, seed, Protocol(**settings))


COMPARED = sorted(folder.parent for folder in RESULTS.rglob("cells") if folder.parent != RESULTS)


@pytest.mark.parametrize("folder", COMPARED, ids=lambda folder: str(folder.relative_to(RESULTS)))
def test_every_cell_of_a_comparison_in_the_repository_is_found(folder) -> None:
    store = open_store(folder)
    kept = [
        name for table in (folder / "cells").glob("*.jsonl*") for name in _read_lines(table, 0, 0)
    ]
    kept += [path.name for path in (folder / "cells").glob("*.json")]
    actual = [cell for cell, _ in store.every()]
    assert kept and sorted(store.path(cell).name for cell in actual) == sorted(kept)
    assert {cell.work for cell in actual} == {"evgp.arena:play_cell"}
    assert all(callable(work_named(cell.work)) for cell in actual[:1])
    assert all(store.path(as_asked_today(cell)) == store.path(cell) for cell in actual)


def test_comparisons_of_three_kinds_are_in_the_repository() -> None:
    names = {folder.relative_to(RESULTS).parts[0] for folder in COMPARED}
    assert names == {"mnist", "regression", "worth"}


def test_cells_in_a_table_are_those_of_the_files(out) -> None:
    store = Store(out)
    cells = list(study_named(NAME).cells(study_named(NAME).scales["smoke"]))
    before, seconds = store.rows(cells), store.seconds(cells)
    assert store.pack() == len(cells) and store.pack() == 0
    assert not list((out / "cells").glob("*.json")) and store.missing(cells) == []
    assert store.rows(cells) == before and store.seconds(cells) == seconds
    store.add(cells[0], [{"seed": 0, "mse": 9.0}], 1.0)  # a file goes before a line
    assert store.rows(cells[:1]) != before[:1]
    assert store.pack() == 1 and store.rows(cells[:1])[0]["mse"] == 9.0
    table = next((out / "cells").glob("*.jsonl.xz"))
    whole = table.read_bytes()
    text = lzma.decompress(whole).decode()
    table.write_bytes(lzma.compress(text.replace("9.0", "8.0").encode()))
    assert store.missing(cells) == cells[:1] and "changed" in store.damage(cells)[0].why
    table.write_bytes(whole[:-20])
    assert store.missing(cells) == cells and "cut off" in store.damage(cells)[0].why
    plain = table.with_suffix("")  # as earlier versions packed them
    table.unlink()
    plain.write_text(text)
    assert store.missing(cells) == [] and store.pack() == 0 and not plain.exists()
    assert store.missing(cells) == [] and store.rows(cells[:1])[0]["mse"] == 9.0


def test_first_versions_keep_their_names_and_later_ones_get_new_ones(monkeypatch) -> None:
    store = store_in(RESULTS)
    terms = {"seed": 0, "budget": 100, "batch": 20, "members": 10}
    cells = [
        Cell(PLAY, {"dataset": data, "strategy": way, **terms})
        for data in ("boston", "naval") for way in ("badge", "random")
    ]  # fmt: skip
    assert store.path(cells[0]).name == "contests-boston-badge-0-f1dd70ad95ec.json"
    assert store.missing(cells) == []
    monkeypatch.setattr(study, "CHANGES", (Change(PLAY, {"strategy": "badge"}),))
    assert store.missing(cells) == [cells[0], cells[2]]
    once = store.path(cells[0])
    monkeypatch.setattr(study, "CHANGES", (*study.CHANGES, Change(PLAY)))
    assert store.missing(cells) == cells
    assert store.path(cells[0]) != once
    monkeypatch.setattr(study, "CHANGES", (Change("evgp.studies.sets:play"),))
    assert store.missing(cells) == []


def test_a_cell_is_what_was_requested_or_it_is_run_again(out) -> None:
    cell = next((out / "cells").iterdir())
    whole = json.loads(cell.read_text())
    rows = whole["rows"]
    cells = list(study_named(NAME).cells(study_named(NAME).scales["smoke"]))
    sums = {"checksum": hashlib.sha256(json.dumps(rows, sort_keys=True).encode()).hexdigest()[:16]}
    for damage, words in (
        ({"rows": []}, "it has no rows"),
        ({"rows": [{}]}, "it has no rows"),
        ({"rows": 7}, "it is invalid JSON, or not a cell"),
        ({"rows": rows[:-1]} | sums, "its rows were changed"),
        ({"rows": [{**rows[0], "left": 0.5}, *rows[1:]]} | sums, "its rows were changed"),
        ({"checksum": 7}, "its rows were changed"),
        ({"seconds": 10**400}, "it is invalid JSON, or not a cell"),
        ({"rows": [{**rows[0], "dataset": "atlantis"}]}, "it has rows whose dataset is 'atlantis'"),
        ({"settings": {**whole["settings"], "seed": 5}}, "its content does not match its name"),
        ({"work": "os:getcwd"}, "its content does not match its name"),
        ({"seconds": float("nan")}, "it took nan s"),
        ({"made": {"versions": 3}}, "it is invalid JSON, or not a cell"),
        ({"made": 3}, "it is invalid JSON, or not a cell"),
        ({"checksun": 7}, "it has an unknown entry 'checksun'"),
        ({"seconds": 7.5, "digest": whole["digest"]}, "its content was changed"),
        ({"rows": rows[:-1], "digest": whole["digest"]}, "its content was changed"),
    ):
        before = {name: value for name, value in whole.items() if name != "digest"}
        cell.write_text(json.dumps({**before, **damage}))
        (actual,) = store_in(out).damage(cells)
        assert str(actual.path) == str(cell) and actual.why.startswith(words)
    with pytest.warns(DamageWarning) as caught:
        reproduce(NAME, scale="smoke", out=out, draw_only=True)
    (message,) = (str(warning.message) for warning in caught)
    assert message == f"{cell} was damaged ({actual.why}) and is left out"
    with warned(DamageWarning):
        reproduce(NAME, scale="smoke", out=out, jobs=1)
    again = json.loads(cell.read_text())
    measured = {"made": 0, "seconds": 0, "digest": ""}
    assert {**again, **measured, "rows": len(again["rows"])} == {
        **whole, **measured, "rows": len(rows)
    }  # fmt: skip


def test_cells_from_before_checksums_stay_valid(out) -> None:
    cell = next((out / "cells").iterdir())
    document = json.loads(cell.read_text())
    del document["digest"]
    cell.write_text(json.dumps(document))
    assert reproduce(NAME, scale="smoke", out=out, draw_only=True).cells == 1
    document["rows"][0]["left"] = [0.5]
    cell.write_text(json.dumps(document))
    with warned(DamageWarning):
        reproduce(NAME, scale="smoke", out=out, draw_only=True)


def test_a_folder_that_cannot_be_written_is_refused_before_anything_runs(
    tmp_path, monkeypatch
) -> None:
    monkeypatch.setattr("experiments.runner._run", lambda *_, **__: pytest.fail("it ran"))
    (tmp_path / "file").write_text("")
    with refused(DatasetError):
        reproduce(NAME, scale="smoke", out=tmp_path / "file" / "studies")
    (tmp_path / "cells").write_text("")
    with refused(DatasetError):
        reproduce(NAME, scale="smoke", out=tmp_path)


def test_what_is_not_recorded_is_not_invented(out) -> None:
    path = out / NAME / "study.json"
    path.unlink()
    reproduce(NAME, scale="smoke", out=out, draw_only=True)
    assert json.loads(path.read_text())["command"] == ""
    edit(path, scale="laptop")
    (out / NAME / "stray.png").write_bytes(b"")
    message = "\n".join(pages(out).values())
    assert " (the original command was not recorded)." in message
    assert "stray.png" not in message and f"{NAME}.png" in message


def test_work_without_rows_is_not_finished(tmp_path) -> None:
    with refused(DatasetError):
        Store(tmp_path).add(Cell("a:b", {"seed": 0}), [], 1.0)


def test_damaged_rows_are_reported(out) -> None:
    path = out / NAME / "rows.csv"
    whole = path.read_text()
    head, first, *_ = whole.splitlines(keepends=True)
    values = len(head.split(","))
    for text, words in (
        ("", "got 0; write them again with --draw"),
        (head, "got 0; write them again with --draw"),
        (head + first[: first.index(",")], f"but line 2 has 1 of {values} values"),
        (whole[:-2], "some that were altered; restore them, or"),
        (whole + '"open', "unexpected end of data"),
        (head + first, "as study.json counts them, got 1"),
        (whole.replace("random-model", "atlantis"), "some that were altered; restore them, or"),
    ):
        path.write_text(text)
        edit(out / NAME / "study.json", scale="laptop")
        for tried in (lambda: claims_of(study_named(NAME), out / NAME), lambda: pages(out)):
            with pytest.raises(DatasetError) as error:
                tried()
            assert str(error.value).startswith(f"{path}: expected ")
            assert words in str(error.value), error.value
    edit(out / NAME / "study.json", scale="smoke")
    reproduce(NAME, scale="smoke", out=out, draw_only=True)  # as the sentences say
    assert path.read_text() == whole


def test_damaged_records_are_reported(out) -> None:
    path = out / NAME / "study.json"
    whole = json.loads(path.read_text())
    for text, words in (
        ("{half", "a file that is broken"),
        ("[" * 100_000, "a file that is broken"),
        ("[]", "something else"),
        (
            json.dumps({**whole, "scale": "huge"}),
            "one of 'exchange-and-certificate' at scale 'huge'",
        ),
        (json.dumps({**whole, "study": "width"}), "one of 'width' at scale 'smoke'"),
        (json.dumps({**whole, "versions": 3}), "versions: 3"),
        (json.dumps({**whole, "taken_over": 3}), "taken_over: 3"),
        (json.dumps({k: v for k, v in whole.items() if k != "cells"}), "cells: None"),
        (json.dumps({**whole, "finished": 7}), "one that was altered (its content was changed)"),
        (json.dumps({**whole, "digesu": 7}), "one that was altered (it has an unknown entry"),
    ):
        path.write_text(text)
        for tried in (lambda: pages(out), lambda: reproduce(NAME, scale="smoke", out=out)):
            with pytest.raises(DatasetError) as error:
                tried()
            assert str(error.value).startswith(
                f"{path}: expected the record of a study, got {words}"
            )
            assert "remove it and run the study again" in str(error.value)
    path.unlink()
    reproduce(NAME, scale="smoke", out=out, jobs=1)  # as the sentence says
    assert json.loads(path.read_text())["finished"] == whole["finished"]


RECORDED = [name for name in NAMES if (RESULTS / name / "study.json").exists()]


@pytest.mark.slow
@pytest.mark.parametrize("name", RECORDED)
def test_committed_figures_are_those_of_the_committed_rows(name, tmp_path) -> None:
    kept = RESULTS / name
    drawn = (read_record(kept) or {}).get("drawn_with")
    if drawn != drawn_with():
        pytest.skip(f"drawn with {drawn}, here is {drawn_with()}")
    for file in ("rows.csv", "study.json"):
        (tmp_path / name).mkdir(exist_ok=True)
        shutil.copy(kept / file, tmp_path / name / file)
    reproduce(name, scale=(read_record(kept) or {})["scale"], out=tmp_path, draw_only=True)
    svg = {path.name for path in kept.glob("*.svg")}
    assert svg and svg == {path.name for path in (tmp_path / name).glob("*.svg")}
    for item in svg:
        assert _drawn(kept / item) == _drawn(tmp_path / name / item), f"draw {name} again"


def test_rows_are_counted(ran) -> None:
    assert len(rows_of(ran / NAME)) == (read_record(ran / NAME) or {})["rows"]


def _drawn(file: Path) -> str:
    """What a figure shows; the names of its clips are hashes of digits that machines round."""
    return re.sub(r'(#|id=")p[0-9a-f]{10}', r"\1clip", file.read_text(encoding="utf-8"))
