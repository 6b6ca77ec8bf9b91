"""Memory within containers, of both kinds that Linux has."""

from pathlib import Path

import psutil
import pytest

from evgp._machine import available_memory, limits

MB = 2**20
KINDS = {
    "new": ("0::/job\n", "job", ("memory.max", "memory.current", "inactive_file")),
    "old": (
        "9:cpu:/\n4:memory:/job\n0::/\n",
        "memory/job",
        ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),
    ),
}


@pytest.fixture(params=KINDS)
def job(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Path, Path, tuple[str, ...]]:
    lines, inside, names = KINDS[request.param]
    (tmp_path / "own").write_text(lines)
    (tmp_path / inside).mkdir(parents=True)
    return tmp_path, tmp_path / inside, names


def test_what_a_container_leaves_is_what_can_be_had(job) -> None:
    root, folder, (limit, used, cached) = job
    (folder / limit).write_text(f"{30 * MB}\n")
    (folder / used).write_text(f"{12 * MB}\n")
    assert available_memory(root, root / "own") == 18 * MB
    # Files that were read can go again.
    (folder / "memory.stat").write_text(f"anon {2 * MB}\n{cached} {10 * MB}\n")
    assert available_memory(root, root / "own") == 28 * MB


def test_a_full_container_leaves_nothing(job) -> None:
    root, folder, (limit, used, _) = job
    (folder / limit).write_text(f"{MB}\n")
    (folder / used).write_text(f"{2 * MB}\n")
    assert available_memory(root, root / "own") == 0


@pytest.mark.parametrize("said", ["max", str(2**63 - 4096), "", "many"])
def test_no_limit_is_no_limit(job, said: str) -> None:
    root, folder, (limit, used, _) = job
    (folder / limit).write_text(f"{said}\n")
    (folder / used).write_text(f"{MB}\n")
    assert list(limits(root, root / "own")) == []
    assert available_memory(root, root / "own") > 30 * MB


def test_statistics_that_cannot_be_read_count_for_nothing(job) -> None:
    root, folder, (limit, used, _) = job
    (folder / limit).write_text(f"{30 * MB}\n")
    (folder / used).write_text(f"{12 * MB}\n")
    (folder / "memory.stat").write_text("a line of four words\n")
    assert available_memory(root, root / "own") == 18 * MB


def test_elsewhere_it_is_that_of_the_machine(tmp_path: Path) -> None:
    assert list(limits(tmp_path, tmp_path / "nothing")) == []
    free = psutil.virtual_memory().available
    assert available_memory(tmp_path, tmp_path / "nothing") == pytest.approx(free, rel=0.2)
