"""What is guaranteed, in numbers: certificates, ratios of kernels, and the paper's two theorems."""

from evgp.posterior.posterior import DENSE as DENSE
from evgp.theory.certificate import SHARES as SHARES
from evgp.theory.certificate import Ceiling as Ceiling
from evgp.theory.certificate import ceiling as ceiling
from evgp.theory.certificate import certify as certify
from evgp.theory.ratio import Ratio as Ratio
from evgp.theory.ratio import measured_ratio as measured_ratio
from evgp.theory.ratio import printed_ratio as printed_ratio
from evgp.theory.ratio import ratio_bound as ratio_bound
from evgp.theory.theorems import Spread as Spread
from evgp.theory.theorems import error_factor as error_factor
from evgp.theory.theorems import gain_ratio as gain_ratio
from evgp.theory.theorems import rkhs_norm as rkhs_norm
from evgp.theory.theorems import spread_bound as spread_bound
