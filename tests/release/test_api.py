"""The public names are those that are listed, with the signatures that are listed."""

import re
from importlib import import_module
from inspect import getdoc
from pathlib import Path

import pytest

import evgp
from tests.release.api import LISTING, PAGE, PUBLIC, ROOT, listing, page

AGAIN = "after a deliberate change: python -m tests.release.api"
FOR_BUILDERS = ("contributing.md", "architecture.md")
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


def test_the_listing_is_current() -> None:
    assert LISTING.read_text(encoding="utf-8") == listing(), AGAIN


def test_the_page_is_current() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), AGAIN


def test_what_the_package_offers_is_listed() -> None:
    rooms = {name for name in evgp.__all__ if f"evgp.{name}" in PUBLIC}
    assert set(PUBLIC["evgp"]) | rooms == set(evgp.__all__)
    assert set(evgp.__all__) <= set(dir(evgp))


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
