"""What another tool keeps is followed: all of it or nothing, in any order, any number of times."""

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from evgp._errors import CampaignError, Conflict
from evgp.campaign import Campaign
from evgp.campaign.mirror import Mirrored, Told, mirror


def told(name, version, value="spam", *, row=1, who="ann", task="t1"):
    return Told(task, name, f"2026-01-0{version}", row, who, "label", value)


def test_new_changed_known(spam) -> None:
    assert mirror(spam, "tool", [told("a", 1)]) == Mirrored(1, 0, 0, 0)
    assert mirror(spam, "tool", [told("a", 1)]) == Mirrored(0, 0, 1, 0)
    assert mirror(spam, "tool", [told("a", 2, "ham")]) == Mirrored(0, 1, 0, 0)
    assert spam.state.labels == {1: "ham"}
    assert Campaign.open(spam.path).state.labels == {1: "ham"}


def test_an_older_version_that_comes_late_is_left_out(spam) -> None:
    mirror(spam, "tool", [told("a", 3, "ham")])
    before = spam.log()
    assert mirror(spam, "tool", [told("a", 2, "spam")]) == Mirrored(0, 0, 1, 0)
    assert spam.log() == before and spam.state.labels == {1: "ham"}


def test_the_same_version_with_another_content_is_refused_and_nothing_is_written(spam) -> None:
    mirror(spam, "tool", [told("a", 1)])
    before = spam.log()
    with pytest.raises(Conflict):
        mirror(spam, "tool", [told("b", 1, row=2), told("a", 1, "ham")])
    with pytest.raises(CampaignError, match="a label among spam, ham"):
        mirror(spam, "tool", [told("b", 1, row=2), told("c", 1, "eggs")])
    assert spam.log() == before


def test_an_answer_keeps_the_name_it_came_with(spam) -> None:
    mirror(spam, "tool", [told("a", 1, who="user 1")])
    mirror(spam, "tool", [told("a", 1, who="ann"), told("a", 2, "ham", who="ann")])
    assert set(spam.state.verdicts[1].answers) == {"user 1"}
    assert spam.state.labels == {1: "ham"} and not spam.state.verdicts[1].disputed


def test_what_is_gone_there_is_taken_back_with_all_its_versions(spam) -> None:
    mirror(spam, "tool", [told("a", 1), told("b", 1, "ham", who="bob")])
    mirror(spam, "tool", [told("a", 2, "ham")])
    made = mirror(spam, "tool", [told("b", 1, "ham", who="bob")], {("t1", 1)})
    assert made == Mirrored(0, 0, 1, 1)
    assert set(spam.state.verdicts[1].answers) == {"bob"}
    before = spam.log()
    assert mirror(spam, "tool", [told("b", 1, "ham", who="bob")], {("t1", 1)}).gone == 0
    assert spam.log() == before


def test_what_other_tasks_tools_and_people_said_stays(spam) -> None:
    mirror(spam, "tool", [told("a", 1), told("b", 1, row=2, task="t2")])
    mirror(spam, "other", [told("c", 1, row=1)])
    spam.answer(1, "label", "ham", who="carl")
    mirror(spam, "tool", [], {("t2", 1), ("t1", 2)})  # neither is the task of an answer
    assert spam.state.labels == {1: "spam", 2: "spam"}
    mirror(spam, "tool", [], {("t1", 1), ("t2", 2)})
    assert set(spam.state.verdicts[1].answers) == {"ann", "carl"}  # ann by the other tool
    assert 2 not in spam.state.verdicts


def test_two_answers_of_one_person_the_later_counts(spam) -> None:
    mirror(spam, "tool", [told("a", 2, "ham"), told("b", 1, "spam")])
    assert spam.state.labels == {1: "ham"}


def test_what_somebody_took_back_here_is_not_brought_back(spam) -> None:
    mirror(spam, "tool", [told("a", 1)])
    spam.undo("ann")
    mirror(spam, "tool", [told("a", 1)])
    assert spam.state.labels == {}


versions = st.lists(
    st.tuples(st.sampled_from("ab"), st.integers(1, 5)), min_size=1, max_size=8, unique=True
)


@settings(
    max_examples=10,
    deadline=None,
    phases=[Phase.explicit, Phase.reuse, Phase.generate],
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(order=versions.flatmap(st.permutations), data=st.data())
def test_any_order_and_any_repeats_lead_to_the_latest(tmp_path_factory, mails, order, data) -> None:
    """The content of a version is a function of it; whatever comes when, the last one counts."""
    made = Campaign.create(
        tmp_path_factory.mktemp("c") / "c", mails, id="key", classes=["spam", "ham"]
    )
    said = {one: told(one[0], one[1], ["spam", "ham"][one[1] % 2], row="ab".index(one[0]))
            for one in order}  # fmt: skip
    for one in order + data.draw(st.lists(st.sampled_from(order), max_size=4)):
        mirror(made, "tool", [said[one]])
    last = {name: max(version for other, version in order if other == name) for name, _ in order}
    wanted = {"ab".index(name): ["spam", "ham"][version % 2] for name, version in last.items()}
    assert made.state.labels == wanted
    made.close()
