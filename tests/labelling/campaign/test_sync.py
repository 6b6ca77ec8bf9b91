"""Synchronising with another tool: all or nothing, in any order, any number of times."""

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from evgp.errors import CampaignError, Conflict
from evgp.labelling.campaign import Campaign
from evgp.labelling.campaign.sync import ExternalAnswer, SyncResult, sync
from tests.conftest import examples
from tests.messages import refused


def external(name, version, value="spam", *, row=1, who="ann", task="t1"):
    return ExternalAnswer(task, name, f"2026-01-0{version}", row, who, "label", value)


def test_new_changed_known(spam) -> None:
    assert sync(spam, "tool", [external("a", 1)]) == SyncResult(1, 0, 0, 0)
    assert sync(spam, "tool", [external("a", 1)]) == SyncResult(0, 0, 1, 0)
    assert sync(spam, "tool", [external("a", 2, "ham")]) == SyncResult(0, 1, 0, 0)
    assert spam.state.labels == {1: "ham"}
    assert Campaign.open(spam.path).state.labels == {1: "ham"}


def test_an_older_version_that_arrives_late_is_ignored(spam) -> None:
    sync(spam, "tool", [external("a", 3, "ham")])
    before = spam.log()
    assert sync(spam, "tool", [external("a", 2, "spam")]) == SyncResult(0, 0, 1, 0)
    assert spam.log() == before and spam.state.labels == {1: "ham"}


def test_the_same_version_with_another_content_is_refused_and_nothing_is_written(spam) -> None:
    sync(spam, "tool", [external("a", 1)])
    before = spam.log()
    with pytest.raises(Conflict):
        sync(spam, "tool", [external("b", 1, row=2), external("a", 1, "ham")])
    with refused(CampaignError):
        sync(spam, "tool", [external("b", 1, row=2), external("c", 1, "eggs")])
    assert spam.log() == before


def test_an_answer_keeps_the_name_it_came_with(spam) -> None:
    sync(spam, "tool", [external("a", 1, who="user 1")])
    sync(spam, "tool", [external("a", 1, who="ann"), external("a", 2, "ham", who="ann")])
    assert set(spam.state.verdicts[1].answers) == {"user 1"}
    assert spam.state.labels == {1: "ham"} and not spam.state.verdicts[1].disputed


def test_deleted_answers_are_undone_with_all_their_versions(spam) -> None:
    sync(spam, "tool", [external("a", 1), external("b", 1, "ham", who="bob")])
    sync(spam, "tool", [external("a", 2, "ham")])
    result = sync(spam, "tool", [external("b", 1, "ham", who="bob")], {("t1", 1)})
    assert result == SyncResult(0, 0, 1, 1)
    assert set(spam.state.verdicts[1].answers) == {"bob"}
    before = spam.log()
    assert sync(spam, "tool", [external("b", 1, "ham", who="bob")], {("t1", 1)}).gone == 0
    assert spam.log() == before


def test_answers_of_other_tasks_tools_and_people_stay(spam) -> None:
    sync(spam, "tool", [external("a", 1), external("b", 1, row=2, task="t2")])
    sync(spam, "other", [external("c", 1, row=1)])
    spam.answer(1, "label", "ham", who="carl")
    sync(spam, "tool", [], {("t2", 1), ("t1", 2)})  # neither is the task of an answer
    assert spam.state.labels == {1: "spam", 2: "spam"}
    sync(spam, "tool", [], {("t1", 1), ("t2", 2)})
    assert set(spam.state.verdicts[1].answers) == {"ann", "carl"}  # ann by the other tool
    assert 2 not in spam.state.verdicts


def test_two_answers_of_one_person_the_later_counts(spam) -> None:
    sync(spam, "tool", [external("a", 2, "ham"), external("b", 1, "spam")])
    assert spam.state.labels == {1: "ham"}


def test_an_answer_undone_here_does_not_come_back(spam) -> None:
    sync(spam, "tool", [external("a", 1)])
    spam.undo("ann")
    sync(spam, "tool", [external("a", 1)])
    assert spam.state.labels == {}


def test_answers_recorded_during_a_sync_stay(spam) -> None:
    sync(spam, "tool", [external("a", 1)])
    before = len(spam.log())  # now the tool is asked, and has a alone
    sync(spam, "tool", [external("b", 2, "ham", row=2, who="bob", task="t2")])
    tasks = {("t1", 1), ("t2", 2)}
    assert sync(spam, "tool", [external("a", 1)], tasks, before=before) == SyncResult(0, 0, 1, 0)
    assert spam.state.labels == {1: "spam", 2: "ham"}
    before = len(spam.log())
    assert sync(spam, "tool", [external("a", 1)], tasks, before=before).gone == 1
    assert spam.state.labels == {1: "spam"}


