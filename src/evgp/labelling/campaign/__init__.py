"""Labelling campaigns: picks and answers of people, round after round, in one file."""

from evgp.labelling.campaign.campaign import Campaign as Campaign
from evgp.labelling.campaign.campaign import Item as Item
from evgp.labelling.campaign.campaign import Receipt as Receipt
from evgp.labelling.campaign.campaign import Submission as Submission
from evgp.labelling.campaign.campaign import campaign_path as campaign_path
from evgp.labelling.campaign.events import Answered as Answered
from evgp.labelling.campaign.files import export as export
from evgp.labelling.campaign.state import State as State
from evgp.labelling.campaign.state import Verdict as Verdict
from evgp.labelling.campaign.state import fold as fold
