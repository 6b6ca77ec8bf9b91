"""What a long run keeps on the disk."""

import os
import resource
import signal
from pathlib import Path

import pytest

from evgp.datasets import PickFile, in_use
from evgp.errors import DamageWarning, DiskFull
from tests.messages import refused, warned


def written(path: Path, rows: list[int]) -> list[bytes]:
    """A file with these picks; its lines."""
    file = PickFile(path)
    for row in rows:
        file.add(row)
    return path.read_bytes().splitlines(keepends=True)


def test_a_line_cut_short_to_any_bytes_is_as_good_as_not_written(tmp_path: Path) -> None:
    path = tmp_path / "picks.txt"
    first, second = written(path, [7, 3])
    path.write_bytes(first + b"1 \xff\xfe")
    with warned(DamageWarning):  # no line begins so
        again = PickFile(path)
    assert again.rows() == [7] and path.read_bytes() == first
    again.add(3)
    assert again.rows() == [7, 3] and path.read_bytes() == first + second


@pytest.mark.parametrize("bit", range(8))
def test_a_flipped_bit_ends_what_is_believed(tmp_path: Path, bit: int) -> None:
    path, rows = tmp_path / "picks.txt", [7, 3, 12, 5]
    lines = written(path, rows)
    whole, before = b"".join(lines), b"".join(lines[:2])
    for at in range(len(before), len(before) + len(lines[2])):
        damaged = bytearray(whole)
        damaged[at] ^= 1 << bit
        path.write_bytes(damaged)
        with warned(DamageWarning):
            again = PickFile(path)
        assert again.rows() == rows[:2] and path.read_bytes() == before


def test_lines_left_out_exchanged_or_of_another_run_are_not_believed(tmp_path: Path) -> None:
    path, other = tmp_path / "a.picks", tmp_path / "b.picks"
    lines = written(path, [7, 3, 12])
    for changed, kept in (
        (lines[:1] + lines[2:], 1),
        ([lines[1], lines[0], lines[2]], 0),
        ([lines[0], b"1 \xff\n"], 1),
        (written(other, [7, 3, 12]), 0),
    ):
        path.write_bytes(b"".join(changed))
        with warned(DamageWarning):
            assert PickFile(path).rows() == [7, 3, 12][:kept]


def test_two_runs_at_once_may_write_the_same_lines(tmp_path: Path) -> None:
    path = tmp_path / "a.picks"
    first, other = PickFile(path), PickFile(path)
    for row in (7, 3):
        first.add(row)
    other.add(7)
    first.add(12)
    other.add(3)
    assert PickFile(path).rows() == [7, 3, 12]


def test_picks_without_checksums_are_made_again(tmp_path: Path) -> None:
    path = tmp_path / "a.picks"
    path.write_bytes(b"0 7\n1 3\n")
    with warned(DamageWarning):
        assert PickFile(path).rows() == []
    assert path.read_bytes() == b""


def test_a_full_disk_names_the_file(tmp_path: Path) -> None:
    path = tmp_path / "a.picks"
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    ignored = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    written(path, [7])
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (30, before[1]))
        with refused(DiskFull):
            PickFile(path).add(3)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, ignored)
    assert PickFile(path).rows() == [7]
    assert os.listdir(tmp_path) == ["a.picks"]


def test_a_folder_that_a_killed_run_was_removing_goes(tmp_path: Path) -> None:
    left = tmp_path / ".evgp-0123.gone"
    left.mkdir()
    (left / "features.npy").write_bytes(b"large")
    (tmp_path / "other").mkdir()
    with in_use(tmp_path / "work", remove=False):
        assert not left.exists() and (tmp_path / "other").exists()


@pytest.mark.parametrize("tail", [b"\0" * 64, b"garbage", b"9 4 zz", b"\xff\n"])
def test_what_no_crash_leaves_is_named(tmp_path, tail) -> None:
    path = tmp_path / "start.picks"
    PickFile(path).add(7)
    path.write_bytes(path.read_bytes() + tail)
    with warned(DamageWarning):
        assert PickFile(path).rows() == [7]
    assert PickFile(path).rows() == [7]


def test_a_line_that_a_crash_cut_short_is_no_damage(tmp_path) -> None:
    path = tmp_path / "start.picks"
    kept = PickFile(path)
    kept.add(7)
    kept.add(31)
    whole = path.read_bytes()
    for end in range(whole.index(b"\n") + 1, len(whole)):
        path.write_bytes(whole[:end])
        assert PickFile(path).rows() == [7]
