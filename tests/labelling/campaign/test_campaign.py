"""Rounds of picks and answers: the next rows, what counts, and exports."""

import csv
import json
import shutil

import numpy as np
import pyarrow.parquet as pq
import pytest
import torch
from PIL import Image

import evgp
from evgp.architectures import candidates, choose, losses
from evgp.architectures.cross_validation import split
from evgp.errors import CampaignError, DamageWarning, EvgpError
from evgp.labelling.campaign import Campaign, campaign_path, export
from evgp.labelling.campaign.estimates import Hint, hint
from evgp.labelling.campaign.events import Answered
from evgp.labelling.campaign.source import rows_to_store
from evgp.labelling.campaign.state import resolved
from tests.messages import refused, warned


def test_the_first_round_is_what_pick_picks(spam) -> None:
    items = spam.next(5)
    alone = evgp.pick(np.array(spam.x()), 5, scale=None)
    assert [item.row for item in items] == alone.indices.tolist()
    assert [item.rank for item in items] == [1, 2, 3, 4, 5]
    assert [item.name for item in items] == [f"m{row}" for row in alone.indices]
    assert spam.next(5) == items  # they still wait
    assert spam.next(3) == items[:3]


def test_further_rounds_know_what_is_labelled_and_what_waits(spam) -> None:
    first = [item.row for item in spam.next(4)]
    for row in first[:2]:
        spam.answer(row, "label", "ham")
    spam.answer(first[2], "skip")
    more = [item.row for item in spam.next(5)]
    assert more[0] == first[3]  # waits still
    others = evgp.pick(
        np.array(spam.x()), 4, labelled=[*first[:2], first[3]], scale=None,
        candidates=[row for row in range(30) if row not in first],
    ).indices.tolist()  # fmt: skip
    assert more[1:] == others
    assert spam.state.passed == [first[2]] and spam.state.pending == more


def test_replaying_gives_the_same_picks(spam, mails, tmp_path) -> None:
    other = Campaign.create(tmp_path / "again", mails, id="key", classes=["spam", "ham"])
    for campaign in (spam, other):
        for _ in range(3):
            for item in campaign.next(4):
                campaign.answer(item.row, "label", "ham")
    assert spam.state.picked == other.state.picked and len(set(spam.state.picked)) == 12


def test_it_ends_when_every_row_was_seen(spam) -> None:
    assert len(spam.next(100)) == 30
    for row in range(30):
        spam.answer(row, "unsure")
    assert spam.next(3) == []


def test_labels_choose_the_network(mails, tmp_path) -> None:
    campaign = Campaign.create(tmp_path / "n", mails, id="key", number=True, choose_network=True)
    for item in campaign.next(12):
        campaign.answer(item.row, "label", float(item.row))
    campaign.next(3)
    assert campaign.state.rounds[0].network == "given"
    rows, y = campaign.targets()
    x = np.array(campaign.x())[rows]
    expected = evgp.choose(evgp.architectures.candidates(), x, y, scale=None)
    assert campaign.state.rounds[1].network == expected.chosen.name


def label(value, who="a", kind="label"):
    return Answered(0, who, kind, value)


@pytest.mark.parametrize(
    ("answers", "value", "disputed"),
    [
        ([label("x")], "x", False),
        ([label("x", "a"), label("y", "b"), label("y", "c")], "y", True),
        ([label("x", "a"), label("y", "b")], "x", True),
        ([label(1.0, "a"), label(4.0, "b")], 2.5, True),
        ([label(None, "a", "skip"), label("y", "b")], "y", False),
        ([label(None, "a", "skip"), label(None, "b", "unsure")], None, False),
    ],
)
def test_the_rule_that_resolves(answers, value, disputed) -> None:
    result = resolved({answer.who: answer for answer in answers})
    assert (result.value, result.disputed, result.labelled) == (value, disputed, value is not None)


def test_a_later_answer_of_the_same_person_counts_and_both_are_kept(spam) -> None:
    spam.answer(4, "label", "ham", who="ann")
    spam.answer(4, "label", "spam", who="ann")
    assert spam.state.labels == {4: "spam"} and not spam.state.verdicts[4].disputed
    assert sum(isinstance(event.event, Answered) for event in spam.log()) == 2
    spam.undo("ann")
    assert spam.state.labels == {4: "ham"}


def test_an_undo_with_a_key_happens_once(spam) -> None:
    spam.answer(4, "label", "ham", who="ann")
    spam.answer(5, "label", "ham", who="ann")
    assert spam.undo("ann", key="u") == spam.undo("ann", key="u")
    assert spam.state.labels == {4: "ham"}


