"""Pools at http addresses: read as files are, whatever the server does."""

import io

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import evgp
from evgp._errors import DatasetError
from evgp.datasets.web import WebFile
from tests.datasets.webserver import serving

RULES = {"features": "nystrom-24", "method": "sharded"}


def saved(rows: int) -> bytes:
    x = np.random.default_rng(0).normal(size=(rows, 4))
    sink = io.BytesIO()
    pq.write_table(pa.table({f"a{j}": x[:, j] for j in range(4)}), sink, row_group_size=500)
    return sink.getvalue()


def test_a_pool_on_a_web_server_is_that_of_the_file(tmp_path) -> None:
    content = saved(1200)
    (tmp_path / "pool.parquet").write_bytes(content)
    with serving(content) as server:
        there = evgp.pick(f"{server}/good/pool.parquet", 5, **RULES)
    here = evgp.pick(tmp_path / "pool.parquet", 5, **RULES)
    assert there.indices.tolist() == here.indices.tolist()
    assert there.gains.tolist() == here.gains.tolist()


def test_any_part_is_read() -> None:
    content = bytes(np.random.default_rng(0).integers(0, 256, 3000, dtype=np.uint8))
    with serving(content) as server:
        file = WebFile(f"{server}/good/x.parquet")
        assert file.read(10) == content[:10] and file.tell() == 10
        assert file.seek(-5, 2) == 2995 and file.read(99) == content[-5:] and file.read(1) == b""
        assert file.seek(20) == 20 and file.seek(5, 1) == 25 and file.read(3) == content[25:28]


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ("whole", "expected a web server that sends parts"),
        ("missing", r"no such file \(Not Found\); check the address"),
        ("denied", "the server says 401"),
        ("loop", "the server says 302 .*redirect"),
        ("other-part", "expected a web server that sends parts"),
        ("half", "the server sent 0 of 1 bytes"),
        ("grows", "the file on the server changed"),
        ("garbage", "expected a Parquet file, got one that is cut short, damaged"),
    ],
)
def test_other_answers_are_reported(kind, words) -> None:
    with serving(saved(50)) as server:
        where = f"{server}/{kind}/pool.parquet"
        with pytest.raises(DatasetError, match=f"^{where}: {words}"):
            evgp.pick(where, 3)
