"""The data of the paper by name: what each holds, who made it, and what its file must be.

The files are NumPy archives. A regression has `X` (n x d) and `y` (n); a classification has
`X_train`, `y_train`, `X_test`, `y_test`, with classes from 0 and images as channels x height x
width. The checksums are those of the files that the recorded figures were made with.
"""

from dataclasses import dataclass
from difflib import get_close_matches

from evgp._checks import word
from evgp._errors import DatasetError
from evgp.datasets.dataset import Kind

_UCI = "CC BY 4.0, as the UCI Machine Learning Repository lists it"
_NONE = "none known"


@dataclass(frozen=True)
class Known:
    """A named dataset: how its file looks and whom to cite.

    `rows` and `rows_test` count its parts; a regression has one part, which `load` halves. `pool`
    is how many points of the train part are the pool, and `source` where the data are public.

    >>> print(KNOWN["kin8nm"])
    kin8nm: regression, 8,192 x 8; DELVE, University of Toronto, through the collection of L. Torgo
    """

    name: str
    file: str
    sha256: str
    kinds: tuple[Kind, ...]
    shape: tuple[int, ...]
    rows: int
    about: str
    citation: str
    licence: str
    source: str
    rows_test: int = 0
    classes: int = 0
    pool: int | None = None

    def __str__(self) -> str:
        rows = f"{self.rows:,}" + (f" + {self.rows_test:,}" if self.rows_test else "")
        shape = " x ".join((rows, *map(str, self.shape)))
        return f"{self.name}: {' or '.join(self.kinds)}, {shape}; {self.citation}"

    @property
    def layout(self) -> str:
        """The arrays that the file must hold, in words."""
        shape = " x ".join(map(str, self.shape))
        if not self.classes:
            return f"X (n x {shape}) and y (n) in float64"
        return (
            f"X_train and X_test (n x {shape}) in uint8, y_train and y_test (n) from 0 to "
            f"{self.classes - 1} in int64"
        )


def names() -> dict[str, Known]:
    """Every named dataset with its kind, size and citation.

    >>> for name, known in names().items():
    ...     print(name, *known.kinds, sep=", ")
    boston, regression
    naval, regression
    protein, regression
    kin8nm, regression
    california, regression
    optdigits, regression, classification
    mnist, classification
    emnist, classification
    svhn, classification
    cifar100, classification
    """
    return dict(KNOWN)


def known(name: str) -> Known:
    """The dataset of this name, or a sentence that lists those there are."""
    if word(name, "the name of a dataset", error=DatasetError) in KNOWN:
        return KNOWN[name]
    meant = get_close_matches(name.casefold(), KNOWN, n=1)
    hint = f", perhaps for {meant[0]!r}" if meant else ""
    raise DatasetError(
        f"expected a dataset among {', '.join(KNOWN)}; got {name!r}{hint}; for a table of your own "
        "use load_csv, for made-up data random_model or sinusoidal"
    )


