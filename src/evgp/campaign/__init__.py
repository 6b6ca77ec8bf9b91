"""Picks and labels of people, round after round, in one file."""

from evgp.campaign.campaign import Campaign as Campaign
from evgp.campaign.campaign import Item as Item
from evgp.campaign.campaign import Receipt as Receipt
from evgp.campaign.campaign import Submission as Submission
from evgp.campaign.campaign import campaign_path as campaign_path
from evgp.campaign.events import Answered as Answered
from evgp.campaign.export import export as export
from evgp.campaign.state import State as State
from evgp.campaign.state import Verdict as Verdict
from evgp.campaign.state import fold as fold
