"""The files that a pool is made of: one, a list, a folder, or an address."""

import hashlib
import os
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from os import PathLike
from pathlib import Path, PurePosixPath
from typing import Any, BinaryIO

import pyarrow as pa

from evgp._checks import path_of, shown
from evgp._errors import DatasetError, EvgpError
from evgp._reading import check_plain
from evgp._reading import opened as plain_file
from evgp.datasets.tables import check_file, damaged, quoted

PARQUET, ARROW, NPY = "Parquet", "Arrow", "NumPy"
KINDS = {".parquet": PARQUET, ".arrow": ARROW, ".feather": ARROW, ".ipc": ARROW, ".npy": NPY}
_OTHERS = (".csv", ".tsv", ".txt", ".json", ".npz", ".gz", ".zip", ".xlsx")
_PART = 2**20
# Seconds that a web server may take to accept a connection, and between two parts of an answer.
_CONNECT, _ANSWER = 20.0, 60.0
_ENDS = ".parquet, .arrow, .feather or .npy"


@dataclass(frozen=True)
class Found:
    """Files of one kind in order, and what to call them in messages."""

    name: str
    kind: str
    files: tuple[str, ...]
    remarks: tuple[str, ...] = ()


def find(where: str | Path | Sequence[str | Path]) -> Found:
    """The files meant, which are not opened yet."""
    if isinstance(where, str | PathLike):
        where = where if isinstance(where, str) else path_of(where, "where", error=DatasetError)
        path_of(where, "where", error=DatasetError)
        if is_address(where):
            return _at_address(str(where))
        return _in_folder(Path(where)) if Path(where).is_dir() else _listed([where], str(where))
    if not isinstance(where, Sequence) or isinstance(where, bytes):
        raise DatasetError(f"expected the path of a pool, or a list of files; got {shown(where)}")
    where = [path_of(one, "each file of a pool", error=DatasetError) for one in where]
    if not where:
        raise DatasetError("expected the files of a pool, got an empty list; name at least one")
    return _listed(where, f"{where[0]}" + (f" and {len(where) - 1} more" if where[1:] else ""))


def is_address(where: str | Path) -> bool:
    """Whether this is a URL, which fsspec opens."""
    return isinstance(where, str) and "://" in where


def local(where: str | Path) -> Path | None:
    """The path on this machine, which an address may stand for, too; None for one elsewhere.

    >>> local("file:///data/pool.parquet"), local("s3://bucket/pool")
    (PosixPath('/data/pool.parquet'), None)
    """
    if not is_address(where):
        return Path(where)
    scheme, path = str(where).split("://", 1)
    return Path(path) if scheme in ("file", "local") else None


def kind_of(file: str | Path) -> str:
    """The kind of a file by the end of its name.

    >>> kind_of("pool.parquet")
    'Parquet'
    """
    suffix = PurePosixPath(file).suffix.lower()
    if suffix not in KINDS:
        raise DatasetError(
            f"{file}: expected a name that ends in {_ENDS}, which can be read in parts; save it "
            "once as Parquet, as by pandas.read_csv(path).to_parquet('pool.parquet')"
        )
    return KINDS[suffix]


def _listed(where: Sequence[str | Path], name: str) -> Found:
    for file in where:
        if (place := local(file)) is not None:
            check_plain(place)
    kinds = {kind_of(file): str(file) for file in where}
    if len(kinds) > 1:
        raise _mixed(name, list(kinds.values()))
    files = tuple(map(str, where))
    twice = [file for file, count in Counter(files).items() if count > 1]
    if twice:
        raise DatasetError(f"{name}: expected each file once, got {quoted(twice)} more than once")
    for file in files:
        if not is_address(file):
            check_file(Path(file))
        elif PARQUET not in kinds:
            raise _only_parquet(file)
    return Found(name, next(iter(kinds)), files)


def _in_folder(folder: Path) -> Found:
    names: list[str] = []
    others: list[str] = []
    for here, folders, files in os.walk(folder, onerror=_refuse):
        folders[:] = [name for name in folders if not _is_hidden(name)]
        inside = Path(here).relative_to(folder)
        others += [str(inside / name) for name in folders if (Path(here) / name).is_symlink()]
        for name in files:
            if not _is_hidden(name):
                known = Path(name).suffix.lower() in KINDS
                (names if known else others).append(str(inside / name))
    return _sorted(str(folder), names, others, lambda name: str(folder / name))


