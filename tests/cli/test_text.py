"""`--text` and `--embed`: the command picks among texts as the library does."""

import csv
import io
import json
from pathlib import Path

import numpy as np
import pytest

import evgp
from evgp.errors import DamageWarning, DataWarning
from evgp.labelling.campaign import Campaign
from evgp.labelling.campaign.source import cells
from tests.messages import printed

WORDS = "apple pear plum car train ship river lake stone cloud table chair house moon".split()


@pytest.fixture
def mails(tmp_path, monkeypatch) -> Path:
    monkeypatch.setenv("EVGP_CACHE", str(tmp_path / "cache"))
    random = np.random.default_rng(0)
    rows = [["key", "subject", "body"]]
    rows += [[f"m{at}", *(" ".join(random.choice(WORDS, 5)) for _ in "ab")] for at in range(50)]
    path = tmp_path / "mails.csv"
    with path.open("w", newline="") as stream:
        csv.writer(stream).writerows(rows)
    return path


@pytest.mark.filterwarnings("ignore::evgp.errors.DataWarning")
def test_the_command_and_the_library_agree(run, mails: Path) -> None:
    expected = evgp.pick(mails, 4, id="key", text=["subject", "body"], embed="tfidf-8")
    for text in (("--text", "subject,body"), ("--text", "subject", "--text", "body")):
        ran = run("pick", mails, "-k", 4, "--id", "key", *text, "--embed", "tfidf-8", "--json")
        document = json.loads(ran.out)
        assert [pick["id"] for pick in document["picks"]] == list(expected.ids)
        assert document["settings"]["embed"] == "tfidf-8"


def test_notes_name_the_flags(run, mails: Path) -> None:
    ran = run("pick", mails, "-k", 2, "--id", "key", "--drop", "subject")
    assert ran.code == 0
    printed("\n".join(line for line in ran.err.splitlines() if "body" in line))
    assert run("pick", mails, "-k", 2, "--id", "key").code == 1
    printed(run("pick", mails, "-k", 2, "--id", "key").err)


def test_plan_reads_texts_too(run, mails: Path) -> None:
    assert run("plan", mails, "-k", 2, "--id", "key", "--text", "body").code == 0


def test_the_report_shows_the_text(run, mails: Path, tmp_path: Path) -> None:
    report = tmp_path / "report.html"
    ran = run("pick", mails, "-k", 2, "--id", "key", "--text", "body", "--drop", "subject",
              "--json", "--report", report)  # fmt: skip
    row = json.loads(ran.out)["picks"][0]["index"]
    text = list(csv.DictReader(io.StringIO(mails.read_text())))[row]["body"]
    assert text in report.read_text()


@pytest.mark.filterwarnings("ignore::evgp.errors.DataWarning")
def test_a_campaign_picks_what_pick_picks(run, mails: Path, monkeypatch) -> None:
    monkeypatch.chdir(mails.parent)
    options = ("--id", "key", "--text", "subject,body", "--embed", "tfidf-8")
    assert run("campaign", "new", "spam", mails, "--classes", "spam,ham", *options).code == 0
    rows = csv.DictReader(io.StringIO(run("campaign", "next", "spam", "-k", 3).out), delimiter="\t")
    expected = evgp.pick(mails, 3, id="key", text=["subject", "body"], embed="tfidf-8")
    assert [row["id"] for row in rows] == list(expected.ids)


def test_a_campaign_embeds_photographs(run, tmp_path: Path, monkeypatch) -> None:
    from PIL import Image

    monkeypatch.setenv("EVGP_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "channel_means.py").write_text("def means(batch):\n    return batch.mean((2, 3))\n")
    (tmp_path / "photos").mkdir()
    for at in range(6):
        Image.new("RGB", (90, 80), (40 * at, 255 - 30 * at, 7 * at * at)).save(
            tmp_path / "photos" / f"{at}.png"
        )
    embed = ("--embed", "channel_means:means")
    assert run("campaign", "new", "birds", "photos", "--classes", "a,b", *embed).code == 0
    rows = csv.DictReader(
        io.StringIO(run("campaign", "next", "birds", "-k", 3).out), delimiter="\t"
    )
    with pytest.warns(DataWarning):
        expected = evgp.pick("photos", 3, embed="channel_means:means")
    assert [row["id"] for row in rows] == list(expected.ids)


@pytest.mark.filterwarnings("ignore::evgp.errors.DataWarning")
def test_a_campaign_takes_the_options_of_pick(run, mails: Path, monkeypatch) -> None:
    folder = mails.parent
    monkeypatch.chdir(folder)
    rows = list(csv.reader(io.StringIO(mails.read_text())))
    lines = [";".join([*row, "größe" if at == 0 else f"{at % 5},5"]) for at, row in enumerate(rows)]
    (folder / "mails.txt.csv").write_text("\n".join(lines), encoding="latin-1")
    (folder / "test.csv").write_text("\n".join(lines[:9]), encoding="latin-1")
    how = {"id": "key", "text": "body", "drop": "subject", "embed": "tfidf-8", "features": "raw"}
    options = [word for name, value in how.items() for word in (f"--{name}", value)]
    ran = run("campaign", "new", "spam", "mails.txt.csv", "--classes", "spam,ham", "--delimiter",
              ";", "--decimal", ",", "--encoding", "cp1252", "--test", "test.csv", "--show",
              "body, größe", *options)  # fmt: skip
    assert ran.code == 0, ran.err
    text = csv.DictReader(io.StringIO(run("campaign", "next", "spam", "-k", 3).out), delimiter="\t")
    expected = evgp.pick(
        "mails.txt.csv", 3, x_test="test.csv", delimiter=";", decimal=",", encoding="cp1252", **how
    )
    assert [row["id"] for row in text] == list(expected.ids)
    campaign = Campaign.open("spam")
    assert campaign.card(3) == {"body": rows[4][2], "größe": 4.5}
    card = cells(campaign.card(3), campaign.created.settings["text"])
    assert [(cell.name, cell.kind) for cell in card] == [("body", "long"), ("größe", "number")]
    for path in (folder / "spam.evgp-arrays").iterdir():
        path.unlink()  # both are encoded again
    with pytest.warns(DamageWarning):
        assert campaign.x_test().shape == (8, 9)
        assert len(campaign.x()) == 50


def test_columns_of_a_campaign_are_those_of_its_pool(run, mails: Path, monkeypatch) -> None:
    monkeypatch.chdir(mails.parent)
    for option in ("--show", "--text", "--drop"):
        ran = run("campaign", "new", "spam", mails, "--classes", "spam,ham", option, "boddy")
        assert ran.code == 1
        printed(ran.err)
    assert not Path("spam.evgp").exists()
