"""Files that are cut, changed or damaged, and rows that are not there."""

import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.feather
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from evgp.datasets import Streamed, open_pool
from evgp.errors import DatasetError
from tests.conftest import examples
from tests.datasets.test_streamed_refused import GOOD, NONE, read, survey, write
from tests.forked import python
from tests.messages import refused


@pytest.mark.parametrize(
    "ask",
    [
        lambda pool: pool.survey(0, 101, NONE),
        lambda pool: pool.survey(-1, 5, NONE),
        lambda pool: pool.survey(5, 4, NONE),
        lambda pool: pool.survey(0, 5, np.array([3, 100])),
        lambda pool: pool.survey(0, 5, np.array([3, 2])),
        lambda pool: pool.survey(0, 5, NONE).merge(pool.survey(6, 9, NONE)),
        lambda pool: pool.fitted(pool.survey(0, 50, NONE)),
        lambda pool: pool.fitted(survey(pool)).take(np.array([-1])),
        lambda pool: list(pool.fitted(survey(pool)).blocks(0, 101)),
        lambda pool: list(pool.fitted(survey(pool)).blocks(0, 5, 0)),
    ],
)
@pytest.mark.parametrize("suffix", [".parquet", ".npy"])
def test_ranges_and_rows_outside_are_refused(
    tmp_path: Path, ask: Callable[[Streamed], object], suffix: str
) -> None:
    pool = open_pool(write(GOOD, tmp_path / f"a{suffix}"))
    with refused(DatasetError):
        ask(pool)


@pytest.mark.parametrize("suffix", [".parquet", ".arrow", ".npy"])
@pytest.mark.parametrize("share", [0.05, 0.5, 0.97])
def test_a_file_cut_before_or_after_opening_is_named(
    tmp_path: Path, suffix: str, share: float
) -> None:
    path = write(GOOD, tmp_path / f"a{suffix}")
    pool = open_pool(path)
    fitted = pool.fitted(survey(pool))
    os.truncate(path, int(path.stat().st_size * share))
    for act in (
        lambda: open_pool(path),
        lambda: survey(pool),
        lambda: list(fitted.blocks(0, 100)),
        lambda: fitted.take(np.array([50])),
    ):
        with refused(DatasetError):
            act()
    path.unlink()
    with refused(DatasetError):
        list(fitted.blocks(0, 100))


@pytest.mark.parametrize("suffix", [".parquet", ".arrow", ".npy"])
def test_a_file_that_changed_since_it_was_opened_is_named(tmp_path: Path, suffix: str) -> None:
    path = write(GOOD, tmp_path / f"a{suffix}")
    pool = open_pool(path)
    fitted = pool.fitted(survey(pool))
    write(GOOD.slice(0, 99), path)
    for act in (lambda: survey(pool), lambda: list(fitted.blocks(0, 10))):
        with refused(DatasetError):
            act()
    if suffix == ".npy":
        np.save(path, np.zeros((100, 2), dtype=np.float32))
    else:
        write(GOOD.set_column(0, "a", GOOD["a"].cast("float")), path)
    with refused(DatasetError):
        fitted.take(np.array([1]))


def test_a_page_damaged_in_the_middle_is_named(tmp_path: Path) -> None:
    x = np.random.default_rng(0).normal(size=50_000)
    path = write(
        pa.table({"a": x, "b": x}),
        tmp_path / "a.parquet",
        write_page_checksum=True,
        row_group_size=10_000,
        use_dictionary=False,
    )
    pool = open_pool(path)
    data = bytearray(path.read_bytes())
    middle = len(data) // 2
    data[middle : middle + 100] = bytes(100)
    path.write_bytes(data)
    pool = open_pool(path)
    with refused(DatasetError):
        survey(pool)
    pool.survey(0, 10_000, NONE)


def test_invalid_characters_are_damage(tmp_path: Path) -> None:
    path = write(GOOD, tmp_path / "a.arrow", compression="uncompressed")
    data = path.read_bytes()
    path.write_bytes(data.replace(b"kind", b"k\xff\xffd"))
    with refused(DatasetError):
        open_pool(path)
    path = write(GOOD, tmp_path / "a.parquet", compression="none")
    path.write_bytes(path.read_bytes().replace(b"\x01\0\0\0x", b"\x01\0\0\0\xff"))
    with refused(DatasetError):
        read(path)


