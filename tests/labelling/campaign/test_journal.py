"""No acknowledged answer is lost, and damage is detected."""

import gc
import os
import random
import shutil
import sqlite3
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import psutil
import pytest

from evgp.errors import CampaignError, Conflict, NoRoom
from evgp.labelling.campaign import Campaign, Receipt, Submission, fold
from evgp.labelling.campaign.events import Answered, to_json
from evgp.labelling.campaign.journal import MIGRATIONS, Entry, Journal, _digest
from evgp.labelling.campaign.state import StateBuilder
from tests.forked import python
from tests.labelling.campaign.edited import edited
from tests.messages import printed, refused


def filled(spam, count=12):
    for i in range(count):
        spam.answer(i, "label", "spam" if i % 3 else "ham", who="ann", key=f"k{i}")
    return spam.path


def test_the_same_key_is_saved_once(spam) -> None:
    first = spam.answer("m3", "label", "ham", key="a")
    again = spam.answer("m3", "label", "ham", key="a")
    assert (first.number, first.repeated, again) == (2, False, type(first)(2, True))
    with refused(Conflict):
        spam.answer("m3", "label", "spam", key="a")
    assert len(spam.log()) == 2 and spam.state.labels == {3: "ham"}


def test_several_answers_are_saved_together_or_not_at_all(spam) -> None:
    with refused(CampaignError):
        spam.answers([(1, "label", "ham"), (2, "label", "eggs")])
    spam.answer(2, "label", "spam", key="x")
    with pytest.raises(Conflict):
        spam.answers([(1, "label", "ham"), (2, "label", "ham")], keys=["y", "x"])
    assert spam.state.labels == {2: "spam"}
    campaign = Campaign.open(spam.path)
    assert campaign.state.labels == {2: "spam"}


def test_events_cannot_be_changed(spam) -> None:
    path = filled(spam)
    other = sqlite3.connect(path)
    for command in ("UPDATE event SET body = '{}'", "DELETE FROM event"):
        with pytest.raises(sqlite3.IntegrityError, match="events are never changed"):
            other.execute(command)
    other.close()


def test_reopening_gives_the_same_state(spam) -> None:
    path = filled(spam)
    assert Campaign.open(path).state == spam.state == fold(spam.log())


def test_two_processes_see_each_other(spam) -> None:
    other = Campaign.open(spam.path)
    spam.answer(1, "label", "ham", who="ann")
    other.answer(1, "label", "spam", who="bob")
    assert spam.state == other.state
    assert set(spam.state.verdicts[1].answers) == {"ann", "bob"}
    other.close()


def test_files_that_are_not_campaigns_are_refused(tmp_path, mails, spam) -> None:
    with refused(CampaignError):
        Campaign.open(tmp_path / "none")
    assert not (tmp_path / "none.evgp").exists()
    (tmp_path / "text.evgp").write_text("not a database, but long enough to be taken for one" * 9)
    with refused(CampaignError):
        Campaign.open(tmp_path / "text")
    sqlite3.connect(tmp_path / "other.evgp").execute("CREATE TABLE a (b)").connection.close()
    with refused(CampaignError):
        Campaign.open(tmp_path / "other")
    with refused(CampaignError):
        Campaign.create(spam.path, mails, number=True)


def test_a_newer_schema_is_refused(spam) -> None:
    path = filled(spam)
    spam.close()
    other = sqlite3.connect(path)
    other.execute(f"PRAGMA user_version={len(MIGRATIONS) + 1}")
    other.close()
    with refused(CampaignError):
        Campaign.open(path)


@pytest.mark.parametrize("part", [0.0, 0.3, 0.6, 0.95])
def test_a_truncated_file_is_refused(spam, part) -> None:
    path = filled(spam)
    spam.close()
    content = path.read_bytes()
    path.write_bytes(content[: int(part * len(content))])
    with refused(CampaignError):
        Campaign.open(path)
    assert path.stat().st_size == int(part * len(content))


