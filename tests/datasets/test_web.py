"""Pools at http addresses: read as files are, whatever the server does."""

import io

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import evgp
from evgp.datasets.web import WebFile
from evgp.errors import DatasetError
from tests.datasets.webserver import serving
from tests.messages import refused

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
    "kind",
    [
        "whole",
        "missing",
        "denied",
        "loop",
        "other-part",
        "half",
        "grows",
        "garbage",
    ],
)
def test_other_answers_are_reported(kind) -> None:
    with serving(saved(50)) as server:
        where = f"{server}/{kind}/pool.parquet"
        with refused(DatasetError):
            evgp.pick(where, 3)
