"""Which sources were measured: others may commit while a benchmark runs."""

import subprocess
from pathlib import Path

import evgp

ROOT = Path(__file__).parent.parent


def measured_commit() -> str:
    """The newest commit whose sources are those that were imported, wherever they lie."""
    package = Path(evgp.__file__).parent
    files = sorted(package.rglob("*.py"))
    names = [f"src/evgp/{file.relative_to(package).as_posix()}" for file in files]
    try:
        ours = dict(zip(names, _git("hash-object", *map(str, files)), strict=True))
        for commit in _git("log", "-30", "--format=%h", "--", "src"):
            listed = [line.split() for line in _git("ls-tree", "-r", commit, "src/evgp")]
            if ours == {part[3]: part[2] for part in listed if part[3].endswith(".py")}:
                return commit
    except (OSError, subprocess.CalledProcessError):
        return "no repository"
    return "not committed"


def _git(*words: str) -> list[str]:
    done = subprocess.run(["git", *words], cwd=ROOT, check=True, capture_output=True, text=True)
    return done.stdout.splitlines()