def test_exports_have_all_columns_labels_and_counts(spam, tmp_path) -> None:
    spam.answer("m7", "label", "spam", who="ann")
    spam.answer("m7", "label", "ham", who="bob")
    spam.answer("m2", "skip", who="ann")
    for name in ("out.csv", "out.parquet", "out.jsonl"):
        assert export(spam, tmp_path / name) == 1
    (row,) = pq.read_table(tmp_path / "out.parquet").to_pylist()
    assert row["key"] == "m7" and row["label"] == "spam" and row["disputed"] and row["answers"] == 2
    with (tmp_path / "out.csv").open(newline="") as stream:
        (line,) = csv.DictReader(stream)
    assert line["key"] == "m7" and line["label"] == "spam"
    assert json.loads((tmp_path / "out.jsonl").read_text())["evgp_row"] == 7


def test_an_export_never_takes_the_place_of_the_pool(spam, mails) -> None:
    spam.answer("m7", "label", "spam", who="ann")
    before = mails.read_bytes()
    with refused(CampaignError):
        export(spam, mails.parent / "." / mails.name)
    assert mails.read_bytes() == before


def test_a_changed_pool_is_noticed(spam, mails) -> None:
    mails.write_text(mails.read_text().replace("m3,", "m99,"))
    with refused(CampaignError):
        Campaign.open(spam.path)
    mails.unlink()
    with refused(EvgpError):
        Campaign.open(spam.path)


@pytest.mark.parametrize("harm", ["flip", "cut", "empty", "gone"])
def test_a_damaged_array_is_written_again(spam, harm, mails, tmp_path) -> None:
    whole = Campaign.create(tmp_path / "twin", mails, id="key", classes=["spam", "ham"]).next(4)
    (array,) = spam.path.with_name("spam.evgp-arrays").iterdir()
    content = bytearray(array.read_bytes())
    content[-3] ^= 4
    if harm == "gone":
        array.unlink()
    else:
        array.write_bytes({"flip": content, "cut": content[:90], "empty": b""}[harm])
    with warned(DamageWarning):
        result = spam.next(4)
    assert result == whole
    spam.answer(result[0].row, "label", "ham")
    assert len(spam.next(5)) == 5  # with nothing to say


def test_an_array_that_cannot_be_encoded_again_is_an_error(spam, monkeypatch) -> None:
    (array,) = spam.path.with_name("spam.evgp-arrays").iterdir()
    before = array.read_bytes()[:-1]
    array.write_bytes(before)
    room = "evgp.labelling.campaign.campaign.rows_to_store"
    monkeypatch.setattr(room, lambda data: rows_to_store(data) + 1e-9)
    with refused(CampaignError):
        spam.next(2)
    assert array.read_bytes() == before and len(list(array.parent.iterdir())) == 1


def test_it_moves_with_its_pool(spam, mails, tmp_path) -> None:
    spam.answer(1, "label", "ham")
    spam.close()
    there = tmp_path / "elsewhere"
    there.mkdir()
    for item in ("spam.evgp", "spam.evgp-arrays", "mails.csv"):
        shutil.move(tmp_path / item, there / item)
    campaign = Campaign.open(there / "spam")
    assert campaign.state.labels == {1: "ham"} and len(campaign.next(3)) == 3


def test_images_can_be_labelled(tmp_path) -> None:
    folder = tmp_path / "photos"
    folder.mkdir()
    random = np.random.default_rng(0)
    for i in range(8):
        Image.fromarray(random.integers(0, 255, (8, 8, 3), dtype=np.uint8)).save(
            folder / f"{i}.png"
        )
    campaign = Campaign.create(tmp_path / "birds", folder, classes=["finch", "other"])
    items = campaign.next(3)
    campaign.answer(items[0].name, "label", "finch")
    assert campaign.state.labels == {items[0].row: "finch"}
    assert campaign.source.card(2) == {"image": "2.png"}
    (folder / "9.png").write_bytes((folder / "1.png").read_bytes())
    with refused(CampaignError):
        Campaign.open(tmp_path / "birds")


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"classes": ["a", "b"], "number": True},
        {"classes": ["a"]},
        {"classes": ["a", "a"]},
        {"classes": ["a", "\x00"]},
        {"number": True, "network": {"activation": "cube"}},
        {"number": True, "id": "nokey"},
        {"number": True, "seed": -1},
    ],
)
def test_a_campaign_that_cannot_be_created_leaves_no_files(mails, tmp_path, given) -> None:
    with refused(EvgpError):
        Campaign.create(tmp_path / "bad", mails, **given)
    assert not campaign_path(tmp_path / "bad").exists()


@pytest.mark.parametrize(
    "call",
    [
        lambda c: c.answer(99, "label", "ham"),
        lambda c: c.answer("m99", "label", "ham"),
        lambda c: c.answer(1, "label", None),
        lambda c: c.answer(1, "skip", "ham"),
        lambda c: c.answer(1, "label", "ham", who=" "),
        lambda c: c.next(0),
        lambda c: c.undo("nobody"),
    ],
)
def test_invalid_answers_are_errors_and_change_nothing(spam, call) -> None:
    with refused(CampaignError):
        call(spam)
    assert len(spam.log()) == 1


