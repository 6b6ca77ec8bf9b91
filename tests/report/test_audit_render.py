"""The page of an audit is self-contained and well formed, and table contents stay text."""

import base64
import hashlib
import json
import re
from dataclasses import replace

import numpy as np
import pytest

from evgp import audit
from evgp.audits import Audit, Confirmation
from evgp.errors import EvgpError, EvgpWarning
from evgp.report import AuditRows, AuditSummary, Trained, render_audit, summarise_audit
from evgp.report.audit_words import lead
from tests.messages import refused, warned
from tests.report.test_render import HOSTILE, Page

X = np.random.default_rng(0).normal(size=(60, 3))
TRAIN, TEST, POOL = X[:20], X[20:35], X[35:]


@pytest.fixture(scope="module")
def audited() -> Audit:
    return audit(TRAIN, TEST, pool=POOL, k=4)


def rows(x: np.ndarray, source: str, names: str | None = None) -> AuditRows:
    columns = {"a": x[:, 0], "b": x[:, 1], "y": x[:, 2]}
    ids = None if names is None else [f"{names}-{i}" for i in range(len(x))]
    return AuditRows(source, len(x), ids, columns)


def summary_of(audited: Audit, **other: object) -> AuditSummary:
    arguments = {
        "train": rows(TRAIN, "train.csv", "t"),
        "test": rows(TEST, "test.csv", "e"),
        "pool": rows(POOL, "pool.csv", "p"),
        "label": "y", "unit": 50.0, "inputs": ["a", "b"], "features": 2, "k": 4,
        "network": "Network()", "command": "evgp audit", "settings": {"seed": 0},
        "trained": Trained(Confirmation(audited.deviation**2, 0.9 * audited.deviation**2, 30),
                           1e-4, 0.5, 0.4),
    }  # fmt: skip
    return summarise_audit(audited, **{**arguments, **other})


@pytest.fixture(scope="module")
def page(audited) -> str:
    return render_audit(summary_of(audited))


def test_the_summary_is_the_audit(audited) -> None:
    result = summary_of(audited)
    assert [risk.at.row for risk in result.risks] == audited.at_risk(4).tolist()
    assert [item.at.id for item in result.helps] == [f"p-{row}" for row in audited.further.indices]
    first = int(audited.matter(1)[0])
    assert result.matters[0].at.id == f"t-{first}"
    assert result.matters[0].at.cells == tuple(f"{value:.8g}" for value in TRAIN[first])
    assert result.matters[0].influence == pytest.approx(
        audited.influence[first] / (audited.ceiling**2).mean()
    )
    assert result.redundant == len(audited.redundant()) and sum(result.bars.counts) == 15
    assert result.beaten == (audited.random > audited.variance).sum()
    assert result.fall == pytest.approx(1 - audited.after[-1] / audited.variance)
    assert result.by_chance == pytest.approx(audited.chance[:, -1].mean())
    assert result.seen.ratio == pytest.approx(0.9) and result.seen.pearson == pytest.approx(1)
    json.dumps(result.as_dict(), allow_nan=False)


def test_the_page_is_well_formed(page) -> None:
    walked = Page(page)
    drawn = [attributes for _, attributes in walked.tags if attributes.get("role") == "img"]
    assert len(drawn) == 5 and all(attributes["aria-label"] for attributes in drawn)
    assert all(
        attributes.get("aria-labelledby") in {None, *walked.ids} for _, attributes in walked.tags
    )


def test_no_request_is_sent(page) -> None:
    assert "://" not in page and "url(" not in page
    for tag, attributes in Page(page).tags:
        assert tag not in {"link", "img", "iframe", "object", "script", "base", "form"}
        assert not {"src", "href", "style", "action"} & attributes.keys()
        assert not [key for key in attributes if key.startswith("on")]


def test_the_policy_admits_the_style_and_no_more(page) -> None:
    style = re.search(r"<style>(.*?)</style>", page, re.S)[1]
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    policies = [
        attributes["content"] for _, attributes in Page(page).tags if "http-equiv" in attributes
    ]
    assert policies[0].startswith(f"default-src 'none'; style-src 'sha256-{digest}'; ")
    assert "script-src" not in policies[0]


def test_nothing_in_a_table_becomes_markup(audited, page) -> None:
    def bad(x: np.ndarray) -> AuditRows:
        return AuditRows(HOSTILE, len(x), [HOSTILE] * len(x), {HOSTILE: [HOSTILE] * len(x)})

    hostile = render_audit(
        summary_of(
            audited, train=bad(TRAIN), test=bad(TEST), pool=bad(POOL), label=HOSTILE,
            inputs=[HOSTILE], network=HOSTILE, command=HOSTILE, settings={HOSTILE: HOSTILE},
            notes=[HOSTILE],
        )
    )  # fmt: skip
    assert "<img" not in hostile and "<script" not in hostile
    walked = Page(hostile)
    assert {tag for tag, _ in walked.tags} <= {tag for tag, _ in Page(page).tags} | {
        "aside",
        "ul",
        "li",
    }
    assert not [key for _, attributes in walked.tags for key in attributes if key.startswith("on")]
    assert next(iter(walked.inside("code"))) == HOSTILE


