"""Rank network architectures without training any of them."""

from evgp.architectures.choose import Choice as Choice
from evgp.architectures.choose import Scored as Scored
from evgp.architectures.choose import candidates as candidates
from evgp.architectures.choose import choose as choose
from evgp.architectures.choose import named_networks as named_networks
from evgp.architectures.choose import read_networks as read_networks
from evgp.architectures.cross_validation import losses as losses