_LISTED = (
    Known(
        name="boston",
        file="boston.npz",
        sha256="361c187f632591c7853055ded9a3d6c65bfac430ee656c9782537f1278d799b0",
        kinds=("regression",),
        shape=(13,),
        rows=506,
        about="median home values around Boston; column B encodes the racial make-up of a town, so "
        "use it only to compare with published results",
        citation="Harrison & Rubinfeld, J. Environ. Econ. Manage. 5, 1978",
        licence=_NONE,
        source="OpenML 531",
    ),
    Known(
        name="naval",
        file="naval.npz",
        sha256="154ebf8af8595ff98e3fd319258a822a3b9861608c00e7f09e9093563b4690c0",
        kinds=("regression",),
        shape=(16,),
        rows=11_934,
        about="decay of a gas turbine compressor in naval propulsion plants",
        citation="Coraddu et al., Proc. IMechE Part M, 2014",
        licence=_UCI,
        source="UCI 316 (OpenML 44969) without the turbine decay",
    ),
    Known(
        name="protein",
        file="protein.npz",
        sha256="ff895e611dfb198ac51bfd1167064c4fbd9b81b8108775dba241152e54af4007",
        kinds=("regression",),
        shape=(9,),
        rows=45_730,
        about="RMSD of protein tertiary structure from physicochemical properties (CASP 5-9)",
        citation="Rana, UCI Machine Learning Repository, 2013",
        licence=_UCI,
        source="UCI 265",
    ),
    Known(
        name="kin8nm",
        file="kin8nm.npz",
        sha256="d318674db828680d01fcf553c515c35437709b1315fdae991dcfab4b7301e759",
        kinds=("regression",),
        shape=(8,),
        rows=8_192,
        about="forward kinematics of an 8-link robot arm, highly non-linear, medium noise",
        citation="DELVE, University of Toronto, through the collection of L. Torgo",
        licence=_NONE,
        source="OpenML 189",
    ),
    Known(
        name="california",
        file="california_housing.npz",
        sha256="3747e86043293ce0f2f2c90af9d0b59f2a61da707dd1c358d3830ba6be9ec405",
        kinds=("regression",),
        shape=(8,),
        rows=20_640,
        about="median house values of Californian block groups, 1990 census",
        citation="Pace & Barry, Stat. Probab. Lett. 33, 1997",
        licence=_NONE,
        source="sklearn.datasets.fetch_california_housing",
    ),
    Known(
        name="optdigits",
        file="optdigits.npz",
        sha256="6d74499c40a3efddeef7d1df335bbb3e5a648801f2e5847e5634dd1aa973a668",
        kinds=("regression", "classification"),
        shape=(64,),
        rows=3_823,
        rows_test=1_797,
        classes=10,
        about="handwritten digits as counts on an 8 x 8 grid",
        citation="Alpaydin & Kaynak, UCI Machine Learning Repository, 1998",
        licence=_UCI,
        source="UCI 80",
    ),
    Known(
        name="mnist",
        file="mnist.npz",
        sha256="c679edfa5d0216501efa8521708fcda011fe7e9429d6d9cffe33c1593c0efb8c",
        kinds=("classification",),
        shape=(1, 28, 28),
        rows=60_000,
        rows_test=10_000,
        classes=10,
        pool=10_000,
        about="handwritten digits",
        citation="LeCun, Bottou, Bengio & Haffner, Proc. IEEE 86(11), 1998",
        licence="commonly given as CC BY-SA 3.0",
        source="torchvision.datasets.MNIST",
    ),
    Known(
        name="emnist",
        file="emnist_balanced.npz",
        sha256="77d9f8f3e9f5786f6775f8018bad0e7da6b8b1665e73d7041525145fbc795432",
        kinds=("classification",),
        shape=(1, 28, 28),
        rows=21_996,
        rows_test=4_982,
        classes=47,
        pool=20_000,
        about="handwritten letters and digits, upright: the 47 classes of EMNIST Balanced, a part "
        "of them from ByMerge",
        citation="Cohen, Afshar, Tapson & van Schaik, EMNIST: an extension of MNIST to handwritten "
        "letters, 2017",
        licence="published by NIST; none known",
        source="torchvision.datasets.EMNIST, split 'balanced'",
    ),
    Known(
        name="svhn",
        file="svhn.npz",
        sha256="31fcb5633769952471e5b47a953865f020f9ff63df113bc40f5237c36071506e",
        kinds=("classification",),
        shape=(3, 32, 32),
        rows=22_000,
        rows_test=5_000,
        classes=10,
        pool=20_000,
        about="house numbers in street view, cropped digits; a random part of the published set",
        citation="Netzer et al., Reading digits in natural images with unsupervised feature "
        "learning, NIPS Workshop 2011",
        licence="for non-commercial use only, says the source",
        source="torchvision.datasets.SVHN",
    ),
    Known(
        name="cifar100",
        file="cifar100.npz",
        sha256="8f871d60aa6dcc69b24238c55f09ad8774c52cace5e955ace933d4a868686d9c",
        kinds=("classification",),
        shape=(3, 32, 32),
        rows=22_000,
        rows_test=5_000,
        classes=100,
        pool=20_000,
        about="small pictures of 100 kinds of things; a random part of the published set",
        citation="Krizhevsky, Learning multiple layers of features from tiny images, 2009",
        licence="none known; the source asks that the report be cited",
        source="torchvision.datasets.CIFAR100",
    ),
)
KNOWN = {one.name: one for one in _LISTED}
