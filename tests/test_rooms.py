"""Data flows one way, so imports do too."""

import ast
from pathlib import Path

import pytest

import evgp

ROOMS = [  # low to high; rooms on one line do not import each other
    ["_defaults", "_typing", "errors", "_moved"],
    ["_checks"],
    ["_linalg", "_machine", "_executor", "_processes", "_extras", "_plugins", "_repr"],
    ["_reading"],
    ["_progress", "pool", "nets", "metrics"],
    ["embedders"],
    ["datasets", "kernels", "training"],
    ["posterior"],
    ["criteria", "bounds", "architectures"],
    ["search"],
    ["selection"],
    ["strategies"],
    ["loop", "audits", "doctor", "testing", "integrations"],
    ["report"],
    ["comparison", "labelling"],
    ["cli"],
    ["__main__"],
]
LONGEST = 60  # lines of code in a function
LEVEL: dict[str, float] = {room: level for level, row in enumerate(ROOMS) for room in row}
# Rooms inside a room, low to high.
for step, inner in enumerate(["campaign", "web", "label_studio"]):
    LEVEL[f"labelling.{inner}"] = LEVEL["labelling"] + step / 10
ROOT = Path(evgp.__file__).parent
FILES = [path for path in sorted(ROOT.rglob("*.py")) if path != ROOT / "__init__.py"]
EXPERIMENTS = Path(__file__).parents[1] / "experiments"


def room_of(file: Path) -> str:
    return room_named(*file.relative_to(ROOT).with_suffix("").parts)


def room_named(*parts: str) -> str:
    """A room, or one of the rooms inside `labelling`."""
    inner = ".".join(parts[:2])
    return inner if inner in LEVEL else parts[0]


def rooms_imported(file: Path) -> set[str]:
    rooms: set[str] = set()
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute"
            parts = (node.module or "").split(".")
            if parts[0] == "evgp":
                names = [[*parts[1:], alias.name] for alias in node.names]
                rooms |= {room_named(*name) for name in names}
        if isinstance(node, ast.Import):
            modules = [alias.name.split(".") for alias in node.names]
            rooms |= {room_named(*name[1:]) for name in modules if name[0] == "evgp" and name[1:]}
            # The front itself is for the command only.
            assert room_of(file) == "cli" or ["evgp"] not in modules
    return rooms


@pytest.mark.parametrize("file", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_room_imports_only_lower_rooms(file: Path) -> None:
    room = room_of(file)
    public = {*evgp.__all__, "__version__"}
    for other in rooms_imported(file) - {room}:
        if room == "cli" and other in public:
            continue  # `from evgp import pick`: the command uses `evgp.pick`
        assert LEVEL[other] < LEVEL[room], f"{room} may not import {other}"


def code_lines(function: ast.AST, lines: list[str]) -> int:
    """Lines of a function with its signature, without its docstring, blank and comment lines."""
    assert isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef)
    own = set(range(function.lineno, (function.end_lineno or function.lineno) + 1))
    if ast.get_docstring(function) is not None:
        message = function.body[0]
        own -= set(range(message.lineno, (message.end_lineno or message.lineno) + 1))
    kept = (lines[at - 1].strip() for at in own)
    return sum(bool(line) and not line.startswith("#") for line in kept)


def long_functions() -> dict[str, int]:
    entries: dict[str, int] = {}
    named = {file: file.relative_to(ROOT).as_posix() for file in FILES}
    named |= {file: f"experiments/{file.name}" for file in EXPERIMENTS.glob("*.py")}
    for file, path in named.items():
        text = file.read_text()
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                count = code_lines(node, text.splitlines())
                if count > LONGEST:
                    name = f"{path}:{node.name}"
                    entries[name] = max(count, entries.get(name, 0))
    return entries


def test_functions_are_short() -> None:
    assert not long_functions(), "split these"


def test_commands_are_short_with_their_help() -> None:
    for file in (ROOT / "cli").glob("*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.FunctionDef):
                assert (node.end_lineno or 0) - node.lineno < LONGEST, f"{file.name}:{node.name}"


def test_a_class_name_means_one_thing() -> None:
    homes: dict[str, list[str]] = {}
    for file in FILES:
        for node in ast.parse(file.read_text()).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                homes.setdefault(node.name, []).append(file.relative_to(ROOT).as_posix())
    assert {name: files for name, files in homes.items() if len(files) > 1} == {}