def _sorted(source: str, names: list[str], others: list[str], full: Any) -> Found:
    """What lies in a folder, local or not."""
    if others:
        raise DatasetError(
            f"{source}: expected nothing but files that end in {_ENDS}, got "
            f"{quoted(sorted(others))}; move them away, or list the files of the pool"
        )
    if not names:
        raise DatasetError(
            f"{source}: expected files that end in {_ENDS}, got none; check the path"
        )
    names.sort(key=lambda name: PurePosixPath(name).parts)
    kinds = {kind_of(name): name for name in names}
    if len(kinds) > 1:
        raise _mixed(source, list(kinds.values()))
    parts = {part for name in names for part in PurePosixPath(name).parts[:-1] if "=" in part}
    told = f"folder names such as {min(parts)!r} are not read as columns" if parts else ""
    found = _listed([full(name) for name in names], source)
    return Found(source, found.kind, found.files, (told,) if told else ())


def _at_address(where: str) -> Found:
    suffix = PurePosixPath(where).suffix.lower()
    if suffix in _OTHERS:
        kind_of(where)  # says what to do, before anybody else is asked
    if KINDS.get(suffix, PARQUET) != PARQUET:
        raise _only_parquet(where)
    if not where.split("://", 1)[1].strip("/"):
        raise DatasetError(f"{where}: expected the address of a pool, got none behind ://")
    fs, path = _filesystem(where)
    with readable(where):
        if not fs.isdir(path):
            return _listed([where], where)
        inside = [PurePosixPath(name).relative_to(path) for name in fs.find(path)]
    seen = [str(name) for name in inside if not any(map(_is_hidden, name.parts))]
    names = [name for name in seen if PurePosixPath(name).suffix.lower() in KINDS]
    others = [name for name in seen if name not in set(names)]
    return _sorted(where, names, others, lambda name: fs.unstrip_protocol(f"{path}/{name}"))


@contextmanager
def opened(file: str) -> Iterator[BinaryIO]:
    """A file or an address, to be read as bytes."""
    with readable(file):
        if (place := local(file)) is not None:
            with plain_file(place) as stream:
                yield stream
        else:
            fs, path = _filesystem(file)
            with fs.open(path, "rb") as stream:
                yield stream


def digest(file: str) -> str:
    """A hash of all bytes of a file, read in small parts."""
    with opened(file) as stream:
        state = hashlib.blake2b()
        while part := stream.read(_PART):
            state.update(part)
        return state.hexdigest()


@contextmanager
def readable(file: str) -> Iterator[None]:
    """What goes wrong with a file becomes a sentence that names it."""
    try:
        yield
    except (OSError, pa.ArrowException, UnicodeDecodeError) as error:
        if isinstance(error, FileNotFoundError):
            raise DatasetError(f"{file}: no such file; check the path") from error
        if isinstance(error, OSError) and error.errno is not None:
            said = os.strerror(error.errno).lower()
            raise DatasetError(f"{file}: cannot be read: {said}") from error
        if isinstance(error, TimeoutError):
            raise DatasetError(f"{file}: the server does not answer; try again later") from error
        raise damaged(file, PurePosixPath(file).suffix.lower()) from error
    except EvgpError:
        raise
    except Exception as error:  # what opens an address may raise anything
        if not is_address(file):
            raise
        raise _closed(file, error) from error


def _closed(where: str, error: Exception) -> DatasetError:
    said = " ".join(str(error).split())[:300] or type(error).__name__
    return DatasetError(f"{where}: this address cannot be opened: {said}")


def _filesystem(where: str) -> tuple[Any, str]:
    try:
        import fsspec  # type: ignore[import-untyped]
    except ImportError as error:
        raise DatasetError(
            f"{where}: expected the package fsspec, which opens addresses, got none; install it "
            "(pip install fsspec), or copy the files here"
        ) from error
    try:
        fs, path = fsspec.core.url_to_fs(where, **_limits(where))
    except Exception as error:  # each kind of address has a package of its own behind it
        raise _closed(where, error) from error
    return fs, path


def _limits(where: str) -> dict[str, Any]:
    """Time-outs for web servers, which fsspec would wait for; other stores have their own."""
    if not where.startswith(("http://", "https://")):
        return {}
    import aiohttp

    wait = aiohttp.ClientTimeout(total=None, sock_connect=_CONNECT, sock_read=_ANSWER)
    return {"client_kwargs": {"timeout": wait}}


def _is_hidden(name: str) -> bool:
    return name.startswith((".", "_"))


def _refuse(error: OSError) -> None:
    raise DatasetError(f"{error.filename}: this folder may not be read; change its permissions")


def _mixed(source: str, examples: Sequence[str]) -> DatasetError:
    return DatasetError(
        f"{source}: expected files of one kind, got {quoted(examples)}; keep one kind"
    )


def _only_parquet(file: str) -> DatasetError:
    return DatasetError(
        f"{file}: expected Parquet at an address, got another kind; save it as Parquet, or copy "
        "the file here"
    )
