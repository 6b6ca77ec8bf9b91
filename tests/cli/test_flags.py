"""Messages name options in the command, and arguments in Python."""

import ast
import re
from pathlib import Path

import pytest
import typer

import evgp
from evgp.cli._options import PickOptions
from evgp.cli._output import _OTHERS, _SPELLED, flag_of, in_flags, with_flag
from evgp.cli.main import app
from evgp.errors import BadArgument, NetworkError, PoolError, RowsOutOfRange, UnknownName
from tests import messages


def options(command) -> set[str]:
    """Every option of a command and of those below it."""
    actual = {name for param in command.params for name in param.opts if name.startswith("-")}
    for below in getattr(command, "commands", {}).values():
        actual |= options(below)
    return actual


ROOT = typer.main.get_command(app)
PICK = [name for name in PickOptions.__dataclass_fields__ if name not in ("pool", "output")]


@pytest.mark.parametrize("name", PICK)
def test_every_option_of_a_pick_is_named_as_it_is_typed(name) -> None:
    flag = flag_of(name)
    assert flag in options(ROOT.commands["pick"])
    assert in_flags(f"leave out {name}='a'") == f"leave out {flag} 'a'"
    assert in_flags(f"raise {name}=, or wait") == f"raise {flag}, or wait"
    assert in_flags(f"set {name}=True") == f"set {flag}"
    reported = with_flag(BadArgument.of(PoolError)(name, "as a number", "'a'"))
    assert str(reported) == f"expected {flag} as a number, got 'a'" and isinstance(
        reported, PoolError
    )


def test_the_options_of_other_commands_exist() -> None:
    assert {flag_of(name) for name in _OTHERS} <= options(ROOT)
    assert {f"--{name}" for name in _SPELLED.values()} <= options(ROOT)


def strings(path: Path) -> list[str]:
    """The strings of a file, without docstrings."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    alone = {node.value for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    return [
        node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node not in alone
    ]


def test_no_message_below_the_command_names_a_flag() -> None:
    package = Path(evgp.__file__).parent
    files = [path for path in package.rglob("*.py") if "cli" not in path.parts]
    texts = [(path.name, text) for path in files for text in strings(path)]
    flags = {name for name in options(ROOT) if name.startswith("--")}
    assert len(texts) > 5000 and "--drop" in flags
    named = [(file, text) for file, text in texts if flags & set(re.findall(r"--[a-z-]+", text))]
    assert named == []


def test_errors_with_fields_name_the_option() -> None:
    assert str(with_flag(RowsOutOfRange("labelled", 12, 1, 40))).startswith("expected --labelled")
    assert str(with_flag(UnknownName("features", "row", ("raw",)))).startswith(
        "expected --features"
    )
    unit = BadArgument.of(NetworkError)("output", "from 0 to 9", "12")
    assert str(with_flag(unit)) == "expected --unit from 0 to 9, got 12"
    assert unit.argument == "output"  # the error itself stays as it was
    other = BadArgument("generator", "as one of torch", "3")
    assert with_flag(other) is other


def test_no_error_of_a_command_names_an_argument_of_python() -> None:
    """Of all messages that the tests of the command have met."""
    message = [line for lines in messages.read().values() for line in lines]
    lines = [line for line in message if line.startswith(("evgp: ", "note: "))]
    match = {name for line in lines for name in re.findall(r"(?<![\w'\"-])([a-z_]+)=", line)}
    assert len(lines) > 100 and not {name for name in match if flag_of(name)}
