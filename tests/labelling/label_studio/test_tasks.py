"""Picks as tasks, and their label config."""

import base64
import io
import json
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from evgp.errors import CampaignError
from evgp.labelling.campaign import Campaign
from evgp.labelling.campaign.checks import checked_name
from evgp.labelling.label_studio.config import (
    CANNOT_TELL,
    Layout,
    check_config,
    label_config,
    layout_of,
)
from evgp.labelling.label_studio.tasks import campaign_mark, tasks_of, waiting
from tests.labelling.label_studio.conftest import recorded, spam_in
from tests.messages import refused


def test_tasks_come_in_the_order_of_their_ranks_and_hold_the_whole_row(spam) -> None:
    items = waiting(spam)
    result = [item["data"] for item in tasks_of(spam, items[::-1])]
    assert [item["evgp_rank"] for item in result] == [1, 2, 3, 4, 5, 6]
    assert [item["evgp_row_id"] for item in result] == [item.name for item in items]
    card = spam.source.card(items[0].row)
    assert result[0]["text_1"] == card["body"]
    assert result[0]["row"] == {
        "length": f"{card['length']:.7g}", "links": str(card["links"]), "subject": card["subject"],
    }  # fmt: skip
    json.dumps(result, allow_nan=False)


def test_they_are_what_the_real_server_gave_back(spam) -> None:
    data = recorded("task")["data"] | {"evgp_campaign": campaign_mark(spam)}
    assert tasks_of(spam, waiting(spam))[0]["data"] == data


def test_the_mark_of_a_campaign_is_its_own_and_stays(spam, tmp_path) -> None:
    mark = campaign_mark(spam)
    spam.answer(0, "skip")
    assert campaign_mark(spam) == campaign_mark(Campaign.open(spam.path)) == mark
    assert campaign_mark(spam_in(tmp_path, "other", seed=1)) != mark


def test_answered_rows_are_not_tasks(spam) -> None:
    first = waiting(spam)[0]
    spam.answer(first.row, "skip")
    assert [item.rank for item in waiting(spam)] == [2, 3, 4, 5, 6]


def test_pictures_travel_as_they_are_or_shrunk(photos) -> None:
    for task in tasks_of(photos, waiting(photos)):
        kind, _, body = task["data"]["image"].partition(";base64,")
        picture = Image.open(io.BytesIO(base64.b64decode(body)))
        name = task["data"]["evgp_row_id"]
        if name == "2.png":
            assert kind == "data:image/jpeg" and picture.size == (1024, 614)
        else:
            assert kind == "data:image/png" and picture.size == (60, 40)
            with Image.open(photos.pool_path / name) as file:
                assert picture.tobytes() == file.convert(picture.mode).tobytes()


def test_pictures_may_be_hosted_elsewhere(photos) -> None:
    result = tasks_of(photos, waiting(photos), images="https://example.org/photos/")
    actual = {item["data"]["evgp_row_id"]: item["data"]["image"] for item in result}
    assert actual["a b&c.png"] == "https://example.org/photos/a%20b%26c.png"


def test_columns_that_are_only_long_or_only_short(tmp_path) -> None:
    (tmp_path / "long.csv").write_text(
        "body\n" + "".join(f"{'xyz'[i % 3] * 70}\n" for i in range(6))
    )
    campaign = Campaign.create(tmp_path / "long", tmp_path / "long.csv", classes=["a", "b"])
    campaign.next(2)
    assert layout_of(campaign) == Layout(long=("body",), short=False)
    assert set(tasks_of(campaign, waiting(campaign))[0]["data"]) == {
        "evgp_row_id", "evgp_rank", "evgp_pool", "evgp_campaign", "text_1",
    }  # fmt: skip
    root = ElementTree.fromstring(label_config(["a", "b"], layout_of(campaign)))
    assert root.find("Choices").get("toName") == "text_1"
    (tmp_path / "short.csv").write_text("a,b\n" + "".join(f"{i},{i % 2}\n" for i in range(4)))
    campaign = Campaign.create(tmp_path / "short", tmp_path / "short.csv", number=True)
    assert layout_of(campaign) == Layout()


names = st.lists(
    st.text(st.characters(exclude_categories=["C", "Z"]), min_size=1, max_size=30),
    min_size=2, max_size=20, unique=True,
)  # fmt: skip


@given(classes=names, long=st.lists(st.text(min_size=1), max_size=3))
def test_every_class_and_column_survives_the_config(classes, long) -> None:
    classes = [checked_name(class_, "a class") for class_ in classes]
    config = label_config(classes, Layout(long=tuple(long)))
    root = ElementTree.fromstring(config)
    actual = [element.get("value") for element in root.iter("Choice")]
    assert actual == [*classes, *([] if CANNOT_TELL in classes else [CANNOT_TELL])]
    titles = [element.get("value") for element in root.iter("Header")]
    plain = ["".join(c if c.isprintable() else "\ufffd" for c in item) for item in long]
    # Label Studio would take $name for a field of the task.
    assert titles == [f"column {item}" if item.startswith("$") else item for item in plain]
    targets = {
        element.get("name") for element in root.iter() if element.get("value", "").startswith("$")
    }
    assert {element.get("toName") for element in root.iter("Choices")} <= targets
    check_config(config, classes, "project 1")


@pytest.mark.parametrize(
    ("config", "classes"),
    [
        ("", ["a", "b"]),
        (None, ["a", "b"]),
        ("<View><Choices", ["a", "b"]),
        (label_config([], Layout()), ["a", "b"]),
        (label_config(["a", "b"], Layout()), []),
        (label_config(["a", "c"], Layout()), ["a", "b"]),
    ],
)  # fmt: skip
def test_another_config_is_refused(config, classes) -> None:
    with refused(CampaignError):
        check_config(config, classes, "project 1")


def test_a_team_may_add_to_the_config() -> None:
    config = label_config(["a", "b"], Layout()).replace(
        "</View>", '<TextArea name="note" toName="row"/></View>'
    )
    check_config(config, ["a", "b"], "project 1")
