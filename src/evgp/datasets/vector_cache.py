"""Vectors that were computed before, by content: in files with checksums, for each embedder.

A vector is found by a hash of its text or image in a folder named by the embedder's fingerprint.
A changed text or another model has another hash, so a wrong vector is never found.
"""

import secrets
import time
import warnings
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from jaxtyping import Bool, Float, UInt8

from evgp.datasets.cache import array_file, cache_folder, verify
from evgp.errors import DamagedFile, DamageWarning, DatasetError, DataWarning, EvgpError

_KEY = 16  # bytes of a hash
_MANY = 16  # files of a run, above which they are joined into one
_DAY = 86_400


@dataclass
class VectorCache:
    """The vectors of one embedder. Each row of a file: hash, whether the text was cut, vector.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     cache = VectorCache("ab12", Path(folder))
    ...     cache.add([b"0123456789abcdef"], np.array([False]), np.ones((1, 3), np.float32))
    ...     VectorCache("ab12", Path(folder)).find([b"0123456789abcdef"])
    {b'0123456789abcdef': (False, array([1., 1., 1.], dtype=float32))}
    """

    fingerprint: str
    root: Path = field(default_factory=lambda: cache_folder() / "embeddings")
    _written: list[Path] = field(default_factory=list, repr=False)
    broken: bool = False

    @property
    def folder(self) -> Path:
        """The folder of this embedder."""
        return self.root / self.fingerprint

    def find(self, keys: Sequence[bytes]) -> dict[bytes, tuple[bool, Float[np.ndarray, " d"]]]:
        """Return the cached entries of these hashes: whether the text was cut, and the vector.

        Damaged files are deleted with a `DamageWarning`; their vectors are computed again.
        """
        missing, stored = set(keys), {}
        for path in self._files():
            rows = self._read(path)
            if rows is None:
                continue
            hashes = rows[:, :_KEY].tobytes()
            vectors = rows[:, _KEY + 1 :]
            for row in range(len(rows)):
                key = hashes[_KEY * row : _KEY * (row + 1)]
                if key in missing:
                    vector = np.frombuffer(vectors[row].tobytes(), dtype="<f4")
                    stored[key] = (bool(rows[row, _KEY]), vector)
        return stored

    def add(
        self, keys: Sequence[bytes], cut: Bool[np.ndarray, " n"], vectors: Float[np.ndarray, "n d"]
    ) -> None:
        """Write vectors to a new file, complete or not at all; warn once if that is impossible."""
        if self.broken or not keys:
            return
        rows = np.empty((len(keys), _KEY + 1 + 4 * vectors.shape[1]), dtype=np.uint8)
        rows[:, :_KEY] = np.frombuffer(b"".join(keys), dtype=np.uint8).reshape(-1, _KEY)
        rows[:, _KEY] = cut
        rows[:, _KEY + 1 :] = np.ascontiguousarray(vectors, dtype="<f4").view(np.uint8)
        self._write(rows)

    def tidy(self) -> None:
        """Join the files of this run if they are many."""
        if len(self._written) < _MANY or self.broken:
            return
        parts = self._written[:]
        tables = [rows for path in parts if (rows := self._read(path)) is not None]
        self._write(np.concatenate(tables))
        if not self.broken:
            for path in parts:
                path.unlink(missing_ok=True)
            self._written = self._written[len(parts) :]

    def _write(self, rows: UInt8[np.ndarray, "n b"]) -> None:
        path = self.folder / f"{secrets.token_hex(8)}.npy"
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            with array_file(path, rows.shape, "uint8", self.fingerprint) as array:
                array[:] = rows
            self._written.append(path)
        except (EvgpError, OSError) as error:
            self.broken = True
            why = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
            warnings.warn(
                f"vectors cannot be cached for the next run: {self.root} cannot be written "
                f"({why}); set EVGP_CACHE to another folder",
                DataWarning,
                stacklevel=2,
            )

    def _files(self) -> list[Path]:
        with suppress(OSError):
            for part in self.folder.glob(".evgp-*.part"):  # left by runs that were killed
                if time.time() - part.stat().st_mtime > _DAY:
                    part.unlink(missing_ok=True)
        with suppress(OSError):
            return sorted(self.folder.glob("*.npy"))
        return []

    def _read(self, path: Path) -> UInt8[np.ndarray, "n b"] | None:
        """Return the rows of a file; None if it is gone or damaged."""
        try:
            verify(path, self.fingerprint)
            rows = np.load(path, mmap_mode="r", allow_pickle=False)
            if rows.ndim != 2 or rows.dtype != np.uint8 or (rows.shape[1] - _KEY - 1) % 4:
                raise DamagedFile(str(path), "it holds something else")
            return np.asarray(rows)
        except FileNotFoundError:
            return None
        except (DatasetError, OSError, ValueError) as error:
            why = error.why if isinstance(error, DamagedFile) else str(error)
            warnings.warn(
                f"{path} was damaged ({why}); its vectors are computed again",
                DamageWarning,
                stacklevel=3,
            )
            with suppress(OSError):
                path.unlink(missing_ok=True)
            return None
