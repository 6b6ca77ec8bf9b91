"""Vectors that are kept: found by content, never for another model, and complete or not there."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import evgp
from evgp.datasets.embedding import embedded, key_of
from evgp.datasets.vector_cache import VectorCache
from evgp.embedders import FunctionEmbedder
from evgp.errors import DamageWarning, DataWarning, EmbedderError
from tests.messages import warned


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch) -> Path:
    monkeypatch.setenv("EVGP_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache" / "embeddings"


class Counting:
    """An embedder by length, which counts its inputs."""

    def __init__(self, scale: float = 1.0, fail_after: int = 10**9) -> None:
        self.scale, self.fail_after, self.seen = scale, fail_after, 0

    def __call__(self, batch: list[str]) -> np.ndarray:
        self.seen += len(batch)
        if self.seen > self.fail_after:
            raise RuntimeError("out of memory")
        return self.scale * np.array([[len(text), sum(map(ord, text))] for text in batch])


def run(function: Counting, texts: list[str]) -> np.ndarray:
    embedder = FunctionEmbedder(function, "mine")
    keys = [key_of(text.encode()) for text in texts]
    return embedded(embedder, keys, lambda rows: [texts[row] for row in rows]).x


TEXTS = [f"text number {at}" for at in range(200)]
PROBES = 4 + 2  # what the fingerprint of a function costs


def test_the_second_run_embeds_nothing() -> None:
    first = run(Counting(), TEXTS)
    again = Counting()
    np.testing.assert_array_equal(run(again, TEXTS[::-1]), first[::-1])
    assert again.seen == PROBES


def test_only_changed_texts_are_embedded() -> None:
    run(Counting(), TEXTS)
    again = Counting()
    x = run(again, [*TEXTS[:-1], "changed"])
    assert x[-1].tolist() == [7, sum(map(ord, "changed"))]
    assert again.seen == PROBES + 2  # and a second look at it


def test_another_model_finds_nothing() -> None:
    x = run(Counting(), TEXTS)
    np.testing.assert_array_equal(run(Counting(scale=2), TEXTS), 2 * x)


def test_what_was_finished_before_an_error_is_kept() -> None:
    with pytest.raises(EmbedderError):
        run(Counting(fail_after=PROBES + 16 + 130), TEXTS)
    again = Counting()
    assert run(again, TEXTS).shape == (200, 2)
    assert PROBES < again.seen < PROBES + 120


@pytest.mark.parametrize("how", ["flipped", "cut", "replaced", "empty"])
def test_damage_is_noticed_and_repaired(folder: Path, how: str) -> None:
    x = run(Counting(), TEXTS)
    (path,) = folder.rglob("*.npy")
    content = bytearray(path.read_bytes())
    if how == "flipped":
        content[len(content) // 2] ^= 4
    if how == "replaced":
        np.save(path, np.zeros((5, 25), np.uint8))
        content = bytearray(path.read_bytes())
    path.write_bytes({"cut": content[:-9], "empty": b""}.get(how, content))
    with warned(DamageWarning, hide=r"<tmp>\S*|/\S+\.npy"):
        again = run(Counting(), TEXTS)
    np.testing.assert_array_equal(again, x)
    np.testing.assert_array_equal(run(Counting(), TEXTS), x)


def test_a_file_of_another_model_is_not_believed(folder: Path) -> None:
    x = run(Counting(), TEXTS)
    (path,) = folder.rglob("*.npy")
    other = VectorCache(FunctionEmbedder(Counting(scale=3), "mine").fingerprint())
    other.folder.mkdir()
    path.rename(other.folder / path.name)
    with pytest.warns(DamageWarning):
        np.testing.assert_array_equal(run(Counting(scale=3), TEXTS), 3 * x)


def test_a_cache_that_cannot_be_written_is_reported_once(tmp_path: Path, monkeypatch) -> None:
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("EVGP_CACHE", str(tmp_path / "file"))
    with warned(DataWarning):
        assert run(Counting(), TEXTS).shape == (200, 2)


def test_many_small_files_become_one(folder: Path) -> None:
    cache = VectorCache("ab")
    keys = [key_of(bytes([at])) for at in range(40)]
    for at, key in enumerate(keys):
        cache.add([key], np.array([at % 2 == 0]), np.full((1, 3), at, np.float32))
    cache.tidy()
    assert len(list(folder.rglob("*.npy"))) == 1
    vector_cache = VectorCache("ab").find(keys)
    assert [(cut, vector[0]) for cut, vector in map(vector_cache.get, keys)] == [
        (at % 2 == 0, at) for at in range(40)
    ]


SLOW = """
import sys, time
import numpy as np
import evgp
import evgp.datasets.embedding as embedding

embedding._SECONDS = 0.0

def lengths(batch):
    time.sleep(0.05)
    print(len(batch), flush=True)
    return np.array([[len(text), text.count("1"), 1 + text.count("2")] for text in batch])

data = evgp.read_pool([f"this is the text number {at}" for at in range(2000)], embed=lengths)
np.save(sys.argv[1], data.x.numpy())
"""


def test_a_killed_run_resumes_where_it_stopped(tmp_path: Path) -> None:
    script = tmp_path / "slow.py"
    script.write_text(SLOW)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, str(script), str(tmp_path / "x.npy")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as process:
        assert process.stdout is not None
        for _ in range(30):
            process.stdout.readline()
        process.send_signal(signal.SIGKILL)
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=True)
    assert sum(map(int, done.stdout.split())) < 1_500
    texts = [f"this is the text number {at}" for at in range(2000)]
    raw = np.array([[len(text), text.count("1"), 1 + text.count("2")] for text in texts], float)
    expected = evgp.read_pool(raw).x
    np.testing.assert_allclose(np.load(tmp_path / "x.npy"), expected, atol=1e-6)
