"""What results look like in a notebook: small, whole, and with everything escaped."""

from html.parser import HTMLParser

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import evgp
from evgp._repr import html_card
from evgp.pool import Selection
from tests.pool.conftest import build, parts

X = np.random.default_rng(0).normal(size=(40, 3))
TAGS = {"div", "p", "b", "table", "thead", "tbody", "tr", "th", "td"}


class Seen(HTMLParser):
    """Reads HTML back: cells by row, paragraphs, and fails for any tag or attribute but ours."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.rows: list[list[str]] = []
        self.prose: list[str] = []
        self.feed(text)
        self.close()
        assert not self.open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag in TAGS and not attrs
        self.open.append(tag)
        if tag == "tr":
            self.rows.append([])
        if tag in ("th", "td"):
            self.rows[-1].append("")
        if tag == "p":
            self.prose.append("")

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        assert self.open
        if self.open[-1] in ("th", "td"):
            self.rows[-1][-1] += data
        else:
            self.prose[-1] += data

    def handle_comment(self, data: str) -> None:
        raise AssertionError(data)

    handle_decl = handle_pi = unknown_decl = handle_comment


# A parser of HTML has no way to read these back as they were.
WORDS = st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters="\r\0")
) | st.sampled_from(
    ["<script>alert(1)</script>", "<!--", "&lt;", "\"'><img src=x>", "</table>", "<![CDATA["]
)


@given(WORDS, st.dictionaries(WORDS, st.lists(WORDS, min_size=2, max_size=2)), st.lists(WORDS))
def test_every_text_is_read_back_as_text(title, columns, remarks) -> None:
    seen = Seen(html_card(title, columns, remarks))
    assert seen.rows[0] == list(columns)
    assert seen.rows[1:] == [list(row) for row in zip(*columns.values(), strict=True)]
    assert seen.prose == [title, *remarks]


@given(parts())
def test_any_selection_can_be_shown(given_parts) -> None:
    selection = build(given_parts)
    assert len(repr(selection)) < 400
    if not any(set("\r\0") & set(warning) for warning in selection.warnings):
        seen = Seen(selection._repr_html_())
        assert len(seen.rows) == 1 + min(10, len(selection))
        assert seen.prose[len(seen.prose) - len(selection.warnings) :] == list(selection.warnings)
    if selection.certificate is not None:
        Seen(selection.certificate._repr_html_())


def test_a_selection_shows_ten_picks_variances_and_the_certificate() -> None:
    selection = evgp.pick(X, 12)
    seen = Seen(selection._repr_html_())
    assert seen.rows[0] == ["rank", "row", "gain", "variance left"]
    assert [int(row[1]) for row in seen.rows[1:]] == list(selection[:10])
    before, after = selection.start_variance, selection.variance_left[-1]
    share = np.floor(1000 * selection.certificate.share[-1]) / 10
    assert seen.prose == [
        "12 picks of 40 rows",
        "… and 2 more.",
        f"Mean variance {before:.4g} before, {after:.4g} after all picks.",
        f"At least {share:.1f} % of the largest reduction any 12 rows could achieve.",
    ]
    priced = Seen(evgp.pick(X, costs=np.full(40, 2.0), budget=5)._repr_html_())
    assert priced.rows[0][-1] == "cost" and priced.rows[1][-1] == "2"
    assert priced.prose[-1].endswith("of the largest reduction the same budget could achieve.")
    assert Seen(evgp.pick(X, 1)._repr_html_()).prose[-1].endswith("any other row could achieve.")


def test_a_promise_is_never_rounded_up() -> None:
    result = Selection(
        np.array([1]), np.ones(1), certificate=evgp.Certificate(np.zeros(1), np.array([0.9999]), {})
    )
    assert "at least 99.9 % of" in repr(result) and "At least 99.9 % of" in result._repr_html_()


def test_a_certificate_shows_what_is_needed() -> None:
    result = evgp.pick(X, 4).certificate
    rows = Seen(result._repr_html_()).rows
    assert rows[0] == ["variance removed", "labels, at least", "labels, at most"]
    for (share, needed), row in zip(sorted(result.needed.items()), rows[1:], strict=True):
        most = "more than 4" if needed.at_most is None else str(needed.at_most)
        assert row == [f"{share:.0%}", str(needed.at_least), most]


def test_a_pool_shows_how_it_was_read(tmp_path) -> None:
    frame = pd.DataFrame({"<size>": X[:, 0], "kind": list("ab") * 20, "same": 1, "name": range(40)})
    seen = Seen(evgp.read_pool(frame, id="name")._repr_html_())
    assert seen.rows[1:] == [
        ["rows", "40"], ["columns", "2"], ["ids", "name"], ["scale", "common"],
    ]  # fmt: skip
    assert seen.prose[1] == "Features: <size>, kind=a, kind=b" and "same" in seen.prose[2]
    frame.to_parquet(tmp_path / "pool.parquet")
    opened = evgp.open_pool(tmp_path)
    assert repr(opened) == f"StreamedTable({tmp_path}: 40 rows of 4 columns in 1 file)"
    Seen(evgp.read_pool(tmp_path)._repr_html_())
    for half in ("0.npy", "1.npy"):
        np.save(tmp_path / half, X)
    (tmp_path / "pool.parquet").unlink()
    opened = evgp.open_pool(tmp_path)
    assert repr(opened) == f"StreamedArray({tmp_path}: 80 rows of 3 float64 in 2 files)"
    assert ["columns", "3"] in Seen(evgp.read_pool(X)._repr_html_()).rows


def test_a_plan_says_whether_it_fits_and_what_to_do() -> None:
    fits = Seen(evgp.plan((1000, 8), 10)._repr_html_())
    assert fits.prose == ["This run fits in memory"]
    assert ["pool", "1,000 rows x 8 features"] in fits.rows
    large = evgp.plan((10**6, 8), 10, method="dense", memory="1GB")
    assert Seen(large._repr_html_()).prose == [
        "This run does not fit in memory",
        f"{large.advice[0].upper()}{large.advice[1:]}.",
    ]


@pytest.mark.filterwarnings("ignore::evgp.EvgpWarning")
def test_an_audit_and_a_choice_are_shown() -> None:
    findings = evgp.audit(X[:15], X[15:], pool=X + 0.1, k=3)
    seen = Seen(findings._repr_html_())
    assert [int(row[0]) for row in seen.rows[1:]] == findings.at_risk(10).tolist()
    rows = ", ".join(map(str, findings.further))
    assert seen.prose[-1] == f"Labels that would help most: rows {rows} of the pool."
    networks = {f"net-{depth}<b>": evgp.mlp(depth) for depth in range(1, 4)}
    choice = evgp.choose(networks, X, X[:, 0], folds=5)
    seen = Seen(choice._repr_html_())
    assert seen.prose[0] == f"Chosen: {choice.chosen.name}"
    assert [row[0] for row in seen.rows[1:]] == [entry.name for entry in choice.ranked]
