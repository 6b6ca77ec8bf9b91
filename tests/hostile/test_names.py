"""Odd names, outputs that cannot be written, and files that change while they are read."""

import gzip
import io
import os
import shutil
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import safetensors.torch
import torch

from evgp.nets import cnn
from tests.hostile import tables
from tests.hostile.doors import Crew, Run
from tests.hostile.filed import CHOOSE, TRAINING, Hold, hold, runs, template
from tests.hostile.others import SHAPE

__all__ = ["hold", "runs", "template"]  # fixtures, used by their names here
PART = "names"

NAMES = [
    b"\xff\xfe", b"caf\xe9", b"a\nb", b"a\tb\rc", b"\x1b]0;gone\x07", b"\x1b[2J", b"\xc2\x9b2J",
    b"-dash", b"--help", b" spaces ", b"n" * 230, "ünï 😀".encode(), "\u202eltr".encode(), b"=1+2",
    b"'quote\"", b"a,b;c", b"a:b", b"%s{0}\\n", b"#", b"~", b"*", b"<b>bold<b>", b".hidden",
    b"...", b"nul\x01", b"x" * 100 + "é".encode() * 60, b"s3:", b"file:",
]  # fmt: skip


def test_odd_names(hold: Hold, tmp_path: Path) -> None:
    """Of pools, outputs, reports, campaigns, and folders; the work itself is good."""
    hold("odd names", [_named(tmp_path, name) for name in NAMES])


def test_odd_names_of_other_kinds(hold: Hold, tmp_path: Path) -> None:
    """Of tables, arrays, weights and lists of networks."""
    columns, weights = io.BytesIO(), io.BytesIO()
    pq.write_table(tables.good_table(), columns)
    state = cnn().build(SHAPE, generator=torch.Generator().manual_seed(0)).state_dict()
    torch.save(state, weights)
    np.save(tmp_path / "array.npy", tables.good_array())
    np.savez(tmp_path / "array.npz", x=tables.good_array())
    pools = {
        b".parquet": columns.getvalue(),
        b".arrow": tables._arrow_bytes(tables.good_table()),
        b".csv.gz": gzip.compress(tables.good_text().encode()),
        b".tsv": tables.good_text("\t").encode(),
        b".npy": (tmp_path / "array.npy").read_bytes(),
        b".npz": (tmp_path / "array.npz").read_bytes(),
    }
    others = {
        b".pt": (weights.getvalue(), (*PICTURES, "--weights")),
        b".safetensors": (safetensors.torch.save(state), (*PICTURES, "--weights")),
        b".toml": (b'[[network]]\nname = "one"\ndepth = 1\n', (*CHOOSE, "--networks")),
        b".txt": (b"1\n2\n", ("pick", "good.csv", "-k", 2, "--labelled")),
    }

    def wanted() -> Iterator[Run]:
        for name in (b"\xff\xfe", b"caf\xe9", b"~", b"~root", b"a\nb", b"%41"):
            for suffix, content in pools.items():
                path = _file(tmp_path, name + suffix, content)
                yield Run(f"{name!r}{suffix!r}", ("pick", path, "-k", 2), fails=False)
                yield Run(f"{name!r}{suffix!r}", ("new", "c", path, "--number"), fails=False)
            for suffix, (content, arguments) in others.items():
                path = _file(tmp_path, name + suffix, content)
                yield Run(f"{name!r}{suffix!r}", (*arguments, path), fails=False)

    hold("odd names of other kinds of files", wanted())


PICTURES = ("pick", "pictures.npy", "-k", 2, "--network", "cnn")


def _file(folder: Path, name: bytes, content: bytes) -> Path:
    path = Path(os.fsdecode(os.fsencode(folder) + b"/" + name))
    path.write_bytes(content)
    return path


def test_odd_words(hold: Hold) -> None:
    """The same as words of the call: who says it, and which columns, classes or networks."""
    hold("odd arguments", [run for name in NAMES for run in _worded(name)])


