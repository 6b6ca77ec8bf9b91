"""The command as a person meets it: help, version, interruption, pipes."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from typer.main import get_command
from typer.testing import CliRunner

import evgp
from evgp.cli.docs import calls, page
from evgp.cli.main import app, main
from tests.messages import printed

COMMANDS = [
    words for words in calls(get_command(app)) if words not in (("campaign",), ("reproduce",))
]
EVGP = (sys.executable, "-m", "evgp.cli.main")


def test_every_command_has_help_with_an_example(run) -> None:
    assert COMMANDS
    for words in COMMANDS:
        ran = run(*words, "--help")
        assert ran.code == 0
        assert "Example" in ran.out and f"evgp {' '.join(words)} " in ran.out


def test_commands_of_a_campaign_have_their_old_names_too(run, tmp_path: Path) -> None:
    (tmp_path / "pool.csv").write_text("a,b\n" + "".join(f"{i},{i % 3}\n" for i in range(9)))
    call = [str(tmp_path / "one"), str(tmp_path / "pool.csv"), "--number"]
    old = CliRunner().invoke(app, ["new", *call], prog_name="evgp")
    assert old.exit_code == 0 and (tmp_path / "one.evgp").exists()
    assert old.stderr.splitlines()[0] == "note: `evgp new` is now `evgp campaign new`"
    helped = run("--help").out
    assert "campaign" in helped and "export" not in helped  # hidden
    assert CliRunner().invoke(app, ["export", "--help"]).exit_code == 0


def test_every_option_has_help() -> None:
    inner = get_command(app).commands["campaign"].commands
    for name, command in {**get_command(app).commands, **inner}.items():
        for parameter in command.params:
            assert getattr(parameter, "help", None), f"{name} {parameter.name}"


def test_the_version_is_printed(run) -> None:
    assert run("--version").out == f"evgp {evgp.__version__}\n"


def test_python_can_run_it_as_a_module() -> None:
    ran = subprocess.run(
        [sys.executable, "-m", "evgp", "--version"], capture_output=True, text=True, check=True
    )
    assert ran.stdout == f"evgp {evgp.__version__}\n"


@pytest.mark.parametrize(("set_to", "found"), [(None, "PASSIVE"), ("ACTIVE", "ACTIVE")])
def test_threads_that_wait_leave_the_cores_to_others(set_to, found, monkeypatch) -> None:
    """In the environment before torch is loaded, which reads it then; a user's own word stays."""
    monkeypatch.setenv("OMP_WAIT_POLICY", "")  # so that it is put back afterwards
    monkeypatch.setattr(sys, "argv", ["evgp", "--version"])
    os.environ.pop("OMP_WAIT_POLICY")
    if set_to is not None:
        os.environ["OMP_WAIT_POLICY"] = set_to
    with pytest.raises(SystemExit):
        main()
    assert os.environ["OMP_WAIT_POLICY"] == found


def test_no_command_shows_the_help(run) -> None:
    ran = run()
    assert "Commands:" in ran.out + ran.err


def test_the_page_on_the_command_line_is_current() -> None:
    written = Path(__file__).parents[2] / "docs" / "cli.md"
    assert written.read_text() == page(), "run: python -m evgp.cli.docs docs/cli.md"


def test_the_command_line_itself_needs_nothing_heavy() -> None:
    code = (
        "import sys, evgp; before = set(sys.modules); import evgp.cli.main; "
        "print(*sorted({name.split('.')[0] for name in set(sys.modules) - before}))"
    )
    process = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    heavy = {"torch", "pyarrow", "sklearn", "scipy", "numpy", "rich", "matplotlib", "jinja2"}
    assert heavy.isdisjoint(process.stdout.split())


def test_a_terminal_has_nothing_to_obey(run, tmp_path: Path) -> None:
    ran = run("pick", tmp_path / "ring\x07\x9b2J.csv", "-k", 2)
    assert ran.code == 1, ran.err
    printed(ran.err)


@pytest.mark.parametrize(
    ("header", "drop", "left"),
    [('a,b,"c,d",y', "c,d", ["a", "b"]), ("a,b,c,y", "b,c, ", ["a"])],
    ids=["a comma in a name", "a comma at the end"],
)
def test_columns_to_drop_are_divided_alike_everywhere(run, tmp_path, header, drop, left) -> None:
    x = np.random.default_rng(0).normal(size=(20, 4)).round(4).tolist()
    file = tmp_path / "pool.csv"
    file.write_text("\n".join([header, *(",".join(map(str, row)) for row in x)]) + "\n")
    picked = json.loads(run("pick", file, "-k", 2, "--drop", drop, "--json").out)
    assert picked["features"] == [*left, "y"]
    quick = ("--folds", 3, "--depths", 1, "--activations", "relu")
    for ran in (
        run("new", tmp_path / "one", file, "--number", "--drop", drop),
        run("choose", file, "--label", "y", "--drop", drop, *quick),
    ):
        assert ran.code == 0, ran.err


