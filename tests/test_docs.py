"""What the documents say is there, and what is there is in the documents."""

import re
from inspect import getdoc
from pathlib import Path
from typing import get_args

import pytest

import evgp
from evgp.cli import _options
from evgp.criteria import CRITERIA
from evgp.nets import ACTIVATIONS
from evgp.search import GREEDIES
from tests.test_rooms import ROOMS

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)\)")


def prose(page: Path) -> str:
    """The page without its code."""
    return re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)


def links(page: Path) -> list[str]:
    """Where it points to inside the project."""
    actual = LINK.findall(re.sub(r"`[^`\n]*`", "", prose(page)))
    return [link for link in actual if not re.match(r"[a-z]+:", link)]


def anchors(page: Path) -> set[str]:
    """What headings can be linked to, as the usual renderers name them."""
    titles = re.findall(r"^#+ (.+)$", prose(page), flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).strip().replace(" ", "-") for title in titles}


def name(page: Path) -> str:
    return str(page.relative_to(ROOT))


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_every_link_leads_somewhere(page: Path) -> None:
    lost = []
    for link in links(page):
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        if not target.exists() or (anchor and anchor not in anchors(target)):
            lost.append(link)
    assert not lost, f"{name(page)} links to what is not there: {', '.join(lost)}"


def test_every_path_in_the_table_for_contributors_exists() -> None:
    text = prose(ROOT / "CONTRIBUTING.md")
    paths = {
        path for path in re.findall(r"`([\w./-]+)`", text) if re.search(r"/|\.(py|md|txt)$", path)
    }
    bases = (ROOT / "src" / "evgp", ROOT / "src", ROOT)
    lost = [path for path in paths if not any((base / path).exists() for base in bases)]
    assert len(paths) > 20 and not lost, f"not there: {lost}"


def test_every_page_is_linked_from_the_front() -> None:
    front = tuple(ROOT / path for path in ("README.md", "docs/start.md", "docs/reproduction.md"))
    reached = {
        (page.parent / link.partition("#")[0]).resolve() for page in front for link in links(page)
    }
    missing = [name(page) for page in PAGES if page not in (*front, *reached)]
    assert not missing, f"no link from {', '.join(map(name, front))} to {', '.join(missing)}"


@pytest.mark.parametrize("public", evgp.__all__)
def test_every_public_name_has_a_docstring(public: str) -> None:
    thing = getattr(evgp, public)
    assert (thing.__doc__ or "").strip(), f"evgp.{public} has no docstring"
    # A dataclass without one gets its signature as docstring.
    assert not thing.__doc__.startswith(f"{public}("), f"evgp.{public} has no docstring"
    for method in vars(thing) if isinstance(thing, type) else ():
        if not method.startswith("_") and callable(getattr(thing, method)):
            assert getdoc(getattr(thing, method)), f"evgp.{public}.{method} has no docstring"


def test_the_rooms_of_the_architecture_are_those_of_the_code() -> None:
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    rows = text.split("| room | knows |")[1].split("\n\n")[0].splitlines()[2:]
    match = [set(re.findall(r"`(\w+)`", row.split("|")[1])) for row in rows]
    assert match == [set(row) for row in ROOMS]


def test_the_command_offers_every_name() -> None:
    assert get_args(_options.Activations) == tuple(ACTIVATIONS)
    assert get_args(_options.Criteria) == tuple(CRITERIA)
    assert get_args(_options.Greedies) == ("auto", *GREEDIES)


def test_the_tests_that_the_theory_names_exist() -> None:
    claims = (ROOT / "tests" / "theory" / "test_claims.py").read_text(encoding="utf-8")
    tests = re.findall(r"^def (test_\w+)", claims, flags=re.MULTILINE)
    text = (ROOT / "docs" / "theory.md").read_text(encoding="utf-8")
    named = re.findall(r"`((?:\.\.\.|test_)\w[\w.]*)`", text)
    named = [item for item in named if "..." in item or item.startswith("test_")]
    assert len(named) > 8
    for item in named:
        pattern = ".*".join(re.escape(part) for part in item.split("..."))
        assert any(re.fullmatch(pattern, test) for test in tests), f"no test is named {item}"
