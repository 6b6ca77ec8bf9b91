"""Any order of answers, repeats, undos and restarts gives the state of a plain model."""

import tempfile
from pathlib import Path
from statistics import median

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from evgp.errors import CampaignError, Conflict
from evgp.labelling.campaign import Campaign

PEOPLE = st.sampled_from(["ann", "bob", "cem"])
ROWS = st.integers(0, 5)
KEYS = st.integers(0, 12)
ANSWERS = st.one_of(st.tuples(st.just("label"), st.sampled_from([1.0, 2.0, 5.0])),
                    st.sampled_from([("skip", None), ("unsure", None)]))  # fmt: skip


class Machine(RuleBasedStateMachine):
    """The model is a list of (person, row, answer, standing) and a dictionary of keys."""

    @initialize()
    def begin(self) -> None:
        self.folder = tempfile.TemporaryDirectory()
        place = Path(self.folder.name)
        (place / "pool.csv").write_text("a,b\n1,2\n3,1\n0,7\n5,5\n2,2\n9,1\n")
        self.campaign = Campaign.create(place / "c", place / "pool.csv", number=True)
        self.said: list[list] = []
        self.keys: dict[str, tuple] = {}

    @rule(who=PEOPLE, row=ROWS, answer=ANSWERS)
    def answers(self, who, row, answer) -> None:
        assert not self.campaign.answer(row, *answer, who=who).repeated
        self.said.append([who, row, answer, True])

    @rule(who=PEOPLE, row=ROWS, answer=ANSWERS, key=KEYS)
    def answers_with_a_key(self, who, row, answer, key) -> None:
        body = who, row, answer
        if self.keys.get(key, body) != body:
            with pytest.raises(Conflict):
                self.campaign.answer(row, *answer, who=who, key=str(key))
            return
        result = self.campaign.answer(row, *answer, who=who, key=str(key))
        assert result.repeated == (key in self.keys)
        if key not in self.keys:
            self.keys[key] = body
            self.said.append([who, row, answer, True])

    @rule(who=PEOPLE)
    def undoes(self, who) -> None:
        mine = [item for item in self.said if item[0] == who and item[3]]
        if not mine:
            with pytest.raises(CampaignError, match="has no answer to undo"):
                self.campaign.undo(who)
            return
        taken = self.campaign.undo(who)
        assert (taken.row, (taken.kind, taken.value)) == (mine[-1][1], mine[-1][2])
        mine[-1][3] = False

    @rule()
    def restarts(self) -> None:
        self.campaign.close()
        self.campaign = Campaign.open(self.campaign.path)

    @invariant()
    def agrees(self) -> None:
        if not hasattr(self, "campaign"):
            return
        entries: dict[int, dict[str, tuple]] = {}
        for who, row, answer, stands in self.said:
            if stands:
                entries.setdefault(row, {})[who] = answer
        state = self.campaign.state
        actual = {
            row: {who: (item.kind, item.value) for who, item in verdict.answers.items()}
            for row, verdict in state.verdicts.items()
        }
        assert actual == entries
        labels = {
            row: median(value for kind, value in people.values() if kind == "label")
            for row, people in entries.items()
            if any(kind == "label" for kind, _ in people.values())
        }
        assert state.labels == labels

    def teardown(self) -> None:
        if hasattr(self, "campaign"):
            self.campaign.close()
            self.folder.cleanup()


Machine.TestCase.settings = settings(max_examples=15, stateful_step_count=20, deadline=None)
TestMachine = Machine.TestCase
