"""What a long run keeps on the disk."""

from pathlib import Path

import pytest

from evgp._errors import DatasetError
from evgp.datasets import PickFile


def test_a_line_cut_short_to_any_bytes_is_as_good_as_not_written(tmp_path: Path) -> None:
    path = tmp_path / "picks.txt"
    path.write_bytes(b"0 7\n1 \xff\xfe")
    again = PickFile(path)
    again.add(3)
    assert again.rows() == [7, 3] and path.read_bytes() == b"0 7\n1 3\n"


def test_whole_lines_that_are_no_picks_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "picks.txt"
    path.write_bytes(b"0 7\n1 \xff\n")
    with pytest.raises(DatasetError, match=r"expected picks, got .*delete the file"):
        PickFile(path)
