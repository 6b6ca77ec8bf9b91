"""A full disk: every file that is written is named, with its folder and what to do."""

import errno
import os
import resource
import shutil
import signal
import stat
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

import evgp
from evgp.comparison.cells import Cell, Store
from evgp.comparison.rows import Row
from evgp.comparison.rows import write_rows as write_arena_rows
from evgp.datasets import array_file, atomic, naming, write_rows, write_text
from evgp.datasets.demo import write
from evgp.errors import DatasetError, DiskFull
from evgp.labelling.campaign import Campaign
from evgp.labelling.campaign.files import export
from evgp.labelling.web.auth import sessions_for
from tests.messages import refused

ROWS = {"id": [f"row {i}" for i in range(999)], "gain": [i / 7 for i in range(999)]}


@contextmanager
def limit(size: int) -> Iterator[None]:
    """No file of this process may grow beyond `size` bytes, as if the disk were full."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    ignored = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, ignored)


def arrays(path: Path) -> None:
    with array_file(path, (999, 3), "float32") as x:
        x[:] = 1


def table(path: Path) -> None:
    row = ("regression", "evgp", 0, 0, 10, 10, 5, 0.1, 0.2, 3.0)
    write_arena_rows(path, [Row(f"d{i}", *row) for i in range(999)])


def cell(path: Path) -> None:
    Store(path.parents[1]).add(Cell("a:b", {"seed": 0}), [{"mse": 0.5}] * 999, seconds=1.0)


WRITERS = {
    "picks.csv": lambda path: write_rows(path, ROWS),
    "picks.tsv": lambda path: write_rows(path, ROWS),
    "picks.jsonl": lambda path: write_rows(path, ROWS),
    "picks.parquet": lambda path: write_rows(path, ROWS),
    "page.html": lambda path: write_text(path, "long" * 999),
    "x.npy": arrays,
    "digits.npy": lambda path: write("digits", path),
    "digits.csv": lambda path: write("digits", path),
    "rows.parquet": table,
    "cells/a-0-": cell,
    "c.evgp-token": lambda path: sessions_for(path.with_name("c.evgp"), ask=True),
}  # fmt: skip


@pytest.mark.parametrize("name", WRITERS)
def test_the_file_is_named_and_nothing_is_left(tmp_path, name) -> None:
    with limit(20), pytest.raises(DiskFull) as caught:
        WRITERS[name](tmp_path / name)
    text = str(caught.value)
    folder = (tmp_path / name).parent
    assert text.startswith(str(tmp_path / name)) and ".part" not in text
    assert f"in the folder {folder}; make room there" in text
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]
    WRITERS[name](tmp_path / name)


def test_a_campaign_names_its_file_and_continues(tmp_path) -> None:
    pool = tmp_path / "pool.csv"
    pool.write_text("a,b\n" + "".join(f"{i},{i * i % 7}\n" for i in range(50)))
    with limit(20), refused(DiskFull):
        Campaign.create(tmp_path / "c", pool, number=True)
    campaign = Campaign.create(tmp_path / "c", pool, number=True)
    campaign.answer(3, "label", 1.0)
    size = campaign.path.stat().st_size
    with limit(size), refused(evgp.EvgpError):
        for row in range(50):
            campaign.answer(row, "label", 1.0, who="x" * 100)
    with limit(size), refused(evgp.EvgpError):
        campaign.next(40)
    with limit(20), refused(DiskFull):
        export(campaign, tmp_path / "out.csv")
    campaign.next(5)
    assert export(campaign, tmp_path / "out.csv") >= 1


def test_a_sharded_run_names_its_file_and_continues(tmp_path) -> None:
    np.save(tmp_path / "x.npy", np.random.default_rng(0).normal(size=(5000, 4)))
    rules = {"features": "nystrom-8", "method": "sharded", "cache": tmp_path / "kept"}
    whole = evgp.pick(tmp_path / "x.npy", 4, features="nystrom-8", greedy="exact").indices
    for size in (100, 5000, 150_000, 160_140):
        with (
            limit(size),
            refused(DiskFull),
        ):
            evgp.pick(tmp_path / "x.npy", 4, **rules)
    assert not list((tmp_path / "kept").rglob("*.part"))
    selection = evgp.pick(tmp_path / "x.npy", 4, **rules)
    assert selection.indices.tolist() == whole.tolist() and not selection.warnings


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EDQUOT, errno.EFBIG])
def test_what_else_goes_wrong_keeps_its_kind(tmp_path, code) -> None:
    with refused(DiskFull), naming(tmp_path / "a.txt"):
        raise OSError(code, os.strerror(code))
    with refused(DiskFull), naming(tmp_path / "a.txt"):
        raise OSError(code, os.strerror(code), "other")
    with pytest.raises(PermissionError) as caught, naming(tmp_path / "a.txt"):
        raise OSError(errno.EACCES, "no")
    assert caught.value.filename == str(tmp_path / "a.txt")
    with refused(FileNotFoundError), naming(tmp_path / "a.txt"):
        open("other")
    with pytest.raises(ZeroDivisionError), atomic(tmp_path / "a.txt"):
        raise ZeroDivisionError


@pytest.fixture
def small(tmp_path) -> Iterator[Path]:
    """A file system of 256 KB."""
    folder = tmp_path / "small"
    folder.mkdir()
    mount = shutil.which("mount")
    if mount is None or not hasattr(os, "geteuid") or os.geteuid() != 0:
        pytest.skip("mounting a small file system needs root")
    done = subprocess.run(
        [mount, "-t", "tmpfs", "-o", "size=256k", "tmpfs", folder], capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    if done.returncode:
        pytest.skip(f"mounting is not permitted here: {done.stderr.strip()}")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", folder], check=True)


def test_a_real_small_disk(small, tmp_path) -> None:
    """Filled up but for one page, then emptied."""
    pool = tmp_path / "pool.csv"
    pool.write_text("a,b\n" + "".join(f"{i},{i * i % 7}\n" for i in range(50)))
    np.save(tmp_path / "x.npy", np.random.default_rng(0).normal(size=(2000, 4)))
    campaign = Campaign.create(small / "c", pool, number=True)
    filler = small / "filler"
    free = os.statvfs(small).f_bavail * os.statvfs(small).f_frsize
    filler.write_bytes(bytes(free))
    for name, make in WRITERS.items():
        with refused(DiskFull) as caught:
            make(small / name)
        assert str(small) in str(caught.value)
    with refused(evgp.EvgpError):
        for row in range(50):
            campaign.answer(row, "label", 1.0, who="x" * 100)
    rules = {"features": "nystrom-8", "method": "sharded", "cache": small / "kept"}
    with refused(evgp.EvgpError):
        evgp.pick(tmp_path / "x.npy", 4, **rules)
    filler.unlink()
    assert len(campaign.next(5)) == 5
    assert len(evgp.pick(tmp_path / "x.npy", 4, **rules)) == 4
    campaign.close()


def test_devices_and_pipes_are_never_replaced(tmp_path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to("pipe")
    for name in ("pipe", "link"):
        with (
            refused(DatasetError),
            atomic(tmp_path / name) as part,
        ):
            part.write_text("new")
    assert stat.S_ISFIFO(os.stat(tmp_path / "pipe").st_mode)