def test_a_flipped_bit_is_refused_or_changes_nothing(spam, tmp_path) -> None:
    path = filled(spam)
    state = spam.state
    spam.close()
    content = path.read_bytes()
    body = content.index(b'"who":"ann"')
    failed = 0
    used = [place for place, byte in enumerate(content) if byte]
    for place in [*random.Random(0).sample(used, 250), body + 7, body + 8]:
        damaged = bytearray(content)
        damaged[place] ^= 1 << (place % 8)
        copy = tmp_path / "copy.evgp"
        copy.write_bytes(damaged)
        try:
            journal = Journal.open(copy)
        except CampaignError as error:
            assert "copy.evgp" in str(error) and "\n" not in str(error)
            failed += 1
            continue
        assert fold(journal.events()) == state, f"byte {place}"
        again = [(event.key, event.event) for event in journal.events()]
        reported = journal.add_each(again)
        assert all(item[1] for item in reported), f"byte {place}: an answer is there twice"
        journal.close()
    assert failed >= 2
    damaged = bytearray(content)
    damaged[body + 7] ^= 1
    (tmp_path / "copy.evgp").write_bytes(damaged)
    with refused(CampaignError):
        Journal.open(tmp_path / "copy.evgp")


def test_names_may_contain_characters_of_urls(tmp_path, mails) -> None:
    campaign = [
        Campaign.create(tmp_path / name, mails, id="key", classes=["spam", "ham"])
        for name in ("xA", "x%41", "a?b#c", "d%zz")
    ]
    campaign[1].answer("m3", "label", "spam")
    assert [len(item.state.labels) for item in campaign] == [0, 1, 0, 0]


def test_other_tables_are_refused(spam) -> None:
    path = filled(spam)
    spam.close()
    connection = sqlite3.connect(path)
    connection.execute("DROP TRIGGER no_update")
    connection.commit()
    connection.close()
    with refused(CampaignError):
        Journal.open(path)


def by_sql(path: Path, *statements: str) -> None:
    """What somebody does to the file with `sqlite3`."""
    with edited(path) as connection:
        for statement in statements:
            connection.execute(statement)


LAST = "number = (SELECT max(number) FROM event)"


def test_events_deleted_from_the_end_are_noticed(spam) -> None:
    path = filled(spam)
    kept = path.read_bytes()
    spam.close()
    for statement in (
        f"DELETE FROM event WHERE {LAST}",
        "DELETE FROM event WHERE number > 4",
        "DELETE FROM head",
        "UPDATE head SET number = number - 1",
        f"UPDATE head SET digest = '{'0' * 64}'",
        "INSERT OR REPLACE INTO head VALUES (1, 99, 'x')",
    ):
        path.write_bytes(kept)
        by_sql(path, statement)
        with refused(CampaignError):
            Campaign.open(path)
    path.write_bytes(kept)
    assert Campaign.open(path).state.labels


def test_events_deleted_while_a_campaign_is_open_are_noticed(spam) -> None:
    filled(spam)
    by_sql(spam.path, f"DELETE FROM event WHERE {LAST}")
    for use in (lambda: spam.state, lambda: spam.answer(1, "label", "ham")):
        with refused(CampaignError):
            use()
    before = spam.path.read_bytes()
    (answer,) = spam.submit([Submission(1, "ann", "new", "label", "ham")])
    assert not isinstance(answer, Receipt)
    printed(str(answer))
    with refused(CampaignError):
        spam._journal.add_each([("new", Answered(1, "ann", "label", "ham"))])
    assert spam.path.read_bytes() == before


def test_plain_sql_cannot_delete_events(spam) -> None:
    filled(spam)
    for statement in (
        "DELETE FROM event", "UPDATE event SET at = ''", "DELETE FROM head",
        "UPDATE head SET number = number - 1", "UPDATE head SET digest = ''",
    ):  # fmt: skip
        with closing(sqlite3.connect(spam.path)) as connection:
            with pytest.raises(sqlite3.IntegrityError, match="never"):
                connection.execute(statement)
    assert Campaign.open(spam.path).state == spam.state


