"""Every command refuses what no command should open, and leaves nothing behind."""

import errno
import json
import os
import shutil
import signal
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from evgp.cli.main import app
from evgp.datasets import files
from tests.labelling.campaign.edited import edited

ROWS = 12


@pytest.fixture(autouse=True)
def impatient() -> Iterator[None]:
    """What waits for a pipe is ended, and fails."""

    def stop(*_: object) -> None:
        raise TimeoutError("it waits")

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(60)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


@pytest.fixture(scope="module")
def begun(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a pool, pictures, and a campaign of three picks."""
    folder = tmp_path_factory.mktemp("begun")
    lines = [f"{j},{j * j % 7},{j % 5}" for j in range(ROWS)]
    (folder / "pool.csv").write_text("\n".join(["id,a,b", *lines]) + "\n")
    np.save(folder / "pictures.npy", np.random.default_rng(0).normal(size=(6, 1, 8, 8)))
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        for line in ("new camp pool.csv --id id --drop b --number", "next camp -k 3"):
            result = CliRunner().invoke(app, ["campaign", *line.split()], prog_name="evgp")
            assert result.exit_code == 0, result.output
    return folder


@pytest.fixture
def here(begun: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of it, which is the current folder."""
    shutil.copytree(begun, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def refused(ran, *said: str) -> None:
    assert ran.code == 1, ran.err
    lines = [line for line in ran.err.splitlines() if not line.startswith("note: ")]
    assert len(lines) == 1 and lines[0].startswith("evgp: "), ran.err
    assert all(part in lines[0] for part in said), lines[0]
    assert ran.out == ""


FILE = "FILE"
DOORS = [
    (".csv", ("pick", FILE, "-k", 2)),
    (".csv", ("plan", FILE, "-k", 2)),
    (".csv", ("new", "other", FILE, "--number")),
    (".parquet", ("new", "other", FILE, "--number")),
    (".csv", ("pick", "pool.csv", "-k", 2, "--labelled", FILE)),
    (".txt", ("pick", "pool.csv", "-k", 2, "--labelled", FILE)),
    (".csv", ("pick", "pool.csv", "-k", 2, "--test", FILE)),
    (".npy", ("pick", FILE, "-k", 2, "--network", "cnn")),
    (".npy", ("pick", "pictures.npy", "-k", 2, "--network", "cnn", "--test", FILE)),
    (".pt", ("pick", "pictures.npy", "-k", 2, "--network", "cnn", "--weights", FILE)),
    (".csv", ("choose", FILE, "--label", "b")),
    (".toml", ("choose", "pool.csv", "--label", "b", "--networks", FILE)),
    (".csv", ("audit", FILE, "pool.csv", "--label", "b")),
    (".csv", ("audit", "pool.csv", FILE, "--label", "b")),
    (".csv", ("audit", "pool.csv", "pool.csv", "--label", "b", "--pool", FILE)),
    (".csv", ("compare", FILE, "--label", "b")),
    (".csv", ("label", "camp", FILE)),
    (".jsonl", ("label", "camp", FILE)),
    (".json", ("pull", "camp", "--file", FILE)),
    (".evgp", ("status", FILE)),
]


@pytest.mark.parametrize("kind", ["pipe", "device"])
@pytest.mark.parametrize(("suffix", "arguments"), DOORS)
def test_pipes_and_devices_are_refused_by_every_command(
    run, here: Path, suffix: str, arguments: tuple[object, ...], kind: str
) -> None:
    path = Path(f"odd{suffix}")
    if kind == "pipe":
        os.mkfifo(path)
    else:
        path.symlink_to("/dev/zero")
    before = sorted(here.rglob("*"))
    refused(run(*(path if argument == FILE else argument for argument in arguments)), str(path))
    assert sorted(here.rglob("*")) == before


@pytest.mark.parametrize("command", ["pick", "plan", "new", "label"])
@pytest.mark.parametrize("stored", [True, False])
def test_long_words_are_refused_clearly(run, here: Path, command: str, stored: bool) -> None:
    rows = 30_000
    words = pa.array([letter * 20_000 for letter in "abcdefghij"])
    coded = pa.DictionaryArray.from_arrays(pa.array(np.arange(rows) % 10, pa.int32()), words)
    cells = {"id": np.arange(rows) % ROWS, "a": np.arange(float(rows)), "label": coded}
    pq.write_table(pa.table(cells), "long.parquet", store_schema=stored)
    arguments = {
        "pick": ("long.parquet", "-k", 2, "--memory", "900MB"),
        "plan": ("long.parquet", "-k", 2),
        "new": ("other", "long.parquet", "--number"),
        "label": ("camp", "long.parquet"),
    }
    refused(run(command, *arguments[command]), "long.parquet" if command != "label" else "")


def test_memory_is_for_reading_too(run, here: Path) -> None:
    Path("many.csv").write_text("a,b\n" + "1,2\n3,4\n" * 2_000_000)
    refused(run("pick", "many.csv", "-k", 2, "--memory", "150MB"), "--memory allows")


SHAPES = ["(True, 4)", "(12, True)", "(0x" + "f" * 5000 + ", 4)", "(" + "1, " * 70 + ")"]


@pytest.mark.parametrize("shape", SHAPES, ids=["true", "true last", "digits", "axes"])
def test_shapes_that_no_array_has_are_refused_clearly(run, here: Path, shape: str) -> None:
    header = f"{{'descr': '<f8', 'fortran_order': False, 'shape': {shape}, }}\n".encode()
    size = len(header).to_bytes(2, "little")
    Path("odd.npy").write_bytes(b"\x93NUMPY\x01\x00" + size + header + bytes(384))
    refused(run("pick", "odd.npy", "-k", 2), "odd.npy: expected a ", "save it again")


@pytest.mark.parametrize("version", [b"\x02\x00", b"\x03\x00", b"\x09\x00"])
def test_a_long_header_is_not_read(run, here: Path, version: bytes) -> None:
    Path("odd.npy").write_bytes(b"\x93NUMPY" + version + b"\xff\xff\xff\xff" + bytes(999))
    refused(run("pick", "odd.npy", "-k", 2), "got something else or a damaged header")


def test_tables_have_an_end_of_columns(run, here: Path) -> None:
    wide = 300_000
    Path("wide.csv").write_text(",".join(["a"] * wide) + "\n" + ",".join("1" * wide) + "\n")
    refused(run("pick", "wide.csv", "-k", 2), "at most 100,000 columns, got 300,000")
    np.save("wide.npy", np.zeros((2, wide), np.int8))
    refused(run("plan", "wide.npy", "-k", 2), "at most 100,000 columns, got 300,000")


NAMES = [b"\xff\xfe", b"a\nb", b"\x1b[2J", b"-dash"]


@pytest.mark.parametrize("name", NAMES)
def test_files_may_have_any_name(run, here: Path, name: bytes) -> None:
    word = os.fsdecode(name)
    ends = (".csv", "-known.csv", "-out.csv", ".html")
    pool, known, out, page = (f"./{word}{end}" for end in ends)
    Path(pool).write_bytes(Path("pool.csv").read_bytes())
    Path(known).write_text("id,a,b\n50,3,9\n51,2,8\n")
    ran = run("pick", pool, "-k", 2, "-o", out, "--report", page, "--labelled", known)
    assert ran.code == 0, ran.err
    assert Path(out).is_file() and Path(page).read_text().rstrip().endswith("</html>")
    assert run("new", f"./{word}", pool, "--id", "id", "--number").code == 0
    assert run("next", f"./{word}", "-k", 3, "--json").code == 0
    assert run("report", f"./{word}").code == 0
    refused(run("pick", pool, "-k", 2, f"--id={word}"), "no column")
    refused(run("pick", pool, "-k", 2, f"--drop={word}"), "no column")


@pytest.mark.parametrize("end", ["parquet", "arrow"])
def test_columnar_files_may_be_in_a_folder_of_any_name(run, here: Path, end: str) -> None:
    folder = os.fsdecode(b"\xff\xfe")
    Path(folder).mkdir()
    table = pa.table({"a": np.arange(float(ROWS)), "b": np.arange(ROWS) % 5})
    with Path(folder, f"pool.{end}").open("wb") as stream:
        if end == "parquet":
            pq.write_table(table, stream)
        else:
            with pa.ipc.new_file(stream, table.schema) as writer:
                writer.write_table(table)
    for pool in (f"{folder}/pool.{end}", folder):  # in memory, and in blocks
        ran = run("pick", pool, "-k", 2, "-o", f"{folder}/out.parquet")
        assert ran.code == 0, ran.err
        Path(folder, "out.parquet").unlink()


def test_json_holds_no_characters_that_a_terminal_obeys(run, here: Path) -> None:
    Path("odd.csv").write_text("id,a\n" + "".join(f"\x9b{j}\x1b,{j * j}\n" for j in range(9)))
    ran = run("pick", "odd.csv", "-k", 2, "--id", "id", "--json")
    assert ran.code == 0
    assert not {"\x9b", "\x1b"} & set(ran.out)
    assert json.loads(ran.out)["picks"][0]["id"].startswith("\x9b")


def test_messages_have_an_end(run, here: Path) -> None:
    Path("long.csv").write_text("n" * 500_000 + ",a\n1,2\n3,4\n")
    ran = run("pick", "pool.csv", "-k", 2, "--labelled", "long.csv")
    refused(ran)
    assert len(ran.err) < 3000


@pytest.mark.parametrize(
    "arguments",
    [
        ("new", "other", "pool.csv", "--number"),
        ("export", "camp", "--label-studio", "-o", "out.json"),
        ("pick", "pool.csv", "-k", 2, "-o", "out.csv"),
        ("pick", "pool.csv", "-k", 2, "-o", "out.csv", "--report", "out.html"),
    ],
)
def test_a_full_disk_leaves_nothing(
    run, here: Path, monkeypatch: pytest.MonkeyPatch, arguments: tuple[object, ...]
) -> None:
    whole = files._flush
    # The disk is full once one of two files is written, but has no name yet.
    left = [2 if "--label-studio" in arguments else 1 if "--report" in arguments else 0]

    def full(path: Path) -> None:
        if not left[0]:
            raise OSError(errno.ENOSPC, "No space left on device")
        left[0] -= 1
        whole(path)

    monkeypatch.setattr(files, "_flush", full)
    before = sorted(here.rglob("*"))
    ran = run(*arguments)
    refused(ran, "the disk is full", "make room there")
    assert "a file:" not in ran.err
    assert sorted(here.rglob("*")) == before


def forged(name: str, event: int, change: dict[str, object]) -> str:
    """A copy of the campaign with an event changed, and all digests right."""
    path = Path(f"{name}.evgp")
    path.write_bytes(Path("camp.evgp").read_bytes())
    Path(f"{name}.evgp-arrays").symlink_to("camp.evgp-arrays")
    digest = "0" * 64
    with edited(path) as connection:
        actual = connection.execute("SELECT * FROM event ORDER BY number").fetchall()
        connection.execute("DELETE FROM event")
        for number, key, at, kind, text, _ in actual:
            document = {**json.loads(text), **(change if number == event else {})}
            body = json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
            parts = (digest, str(number), key, at, kind, body)
            digest = sha256("\n".join(parts).encode()).hexdigest()
            row = (number, key, at, kind, body, digest)
            connection.execute("INSERT INTO event VALUES (?, ?, ?, ?, ?, ?)", row)
        connection.execute("UPDATE head SET digest=?", (digest,))
    return name


@pytest.mark.parametrize(
    ("event", "change"),
    [
        (1, {"pool": "/dev/zero"}),
        (1, {"pool": "pool\0.csv"}),
        (1, {"pool": 7}),
        (1, {"rows": 10**12}),
        (1, {"rows": True}),
        (1, {"array": "../../etc/passwd"}),
        (1, {"settings": {}}),
        (1, {"classes": [1, 2]}),
        (2, {"rows": [0, 0, 1]}),
        (2, {"rows": [0, 1, 10**9]}),
        (2, {"rows": ["a", "b", "c"]}),
        (2, {"gains": []}),
        (2, {"prior": 0.0}),
    ],
)
def test_forged_campaigns_are_refused_clearly(
    run, here: Path, event: int, change: dict[str, object]
) -> None:
    name = forged("forged", event, change)
    whole = Path("forged.evgp").read_bytes()
    for arguments in (("next", name, "-k", 5), ("report", name, "-o", "out.html")):
        refused(run(*arguments))
    assert Path("forged.evgp").read_bytes() == whole


def test_a_copy_that_is_not_forged_is_a_campaign(run, here: Path) -> None:
    assert run("next", forged("same", 2, {}), "-k", 4).code == 0
