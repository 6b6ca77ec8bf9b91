"""The public names are those that are listed, with the signatures that are listed."""

import re
from importlib import import_module
from inspect import getdoc, getmembers
from pathlib import Path
from pkgutil import iter_modules
from types import ModuleType

import pytest

import evgp
from evgp import _moved
from tests.forked import python
from tests.release.api import LISTING, PAGE, PUBLIC, ROOT, listing, page

AGAIN = "after a deliberate change: python -m tests.release.api"
FOR_BUILDERS = ("contributing.md", "architecture.md")
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def test_the_listing_is_current() -> None:
    assert LISTING.read_text(encoding="utf-8") == listing(), AGAIN


def test_the_page_is_current() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), AGAIN


def test_what_the_package_offers_is_listed() -> None:
    rooms = {name for name in evgp.__all__ if isinstance(getattr(evgp, name), ModuleType)}
    assert {room.split(".")[1] for room in PUBLIC if "." in room} <= rooms
    assert set(PUBLIC["evgp"]) == set(evgp.__all__) - rooms
    assert set(evgp.__all__) <= set(dir(evgp))


def test_few_names_are_at_the_top() -> None:
    assert len(PUBLIC["evgp"]) <= 28, "put the name into its room"


OLD_NAMES = (Path(__file__).parent / "names-0.1.txt").read_text(encoding="utf-8").split()


def thing_named(name: str) -> object:
    room, _, last = name.rpartition(".")
    return getattr(import_module(room), last)


@pytest.mark.filterwarnings("ignore:evgp.arena is now", "ignore:evgp.theory is now")
@pytest.mark.parametrize("name", sorted({*OLD_NAMES, *_moved.NAMES, "evgp.studies"}))
def test_a_public_name_of_version_0_1_works_or_says_where_it_is_now(name: str) -> None:
    gone = _moved.OUTSIDE.get(name.replace("evgp.theory.", "evgp.bounds."))
    if gone:
        room, _, last = name.rpartition(".")
        with pytest.raises(AttributeError) as missing:
            thing_named(name)
        with pytest.raises(ImportError) as not_imported:
            exec(f"from {room} import {last}")
        for caught in (missing, not_imported):
            assert str(caught.value).endswith(f"; it is in {gone} of the repository.")
        assert not hasattr(import_module(room), last)
        place = ROOT / gone
        assert place.is_dir() or re.search(rf"^(class|def) {last}\b", place.read_text(), re.M)
    elif name in _moved.NAMES:
        now = _moved.NAMES[name]
        with pytest.warns(DeprecationWarning) as caught:
            thing = thing_named(name)
        assert any(str(item.message).startswith(f"{name} is now {now};") for item in caught)
        assert thing is thing_named(now)
        assert name.rpartition(".")[2] not in getattr(
            import_module(name.rpartition(".")[0]), "__all__", ()
        )
    else:
        assert thing_named(name) is not None


def test_no_old_name_is_forgotten() -> None:
    assert len(set(OLD_NAMES)) == len(OLD_NAMES) == 109
    with pytest.raises(AttributeError):
        thing_named("evgp.posterior.sntkpg")


@pytest.mark.parametrize("old", ["evgp.Exact", "evgp.strategies.pick"])
@pytest.mark.parametrize("how", ["import {0}; {0}.{1}", "from {0} import {1}"])
def test_the_warning_points_at_the_caller(old: str, how: str) -> None:
    room, _, name = old.rpartition(".")
    run = python(how.format(room, name))
    assert run.returncode == 0
    assert run.stderr.startswith(f"<string>:1: DeprecationWarning: {old} is now")


@pytest.mark.parametrize(
    "line",
    ["import evgp.studies", "from evgp.studies.study import Cell", "import evgp; evgp.studies"],
)
def test_studies_say_where_they_are_now(line: str) -> None:
    run = python(line)
    assert run.returncode == 1
    assert run.stderr.endswith(
        "is no longer part of the package; it is in experiments/ of the repository.\n"
    )


@pytest.mark.parametrize("room", ["evgp", *(f"evgp.{name}" for name in evgp._ROOMS)])
def test_all_members_of_a_room_can_be_listed(room: str) -> None:
    assert getmembers(import_module(room))


OLD_ROOM = """
import sys, warnings
from importlib import import_module
warnings.simplefilter("error")
old, new, inner = sys.argv[1:]
import evgp.integrations
try:
    import_module(old)
except DeprecationWarning as warning:
    print(warning)
warnings.simplefilter("ignore")
for end in ["", "." + inner] if inner else [""]:
    module = import_module(old + end)
    assert module is import_module(new + end)
    assert module.__name__ == module.__spec__.name == new + end
"""


@pytest.mark.parametrize(("old", "new"), _moved.ROOMS.items())
def test_a_room_can_be_imported_by_its_old_name(old: str, new: str) -> None:
    folder = getattr(import_module(new), "__path__", ())  # a room may be one file
    inner = min((module.name for module in iter_modules(folder)), default="")
    run = python(OLD_ROOM, old, new, inner)
    assert run.returncode == 0, run.stderr
    assert run.stdout == f"{old} is now {new}; the old name will be removed in the next release.\n"


def test_the_warning_of_an_old_room_points_at_the_import() -> None:
    run = python("from evgp.campaign.events import Answered")
    assert run.stderr.startswith("<string>:1: DeprecationWarning: evgp.campaign is now")


@pytest.mark.parametrize("module", PUBLIC)
def test_every_public_name_is_there_and_says_what_it_is(module: str) -> None:
    for name in PUBLIC[module]:
        text = getdoc(getattr(import_module(module), name)) or ""
        assert text and not text.startswith(f"{name}("), f"{module}.{name} has no docstring"


@pytest.mark.parametrize(
    "shown",
    [page for page in PAGES if page.name not in FOR_BUILDERS],
    ids=lambda path: path.name,
)
def test_pages_for_users_show_public_names_only(shown: Path) -> None:
    text = shown.read_text(encoding="utf-8")
    for module, names in re.findall(r"from (evgp[\w.]*) import ([\w, ]+)", text):
        hidden = {name.strip() for name in names.split(",")} - set(PUBLIC.get(module, ()))
        whole = {name for name in hidden if f"{module}.{name}" in PUBLIC}
        assert hidden == whole, f"{shown.name}: {module} {sorted(hidden)}"
    for name in re.findall(r"(?<![\w/.])evgp\.(\w+)\(", text):
        assert name in evgp.__all__, f"{shown.name}: evgp.{name}"
    for module, name in re.findall(r"(?<![\w/.])(evgp\.[a-z]+)\.([A-Za-z]\w*)\(", text):
        assert name in PUBLIC.get(module, ()), f"{shown.name}: {module}.{name}"