def test_a_file_that_was_refused_is_not_locked(spam) -> None:
    """As one that somebody restores."""
    path = filled(spam)
    spam.close()
    by_sql(path, "UPDATE event SET at = '' WHERE number = 3")
    gc.disable()
    try:
        with refused(CampaignError):
            Journal.open(path)
        with closing(sqlite3.connect(path, timeout=0)) as connection:
            connection.execute("BEGIN EXCLUSIVE")
    finally:
        gc.enable()


def as_first_schema(path: Path) -> None:
    """As version 0.1 left it."""
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("DROP TRIGGER head_follows")
        connection.execute("DROP TABLE head")
        connection.execute("PRAGMA user_version=1")
        connection.commit()


def test_a_file_of_the_first_schema_is_migrated(spam) -> None:
    path, state = filled(spam), spam.state
    spam.close()
    as_first_schema(path)
    with closing(sqlite3.connect(path)) as old:  # as an older program has it open
        assert old.execute("SELECT count(*) FROM event").fetchone() == (13,)
        campaign = Campaign.open(path)
        assert campaign.state == state
        with closing(sqlite3.connect(path)) as connection:
            assert connection.execute("PRAGMA user_version").fetchone() == (len(MIGRATIONS),)
        campaign.answer(20, "label", "ham")
    assert Campaign.open(path).state == campaign.state
    by_sql(path, f"DELETE FROM event WHERE {LAST}")
    with refused(CampaignError):
        Campaign.open(path)


def test_an_older_program_that_still_writes_keeps_the_head(spam) -> None:
    """It knows of no second table; the trigger does."""
    path = filled(spam)
    spam.close()
    as_first_schema(path)
    with closing(sqlite3.connect(path)) as copied:
        rows = copied.execute("SELECT * FROM event WHERE number > 11").fetchall()
    by_sql(path, "DELETE FROM event WHERE number > 11")
    Campaign.open(path).close()
    with closing(sqlite3.connect(path)) as older:
        older.executemany("INSERT INTO event VALUES (?, ?, ?, ?, ?, ?)", rows)
        older.commit()
    assert len(Campaign.open(path).log()) == 13


@pytest.mark.parametrize("harm", ["table", "event"])
def test_a_damaged_file_of_the_first_schema_is_refused_as_it_is(spam, harm) -> None:
    path = filled(spam)
    spam.close()
    as_first_schema(path)
    what = (
        "CREATE TABLE other (a)" if harm == "table" else "UPDATE event SET at = '' WHERE number=3"
    )
    by_sql(path, what)
    before = path.read_bytes()
    with refused(CampaignError):
        Campaign.open(path)
    assert path.read_bytes() == before


def test_several_processes_may_migrate_one_file(spam) -> None:
    path, state = filled(spam), spam.state
    spam.close()
    as_first_schema(path)
    with ThreadPoolExecutor(8) as pool:
        result = list(pool.map(Journal.open, [path] * 8))
    assert all(fold(item.events()) == state for item in result)


def test_a_full_disk_loses_nothing(spam) -> None:
    connection = spam._journal._connection
    (pages,) = connection.execute("PRAGMA page_count").fetchone()
    connection.execute(f"PRAGMA max_page_count={pages + 1}")
    taken = 0
    with refused(NoRoom):
        for i in range(10_000):
            spam.answer(i % 30, "label", "spam", who=f"{'x' * 100}{i}")
            taken += 1
    assert taken
    answers = [
        event for event in Campaign.open(spam.path).log() if isinstance(event.event, Answered)
    ]
    assert len(answers) == taken
    assert spam.state == Campaign.open(spam.path).state
    connection.execute("PRAGMA max_page_count=10000")
    spam.answer(0, "label", "ham", who="me")
    assert Campaign.open(spam.path).state == spam.state


