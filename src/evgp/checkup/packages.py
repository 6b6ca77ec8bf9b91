"""Packages: what evgp requires, what is installed, and whether it can be imported."""

from collections.abc import Iterator
from importlib import import_module
from importlib.metadata import PackageNotFoundError, packages_distributions, requires, version
from importlib.util import find_spec

from packaging.requirements import InvalidRequirement, Requirement

from evgp._extras import EXTRAS
from evgp.checkup.facts import OptionalPart, Package

_IMPORTED_AS = {"scikit-learn": "sklearn", "pillow": "PIL"}
# Everything else is worth naming only if something is wrong with it.
_SHOWN = ("torch", "numpy", "scipy", "scikit-learn", "pyarrow")


def required() -> tuple[Package, ...]:
    """What evgp cannot do without, each imported to see that it works."""
    return tuple(_tried(one) for one in _requirements())


def is_shown(package: Package) -> bool:
    """Whether a person wants to see its version."""
    return package.name in _SHOWN or bool(package.trouble)


def optional() -> tuple[OptionalPart, ...]:
    """The extras, with the versions of their packages; nothing is imported."""
    return tuple(
        OptionalPart(
            extra.name,
            extra.purpose,
            tuple((one, _of_module(one)) for one in extra.modules),
            extra.install,
        )
        for extra in EXTRAS.values()
    )


def installed(name: str) -> str:
    """The version of a package; empty where there is none."""
    try:
        return version(name)
    except PackageNotFoundError:
        return ""


def _of_module(name: str) -> str:
    """The version of the package that a module is from; empty where there is no such module."""
    if find_spec(name) is None:
        return ""
    packages = packages_distributions().get(name, [name])
    return installed(packages[0]) or "of unknown version"


def _requirements() -> Iterator[Requirement]:
    try:
        lines = requires("evgp") or []
    except PackageNotFoundError:  # run from its sources, never installed
        lines = list(_SHOWN)
    for line in lines:
        try:
            one = Requirement(line)
        except InvalidRequirement:
            continue
        if one.marker is None or one.marker.evaluate({"extra": ""}):
            yield one


def _tried(one: Requirement) -> Package:
    """A broken library may raise anything when it is imported, so anything is caught."""
    found, needs = installed(one.name), str(one.specifier)
    if not found:
        return Package(one.name, "", needs, "it is not installed")
    if not one.specifier.contains(found, prereleases=True):
        return Package(one.name, found, needs, f"evgp needs {needs}")
    try:
        import_module(_IMPORTED_AS.get(one.name, one.name))
    except Exception as error:
        said = " ".join(f"{type(error).__name__}: {error}".split())
        return Package(one.name, found, needs, f"it cannot be imported ({said[:200]})")
    return Package(one.name, found, needs)