def _named(folder: Path, name: bytes) -> list[Run]:
    place = Path(os.fsdecode(os.fsencode(folder) + b"/" + name))
    where = place.with_name(place.name[:200] + " folder")
    where.mkdir()
    pool = place.with_name(place.name + ".csv")
    pool.write_text(tables.good_text())
    shutil.copy(pool, where / "inside.csv")
    known = place.with_name(place.name + ".txt")
    known.write_text("1\n2\n")
    title = Path(place.name + "-camp")
    out, page = (f"./{place.name}-out{suffix}" for suffix in (".jsonl", ".html"))
    reported = f"named {name[:20]!r}"
    good: list[tuple[object, ...]] = [
        ("pick", pool, "-k", 2, "-o", out, "--report", page),
        ("pick", pool, "-k", 2, "--json", "--labelled", known, "--test", pool),
        ("plan", pool, "-k", 2, "--json"),
        ("new", f"./{title}", pool, "--id", "id", "--drop", "b", "--number"),
        ("new", where / "camp", where / "inside.csv", "--id", "id", "--number"),
        ("next", where / "camp", "--json"),
        ("status", where / "camp"),
        ("label", where / "camp", pool, "--label", "b"),
        ("export", where / "camp", "-o", where / "out.csv"),
        ("export", where / "camp", "-o", where / "out.parquet"),
        ("report", where / "camp"),
        ("undo", where / "camp"),
        ("choose", pool, "--label", "b", "--folds", 2, "--depths", "1", "--json"),
        ("audit", pool, pool, "--label", "b", "--report", page, "--json"),
        ("compare", pool, "--label", "b", *TRAINING, "--json"),
    ]
    return [Run(reported, arguments, fails=False) for arguments in good]


def _worded(name: bytes) -> Iterator[Run]:
    word = os.fsdecode(name)
    reported = f"the word {name[:20]!r}"
    yield Run(reported, ("label", "camp", "good.csv", "--label", "b", f"--who={word}"))
    yield Run(reported, ("pick", "good.csv", "-k", 2, f"--id={word}"), fails=True)
    yield Run(
        reported, ("pick", "good.csv", "-k", 2, f"--drop={word}", "-o", "out.csv"), fails=True
    )
    yield Run(reported, ("label", "camp", "good.csv", f"--label={word}"), fails=True)
    yield Run(reported, ("new", "other", "good.csv", "--classes", f"{word},other"))
    yield Run(reported, ("pick", "good.csv", "-k", 2, f"--network={word}"), fails=True)
    yield Run(reported, ("status", f"./{word}"), fails=True)
    yield Run(reported, ("pick", f"./{word}", "-k", 2), fails=True)


ESCAPES = "\x1b]0;gone\x07\x1b[2J\x9b2J"