KILLS = """
import os, random, signal, sys, time
from evgp.labelling.campaign.journal import Journal
from evgp.labelling.campaign.events import Answered
from contextlib import closing
from pathlib import Path

path, rounds = Path(sys.argv[1]), int(sys.argv[2])
chance, acknowledged = random.Random(1), set()

def writes(name, pipe):
    journal = Journal.open(path)
    i = 0
    while True:
        key = f"{name} {i}"
        journal.add(lambda entries: [(key, Answered(i % 30, name, "label", "spam"))])
        os.write(pipe, (key + "\\n").encode())
        i += 1

for turn in range(rounds):
    pids, pipes = [], []
    for writer in range(3):
        read, write = os.pipe()
        pid = os.fork()
        if pid == 0:
            os.close(read)
            try:
                writes(f"{turn}.{writer}", write)
            finally:
                os._exit(1)
        os.close(write)
        pids.append(pid)
        pipes.append(read)
    time.sleep(chance.uniform(0.02, 0.4))
    for pid in pids:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
    for pipe in pipes:
        with os.fdopen(pipe) as stream:
            acknowledged |= {line.rstrip("\\n") for line in stream if line.endswith("\\n")}
    journal = Journal.open(path)
    keys = {entry.key for entry in journal.events()}
    journal.close()
    assert acknowledged <= keys, sorted(acknowledged - keys)
print(len(acknowledged))
"""


def killed(path: Path, rounds: int) -> int:
    result = python(KILLS, path, rounds)
    assert result.returncode == 0, result.stderr
    return int(result.stdout)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are forked")
def test_an_acknowledged_label_survives_a_kill(spam) -> None:
    assert killed(spam.path, 6) > 5


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are forked")
def test_an_acknowledged_label_survives_a_hundred_kills(spam) -> None:
    assert killed(spam.path, 100) > 100


