"""Small campaigns, and recorded messages of a real Label Studio."""

import json
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import evgp
from evgp.labelling.campaign import Campaign

RECORDED = Path(__file__).parent / "recorded"


def recorded(name):
    """A payload of the real server, as the slow test wrote it down."""
    return json.loads((RECORDED / f"{name}.json").read_text(encoding="utf-8"))


def mails_in(folder):
    """Forty rows with names, short columns and a long one, some of them hostile."""
    random = np.random.default_rng(0)
    lines = ["key,length,links,subject,body"]
    for i in range(40):
        subject = "<script>alert(1)</script>" if i % 7 == 0 else f"hello {i}"
        body = f"first line of {i}, which is long enough to be wrapped on a screen\nsecond & <b>"
        lines.append(f'm{i},{random.normal():.4f},{random.integers(9)},"{subject}","{body}"')
    path = folder / "mails.csv"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


@pytest.fixture(autouse=True)
def exchanged(monkeypatch) -> None:
    """Picks as they were when the answers of the real server were recorded."""
    monkeypatch.setattr("evgp.labelling.campaign.campaign.pick", partial(evgp.pick, final=True))


def spam_in(folder, name="spam", **more):
    """A campaign on them."""
    arguments = {"id": "key", "classes": ["spam", "ham"], "drop": ["subject", "body"]} | more
    arguments = {
        "scale": "columns",
        **arguments,
    }  # as when the answers of the real server were recorded
    return Campaign.create(folder / name, mails_in(folder), **arguments)


@pytest.fixture
def spam(tmp_path):
    result = spam_in(tmp_path)
    result.next(6)
    yield result
    result.close()


@pytest.fixture
def prices(tmp_path):
    result = spam_in(tmp_path, "prices", classes=(), number=True)
    result.next(3)
    yield result
    result.close()


def photos_in(folder):
    """Six pictures, one of them large and one with an odd name."""
    result = folder / "photos"
    result.mkdir()
    random = np.random.default_rng(0)
    for i in range(6):
        side = (900, 1500) if i == 2 else (40, 60)
        pixels = random.integers(0, 255, (*side, 3), dtype=np.uint8)
        Image.fromarray(pixels).save(result / ("a b&c.png" if i == 3 else f"{i}.png"))
    return result


@pytest.fixture
def photos(tmp_path):
    campaign = Campaign.create(
        tmp_path / "birds", photos_in(tmp_path), classes=["finch", "sparrow"]
    )
    campaign.next(6)
    yield campaign
    campaign.close()