def test_terminals_are_sent_nothing_raw(runs: Crew, tmp_path: Path, tally) -> None:
    """Cells, names of columns and files: what a terminal would obey is not sent to one."""
    head, *rows = tables.good_text().splitlines()
    pool = tmp_path / "\x1b[2J.csv"
    lines = [f"{ESCAPES}{j}{row[row.index(',') :]}" for j, row in enumerate(rows)]
    pool.write_text("\n".join([head.replace("kind", f"kind{ESCAPES}"), *lines]) + "\n")
    known = tmp_path / "known.txt"
    known.write_text(f"{ESCAPES}\n")
    expected: list[tuple[object, ...]] = [
        ("pick", pool, "-k", 2, "--id", "id"),
        ("pick", pool, "-k", 2, "--id", "id", "--json"),
        ("pick", pool, "-k", 2, "--id", "id", "--labelled", known),
        ("pick", pool, "-k", 2),
        ("plan", pool, "-k", 2, "--id", "id"),
        ("new", tmp_path / "camp", pool, "--id", "id", "--number"),
        ("next", tmp_path / "camp", "-k", 2),
        ("next", tmp_path / "camp", "-k", 2, "--json"),
        ("label", tmp_path / "camp", pool, "--label", "b"),
        ("status", tmp_path / "camp"),
        ("undo", tmp_path / "camp"),
        ("choose", pool, "--label", "b", "--id", "id", "--folds", 2, "--depths", "1"),
        ("audit", pool, pool, "--label", "b", "--id", "id"),
        ("audit", pool, pool, "--label", "b", "--id", "id", "--json"),
        ("compare", pool, "--label", "b", "--id", "id", *TRAINING),
        ("pick", ESCAPES, "-k", 2),
        ("pick", pool, "-k", ESCAPES),
        ("status", ESCAPES),
        (ESCAPES,),
    ]
    held = 0
    for arguments in expected:
        ran = runs.run(Run("escapes", arguments, tty=True))
        text = ran.out + ran.err
        raw = [sign for sign in ("\x1b]0;gone", "\x1b[2J", "\x9b", "\x07") if sign in text]
        held += not raw and "Traceback" not in text and not ran.ended
        assert not raw, f"{arguments} sent {raw}: {text[:2000]!r}"
        assert "Traceback" not in text, text[-2000:]
    tally(PART, "escape codes on a terminal", len(expected), held)


OUTPUTS: list[tuple[object, ...]] = [
    ("pick", "good.csv", "-k", 2, "-o", "good.csv"),
    ("pick", "good.csv", "-k", 2, "-o", "./good.csv"),
    ("pick", "good.csv", "-k", 2, "-o", "hard.csv"),
    ("pick", "good.csv", "-k", 2, "-o", "soft.csv"),
    ("pick", "good.csv", "-k", 2, "-o", "pipe.csv"),
    ("pick", "good.csv", "-k", 2, "-o", "full.csv"),
    ("pick", "good.csv", "-k", 2, "-o", "folder.csv"),
    ("pick", "good.csv", "-k", 2, "-o", "."),
    ("pick", "good.csv", "-k", 2, "-o", "absent/out.csv"),
    ("pick", "good.csv", "-k", 2, "-o", "good.csv/out.csv"),
    ("pick", "good.csv", "-k", 2, "-o", "n" * 300 + ".csv"),
    ("pick", "good.csv", "-k", 2, "-o", "/proc/out.csv"),
    ("pick", "good.csv", "-k", 2, "-o", "out.exe"),
    ("pick", "good.csv", "-k", 2, "--report", "folder.html/out.html"),
    ("pick", "good.csv", "-k", 2, "--report", "/proc/out.html"),
    ("pick", "good.csv", "-k", 2, "-o", "out.csv", "--report", "/proc/out.html"),
    ("pick", "good.csv", "-k", 2, "-o", "/proc/out.csv", "--report", "out.html"),
    ("pick", "good.csv", "-k", 2, "--test", "soft.csv", "-o", "hard.csv"),
    ("pick", "pictures.npy", "-k", 2, "-o", "pictures.npy"),
    ("new", "camp", "good.csv", "--number"),
    ("new", "/proc/camp", "good.csv", "--number"),
    ("new", "good.csv/camp", "good.csv", "--number"),
    ("new", "n" * 300, "good.csv", "--number"),
    ("new", "", "good.csv", "--number"),
    ("new", "..", "good.csv", "--number"),
    ("export", "camp", "-o", "good.csv"),
    ("export", "camp", "-o", "hard.csv"),
    ("export", "camp", "-o", "soft.csv"),
    ("export", "camp", "-o", "folder.csv"),
    ("export", "camp", "-o", "pipe.csv"),
    ("export", "camp", "-o", "/proc/out.csv"),
    ("export", "camp", "--label-studio", "-o", "/proc/out.json"),
    ("export", "camp", "--label-studio", "-o", "out.csv"),
    ("report", "camp", "-o", "good.csv"),
    ("report", "camp", "-o", "/proc/out.html"),
    ("report", "camp", "-o", "good.csv/out.html"),
    (*CHOOSE, "--plot", "/proc/out.png"),
    (*CHOOSE, "--plot", "good.csv/out.png"),
    (*CHOOSE, "--plot", "good.csv"),
    ("audit", "good.csv", "good.csv", "--label", "b", "-o", "soft.csv"),
    ("audit", "good.csv", "good.csv", "--label", "b", "--report", "/proc/out.html"),
    ("compare", "good.csv", "--label", "b", *TRAINING[:-1], "good.csv"),
    ("compare", "good.csv", "--label", "b", *TRAINING[:-1], "/proc/compared"),
    ("compare", "good.csv", "--label", "b", *TRAINING[:-1], "good.csv/compared"),
]
FULL: list[tuple[object, ...]] = [
    ("pick", "good.csv", "-k", 20, "-o", "out.csv"),
    ("pick", "good.csv", "-k", 20, "-o", "out.parquet"),
    ("pick", "good.csv", "-k", 2, "--report", "out.html"),
    ("pick", "good.csv", "-k", 2, "-o", "out.csv", "--report", "out.html"),
    ("new", "fresh", "good.csv", "--number"),
    ("new", "fresh", "pictures.npy", "--number"),
    ("next", "camp", "-k", 9),
    ("label", "camp", "good.csv", "--label", "b"),
    ("export", "camp", "--label-studio", "-o", "out.json"),
    ("report", "camp", "-o", "out.html"),
    (*CHOOSE, "--plot", "out.png"),
    ("audit", "good.csv", "good.csv", "--label", "b", "-o", "out.csv"),
    ("audit", "good.csv", "good.csv", "--label", "b", "--report", "out.html"),
    ("pick", "good.csv", "-k", 2, "--method", "sharded", "--cache", "kept"),
]


