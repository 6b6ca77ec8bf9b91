"""`evgp doctor`: what it finds is true, and its advice follows from that."""

import json
import sys
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path

import numpy
import psutil
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

import evgp
from evgp._extras import EXTRAS
from evgp.cli.main import app
from evgp.doctor import (
    Device,
    Environment,
    Folder,
    Memory,
    OptionalPart,
    Package,
    Threads,
    advise,
    inspect,
    is_broken,
    memory,
)

GB = 10**9
FACTS = Environment(
    evgp="1.0.0",
    python="3.12.4",
    platform="Linux",
    sqlite="3.45.1",
    packages=(Package("torch", "2.5.0", ">=2.4"), Package("numpy", "2.0.0", ">=1.26")),
    threads=Threads(cores=8, torch=8, blas=(("openblas", 8),)),
    memory=Memory(total=16 * GB, free=10 * GB),
    devices=(Device("cpu", "8 cores"),),
    folders=(
        Folder("data", "/data", "EVGP_DATA", exists=True, writable=False),
        Folder("cache", "/cache", "EVGP_CACHE", exists=False, writable=True, free=100 * GB),
    ),
    missing_sets=("mnist",),
    parts=(OptionalPart("web", "a page", (("fastapi", ""),), 'pip install "evgp[web]"'),),
)


def test_without_problems_there_is_no_advice() -> None:
    assert advise(FACTS) == () and not is_broken(FACTS)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"threads": Threads(2, 8)}, "8 threads share 2 cores; set OMP_NUM_THREADS=2"),
        ({"threads": Threads(1, 1, (("openblas", 4),))}, "4 threads share 1 core"),
        ({"threads": Threads(2, 2, (), "many")}, "OMP_NUM_THREADS is 'many'; set it to 2"),
        ({"threads": Threads(2, 2, (), "0")}, "OMP_NUM_THREADS is '0'; set it to 2"),
        ({"memory": Memory(8 * GB, GB // 2)}, "0.5 GB of memory is free; evgp plan"),
        (
            {"memory": Memory(8 * GB, 6 * GB, 4 * GB, 3 * GB)},
            "allows only 1.0 GB of; memory='0.8GB'",
        ),
        ({"memory": Memory(8 * GB, 6 * GB, GB, GB)}, "0.0 GB of memory is free within a limit"),
        ({"sqlite": "3.8.11"}, "SQLite 3.8.11 is older than 3.12; power failure"),
        ({"python": "3.10.2"}, "not tested with Python 3.10.2; use 3.11 to 3.13"),
        ({"python": "3.14.0rc1"}, "not tested with Python 3.14.0rc1"),
        ({"evgp": ""}, "not installed; pip install --editable"),
        (
            {"packages": (Package("torch", "", ">=2.4", "it is not installed"),)},
            'torch: it is not installed; pip install --force-reinstall "torch>=2.4"',
        ),
        (
            {"folders": (Folder("data", "/no", "EVGP_DATA", exists=False, writable=False),)},
            "EVGP_DATA is /no, which is not a folder; set it",
        ),
        (
            {"folders": (Folder("cache", "/c", "EVGP_CACHE", exists=True, writable=False),)},
            "/c is not writable; set EVGP_CACHE",
        ),
        (
            {"folders": (Folder("cache", "/c", "EVGP_CACHE", exists=True, writable=True, free=1),)},
            "/c has only 0.0 GB free; set EVGP_CACHE",
        ),
    ],
)
def test_each_problem_is_reported_in_one_line(change: dict[str, object], said: str) -> None:
    (advice,) = advise(replace(FACTS, **change))
    for part in said.split("; "):
        assert part in advice
    assert is_broken(replace(FACTS, **change)) == ("packages" in change)


@given(
    st.integers(1, 64), st.none() | st.integers(1, 512), st.integers(0, 2**40),
    st.none() | st.integers(0, 2**40), st.none() | st.text(max_size=4),
)  # fmt: skip
def test_any_environment_gives_sentences(cores, threads, free, limit, asked) -> None:
    held = Memory(2**40, free, limit, None if limit is None else limit // 2)
    assert 0 <= held.usable <= free
    for message in advise(replace(FACTS, threads=Threads(cores, threads, (), asked), memory=held)):
        assert message[-1] != "." and "; " in message


def test_the_environment_is_that_of_this_process(monkeypatch, tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir()
    (data / "kin8nm.npz").touch()
    monkeypatch.setenv("EVGP_DATA", str(data))
    monkeypatch.setenv("EVGP_CACHE", str(tmp_path / "kept"))
    environment = inspect()
    actual = {package.name: package.version for package in environment.packages}
    assert (actual["torch"], actual["numpy"]) == (version("torch"), numpy.__version__)
    assert (environment.evgp, environment.threads.torch) == (
        evgp.__version__,
        torch.get_num_threads(),
    )
    assert environment.threads.cores == len(psutil.Process().cpu_affinity())
    assert environment.memory.total == psutil.virtual_memory().total
    found, beside, kept = environment.folders
    assert (found.path, found.exists, found.sets) == (str(data), True, ("kin8nm",))
    assert (beside.path, beside.sets) == (str(tmp_path / "kept" / "data"), ())
    assert (kept.role, kept.exists, kept.writable) == ("cache", False, True)
    assert "mnist" in environment.missing_sets and "kin8nm" not in environment.missing_sets
    assert {part.name for part in environment.parts} == set(EXTRAS)


def container(root: Path, **files: object) -> None:
    root.mkdir(parents=True, exist_ok=True)
    for name, value in files.items():
        (root / name.replace("__", ".")).write_text(f"{value}\n")


def test_the_narrowest_container_of_the_new_kind_counts(tmp_path: Path) -> None:
    own = tmp_path / "own"
    own.write_text("0::/outer/inner\n")
    container(tmp_path / "outer" / "inner", memory__max="max", memory__current=1)
    container(tmp_path / "outer", memory__max=5 * GB, memory__current=2 * GB)
    actual = memory(tmp_path, own)
    assert (actual.limit, actual.used) == (5 * GB, 2 * GB)


def test_containers_of_the_old_kind_count(tmp_path: Path) -> None:
    own = tmp_path / "own"
    own.write_text("9:cpu:/\n4:memory:/job\n0::/\n")
    folder = tmp_path / "memory" / "job"
    container(folder, memory__limit_in_bytes=3 * GB, memory__usage_in_bytes=GB)
    actual = memory(tmp_path, own)
    assert (actual.limit, actual.used) == (3 * GB, GB)
    container(folder, memory__limit_in_bytes=2**63 - 4096)
    assert memory(tmp_path, own).limit is None
    assert memory(tmp_path, tmp_path / "nothing").limit is None


def test_the_command_prints_a_document_or_lines(monkeypatch) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "many")
    monkeypatch.setenv("EVGP_DATA", "/nowhere")
    result = CliRunner().invoke(app, ["doctor", "--json"])
    document = json.loads(result.stdout)
    assert document["python"] == sys.version.split()[0]
    assert document["memory"]["usable"] <= document["memory"]["total"]
    assert any("'many'" in message for message in document["advice"])
    assert any("/nowhere" in message for message in document["advice"])
    lines = CliRunner().invoke(app, ["doctor"])
    assert result.exit_code == lines.exit_code == 0
    rows = dict(line.split("\t", 1) for line in lines.stdout.splitlines())
    assert rows["torch"] == version("torch") and "GB free" in rows["memory"]
    assert [line for line in lines.stderr.splitlines() if "/nowhere" in line]
