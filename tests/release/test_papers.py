"""The files next to the code are true: citation, changes, security."""

import re
from pathlib import Path

import pytest
import yaml

import evgp

ROOT = Path(__file__).parents[2]
VERSION = re.compile(r"\d+\.\d+\.\d+(?:(?:a|b|rc)\d+)?")
SECURITY = (ROOT / "SECURITY.md").read_text(encoding="utf-8")


def test_the_version_is_a_semantic_one() -> None:
    assert VERSION.fullmatch(evgp.__version__)


def test_the_citation_names_this_version_and_the_paper() -> None:
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert (cited["cff-version"], cited["title"]) == ("1.2.0", "evgp")
    assert (str(cited["version"]), cited["license"]) == (evgp.__version__, "MIT")
    paper = cited["preferred-citation"]
    shown = (ROOT / "README.md").read_text(encoding="utf-8").replace("\n> ", " ")
    names = ", ".join(
        f"{author['given-names']} {author['family-names']}" for author in paper["authors"]
    )
    assert f"{names}. *{paper['title']}.* ICML {paper['year']}" in shown


def test_changes_are_listed_newest_first() -> None:
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    match = re.findall(r"^## (.+)$", text, flags=re.MULTILINE)
    assert match[0] == "Unreleased" or match[0].startswith(evgp.__version__)
    released = [title for title in match if title != "Unreleased"]
    for title in released:
        assert re.fullmatch(rf"{VERSION.pattern} \(\d{{4}}-\d{{2}}-\d{{2}}\)", title), title
    dates = [title.split("(")[1] for title in released]
    assert dates == sorted(dates, reverse=True)
    kinds = set(re.findall(r"^### (.+)$", text, flags=re.MULTILINE))
    assert kinds <= {"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"}


@pytest.mark.parametrize("named", re.findall(r"`(test_\w+)`", SECURITY))
def test_a_promise_of_security_is_tested(named: str) -> None:
    files = (ROOT / "tests").rglob("test_*.py")
    assert any(f"def {named}(" in file.read_text(encoding="utf-8") for file in files)


def test_every_promise_of_security_names_a_test() -> None:
    rows = re.findall(r"^\| ([A-Z`].+?) \| (.+) \|$", SECURITY, flags=re.MULTILINE)
    assert len(rows) > 5 and all("`test_" in tests for _, tests in rows)


@pytest.mark.parametrize("page", ["SECURITY.md", "CHANGELOG.md"])
def test_links_of_the_papers_lead_somewhere(page: str) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    for link in re.findall(r"\]\(([^)#\s]+)", text):
        assert re.match(r"https?:", link) or (ROOT / link).exists(), link