def test_outputs_that_cannot_be_written(hold: Hold) -> None:
    keeps = ("good.csv", "pictures.npy", "camp.evgp")
    expected = [Run("outputs", arguments, fails=True, keeps=keeps) for arguments in OUTPUTS]
    hold("outputs that cannot be written", expected)


def test_a_full_disk(hold: Hold) -> None:
    """No file may grow beyond a few hundred bytes: nothing half-written is left."""
    keeps = ("good.csv", "pictures.npy", "camp.evgp")
    expected = [
        Run("a full disk", arguments, fails=True, keeps=keeps, largest=size)
        for arguments in FULL
        for size in (0, 300)
    ]
    hold("a full disk", expected)


def _folder(place: Path, suffix: str) -> Path:
    place.mkdir()
    for number in range(3):
        table = tables.good_table()
        if suffix == ".npy":
            np.save(place / f"{number}.npy", tables.good_array())
        elif suffix == ".parquet":
            pq.write_table(table, place / f"{number}.parquet")
        else:
            (place / f"{number}.arrow").write_bytes(tables._arrow_bytes(table))
    return place


def test_pools_in_folders(hold: Hold, rng: np.random.Generator, tmp_path: Path) -> None:
    """Files of a pool in a folder, one of which is not what it should be."""

    def wanted() -> Iterator[Run]:
        number = 0
        for suffix in (".parquet", ".arrow", ".npy"):
            whole = (_folder(tmp_path / f"good{suffix}", suffix) / f"1{suffix}").read_bytes()
            for content in (
                *tables.damaged(whole, rng, 6, 3), b"", b"text", rng.bytes(999), None,
                Path("/dev/zero"), Path("0" + suffix), Path("."), Path("gone"),
            ):  # fmt: skip
                place = _folder(tmp_path / f"{number}", suffix)
                odd = place / f"1{suffix}"
                odd.unlink()
                if content is None:
                    os.mkfifo(odd)
                elif isinstance(content, Path):
                    odd.symlink_to(content)
                else:
                    odd.write_bytes(content)
                number += 1
                few = ("--features", "nystrom-4") if suffix != ".npy" else ("--features", "raw")
                yield Run(f"{suffix} {number}", ("pick", place, "-k", 2, "-o", "out.csv", *few))
                yield Run(f"{suffix} {number}", ("plan", place, "-k", 2))
                yield Run(f"{suffix} {number}", ("pick", "good.csv", "-k", 2, "--test", place))

    hold("pools in folders", wanted())


