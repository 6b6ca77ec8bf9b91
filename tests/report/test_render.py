"""The page is self-contained and well formed, and table contents stay text."""

import base64
import dataclasses
import hashlib
import json
import re
from html.parser import HTMLParser

import numpy as np
import pytest

from evgp.pool import Certificate, Needed, Selection
from evgp.report import render, summarise

VOID = {"meta", "br", "img", "input", "link", "hr"}
HOSTILE = "</script><img src=x onerror=alert(1)>&'\"\u2028\u2029{{ 7 * 7 }}<!--"


class Page(HTMLParser):
    """Walks a page and fails where tags do not balance or an id comes twice."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.ids: list[str] = []
        self.text: list[tuple[str, str]] = []
        self.feed(text)
        self.close()
        assert not self.open
        assert len(self.ids) == len(set(self.ids))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        self.ids += [value for key, value in attrs if key == "id" and value]
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text.append((self.open[-1] if self.open else "", data))

    def inside(self, tag: str) -> list[str]:
        return [text for where, text in self.text if where == tag]

    @property
    def prose(self) -> str:
        shown = (text for where, text in self.text if where not in {"script", "style"})
        return " ".join(" ".join(shown).replace("\u202f", " ").split())


def data_of(text: str) -> dict[str, object]:
    match = re.search(r'<script type="application/json" id="data">(.*?)</script>', text, re.S)
    assert match is not None
    return json.loads(match[1])


@pytest.fixture
def page(selection, x) -> str:
    columns = {"age": list(range(60)), "name": [f"n{i}" for i in range(60)]}
    return render(
        summarise(selection, x=x, columns=columns, source="pool.csv", command="evgp pick")
    )


def test_the_page_is_well_formed(page):
    walked = Page(page)
    assert {"main", "figure", "figcaption", "table", "svg"} <= {tag for tag, _ in walked.tags}
    for tag, attributes in walked.tags:
        if attributes.get("role") == "img":
            assert tag == "svg"
            assert attributes["aria-label"]
        for name in ("aria-labelledby",):
            assert attributes.get(name) in {None, *walked.ids}


def test_no_request_is_sent(page):
    assert "://" not in page
    loading = {"link", "img", "iframe", "object", "embed", "base", "form", "audio", "video"}
    for tag, attributes in Page(page).tags:
        assert tag not in loading
        assert not {"src", "href", "srcset", "xlink:href", "style", "action"} & attributes.keys()
        assert not [key for key in attributes if key.startswith("on")]
    assert "url(" not in page
    assert "@import" not in page


def test_the_policy_admits_only_this_style_and_script(page):
    walked = Page(page)
    policy = next(g["content"] for _, g in walked.tags if "http-equiv" in g)
    style, script = walked.inside("style")[0], walked.inside("script")[-1]
    for text in (style, script):
        assert base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() in policy
    assert policy.startswith("default-src 'none'")
    assert "unsafe" not in policy


def test_hostile_strings_are_text_wherever_they_are(selection, x):
    hostile = dataclasses.replace(selection, settings={HOSTILE: HOSTILE}, warnings=(HOSTILE,))
    summary = summarise(
        dataclasses.replace(hostile, certificate=None),
        x=x,
        ids=[HOSTILE] * 60,
        columns={HOSTILE: [HOSTILE + "!"] * 60},
        network=HOSTILE,
        source=HOSTILE,
        command=HOSTILE,
        notes=(HOSTILE + "!",),
    )
    criterion = dataclasses.replace(summary, criterion=HOSTILE, share=None)
    for text in (render(summary), render(criterion)):
        walked = Page(text)
        assert {tag for tag, _ in walked.tags}.isdisjoint({"img"})
        assert len([tag for tag, _ in walked.tags if tag == "script"]) == 2
        assert not [
            key for _, attributes in walked.tags for key in attributes if key.startswith("on")
        ]
        assert "{{ 7 * 7 }}" in text
        actual = data_of(text)
        assert actual["ids"][0] == actual["columns"][0] == HOSTILE
        assert actual["cells"][0] == [HOSTILE + "!"]
        block = next(body for body in walked.inside("script") if body.startswith("{"))
        assert not set("<>&\u2028\u2029") & set(block)


def test_the_data_are_the_numbers_of_the_selection(selection, page):
    actual = data_of(page)
    assert actual["gains"] == selection.gains.tolist()
    assert actual["left"] == selection.variance_left.tolist()
    assert actual["floor"] == selection.certificate.lowest.tolist()
    assert all(0 <= part <= 100 for at in actual["at"] for part in at)


def test_the_page_says_how_good_the_picks_provably_are(selection, page):
    prose = Page(page).prose
    assert "Label these 8 rows first" in prose
    share = np.floor(1000 * selection.certificate.share[-1]) / 10
    assert f"provably at least {share:g} %" in prose
    assert "between 3 and 5" in prose
    assert "at least 7; these 8 are not enough" in prose
    assert "nothing about noise in the labels" in prose


def test_without_a_certificate_there_is_no_guarantee(selection, x):
    bare = dataclasses.replace(
        selection, certificate=None, settings={"criterion": "Percentile(90)"}
    )
    prose = Page(render(summarise(bare, x=x))).prose
    assert "chosen by the criterion Percentile(90)" in prose
    assert "There is no certificate" in prose
    assert "provably" not in prose
    assert "≥" not in prose


def test_costs_and_earlier_labels_are_mentioned(x, choose):
    chosen = dataclasses.replace(choose(x, 4, labelled=(0, 1)), costs=np.array([1.5, 2, 3, 4]))
    prose = Page(render(summarise(chosen, x=x))).prose
    assert "10.5 for all picks" in prose
    assert "the same cost" in prose
    assert "with the earlier labels" in prose
    assert "further labels" in prose


@pytest.mark.parametrize("n", [1, 2, 3])
def test_tiny_pools_have_a_page(n, choose):
    x = np.ones((n, 1))
    page = render(summarise(choose(x, 1), x=x))
    assert "Label this row first" in Page(page).prose
    assert not re.findall(r"\b(nan|inf)\b", page)


def test_a_bare_selection_has_a_page(x):
    prose = Page(render(summarise(Selection(np.array([3]), np.array([0.5])), x=x))).prose
    assert "Label this row first" in prose
    assert "How many labels" not in prose


def test_an_empty_selection_has_a_page(x):
    none = Selection(np.empty(0, dtype=np.int64), np.empty(0))
    page = render(summarise(none, x=x))
    assert data_of(page)["gains"] == [] and "60 rows" in Page(page).prose
    assert not re.findall(r"\b(nan|inf)\b", page)


def test_a_sampled_map_says_so():
    x = np.random.default_rng(0).normal(size=(5_000, 2))
    text = render(summarise(Selection(np.arange(3), np.ones(3)), x=x))
    assert "of the 5,000 rows is drawn" in Page(text).prose


def test_the_table_opens_with_a_dozen_columns_and_offers_the_rest(selection, x):
    columns = {f"c{j}": list(range(60)) for j in range(30)}
    text = render(summarise(selection, x=x, columns=columns))
    walked = Page(text)
    keys = [attributes["data-key"] for _, attributes in walked.tags if "data-key" in attributes]
    assert keys == ["rank", "id", "gain", "left", *(str(c) for c in range(12))]
    assert "All 30 columns" in walked.prose
    assert len(data_of(text)["cells"][0]) == 30


def test_a_large_page_stays_light():
    n, k = 10_000, 2_000
    generator = np.random.default_rng(0)
    x = generator.normal(size=(n, 40))
    left = np.exp(-np.arange(1, k + 1) / 500)
    selection = Selection(
        generator.permutation(n)[:k], -np.diff([1, *left]), 1.0, 1.0, left,
        np.ones(n), generator.random(n),
        certificate=Certificate(left / 2, np.full(k, 0.5), {0.5: Needed(100, 347)}),
    )  # fmt: skip
    ids = [f"https://example.org/image/{i}.png" for i in range(n)]
    columns = {f"feature {j}": x[:, j] for j in range(40)}
    text = render(summarise(selection, x=x, ids=ids, columns=columns))
    assert len(text.encode()) < 3_000_000
    assert "shown for the first 60" in Page(text).prose
