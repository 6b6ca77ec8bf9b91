"""The site builds without a warning, and asks nothing of other machines."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
# What a browser fetches by itself; links that people follow are no part of it.
FETCHED = re.compile(
    r"<(?:script|img|iframe|source)\b[^>]*\bsrc=[\"'](?:https?:)?//"
    r"|<link\b(?![^>]*rel=[\"']canonical)[^>]*\bhref=[\"'](?:https?:)?//"
    r"|@import\s+[\"'(]*(?:url\()?[\"']?(?:https?:)?//|url\([\"']?(?:https?:)?//",
    re.IGNORECASE,
)


@pytest.fixture(scope="module")
def site(tmp_path_factory) -> Path:
    """The whole site, built from scratch; a warning is an error."""
    folder = tmp_path_factory.mktemp("site")
    process = subprocess.run(
        [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-d", folder / "trees",
         ROOT / "docs", folder / "pages"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert process.returncode == 0, process.stderr
    return folder / "pages"


def test_every_page_is_there(site: Path) -> None:
    docs = ROOT / "docs"
    for page in docs.rglob("*.md"):
        assert (site / page.relative_to(docs)).with_suffix(".html").exists()


def test_nothing_is_fetched_from_elsewhere(site: Path) -> None:
    assert FETCHED.search('<script src="https://cdn.example.org/a.js">')
    assert FETCHED.search('<link rel="stylesheet" href="//fonts.example.org/a.css">')
    for file in (*site.rglob("*.html"), *site.rglob("*.css")):
        text = FETCHED.search(file.read_text(encoding="utf-8"))
        assert text is None, f"{file.relative_to(site)}: {text and text[0]}"


def test_formulas_are_drawn(site: Path) -> None:
    page = (site / "theory.html").read_text(encoding="utf-8")
    assert page.count("<math ") > 150
    words = re.sub(r"<pre>.*?</pre>|<code.*?</code>|<math.*?</math>", "", page, flags=re.DOTALL)
    assert "$" not in re.sub(r"<script.*?</script>", "", words, flags=re.DOTALL)
    left = re.findall(r"<m[ion][^>]*>\\[a-zA-Z]+<", page)
    assert not left, f"commands that are shown and not drawn: {left}"


def test_code_is_highlighted_and_has_no_marks_of_the_tests(site: Path) -> None:
    for name in ("python", "start", "adapters", "scale"):
        page = (site / f"{name}.html").read_text(encoding="utf-8")
        source = (ROOT / "docs" / f"{name}.md").read_text(encoding="utf-8")
        assert page.count('<div class="highlight">') == len(re.findall(r"^```\w", source, re.M))
        assert "not run by the tests" not in page
