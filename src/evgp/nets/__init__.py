"""Layers and networks, finite and infinite."""

from evgp.nets.layers import Activation as Activation
from evgp.nets.layers import Dense as Dense
from evgp.nets.layers import Erf as Erf
from evgp.nets.layers import Gelu as Gelu
from evgp.nets.layers import Identity as Identity
from evgp.nets.layers import Layer as Layer
from evgp.nets.layers import LeakyRelu as LeakyRelu
from evgp.nets.layers import Moments as Moments
from evgp.nets.layers import NTKLinear as NTKLinear
from evgp.nets.layers import Sin as Sin
from evgp.nets.network import ACTIVATIONS as ACTIVATIONS
from evgp.nets.network import Network as Network
from evgp.nets.network import mlp as mlp
