"""Which network? Architectures ranked without training any of them."""

from evgp.architectures.candidates import candidates as candidates
from evgp.architectures.checks import named_networks as named_networks
from evgp.architectures.choose import Choice as Choice
from evgp.architectures.choose import Scored as Scored
from evgp.architectures.choose import choose as choose
from evgp.architectures.folds import losses as losses
from evgp.architectures.listed import listed as listed
from evgp.architectures.rivals import evidence as evidence
from evgp.architectures.rivals import naswot as naswot