def test_an_interruption_leaves_nothing(tmp_path: Path) -> None:
    x = np.random.default_rng(0).normal(size=(2000, 6))
    x[:, 5] = 1.0
    np.save(tmp_path / "pool.npy", x)
    running = subprocess.Popen(
        [*EVGP, "pick", "pool.npy", "-k", "800", "-o", "out.csv", "--report", "out.html"],
        cwd=tmp_path,
        env=os.environ | {"PYTHONUNBUFFERED": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert running.stderr is not None
    # The note on the constant column comes just before the picking.
    assert "dropped 1 constant column" in running.stderr.readline()
    time.sleep(0.3)
    running.send_signal(signal.SIGINT)
    out, err = running.communicate(timeout=60)
    assert running.returncode == 130
    assert out == ""
    assert err == "evgp: stopped; nothing was written\n"
    assert [path.name for path in tmp_path.iterdir()] == ["pool.npy"]


def test_an_interruption_while_writing_leaves_nothing(
    run, pool: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(part: Path, columns: object) -> None:
        part.write_text("half")
        raise KeyboardInterrupt

    monkeypatch.setattr("evgp.datasets.files._WRITERS", {".csv": interrupt})
    ran = run("pick", pool, "-k", 2, "--id", "name", "-o", tmp_path / "out.csv")
    assert ran.code == 130
    assert [path.name for path in tmp_path.iterdir()] == ["pool.csv"]


def test_a_reader_that_has_seen_enough_is_no_failure(pool: Path) -> None:
    command = f"{' '.join(EVGP)} pick {pool} -k 20 --id name --drop price -q | head -n 2"
    process = subprocess.run(command, shell=True, capture_output=True, text=True, check=True)
    assert process.stdout.count("\n") == 2
    assert "Traceback" not in process.stderr


def spoken(line: str, folder: Path) -> subprocess.CompletedProcess[str]:
    env = os.environ | {"PYTHONIOENCODING": "ascii", "LC_ALL": "C"}
    command = line.replace("evgp", " ".join(EVGP), 1)
    return subprocess.run(
        ["bash", "-c", command], cwd=folder, env=env, capture_output=True, text=True, check=False
    )


PICK = "evgp pick pool.csv -k 3 --id name --drop price -o out.csv"


@pytest.fixture
def accents(pool: Path, rows: list[str]) -> Path:
    """The folder of a pool whose names a narrow stream cannot show."""
    pool.write_text("\n".join(rows).replace("row-", "räw-"), encoding="utf-8")
    return pool.parent


def test_streams_may_be_narrow(accents: Path) -> None:
    narrow = spoken(PICK, accents)
    assert narrow.returncode == 0 and "r\\xe4w-" in narrow.stdout


@pytest.mark.parametrize(
    "end",
    [
        ">&- 2>&-",
        "2> >(true) | true; exit ${PIPESTATUS[0]}",
        *(
            pytest.param(item, marks=pytest.mark.slow)
            for item in (">&-", "2>&-", "2> >(true)", "| true; exit ${PIPESTATUS[0]}")
        ),
    ],
)
def test_streams_may_be_closed_or_broken(accents: Path, end: str) -> None:
    ran = spoken(f"{PICK} {end}", accents)
    assert ran.returncode == 0, (end, ran.stderr)
    assert (accents / "out.csv").read_text(encoding="utf-8").count("räw-") == 3
    assert "Traceback" not in ran.stderr and "Exception" not in ran.stderr


def test_a_stream_may_be_full(accents: Path) -> None:
    full = spoken(f"{PICK} > /dev/full", accents)
    assert full.returncode == 1, full.stderr
    printed(full.stderr)
    assert "Traceback" not in full.stderr and "Exception" not in full.stderr


def test_a_full_disk_is_reported_in_one_line(
    run, pool: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(part: Path, columns: object) -> None:
        part.write_text("half")
        raise OSError(28, "No space left on device", str(part))

    monkeypatch.setattr("evgp.datasets.files._WRITERS", {".csv": full})
    ran = run("pick", pool, "-k", 2, "--id", "name", "-o", tmp_path / "out.csv", "-q")
    assert ran.code == 1
    assert ran.err.count("\n") == 1
    assert (
        f"{tmp_path / 'out.csv'}: the disk is full, in the folder {tmp_path}; make room" in ran.err
    )
    assert [path.name for path in tmp_path.iterdir()] == ["pool.csv"]
