"""A cache that was damaged gives the picks of one that was not, and says what it rebuilt."""

import os
import shutil
import stat
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import evgp
from evgp._linalg import BLOCK
from evgp.datasets import cache, verify
from evgp.errors import DamagedFile, DamageWarning, DatasetError
from evgp.posterior.feature_rows import mapped
from tests.messages import refused, warned

RULES = {"features": "nystrom-24", "method": "sharded", "seed": 3}
# What a cache holds after a run over more than one shard.
KINDS = ("features", "rest", "sums-32", "sums-of", "start")
Harm = Callable[[Path], object]

pytestmark = pytest.mark.usefixtures("cache")


@pytest.fixture(scope="module")
def pools(tmp_path_factory) -> tuple[Path, Path]:
    """Two pools of three small shards."""
    folder = tmp_path_factory.mktemp("pools")
    for seed in (0, 1):
        x = np.random.default_rng(seed).normal(size=(9000, 5))
        np.save(folder / f"{seed}.npy", x.astype(np.float32))
    return folder / "0.npy", folder / "1.npy"


@pytest.fixture(scope="module")
def finished(pools, tmp_path_factory) -> tuple[Path, list[evgp.Selection]]:
    """The caches of a run on each, and what was picked."""
    folder = tmp_path_factory.mktemp("kept")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("evgp.selection.request.SHARD", BLOCK)
        result = [evgp.pick(pool, 8, cache=folder / pool.stem, **RULES) for pool in pools]
    return folder, result


@pytest.fixture
def kept(finished, tmp_path, monkeypatch) -> Path:
    """A copy to damage, without the picks that would hide what the damage does to new ones."""
    monkeypatch.setattr("evgp.selection.request.SHARD", BLOCK)
    gone = shutil.ignore_patterns("*.picks")
    return Path(shutil.copytree(finished[0], tmp_path / "copy", ignore=gone))


@pytest.fixture
def picks(finished, kept) -> list[Path]:
    """The same with the picks of each pool."""
    files = [next((finished[0] / name).glob("*/*.picks")) for name in "01"]
    return [Path(shutil.copy(file, kept / file.relative_to(finished[0]))) for file in files]


def cached_files(kept: Path, kind: str, pool: int = 0) -> list[Path]:
    """Files of a kind in the cache of a pool, in order."""
    return sorted((kept / str(pool)).glob(f"*/{kind.replace('32', '1')}*.npy"))


def multiplied(path: Path) -> None:
    x = np.load(path, mmap_mode="r+").reshape(-1)
    x[7:90] = x[7:90] * 50 + 1


def not_a_number(path: Path) -> None:
    np.load(path, mmap_mode="r+")[1] = np.nan