@pytest.mark.skipif(
    shutil.which("strace") is None and not os.environ.get("CI"), reason="strace is not installed"
)
def test_the_disk_has_it_before_the_answer(spam, tmp_path) -> None:
    script = tmp_path / "one.py"
    script.write_text(
        "import os, sys\nfrom pathlib import Path\n"
        "from evgp.labelling.campaign.journal import Journal\n"
        "from evgp.labelling.campaign.events import Answered\n"
        "journal = Journal.open(Path(sys.argv[1]))\n"
        "os.write(1, b'begin')\n"
        "journal.add(lambda entries: [('k', Answered(1, 'me', 'label', 'spam'))])\n"
        "os.write(1, b'acknowledged')\n"
    )
    process = subprocess.run(
        ["strace", "-f", "-e", "trace=fsync,fdatasync,write,unlink", sys.executable, script,
         spam.path],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    lines = process.stderr.splitlines()
    begin = next(i for i, line in enumerate(lines) if '"begin"' in line)
    end = next(i for i, line in enumerate(lines) if '"acknowledged"' in line)
    synced = [line for line in lines[begin:end] if "fsync(" in line or "fdatasync(" in line]
    assert len(synced) >= 2  # the journal of the transaction, and the file itself


def test_a_conflict_of_one_does_not_fail_the_others(spam) -> None:
    spam.answer(1, "label", "ham", who="ann", key="a")
    result = spam.submit(
        [
            Submission(2, "bob", "b", "label", "spam"),
            Submission(1, "ann", "a", "label", "spam"),  # the key was used for ham
            Submission(1, "ann", "a", "label", "ham"),  # the same again
            Submission(99, "bob", "c", "skip"),
            Submission("m4", "cem", "d", "unsure"),
            Submission(2, "bob", "b", "label", "spam"),  # twice in one transaction
            Submission(3, "bob", "b", "label", "spam"),
        ]
    )
    kinds = (Receipt, Conflict, Receipt, CampaignError, Receipt, Receipt, Conflict)
    assert all(map(isinstance, result, kinds)) and not isinstance(result[3], Conflict)
    numbers = [(item.number, item.repeated) for item in result if isinstance(item, Receipt)]
    assert numbers == [(3, False), (2, True), (4, False), (3, True)]
    assert spam.state.labels == {1: "ham", 2: "spam"} and spam.state.passed == [4]
    assert Campaign.open(spam.path).state == spam.state
    assert spam.submit([]) == []


def test_the_state_is_folded_as_events_come(spam) -> None:
    chance, folding = random.Random(0), StateBuilder()
    for i in range(120):
        who = chance.choice(["ann", "bob"])
        if i > 5 and chance.random() < 0.3:
            spam.undo(who)
        else:
            spam.answer(chance.randrange(9), "label", chance.choice(["spam", "ham"]), who=who)
        folding.add(spam.log())
        whole = fold(spam.log())
        assert folding.state == whole == spam.state
        rows = dict.fromkeys(item.row for item in whole.standing.values())
        assert list(folding.state.verdicts) == list(whole.verdicts) == list(rows)


@pytest.mark.parametrize("harm", ["newer", "foreign", "pool"])
def test_a_campaign_that_is_refused_is_not_kept_open(spam, mails, harm) -> None:
    spam.close()
    if harm == "newer":
        with closing(sqlite3.connect(spam.path)) as connection:
            connection.execute("PRAGMA user_version=9")
    elif harm == "foreign":
        spam.path.write_bytes(b"no database at all" * 100)
    else:
        mails.write_text("key\nm0\n")
    with pytest.raises(CampaignError) as caught:
        Campaign.open(spam.path)
    held = [file.path for file in psutil.Process().open_files()]
    assert str(caught.value) and str(spam.path.resolve()) not in held


def test_an_unused_campaign_closes_its_file(spam) -> None:
    path = filled(spam)
    spam.close()
    kept = Campaign.open(path)._journal._connection
    gc.collect()
    with pytest.raises(sqlite3.ProgrammingError, match="closed"):
        kept.execute("SELECT 1")


COMPOSED, DECOMPOSED = "Zo\u00eb", "Zoe\u0308"


def test_two_spellings_of_a_name_are_one_person(spam) -> None:
    spam.answer(1, "label", "ham", who=DECOMPOSED)
    spam.answer(1, "label", "spam", who=COMPOSED)
    spam.submit([Submission(2, DECOMPOSED, "key-2", "label", "ham")])
    assert set(spam.state.verdicts[1].answers) == {COMPOSED} == set(spam.state.verdicts[2].answers)
    assert spam.undo(DECOMPOSED).row == 2


def test_an_old_file_with_the_other_spelling_replays(spam) -> None:
    spam.answer(1, "label", "ham", who="x", key="k")
    path = spam.path
    # As versions before this one wrote it: the name as it came.
    event = Answered(2, DECOMPOSED, "label", "ham")
    with closing(sqlite3.connect(path)) as old:
        (before,) = old.execute("SELECT digest FROM event WHERE number = 2").fetchone()
        entry = Entry(3, "answer old", "2024-05-01T10:00:00.000+00:00", event)
        row = (3, entry.key, entry.at, event.name, to_json(event), _digest(before, entry))
        old.execute("INSERT INTO event VALUES (?, ?, ?, ?, ?, ?)", row)
        old.commit()
    campaign = Campaign.open(path)
    assert set(campaign.state.verdicts[2].answers) == {COMPOSED}
    again = campaign.answer(2, "label", "ham", who=COMPOSED, key="old")
    assert again == Receipt(3, True)  # the same answer, however the name is spelt
    campaign.answer(2, "label", "spam", who=COMPOSED)
    assert campaign.state.labels[2] == "spam" and not campaign.state.verdicts[2].disputed
    assert campaign.undo(COMPOSED).value == "spam" and campaign.undo(COMPOSED).value == "ham"
    assert Campaign.open(path).state == campaign.state


def test_two_spellings_of_a_class_are_one_class(mails, tmp_path) -> None:
    campaign = Campaign.create(tmp_path / "c", mails, id="key", classes=[DECOMPOSED, "ham"])
    assert campaign.created.classes == (COMPOSED, "ham")
    campaign.answer(1, "label", DECOMPOSED)
    assert campaign.state.labels == {1: COMPOSED}
    with refused(CampaignError):
        Campaign.create(tmp_path / "d", mails, id="key", classes=[DECOMPOSED, COMPOSED])
