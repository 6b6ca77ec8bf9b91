"""One root for everything this package raises on purpose, and one for its warnings."""


class EvgpError(Exception):
    """Everything this package raises on purpose."""


class PoolError(EvgpError, ValueError):
    """The pool cannot give what was asked of it."""


class NotNumbers(PoolError, TypeError):
    """The pool holds what is no number; a TypeError too, as scikit-learn's checks ask for."""


class NetworkError(EvgpError, ValueError):
    """A network was described in a way that cannot be built or propagated."""


class PluginError(EvgpError, ValueError):
    """What another package offers by name cannot be used."""


class DatasetError(EvgpError, ValueError):
    """A file or table cannot be read as a pool."""


class DamagedFile(DatasetError):
    """A file that this package wrote is not as it was written: its path, and what is wrong."""

    def __init__(self, path: str, why: str) -> None:
        super().__init__(path, why)
        self.path, self.why = path, why

    def __str__(self) -> str:
        return f"{self.path}: expected the file as it was written, but {self.why}; run again"


class DiskFull(EvgpError, OSError):
    """There is no room for a file; the message names it."""


class MemoryPlanError(EvgpError, MemoryError):
    """The run would not fit in memory; the message says what would."""


class NotPositiveDefinite(EvgpError, ArithmeticError):
    """A covariance matrix could not be factorised, even with jitter."""


class ExecutorError(EvgpError, RuntimeError):
    """The place where the work runs cannot go on."""


class CampaignError(EvgpError, ValueError):
    """A campaign cannot be opened, or cannot take what it was given."""


class Conflict(CampaignError):
    """The same key was used for something else."""


class NoRoom(CampaignError, DiskFull):
    """The disk is full; nothing that was acknowledged is lost."""


class EvgpWarning(UserWarning):
    """Everything this package warns of on purpose."""


class NumericalWarning(EvgpWarning):
    """A numerical rescue happened; the message says how large it was."""


class DataWarning(EvgpWarning):
    """Something in the data looks unlike what was meant."""


class DamageWarning(EvgpWarning):
    """A file that this package wrote was damaged; the message says what was done about it."""