def test_control_characters_stay_out(audited) -> None:
    bad = "na\x1b[31mme\x07\x9b"
    columns = {bad: [bad] * 20, "y": TRAIN[:, 2]}
    result = summary_of(
        audited, inputs=[bad], train=AuditRows(bad, 20, [bad] * 20, columns), label=bad,
        settings={bad: bad}, command=bad, notes=[bad],
    )  # fmt: skip
    page = render_audit(result)
    assert not set("\x1b\x07\x9b") & set(page) and "na\ufffd[31mme\ufffd\ufffd" in page


def test_columns_and_what_became_of_them(audited) -> None:
    def eyebrow(**given: object) -> str:
        return Page(render_audit(summary_of(audited, **given))).prose

    assert "2 columns as 6 inputs" in eyebrow(features=6)
    assert "2 inputs" in eyebrow(features=2) and "as 2 inputs" not in eyebrow(features=2)
    assert "6 inputs" in eyebrow(inputs=[], features=6)


def test_the_page_says_what_a_standard_deviation_of_classes_means(audited) -> None:
    assert (
        "in each output, where a class is 1 and the others are 0. The upper bound"
        in Page(render_audit(summary_of(audited, unit=None))).prose
    )
    assert (
        "for labels with a standard deviation of 1. The upper bound"
        in Page(render_audit(summary_of(audited))).prose
    )


def test_it_says_what_was_found(audited, page) -> None:
    prose = Page(page).prose
    assert "What 20 labels leave uncertain" in prose
    assert f"{len(audited.redundant())} of the 20 training rows" in prose
    assert "best 4 more labels from pool.csv" in prose
    assert f"{summary_of(audited).beaten} would leave more variance" in prose
    assert (
        "0.900 times the predicted" in prose and "root mean square error on the test rows" in prose
    )
    assert "under 0.1" in prose


def test_deviations_are_in_the_unit_of_the_label(audited) -> None:
    whole = f"{50 * np.sqrt(audited.variance):.3g}"
    assert f"{whole} in y" in lead(summary_of(audited))[0]
    assert "in each output" in lead(summary_of(audited, unit=None))[0]


def test_networks_that_have_not_converged_are_reported(audited) -> None:
    seen = summary_of(audited).seen
    page = render_audit(replace(summary_of(audited), seen=replace(seen, loss=0.3)))
    assert "have not converged" in Page(page).prose
    assert any(
        "have not converged" in item
        for item in lead(replace(summary_of(audited), seen=replace(seen, loss=0.3)))
    )


@pytest.mark.parametrize("unit", [None, 50.0])
def test_every_audit_has_a_page(audited, unit) -> None:
    few = audit(TRAIN[:1], TEST[:1], scale=None)
    small = {"train": rows(TRAIN[:1], "a"), "test": rows(TEST[:1], "b"), "pool": None}
    with warned(EvgpWarning):
        same = audit(np.repeat(TRAIN[:2], 3, 0), TRAIN[:2], pool=POOL[:3], k=2, scale=None)
    copies = {
        "train": rows(np.repeat(TRAIN[:2], 3, 0), "a"),
        "test": rows(TRAIN[:2], "b"),
        "pool": rows(POOL[:3], "c"),
    }
    alone = Trained(Confirmation(few.deviation**2, few.deviation**2, 2), 0.0)
    for summary in (
        summary_of(audited, trained=None, unit=unit, inputs=[]),
        summary_of(few, **small, trained=None, unit=unit),
        summary_of(few, **small, trained=alone, unit=unit),
        summary_of(same, **copies, trained=None, unit=unit),
    ):
        page = render_audit(summary)
        assert not re.findall(r"\b(nan|inf)\b", page) and "None" not in Page(page).prose


def test_a_large_audit_stays_light() -> None:
    random = np.random.default_rng(0)
    many, spread = random.normal(size=(50_000, 20)), random.random(50_000)
    actual = Audit(spread, spread, (1.0, 1.0), random.random(50_000))
    trained = Trained(Confirmation(spread**2, spread**2, 30), 0.0)
    columns = {f"c{j}": many[:, j] for j in range(20)}
    table = AuditRows("large.csv", 50_000, None, columns)
    summary = summarise_audit(
        actual, train=table, test=table, trained=trained, inputs=list(columns)
    )
    assert len(render_audit(summary).encode()) < 200_000
    assert summary.left_out == 8 and summary.places[-1] == 50_000


def test_other_tables_are_refused(audited) -> None:
    with refused(EvgpError):
        summary_of(audited, train=rows(TEST, "other.csv"))
    with refused(EvgpError):
        summary_of(audited, pool=None)


@pytest.mark.slow
def test_a_browser_reports_no_policy_violation(page, opened) -> None:
    _, console = opened(page)
    assert "CONSOLE" not in console
