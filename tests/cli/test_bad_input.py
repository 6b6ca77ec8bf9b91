"""Bad input gets one sentence, the right exit code, and leaves no output behind."""

import struct
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.messages import printed

LINES = [f"{j},{j * j % 7},{'uvw'[j % 3]}" for j in range(12)]


def text(folder: Path, content: str | bytes, name: str = "pool.csv") -> Path:
    data = content.encode() if isinstance(content, str) else content
    (folder / name).write_bytes(data)
    return folder / name


def with_lines(*lines: str) -> Callable[[Path], Path]:
    return lambda folder: text(folder, "\n".join(lines) + "\n")


def numbers(array: object) -> Callable[[Path], Path]:
    def write(folder: Path) -> Path:
        np.save(folder / "pool.npy", array, allow_pickle=True)
        return folder / "pool.npy"

    return write


def truncated_parquet(folder: Path) -> Path:
    pq.write_table(pa.table({"a": np.arange(99.0)}), folder / "pool.parquet")
    whole = (folder / "pool.parquet").read_bytes()
    return text(folder, whole[: len(whole) // 2], "pool.parquet")


def lying_npy(folder: Path) -> Path:
    header = b"{'descr': '<f8', 'fortran_order': False, 'shape': (2500000000, 1000), }\n"
    return text(
        folder,
        b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + b"\0" * 64,
        "pool.npy",
    )


def bomb(folder: Path) -> Path:
    np.savez_compressed(folder / "pool.npz", x=np.zeros((5000, 1000)))
    return folder / "pool.npz"


def objects_npz(folder: Path) -> Path:
    np.savez(folder / "pool.npz", x=np.array([[1, None]], dtype=object))
    return folder / "pool.npz"


CASES = {
    "a NaN": with_lines("a,b", "1,nan", "2,3", "4,5"),
    "an inf": with_lines("a,b", "1,2", "2,inf", "4,-inf"),
    "a missing cell": with_lines("a,b", "1,2", ",3", "4,5"),
    "a missing word": with_lines("a,b", "1,x", "2,", "4,y"),
    "names for features": with_lines("a,b", "1,ann", "2,bob", "3,cy"),
    "text in numbers": with_lines("a", "1", "2", "three", "4"),
    "only constants": with_lines("a,b", "1,2", "1,2", "1,2"),
    "an empty file": lambda folder: text(folder, ""),
    "a header only": with_lines("a,b"),
    "one row": with_lines("a,b", "1,2"),
    "ragged rows": with_lines("a,b", "1,2", "1,2,3"),
    "doubled names": with_lines("a,a", "1,2", "3,4"),
    "two encodings": lambda folder: text(folder, b"a,b\n1,\xc3\xa9\xc3\xa9\n2,\xe8\n"),
    "a directory": lambda folder: folder,
    "a missing file": lambda folder: folder / "nowhere.csv",
    "a strange name": lambda folder: text(folder, "x", "pool.ods"),
    "a truncated Parquet": truncated_parquet,
    "a lying npy": lying_npy,
    "an npz bomb": bomb,
    "objects": numbers(np.array([[1, None]], dtype=object)),
    "objects in an npz": objects_npz,
    "complex numbers": numbers(np.eye(3) * 1j),
    "one axis": numbers(np.arange(5.0)),
    "NaN in an npy": numbers(np.array([[1.0, np.nan], [2, 3]])),
}


@pytest.mark.parametrize("command", ["pick", "plan"])
@pytest.mark.parametrize("case", CASES)
def test_a_bad_pool_is_refused_clearly(run, tmp_path: Path, case: str, command: str) -> None:
    pool = CASES[case](tmp_path)
    before = sorted(tmp_path.iterdir())
    outputs = ("-o", tmp_path / "out.csv", "--report", tmp_path / "out.html")
    ran = run(command, pool, "-k", 2, *(outputs if command == "pick" else ()))
    assert ran.code == 1
    assert ran.out == ""
    assert ran.err.startswith("evgp: ") and ran.err.count("\n") == 1
    printed(ran.err)
    assert sorted(tmp_path.iterdir()) == before


@pytest.fixture
def small(tmp_path: Path) -> Path:
    return text(tmp_path, "\n".join(["key,a,kind", *LINES]) + "\n")


@pytest.mark.parametrize(
    "arguments",
    [
        ("-k", 0),
        ("-k", -3),
        ("-k", 99),
        ("-k", 2, "--labelled", "known.txt"),
        ("-k", 2, "--labelled", "nowhere.txt"),
        ("-k", 2, "--test", "nowhere.csv"),
        ("-k", 2, "--test", "other.csv"),
        ("-k", 2, "--drop", "nothing"),
        ("-k", 2, "--id", "nothing"),
        ("-k", 2, "--id", "kind"),
        ("--budget", 2, "--costs", "nothing"),
        ("--budget", 2, "--costs", "kind"),
        ("--budget", 3, "--costs", "a"),
        ("-k", 2, "--noise", -1),
        ("-k", 2, "--depth", -1),
        ("-k", 2, "--thin", 0),
        ("-k", 2, "--max-categories", 2),
        ("-k", 2, "-o", "out.docx"),
        ("-k", 2, "-o", "nowhere/out.csv"),
        ("-k", 2, "-o", "."),
        ("-k", 2, "--report", "out.pdf"),
        ("-k", 2, "-o", "pool.csv"),
        ("-k", 2, "--test", "other.csv", "-o", "other.csv"),
        ("-k", 2, "-o", "linked.csv"),
    ],
)
def test_a_bad_option_is_refused_clearly(
    run,
    small: Path,
    monkeypatch: pytest.MonkeyPatch,
    arguments: tuple[object, ...],
) -> None:
    monkeypatch.chdir(small.parent)
    text(small.parent, "3\n12\n", "known.txt")
    text(small.parent, "c,d\n1,2\n3,4\n", "other.csv")
    (small.parent / "linked.csv").symlink_to(small)
    before = {path.name: path.read_bytes() for path in small.parent.iterdir()}
    ran = run("pick", "pool.csv", *arguments)
    assert ran.code == 1, ran.err
    lines = [line for line in ran.err.splitlines() if not line.startswith("note: ")]
    assert len(lines) == 1 and lines[0].startswith("evgp: ")
    printed(lines[0])
    assert ran.out == ""
    assert {path.name: path.read_bytes() for path in small.parent.iterdir()} == before


@pytest.mark.parametrize(
    "arguments",
    [
        ("pick",),
        ("pick", "pool.csv"),
        ("pick", "pool.csv", "-k", "many"),
        ("pick", "pool.csv", "-k", "2", "--greedy", "clever"),
        ("pick", "pool.csv", "-k", "2", "--nonsense"),
        ("pick", "pool.csv", "--budget", "3"),
        ("pick", "pool.csv", "-k", "2", "--costs", "a"),
        ("plan", "pool.csv", "-k", "2", "--costs", "a"),
        ("plan", "pool.csv"),
        ("plot", "pool.csv"),
    ],
)
def test_a_wrong_call_is_a_usage_error(run, arguments: tuple[str, ...]) -> None:
    ran = run(*arguments)
    assert ran.code == 2
    assert ran.out == ""
    assert "Usage: evgp" in ran.err


@pytest.mark.parametrize(
    "array",
    [
        np.arange(24).reshape(12, 2) % 7,
        (np.arange(24).reshape(12, 2) % 7).astype(np.float16),
        np.arange(24).reshape(12, 2) % 3 == 0,
        np.random.default_rng(0).normal(size=(12, 2)) * 1e300,
        np.random.default_rng(0).normal(size=(12, 2)) * 1e-300,
        np.repeat(np.random.default_rng(0).normal(size=(4, 2)), 3, axis=0),
    ],
    ids=["integers", "float16", "booleans", "huge", "tiny", "duplicates"],
)
def test_unusual_numbers_are_picked_from(run, tmp_path: Path, array: np.ndarray) -> None:
    np.save(tmp_path / "pool.npy", array)
    ran = run("pick", tmp_path / "pool.npy", "-k", 3, "--json")
    assert ran.code == 0, ran.err
    assert "NaN" not in ran.out


def test_images_are_flattened_with_a_note(run, tmp_path: Path) -> None:
    x = np.random.default_rng(0).normal(size=(12, 1, 2, 2))
    for name in ("pool.npy", "test.npy"):
        np.save(tmp_path / name, x)
    np.save(tmp_path / "flat.npy", x.reshape(12, 4))
    ran = run("pick", tmp_path / "pool.npy", "-k", 3, "--test", tmp_path / "test.npy")
    assert ran.code == 0
    assert ran.err.count("pool.npy: 12x1x2x2 numbers, flattened to 4 in each row") == 1
    flat = run("pick", tmp_path / "flat.npy", "-k", 3, "--test", tmp_path / "flat.npy")
    assert ran.out == flat.out


def test_copies_are_reported_and_not_picked_twice(run, tmp_path: Path) -> None:
    x = np.random.default_rng(0).normal(size=(6, 3))
    np.save(tmp_path / "pool.npy", np.concatenate([x, x]))
    ran = run("pick", tmp_path / "pool.npy", "-k", 6)
    assert "6 of 12 rows are copies of others" in ran.err
    picked = [int(line.split("\t")[1]) % 6 for line in ran.out.splitlines()[1:]]
    assert sorted(picked) == list(range(6))


def test_missing_values_are_filled_on_request(run, tmp_path: Path) -> None:
    pool = with_lines("a,b", "1,nan", "2,3", "4,5", "inf,7")(tmp_path)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ran = run("pick", pool, "-k", 2, "--impute")
    assert ran.code == 0
    assert ran.err.count("filled 2 cells") == 1


def test_odd_columns_are_reported(run, small: Path, tmp_path: Path) -> None:
    lines = [f"{j},{j * j % 7},{j % 2},5" for j in range(12)]
    pool = text(tmp_path, "\n".join(["key,a,label,same", *lines]), "odd.csv")
    err = run("pick", pool, "-k", 2).err
    assert "column 'key' left out: a different value in each row, like an id" in err
    assert "column 'label': named like the label" in err
    assert "dropped 1 constant column ('same')" in err


def test_what_may_be_the_label_is_reported(run, tmp_path: Path) -> None:
    lines = [f"{j * j % 7},{'uv'[j % 2]},{j % 3 == 0},{j / 7}" for j in range(12)]
    names = "a,Species,is_ill,has_cost"
    err = run("pick", text(tmp_path, "\n".join([names, *lines])), "-k", 2).err
    assert "column 'Species', 'is_ill': perhaps the label" in err
    assert "has_cost" not in err


def test_one_is_not_many(run, small: Path, tmp_path: Path) -> None:
    text(tmp_path, "3\n", "known.txt")
    pool = text(tmp_path, "a,b\n" + "".join(f"{j * j},{j % 5}\n" for j in (0, 1, 2, 3, 2)))
    err = run("pick", pool, "-k", 1, "--labelled", tmp_path / "known.txt").err
    assert "read as 1 row number (counted from 0) that is labelled" in err
    assert "1 of 5 rows is a copy of another" in err
    assert "of the largest reduction any other row could achieve" in err


def test_an_array_may_be_named_for_one_of_two_files(run, tmp_path: Path) -> None:
    x = np.random.default_rng(0).normal(size=(12, 2))
    np.savez(tmp_path / "pool.npz", one=x, two=x)
    np.save(tmp_path / "test.npy", x)
    line = (tmp_path / "pool.npz", "-k", 2, "--array", "one", "--test", tmp_path / "test.npy")
    assert run("pick", *line).code == 0
    ran = run("pick", tmp_path / "test.npy", "-k", 2, "--array", "one")
    assert ran.code == 1, ran.err
    printed(ran.err)


def test_what_does_not_fit_is_refused(
    run, small: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Little:
        available = 1000

    monkeypatch.setattr("psutil.virtual_memory", Little)
    ran = run("pick", small, "-k", 2, "-o", tmp_path / "out.csv")
    assert ran.code == 1
    assert "memory" in ran.err
    assert not (tmp_path / "out.csv").exists()