def flipped(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 16
    path.write_bytes(content)


def cut(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2)


def cut_a_little(path: Path) -> None:
    os.truncate(path, path.stat().st_size - 5)


def emptied(path: Path) -> None:
    os.truncate(path, 0)


def other_checksums(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[-40] ^= 1
    path.write_bytes(content)


def a_link_to_a_pipe(path: Path) -> None:
    """As one to a device, which a test had better not risk."""
    path.unlink()
    os.mkfifo(path.with_suffix(".pipe"))
    path.symlink_to(path.with_suffix(".pipe"))


def a_link(path: Path) -> None:
    path.rename(path.with_suffix(".kept"))
    path.symlink_to(path.with_suffix(".kept"))


def a_pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


HARMS: tuple[Harm, ...] = (
    multiplied, not_a_number, flipped, cut, cut_a_little, emptied, other_checksums, Path.unlink,
    a_link_to_a_pipe, a_pipe, a_link,
)  # fmt: skip


def same(pools, kept: Path, finished, named: str | None) -> None:
    """The picks are those of an undamaged run; the file is named; the next run has no news."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        again = evgp.pick(pools[0], 8, cache=kept / "0", **RULES)
    whole = finished[1][0]
    assert again.indices.tolist() == whole.indices.tolist()
    assert again.gains.tolist() == whole.gains.tolist()
    messages = [
        str(warning.message) for warning in caught if issubclass(warning.category, DamageWarning)
    ]
    assert tuple(messages) == again.warnings
    assert bool(messages) == (named is not None)
    assert named is None or all(named in message for message in messages)
    twice = evgp.pick(pools[0], 8, cache=kept / "0", **RULES)
    assert twice.indices.tolist() == whole.indices.tolist() and not twice.warnings


@pytest.mark.parametrize("harm", HARMS, ids=lambda harm: harm.__name__)
@pytest.mark.parametrize("kind", KINDS)
def test_damage_is_named_and_rebuilt(pools, finished, kept, kind, harm) -> None:
    path = cached_files(kept, kind)[-1]
    harm(path)
    # Sums and starts that are missing are made as in a run that was stopped.
    quiet = harm is Path.unlink and kind not in ("features", "rest")
    same(pools, kept, finished, None if quiet else path.name)
    pipes = path.parent.glob("*.pipe")  # what a link led to is as it was
    assert all(stat.S_ISFIFO(pipe.stat().st_mode) for pipe in pipes)


@pytest.mark.parametrize("kind", KINDS)
def test_a_folder_in_the_place_of_a_file_is_named(pools, kept, kind) -> None:
    path = cached_files(kept, kind)[-1]
    path.unlink()
    path.mkdir()
    with refused(DatasetError):
        evgp.pick(pools[0], 8, cache=kept / "0", **RULES)


@pytest.mark.parametrize("harm", [a_link_to_a_pipe, a_pipe, a_link])
def test_picks_that_are_not_files_are_made_again(pools, finished, kept, picks, harm) -> None:
    harm(picks[0])
    same(pools, kept, finished, picks[0].name)


def test_picks_with_a_hole_behind_them_are_kept(pools, finished, kept, picks) -> None:
    os.truncate(picks[0], 10**11)
    same(pools, kept, finished, picks[0].name)


def test_a_flipped_bit_in_the_picks_is_named(pools, finished, kept, picks) -> None:
    path = picks[0]
    whole = path.read_bytes()
    flipped(path)
    same(pools, kept, finished, path.name)
    assert path.read_bytes() == whole


@pytest.mark.parametrize("kind", KINDS)
def test_files_that_were_exchanged_are_noticed(pools, finished, kept, kind) -> None:
    """With those of another pool, and with those of another shard."""
    ours, theirs = cached_files(kept, kind)[0], cached_files(kept, kind, pool=1)[0]
    shutil.copy(theirs, ours)
    same(pools, kept, finished, ours.name)
    first, *others = cached_files(kept, kind)
    if others:
        first.rename(kept / "aside")
        others[0].rename(first)
        (kept / "aside").rename(others[0])
        same(pools, kept, finished, f"{kind.split('-')[0]}-")


def test_picks_of_another_run_are_not_taken_over(pools, finished, kept, picks) -> None:
    shutil.copy(picks[1], picks[0])
    same(pools, kept, finished, picks[0].name)


def test_a_cache_of_an_earlier_version_is_rebuilt(pools, finished, kept, picks) -> None:
    for path in (kept / "0").glob("*/*.npy"):
        np.save(path, np.load(path))  # without checksums
    multiplied(cached_files(kept, "features")[0])
    picks[0].write_text("0 8\n1 7\n")
    with pytest.warns(DamageWarning) as caught:
        again = evgp.pick(pools[0], 8, cache=kept / "0", **RULES)
    messages = [str(warning.message) for warning in caught]
    assert again.indices.tolist() == finished[1][0].indices.tolist()
    assert "an earlier version wrote it, without checksums" in messages[0]
    assert any(
        "1 more file" in message for message in messages
    )  # three shards are named, not their sums too
    for path in sorted((kept / "0").glob("*/*.npy")):
        with refused(DamagedFile):  # but it is whole
            verify(path, "no such origin")


def test_test_points_and_raw_features_are_verified_too(pools, tmp_path, monkeypatch) -> None:
    monkeypatch.setattr("evgp.selection.request.SHARD", BLOCK)
    rules = {"features": "raw", "method": "sharded", "x_test": pools[1], "cache": tmp_path / "kept"}
    whole = evgp.pick(pools[0], 5, **rules)
    for name in ("sums-1-000001.npy", "test-*/sums-1-000001.npy", "test-*/sums-of-*.npy"):
        (path,) = (tmp_path / "kept").glob(f"*/{name}")
        flipped(path)
        with warned(DamageWarning):
            again = evgp.pick(pools[0], 5, **rules)
        assert again.indices.tolist() == whole.indices.tolist()
        assert again.gains.tolist() == whole.gains.tolist()


def test_each_file_is_verified_once_in_a_run(pools, kept, monkeypatch) -> None:
    seen: list[str] = []
    real = cache._footer

    def watched(file, path):
        seen.append(path)
        return real(file, path)

    monkeypatch.setattr(cache, "_footer", watched)
    evgp.pick(pools[0], 8, cache=kept / "0", **RULES)
    assert sorted(seen) == sorted(map(str, (kept / "0").glob("*/*.npy")))


def test_a_file_that_is_cut_while_it_is_in_use_says_what_to_do(kept) -> None:
    path = cached_files(kept, "features")[0]
    cut(path)
    with refused(evgp.EvgpError):
        mapped(str(path))
