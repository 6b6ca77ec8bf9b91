"""What this machine and this installation have, and what to fix."""

from evgp.doctor.advice import advise as advise
from evgp.doctor.environment import Device as Device
from evgp.doctor.environment import Environment as Environment
from evgp.doctor.environment import Folder as Folder
from evgp.doctor.environment import Memory as Memory
from evgp.doctor.environment import OptionalPart as OptionalPart
from evgp.doctor.environment import Package as Package
from evgp.doctor.environment import Threads as Threads
from evgp.doctor.environment import inspect as inspect
