"""The wheel, really installed from the registry into an empty environment."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from urllib.request import urlopen
from venv import EnvBuilder

import pytest

import evgp

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def programs(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("installed")
    EnvBuilder(symlinks=True).create(folder)
    pip = [sys.executable, "-m", "pip", "--python", str(folder / "bin" / "python"), "install"]
    expected = ["--quiet", "--constraint", str(ROOT / "constraints.txt"), f"{wheel}[web]"]
    process = subprocess.run([*pip, *expected], capture_output=True, text=True, check=False)
    if process.returncode and not os.environ.get("CI"):
        pytest.skip(f"pip could not install the wheel here: {process.stderr.splitlines()[-1]}")
    assert process.returncode == 0, process.stderr
    return folder / "bin"


@pytest.fixture
def run(programs: Path, tmp_path: Path) -> Callable[..., str]:
    def call(*command: object) -> str:
        return subprocess.run(
            [programs / "evgp", *map(str, command)],
            cwd=tmp_path, capture_output=True, text=True, check=True,
        ).stdout  # fmt: skip

    return call


@pytest.mark.slow
def test_an_empty_environment_picks_and_serves(run, programs: Path, tmp_path: Path) -> None:
    assert run("--version") == f"evgp {evgp.__version__}\n"
    assert "pick" in run("--help")
    (tmp_path / "pool.csv").write_text("a,b\n" + "".join(f"{i % 7},{i**2}\n" for i in range(30)))
    assert len(run("pick", "pool.csv", "-k", 4).splitlines()) == 5
    assert "fastapi" in run("doctor")
    run("campaign", "new", "spam", "pool.csv", "--classes", "yes,no")
    command = [programs / "evgp", "campaign", "serve", "spam", "--port", "0"]
    serving = subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, text=True)
    assert serving.stderr is not None
    try:
        address = serving.stderr.readline().split(": ", 1)[1].split()[0]
        with urlopen(f"{address}/", timeout=60) as answer:
            assert answer.status == 200 and b"<html" in answer.read()
    finally:
        serving.terminate()
        serving.wait(60)
        serving.stderr.close()