def test_answers_newer_than_the_export_stay(spam) -> None:
    old, tasks = [external("a", 1)], {("t1", 1)}
    new = [*old, external("b", 2, "ham", who="bob")]
    for known in (old, new, old, new):
        until = max(item.version for item in known)
        assert sync(spam, "tool", known, tasks, until=until).gone == 0
    assert set(spam.state.verdicts[1].answers) == {"ann", "bob"}
    assert sync(spam, "tool", old, tasks, until="2026-01-03").gone == 1


def test_an_undone_answer_that_exists_after_all_comes_back(spam) -> None:
    first, tasks = external("a", 1), {("t1", 1)}
    for _ in range(3):
        assert sync(spam, "tool", [first], tasks).new == 1
        assert spam.state.labels == {1: "spam"}
        before = spam.log()
        assert sync(spam, "tool", [first], tasks) == SyncResult(0, 0, 1, 0)
        assert spam.log() == before
        assert sync(spam, "tool", [], tasks).gone == 1
        assert spam.state.labels == {}
    assert sync(spam, "tool", [first]).known == 1  # a late message says less than a whole task
    with pytest.raises(Conflict):
        sync(spam, "tool", [external("a", 1, "ham")], tasks)
    assert sync(spam, "tool", [first], tasks).new == 1
    spam.undo("ann")
    assert sync(spam, "tool", [first], tasks).known == 1  # a person took it back here
    assert spam.state.labels == {}


def test_an_old_version_does_not_replace_the_latest(spam) -> None:
    tasks = {("t1", 1)}
    for known in ([external("a", 1)], [external("a", 2, "ham")], [], [external("a", 1)]):
        sync(spam, "tool", known, tasks)
    assert spam.state.labels == {}
    assert sync(spam, "tool", [external("a", 2, "ham")], tasks).new == 1
    assert spam.state.labels == {1: "ham"}


@st.composite
def histories(draw):
    """The answers in the tool over time, by name: created, edited, and deleted permanently."""
    result, gone = [{}], set()
    for moment in range(1, draw(st.integers(1, 8)) + 1):
        name, keep = draw(st.tuples(st.sampled_from("abc"), st.integers(0, 3)))
        there = dict(result[-1])
        if name in there and not keep:
            del there[name]
            gone.add(name)
        elif name not in gone:
            there[name] = moment
        result.append(there)
    return result, bool(gone)


def version_of(name, moment):
    return external(name, moment, ["spam", "ham"][moment % 2], row="abc".index(name))


def labels_of(there):
    return {"abc".index(name): ["spam", "ham"][moment % 2] for name, moment in there.items()}


@settings(
    max_examples=examples(40),
    deadline=None,
    phases=[Phase.explicit, Phase.reuse, Phase.generate],
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(history=histories(), data=st.data())
def test_any_order_and_any_repeats_lead_to_the_latest(
    tmp_path_factory, mails, history, data
) -> None:
    """Messages, old and new files, answers that were late: in the end counts what the tool has.

    Where nothing was deleted, and no answer of the tool lacked what it should have had, the latest
    version that was ever reported counts all the time.
    """
    campaign = Campaign.create(
        tmp_path_factory.mktemp("c") / "c", mails, id="key", classes=["spam", "ham"]
    )
    (there, deleted), tasks = history, {("t1", row) for row in range(3)}
    kinds = st.sampled_from(["message", "file", "file", "late"])
    latest, sure = {}, not deleted
    for kind, moment in data.draw(
        st.lists(st.tuples(kinds, st.integers(0, len(there) - 1)), max_size=10)
    ):
        now = there[moment]
        if kind == "message":
            now = {name: item for name, item in now.items() if item == moment}
        known = [version_of(*item) for item in now.items()]
        if kind == "message":
            sync(campaign, "tool", known)
        elif kind == "file":
            sync(campaign, "tool", known, tasks, until=f"2026-01-0{moment}")
        else:
            sync(campaign, "tool", known, tasks, before=len(campaign.log()))
        sure = sure and kind != "late"
        latest |= {name: max(item, latest.get(name, 0)) for name, item in now.items()}
        assert not sure or campaign.state.labels == labels_of(latest)
    for _ in range(2):
        known = [version_of(*item) for item in there[-1].items()]
        sync(campaign, "tool", known, tasks, before=len(campaign.log()))
        assert campaign.state.labels == labels_of(there[-1])
    assert Campaign.open(campaign.path).state.labels == labels_of(there[-1])
    campaign.close()
