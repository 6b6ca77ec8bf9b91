"""`evgp demo` lists its data and writes them."""

from pathlib import Path

import pytest

from evgp.datasets import demo
from tests.forked import python
from tests.messages import printed, warned


def test_without_arguments_it_lists_what_there_is(run) -> None:
    names = [line.split("\t")[0] for line in run("demo").out.splitlines()]
    assert names == ["name", *demo.DEMOS]


def test_rows_are_shared_among_paths(run, tmp_path: Path) -> None:
    paths = [tmp_path / "train.csv", tmp_path / "new" / "test.csv"]
    ran = run("demo", "diabetes", *paths)
    assert ran.code == 0 and ran.out == ""
    assert ran.err == "".join(f"{path}: 221 rows\n" for path in paths)
    assert [len(path.read_text().splitlines()) for path in paths] == [222, 222]


@pytest.mark.parametrize(
    "arguments",
    [
        "digits",
        "letters a.csv",
        "digit a.csv",
        "digits new/a.txt",
        "diabetes a.npz",
        "diabetes file/a.csv",
    ],
)
def test_a_wrong_call_is_refused_in_one_line(
    arguments: str, run, tmp_path: Path, monkeypatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("file").write_text("not a folder")
    ran = run("demo", *arguments.split())
    assert ran.code == 1 and ran.err.count("\n") == 1
    printed(ran.err)
    assert [file.name for file in tmp_path.iterdir()] == ["file"]


def test_the_old_spelling_works_with_a_note(tmp_path: Path) -> None:
    code = (
        "import os, runpy, sys; os.chdir(sys.argv.pop()); "
        "runpy.run_module('evgp.datasets.bundled', run_name='__main__', alter_sys=True)"
    )
    ran = python(code, "digits", "digits.csv", tmp_path)
    assert ran.returncode == 0, ran.stderr
    note, rows = ran.stderr.splitlines()
    assert note == "note: `python -m evgp.datasets.bundled` is now `evgp demo`"
    assert rows == "digits.csv: 1,797 rows"


def test_the_old_names_work_with_a_warning() -> None:
    from evgp.datasets import bundled

    with warned(DeprecationWarning):
        assert bundled.write_digits is demo.write_digits
