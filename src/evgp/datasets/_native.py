"""Files that pyarrow opens itself, whatever bytes their names are made of.

Given a name as text, pyarrow refuses one that is not UTF-8, and looks for a home directory behind
a `~`; given the bytes of a name, it takes them as they are.
"""

import os
from pathlib import Path

import pyarrow as pa


def native(path: str | Path) -> pa.OSFile:
    """A file, open to be read."""
    return pa.OSFile(os.fsencode(path))


def native_map(path: str | Path) -> pa.MemoryMappedFile:
    """A file, mapped into memory."""
    return pa.memory_map(os.fsencode(path))
