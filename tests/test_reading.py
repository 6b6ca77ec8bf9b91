"""The one place where files are opened: anything but a plain file of moderate size is refused."""

import gzip
import os
import socket
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.feather
import pytest

import evgp
from evgp import _reading
from evgp._reading import check_plain, opened, read_bytes, read_json, read_text, reading_within
from evgp.datasets import load_selection, open_pool, read_table, write_rows
from evgp.datasets.cache import PickFile, fingerprint, verify
from evgp.errors import CampaignError, DamagedFile, DamageWarning, DatasetError
from evgp.labelling.web.auth import sessions_for
from tests.messages import refused, warned


@pytest.fixture
def odd(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    os.mkfifo("pipe")
    Path("zero").symlink_to("/dev/zero")
    Path("folder").mkdir()
    Path("loop").symlink_to("loop")
    Path("linked").symlink_to("pipe")
    Path("file").write_text("x")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind("socket")
    return tmp_path


@pytest.mark.parametrize("read", [check_plain, read_bytes, read_text])
@pytest.mark.parametrize(
    "name",
    [
        "pipe",
        "linked",
        "zero",
        "/dev/null",
        "socket",
        "folder",
        "loop",
        "absent",
        "file/below",
        "n" * 300,
        "null\0byte",
    ],
)
def test_only_plain_files_are_opened(odd: Path, read, name: str) -> None:
    with refused(CampaignError):
        read(name, CampaignError)


def test_a_pipe_that_takes_a_name_is_not_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    os.mkfifo(tmp_path / "pipe")
    monkeypatch.setattr(_reading, "check_plain", lambda *_: 1)  # it was a file a moment ago
    with refused(DatasetError), opened(tmp_path / "pipe"):
        pass


def test_what_is_read_stays_within_what_is_allowed(tmp_path: Path) -> None:
    path = tmp_path / "text"
    path.write_bytes(b"x" * 3000)
    with reading_within(8_000):
        assert len(read_bytes(path)) == 3000
    for allowed in (6_000, 5_000):
        with reading_within(allowed), refused(DatasetError):
            read_text(path)
    with refused(DatasetError):
        read_bytes(path, most=100)
    assert len(read_text(path)) == 3000


def test_values_of_json_count_as_what_they_take(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text("[" + "[]," * 10_000 + "[]]")
    with reading_within(1_000_000), refused(DatasetError):
        read_json(path, "a list")
    with reading_within(10_000_000):
        assert len(read_json(path, "a list")) == 10_001  # type: ignore[arg-type]


@pytest.mark.parametrize("content", [b"{", b"[" * 100_000, b"9" * 5000, b"\xff", b""])
def test_other_files_are_not_json(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "a.json").write_bytes(content)
    with refused(CampaignError):
        read_json(tmp_path / "a.json", "an export", CampaignError)


def test_a_file_that_grows_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "text"
    path.write_text("whole")
    monkeypatch.setattr(_reading, "check_plain", lambda *_: 2)
    with refused(DatasetError):
        read_bytes(path)


def test_pipes_in_the_place_of_kept_files_are_not_waited_for(odd: Path) -> None:
    with refused(DamagedFile):
        verify("pipe")
    with pytest.raises(OSError, match="seek"):
        fingerprint("pipe")
    with warned(DamageWarning):
        assert PickFile(Path("pipe")).rows() == [] and not Path("pipe").exists()
    os.mkfifo("camp.evgp-token")
    with refused(CampaignError):
        sessions_for(Path("camp.evgp"), ask=True)


def test_a_saved_selection_that_does_not_fit_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "picks.json"
    path.write_text("[" + "1," * 5_000 + "1]")
    with reading_within(50_000), refused(DatasetError):
        load_selection(path)


@pytest.mark.skipif(sys.platform in ("darwin", "win32"), reason="names are UTF-8 there")
@pytest.mark.parametrize("suffix", [".csv", ".csv.gz", ".tsv", ".parquet", ".arrow", ".npy"])
def test_names_that_are_not_utf8(tmp_path: Path, suffix: str) -> None:
    plain, odd = tmp_path / f"plain{suffix}", tmp_path / os.fsdecode(b"caf\xe9" + suffix.encode())
    columns = {"a": [1.0, 2.0, 4.0], "b": [3.0, 1.0, 2.0]}
    if suffix == ".npy":
        np.save(plain, np.array(list(columns.values())).T)
    elif suffix == ".arrow":
        pyarrow.feather.write_feather(pa.table(columns), plain, compression="uncompressed")
    elif suffix == ".csv.gz":
        plain.write_bytes(gzip.compress(b"a,b\n1,3\n2,1\n4,2\n"))
    else:
        write_rows(plain, columns)
        write_rows(odd, columns)
        assert odd.read_bytes() == plain.read_bytes()
    plain.rename(odd)
    if suffix != ".npy":
        assert read_table(odd).data.to_pydict() == columns
    if suffix in (".parquet", ".arrow", ".npy"):
        assert len(evgp.pick(odd, 2)) == len(open_pool(odd)) - 1 == 2