def test_folders_of_comparisons(hold: Hold, rng: np.random.Generator, tmp_path: Path) -> None:
    """What a comparison finds where it is to write."""
    contents: dict[str, tuple[str, bytes | None]] = {
        "a pipe for tables": ("tables.json", None),
        "bytes for tables": ("tables.json", rng.bytes(999)),
        "deep tables": ("tables.json", b"[" * 100_000),
        "a pipe for commands": ("commands.txt", None),
        "bytes for commands": ("commands.txt", rng.bytes(999)),
        "a pipe for a cell": ("cells/a.json", None),
        "bytes for a cell": ("cells/a.json", rng.bytes(999)),
        "a deep cell": ("cells/a.json", b'{"cell":' * 50_000),
        "an odd cell": ("cells/a.json", b'{"cell": 7, "rows": [7]}'),
    }

    def wanted() -> Iterator[Run]:
        for number, (name, (inside, content)) in enumerate(contents.items()):
            path = tmp_path / str(number) / inside
            path.parent.mkdir(parents=True)
            if content is None:
                os.mkfifo(path)
            else:
                path.write_bytes(content)
            out = TRAINING[:-1]
            yield Run(name, ("compare", "good.csv", "--label", "b", *out, tmp_path / str(number)))

    hold("folders of comparisons", wanted())


@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".arrow", ".npy", ".npz"])
def test_files_that_change(suffix: str, hold: Hold, tmp_path: Path) -> None:
    """A pool that is cut, removed, replaced and written again while commands read it."""
    path = tmp_path / f"pool{suffix}"
    count = 20_000
    columns = np.random.default_rng(0).normal(size=(count, 6))
    whole = _written(tmp_path / f"whole{suffix}", columns)
    path.write_bytes(whole)
    over = threading.Event()

    def change() -> None:
        random = np.random.default_rng(1)
        while not over.is_set():
            what = int(random.integers(5))
            try:
                if what == 0:
                    path.unlink()
                elif what == 1:
                    os.truncate(path, int(random.integers(len(whole))))
                elif what == 2:
                    path.write_bytes(whole[: len(whole) // 2])
                else:
                    path.write_bytes(whole)
            except FileNotFoundError:
                pass
            time.sleep(float(random.uniform(0, 0.05)))

    thread = threading.Thread(target=change)
    thread.start()
    try:
        few = ("--features", "nystrom-8", "-o", "out.csv")
        commands: list[tuple[object, ...]] = [
            ("pick", path, "-k", 2, *few),
            ("plan", path, "-k", 2),
            ("new", "fresh", path, "--number"),
        ]
        hold("files that change", [Run(suffix, command) for command in commands * 8])
    finally:
        over.set()
        thread.join()


def _written(path: Path, columns: np.ndarray) -> bytes:
    table = pa.table({f"c{j}": columns[:, j] for j in range(columns.shape[1])})
    if path.suffix == ".csv":
        lines = [",".join(table.column_names), *(",".join(map(str, row)) for row in columns[:3000])]
        return ("\n".join(lines) + "\n").encode()
    if path.suffix == ".parquet":
        pq.write_table(table, path)
    elif path.suffix == ".arrow":
        return tables._arrow_bytes(table)
    elif path.suffix == ".npy":
        np.save(path, columns)
    else:
        np.savez(path, x=columns)
    return path.read_bytes()