@settings(
    deadline=None,
    max_examples=examples(60),
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(
    suffix=st.sampled_from([".parquet", ".arrow"]),
    at=st.floats(0, 1),
    junk=st.binary(min_size=1, max_size=12),
)
def test_flipped_bytes_give_rows_or_a_clear_error(
    tmp_path: Path, suffix: str, at: float, junk: bytes
) -> None:
    path = write(GOOD, tmp_path / f"a{suffix}")
    data = bytearray(path.read_bytes())
    start = int(at * (len(data) - len(junk)))
    data[start : start + len(junk)] = junk
    path.write_bytes(data)
    try:
        read(path)
    except DatasetError as error:
        assert f"a{suffix}" in str(error) and "\n" not in str(error)


FOOTERS = """
import sys, warnings
warnings.simplefilter("ignore")
from evgp.errors import DatasetError
from tests.datasets.test_streamed_refused import GOOD, read, write
from pathlib import Path

path = write(GOOD, Path(sys.argv[1]))
good = path.read_bytes()
footer = len(good) - 8 - int.from_bytes(good[-8:-4], "little")
for at in range(footer, len(good) - 8):
    for byte in {good[at] ^ 1, 28}:
        path.write_bytes(good[:at] + bytes([byte]) + good[at + 1 :])
        try:
            read(path)
        except DatasetError:
            pass
print("alive")
"""


def test_no_byte_of_a_footer_ends_the_process(tmp_path: Path) -> None:
    # pyarrow aborts where the schema and the columns of a row group have different names.
    done = python(FOOTERS, tmp_path / "a.parquet")
    assert done.returncode == 0 and done.stdout == "alive\n", done.stderr[-500:]


def test_arrow_files_that_cannot_be_read_in_parts_are_refused(tmp_path: Path) -> None:
    with pa.OSFile(str(tmp_path / "a.arrow"), "wb") as sink:
        with pa.ipc.new_stream(sink, GOOD.schema) as writer:
            writer.write_table(GOOD)
    with refused(DatasetError):
        open_pool(tmp_path / "a.arrow")
    (tmp_path / "b.feather").write_bytes(b"FEA1" + bytes(100))
    with refused(DatasetError):
        open_pool(tmp_path / "b.feather")


def test_huge_whole_numbers_do_not_wrap_around(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.array([[1], [2**64 - 1]], dtype=np.uint64))
    with refused(DatasetError):
        read(tmp_path / "x.npy", scale=None)
    read(tmp_path / "x.npy")


MEASURE = """
import sys, gc, numpy as np, pyarrow as pa
from evgp.datasets import open_pool

def anonymous():
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("RssAnon"))

warm = open_pool(sys.argv[1])
warm.fitted(warm.survey(0, len(warm), np.arange(0))).take(np.array([1]))
pool = open_pool(sys.argv[2])
before = peak = anonymous()
fitted = pool.fitted(pool.survey(0, len(pool), np.arange(0, len(pool), 1000)))
peak = max(peak, anonymous())
for first, x in fitted.blocks(0, len(pool)):
    peak = max(peak, anonymous())
fitted.take(np.array([5, len(pool) - 1]))
print(max(peak, anonymous()) - before)
"""


@pytest.mark.skipif(
    not Path("/proc/self/status").exists(), reason="memory is measured in /proc, not here"
)
@pytest.mark.parametrize("suffix", [".parquet", ".arrow"])
def test_memory_does_not_grow_with_row_groups(tmp_path: Path, suffix: str) -> None:
    x = np.random.default_rng(0).normal(size=(300_000, 20))
    columns = pa.table({f"c{j}": x[:, j] for j in range(20)})
    small = write(columns.slice(0, 5_000), tmp_path / f"small{suffix}")
    options: dict[str, object] = {"row_group_size": 300_000, "use_dictionary": False}
    if suffix == ".arrow":
        options = {"chunksize": 300_000, "compression": "uncompressed"}
    large = write(columns, tmp_path / f"large{suffix}", **options)
    run = python(MEASURE, small, large)
    assert run.returncode == 0, run.stderr
    # The whole takes 48 MB as float64; what is held at a time took 5.
    assert int(run.stdout) < 20_000, "kilobytes"
