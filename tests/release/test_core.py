"""An installation without extras: what it does, and what it says where an extra is wanted."""

import json
import resource
import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import evgp
from evgp._extras import EXTRAS

Made = subprocess.CompletedProcess[str]


@pytest.fixture
def run(core: Path, tmp_path: Path) -> Callable[..., Made]:
    def call(*command: object) -> Made:
        first, *rest = map(str, command)
        return subprocess.run(
            [core / first, *rest],
            cwd=tmp_path,
            env={"HOME": str(tmp_path), "PATH": "/usr/bin:/bin", "OMP_NUM_THREADS": "1"},
            capture_output=True,
            text=True,
            check=False,
        )

    return call


@pytest.fixture
def pool(tmp_path: Path) -> Path:
    rows = np.random.default_rng(0).normal(size=(30, 2))
    path = tmp_path / "pool.csv"
    path.write_text("a,b\n" + "".join(f"{a},{b}\n" for a, b in rows))
    return path


def test_extras_are_really_absent(run) -> None:
    for module in ("fastapi", "dask", "numba", "safetensors", "pytest", "beartype", "httpx"):
        assert "ModuleNotFoundError" in run("python", "-c", f"import {module}").stderr


def test_help_version_and_picks(run, pool: Path) -> None:
    assert run("evgp", "--version").stdout == f"evgp {evgp.__version__}\n"
    assert "Commands:" in run("evgp", "--help").stdout
    result = run("evgp", "pick", pool, "-k", 3, "-o", "picks.csv", "--report", "report.html")
    assert result.returncode == 0, result.stderr
    assert len((pool.parent / "picks.csv").read_text().splitlines()) == 4
    assert "<html" in (pool.parent / "report.html").read_text()


@pytest.mark.slow
def test_help_takes_less_than_half_a_second(run) -> None:
    """Of the processor, which other work on the machine hardly changes; the best of five."""

    def taken() -> float:
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        assert run("evgp", "--help").returncode == 0
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime

    assert min(taken() for _ in range(5)) < 0.5


@pytest.mark.slow
def test_all_that_needs_no_extra_can_be_imported(run) -> None:
    code = """
import importlib, pkgutil, evgp
for found in pkgutil.walk_packages(evgp.__path__, "evgp.", onerror=lambda name: None):
    if not found.name.startswith(("evgp.labelling.", "evgp.integrations.")):
        importlib.import_module(found.name)
assert all(getattr(evgp, name) is not None for name in evgp.__all__)
"""
    result = run("python", "-W", "error::ImportWarning", "-c", code)
    assert (result.returncode, result.stdout) == (0, ""), result.stdout + result.stderr


@pytest.mark.slow
def test_a_campaign_needs_no_extra(run, pool: Path) -> None:
    assert run("evgp", "new", "spam", pool, "--classes", "yes,no").returncode == 0
    assert run("evgp", "next", "spam", "-k", 2).returncode == 0


def test_the_page_says_what_to_install(run) -> None:
    result = run("evgp", "campaign", "serve", "spam")
    assert result.returncode == 1
    assert result.stderr == (
        "evgp: expected fastapi and uvicorn, which are not installed; do "
        '`pip install "evgp[web]"`\n'
    )


@pytest.mark.slow
def test_the_cluster_says_what_to_install(run, pool: Path) -> None:
    np.save(pool.parent / "pool.npy", np.random.default_rng(0).normal(size=(30, 2)))
    result = run("evgp", "pick", "pool.npy", "-k", 3, "--dask", "tcp://127.0.0.1:1", "--cache", "c")
    assert result.returncode == 1
    assert result.stderr.endswith('which are not installed; do `pip install "evgp[dask]"`\n')
    assert result.stderr.count("\n") == 1


@pytest.mark.slow
def test_weights_say_what_to_install(run, pool: Path) -> None:
    np.save(pool.parent / "pool.npy", np.random.default_rng(0).normal(size=(30, 2)))
    (pool.parent / "net.safetensors").write_bytes(b"anything")
    (pool.parent / "nets.py").write_text("import torch\nmake = lambda: torch.nn.Linear(2, 1)\n")
    result = run(
        "evgp", "pick", "pool.npy", "-k", 3, "--network", "nets:make", "--weights",
        "net.safetensors",
    )  # fmt: skip
    assert result.returncode == 1
    assert result.stderr.endswith('do `pip install "evgp[weights]"`\n'), result.stderr
    assert result.stderr.count("\n") == 1


@pytest.mark.slow
def test_the_doctor_names_what_is_absent_and_how_to_get_it(run) -> None:
    result = run("evgp", "doctor", "--json")
    assert result.returncode == 0, result.stderr
    parts = {part["name"]: part for part in json.loads(result.stdout)["parts"]}
    assert not any(part["present"] for part in parts.values())
    assert parts["web"]["install"] == 'pip install "evgp[web]"'
    assert 'pip install "evgp[dask]"' in run("evgp", "doctor").stdout


@pytest.mark.parametrize("broken", [pytest.param("torch", marks=pytest.mark.slow), "packaging"])
def test_the_doctor_works_where_a_package_does_not(run, core: Path, broken: str) -> None:
    (packages,) = core.parent.glob("lib/python*/site-packages")
    link, kept = packages / broken, packages / f"{broken}.kept"
    link.rename(kept)
    link.mkdir()
    try:
        (link / "__init__.py").write_text("raise ImportError('lib is not there', name='it')")
        result = run("evgp", "doctor")
    finally:
        (link / "__init__.py").unlink()
        for rest in sorted(link.rglob("*"), reverse=True):
            rest.unlink() if rest.is_file() else rest.rmdir()
        link.rmdir()
        kept.rename(link)
    assert result.returncode == 1
    assert "lib is not there" in result.stderr and "pip install --force-reinstall" in result.stderr
    assert "Traceback" not in result.stderr


_ALL = (
    "expected httpx and fastapi and uvicorn, which are not installed; do "
    f"`{EXTRAS['label-studio'].install}`"
)
ABSENT = {
    "skactiveml": (
        f"scikit-activeml 1.0 or newer is not installed; run `{EXTRAS['adapters'].install}`"
    ),
    "label_studio.client": _ALL,
    "label_studio.backend": _ALL,
}


CODE = """
import importlib, sys
for name in sys.argv[1:]:
    try:
        importlib.import_module(f"evgp.integrations.{name}")
    except ImportError as error:
        print(error)
    else:
        print("imported")
"""


def test_the_adapters_name_the_extra(run) -> None:
    ran = run("python", "-c", CODE, *ABSENT)
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.splitlines() == list(ABSENT.values())
    assert EXTRAS["adapters"].install == 'pip install "evgp[adapters]"'