def test_numbers_are_numbers(mails, tmp_path) -> None:
    campaign = Campaign.create(tmp_path / "n", mails, id="key", number=True)
    campaign.answer(1, "label", "2.5")
    assert campaign.state.labels == {1: 2.5}
    for value in ("two", float("inf")):
        with refused(CampaignError):
            campaign.answer(2, "label", value)


def test_the_hint_is_about_picks_and_then_about_errors(mails, tmp_path) -> None:
    campaign = Campaign.create(tmp_path / "n", mails, id="key", number=True)
    assert hint(campaign) == Hint() and "No rows have been picked" in hint(campaign).words
    campaign.next(10)
    actual = hint(campaign)
    last = campaign.state.rounds[-1]
    assert actual.left == pytest.approx(last.left[-1] / last.prior) and actual.error is None
    assert actual.last == pytest.approx(sum(last.gains) / last.prior)
    for item in campaign.next(20):
        campaign.answer(item.row, "label", float(campaign.x()[item.row, 0]))
    actual = hint(campaign)
    assert 0 <= actual.error < actual.half < 1, actual
    assert "More labels still help" in actual.words


@pytest.mark.parametrize("scale", ["auto", "columns", None])
def test_images_are_scaled_as_by_pick(tmp_path, scale) -> None:
    folder = tmp_path / "photos"
    folder.mkdir()
    values = np.random.default_rng(0).integers(0, 255, (12, 3, 3), dtype=np.uint8)
    for i, entry in enumerate(values):
        Image.fromarray(entry).save(folder / f"{i:02}.png")
    campaign = Campaign.create(tmp_path / "photos", folder, number=True, scale=scale)
    picks = evgp.pick(folder, 4, scale=scale)
    assert [item.row for item in campaign.next(4)] == list(picks)


def test_hints_and_networks_see_images_on_the_scale_of_the_picks(tmp_path) -> None:
    folder = tmp_path / "photos"
    folder.mkdir()
    values = np.random.default_rng(0).integers(0, 255, (40, 3, 3), dtype=np.uint8)
    for i, item in enumerate(values):
        Image.fromarray(item).save(folder / f"{i:02}.png")
    campaign = Campaign.create(tmp_path / "photos", folder, number=True, choose_network=True)
    campaign.next(1)
    for row in range(24):
        campaign.answer(row, "label", float(np.sin(values[row, 0, 0] / 60)))
    flat = torch.from_numpy(values.reshape(40, -1).astype(float))
    scaled = (flat - flat.mean(0)) / flat.var(0, correction=0).mean().sqrt()
    assert torch.allclose(campaign.points(range(40)), scaled)
    rows, y = campaign.targets()
    chosen = choose(candidates(), scaled[rows], y, scale=None, seed=0).network
    assert campaign.network()[1] == chosen
    folds, goals = split(24, 50, 0), y[:, None]
    expected = losses(chosen, scaled[rows], goals, folds, 5).fit.mean() / goals.square().mean()
    assert hint(campaign).error == pytest.approx(float(expected))
    first, subset = split(12, 50, 0), goals[:12]
    expected = losses(chosen, scaled[rows[:12]], subset, first, 2).fit.mean()
    expected = expected / (subset - subset.mean()).square().mean()
    assert hint(campaign).half == pytest.approx(float(expected))


def test_a_hint_on_classes_is_the_error_of_columns_around_zero(spam) -> None:
    spam.next(1)
    for row in range(14):
        spam.answer(row, "label", ["spam", "ham"][row % 3 == 0])
        assert (hint(spam).error is None) == (row < 11)  # 12 labels at least
    y = torch.tensor([[row % 3 != 0, row % 3 == 0] for row in range(14)]).double()
    goals, x = y - y.mean(0), torch.from_numpy(np.array(spam.x())[:14])
    result = losses(evgp.mlp(), x, goals, split(14, 50, 0), 3)
    expected = result.fit.mean() / goals.square().sum(1).mean()
    assert hint(spam).error == pytest.approx(float(expected), rel=1e-6)


@pytest.mark.parametrize(
    ("last", "error", "words"),
    [
        (0.10, 0.40, "More labels still help."),
        (0.01, 0.40, "More labels still help."),
        (0.10, 0.49, "More labels have not helped so far."),
        (0.01, 0.49, "More labels will probably help little."),
    ],
)
def test_the_sentences_of_a_hint_follow_its_numbers(last, error, words) -> None:
    message = Hint(0.3, last, error, half=0.5).words
    assert message.endswith(words) and "30 % of the prior variance is left" in message
    assert f"removes {100 * last:.1f} %" in message
    assert f"error: {100 * error:.0f} % of the label variance (50 % with" in message


def test_a_hint_says_when_the_error_is_worse_than_predicting_the_mean() -> None:
    words = Hint(0.3, 0.1, 1.27, half=1.0).words
    assert "127 % of the label variance, worse than predicting the mean (100 %" in words
    assert words.endswith("More labels have not helped so far.")
