"""The report of a campaign, whose rounds may be of different networks."""

import pytest

from evgp.labelling.campaign import Campaign
from evgp.labelling.campaign.events import Picked
from evgp.labelling.campaign.report import summarise_campaign


@pytest.fixture
def campaign(tmp_path):
    pool = tmp_path / "pool.csv"
    pool.write_text("a,b\n" + "".join(f"{i},{i * i % 7}\n" for i in range(12)))
    record = Campaign.create(tmp_path / "campaign", pool, number=True)
    yield record
    record.close()


def test_rounds_of_other_networks_are_shown_in_units_of_the_first(campaign) -> None:
    rounds = (
        Picked((3, 5), (0.2, 0.1), (0.8, 0.7), 1.0, 1.0, "given"),
        Picked((7, 9), (4.0, 2.0), (24.0, 22.0), 28.0, 40.0, "wider"),
    )
    for number, item in enumerate(rounds, 1):
        campaign.add(lambda entries, expected=(f"round {number}", item): [expected])
    summary = summarise_campaign(campaign)
    assert summary.left == pytest.approx((1.0, 0.8, 0.7, 0.6, 0.55))
    assert [pick.gain for pick in summary.picks] == pytest.approx([0.2, 0.1, 0.1, 0.05])
    assert summary.removed == pytest.approx(1 - 22 / 40)


def test_rounds_of_one_network_are_shown_as_picked(campaign) -> None:
    campaign.next(2)
    campaign.next(4)
    first, second = campaign.state.rounds
    summary = summarise_campaign(campaign)
    assert tuple(pick.gain for pick in summary.picks) == first.gains + second.gains
    assert summary.left == (first.start, *first.left, *second.left)
