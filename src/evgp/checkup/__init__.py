"""What this machine and this installation have, and what should be fixed."""

from evgp.checkup.advice import advise as advise
from evgp.checkup.facts import Device as Device
from evgp.checkup.facts import Facts as Facts
from evgp.checkup.facts import Folder as Folder
from evgp.checkup.facts import Memory as Memory
from evgp.checkup.facts import OptionalPart as OptionalPart
from evgp.checkup.facts import Package as Package
from evgp.checkup.facts import Threads as Threads
from evgp.checkup.look import look as look
