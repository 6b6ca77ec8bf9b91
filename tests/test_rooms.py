"""Data flows one way, so imports do too."""

import ast
from pathlib import Path

import pytest

import evgp

ROOMS = [  # low to high; rooms on one line do not import each other
    ["_typing", "_errors", "_capabilities"],
    ["_checks"],
    ["_linalg", "_machine", "_memory", "_executor", "_processes", "_extras", "_plugins", "_repr"],
    ["_reading"],
    ["_progress", "pool", "nets", "metrics"],
    ["datasets", "kernels", "ensembles"],
    ["posterior"],
    ["criteria", "theory", "architectures"],
    ["greedy"],
    ["selection"],
    ["strategies"],
    ["loop", "audits", "campaign", "checkup"],
    ["report"],
    ["arena"],
    ["studies"],
    ["web"],
    ["integrations"],
    ["cli"],
    ["__main__"],
]
LEVEL = {room: level for level, row in enumerate(ROOMS) for room in row}
ROOT = Path(evgp.__file__).parent
FILES = [path for path in sorted(ROOT.rglob("*.py")) if path != ROOT / "__init__.py"]


def room_of(file: Path) -> str:
    return file.relative_to(ROOT).parts[0].removesuffix(".py")


def rooms_imported(file: Path) -> set[str]:
    rooms: set[str] = set()
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute"
            parts = (node.module or "").split(".")
            if parts[0] == "evgp":
                rooms |= {parts[1]} if len(parts) > 1 else {alias.name for alias in node.names}
        if isinstance(node, ast.Import):
            names = [alias.name.split(".") for alias in node.names]
            rooms |= {name[1] for name in names if name[0] == "evgp" and len(name) > 1}
            # The front itself is for the command only.
            assert room_of(file) == "cli" or ["evgp"] not in names
    return rooms


@pytest.mark.parametrize("file", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_room_imports_only_lower_rooms(file: Path) -> None:
    room = room_of(file)
    public = {*evgp.__all__, "__version__"}
    for other in rooms_imported(file) - {room}:
        if room == "cli" and other in public:
            continue  # `from evgp import pick`: the command uses the front door
        assert LEVEL[other] < LEVEL[room], f"{room} may not import {other}"


@pytest.mark.parametrize("file", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_no_file_passes_400_lines(file: Path) -> None:
    assert len(file.read_text().splitlines()) <= 400
