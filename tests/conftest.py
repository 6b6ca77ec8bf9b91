"""Shared inputs, and the way to the real data."""

import os
import shutil
import subprocess
import sys
from collections.abc import Generator
from pathlib import Path
from typing import NoReturn

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from hypothesis import settings

from tests import messages
from tests.annotations import check_annotations

check_annotations()

QUIET = (
    "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-sync "
    "--disable-background-networking --disable-component-update --enable-logging=stderr"
)

_BESIDE = Path(__file__).parents[2] / "shared" / "data"
if _BESIDE.is_dir():
    os.environ.setdefault("EVGP_DATA", str(_BESIDE))

# Compiling the tests takes half the time of collecting them: keep what was compiled, whatever
# PYTHONDONTWRITEBYTECODE says.
sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

# Small products gain nothing from threads, and lose much on a busy machine; nor do processes that
# tests start, and the workers of xdist.
torch.set_num_threads(1)
os.environ.setdefault("OMP_NUM_THREADS", "1")


# The fast tests try fewer examples of each law than `make test-slow` does.
FEW = 15
settings.register_profile("busy", deadline=None)  # a busy machine is not a failure
settings.load_profile("busy")
settings.register_profile("fast", max_examples=FEW, deadline=None)


def pytest_configure(config: pytest.Config) -> None:
    if "not slow" in config.getoption("markexpr"):
        settings.load_profile("fast")


def examples(count: int) -> int:
    """How many examples of a law are tried, where all tests run; the fast ones try fewer."""
    return min(count, FEW) if settings.default.max_examples == FEW else count


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-messages", action="store_true", help="write tests/messages.txt")


@pytest.fixture(scope="session", autouse=True)
def compared_messages(request, tmp_path_factory) -> None:
    messages.configure(
        request.config.getoption("--update-messages"), tmp_path_factory.getbasetemp()
    )


@pytest.fixture(scope="session", autouse=True)
def own_cache(tmp_path_factory) -> None:
    """Vectors of tests are not kept in the user's cache."""
    os.environ["EVGP_CACHE"] = str(tmp_path_factory.mktemp("cache"))


def pytest_itemcollected(item: pytest.Item) -> None:
    # Of a test that was asked for by one of its cases, the others are not seen.
    if not any("[" in asked for asked in item.config.args):
        messages.BOOK.collected.add(item.nodeid)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    return (yield from messages.running(item))


def pytest_sessionfinish(session: pytest.Session) -> None:
    """A worker hands its messages to the session that started it, which writes all at once."""
    book, config = messages.BOOK, session.config
    if hasattr(config, "workeroutput"):
        config.workeroutput["messages"] = book.said, book.finished, sorted(book.collected)
    elif config.getoption("--update-messages"):
        book.save()


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node) -> None:
    """What a worker handed over; nothing, if it died."""
    messages.BOOK.take(*getattr(node, "workeroutput", {}).get("messages", ({}, [], [])))


def data_folder() -> Path | None:
    """The folder of the real datasets, if there is one."""
    folder = os.environ.get("EVGP_DATA")
    return None if folder is None else Path(folder)


def absent(reason: str) -> NoReturn:
    """Skip; in CI all that tests need is there, so its absence is a failure."""
    if os.environ.get("CI"):
        pytest.fail(reason)
    pytest.skip(reason)


def missing(what: str) -> NoReturn:
    """The data of a test are not here."""
    absent(f"{what} is not here; set EVGP_DATA to the folder of datasets")


def chromium() -> str:
    """The system's browser."""
    actual = shutil.which("chromium") or shutil.which("chromium-browser")
    if actual is None:
        absent("no chromium on this machine; make browser installs it")
    return actual


@pytest.fixture
def opened(tmp_path):
    """A function that opens a page in a real browser: what it has become, and the console."""

    def show(html: str) -> tuple[str, str]:
        file = tmp_path / "shown.html"
        file.write_text(html, encoding="utf-8")
        process = subprocess.run(
            [chromium(), *QUIET.split(), f"--user-data-dir={tmp_path / 'profile'}", "--dump-dom",
             file.as_uri()],
            capture_output=True, text=True, timeout=120, check=True,
        )  # fmt: skip
        return process.stdout, process.stderr

    return show


@pytest.fixture(scope="session")
def half():
    """A function from a dataset's name to the pool of the recorded figures."""

    def load(name: str, seed: int = 0) -> np.ndarray:
        folder = data_folder()
        if folder is None or not (folder / f"{name}.npz").exists():
            missing(f"{name}.npz")
        data = np.load(folder / f"{name}.npz")
        x = data["X"] if "X" in data else np.concatenate([data["X_train"], data["X_test"]])
        return x[np.random.RandomState(seed).permutation(len(x))[: len(x) // 2]].astype(float)

    return load


@pytest.fixture(scope="session")
def reference():
    """Reference kernels, if they are here."""
    folder = data_folder()
    path = None if folder is None else folder.parent / "oracles" / "ntk_reference.npz"
    if path is None or not path.exists():
        missing("ntk_reference.npz")
    return np.load(path)


@pytest.fixture
def x() -> torch.Tensor:
    """Forty points in three dimensions."""
    return torch.randn(40, 3, generator=torch.Generator().manual_seed(0), dtype=torch.float64)


@pytest.fixture
def small_suite(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> object:
    """The suite "tables" as one small pool, in a folder of its own."""
    from evgp.comparison import suite

    random = np.random.default_rng(0)
    x = random.normal(size=(60, 3))
    folder = tmp_path / "data" / "suites"
    folder.mkdir(parents=True)
    table = {f"x{i}": x[:, i] for i in range(3)} | {"label": np.where(x.sum(1) > 0, "yes", "no")}
    pq.write_table(pa.table(table), folder / "small.parquet")
    monkeypatch.setenv("EVGP_DATA", str(tmp_path / "data"))
    checksum = suite.fingerprint(folder / "small.parquet")
    pool = suite.SuitePool("small", "tables", 60, 2, "made up", "none", "nobody", 0.1, checksum)
    monkeypatch.setattr(suite, "suite_pools", lambda: (pool,))
    return pool
