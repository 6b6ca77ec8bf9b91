"""Docstrings of public names have numpydoc's sections, with the parameters of the code."""

import inspect
from importlib import import_module

import pytest

import evgp
from tests.release.api import PUBLIC

ERRORS = {"EvgpError", "EvgpWarning"}
NAMES = [name for name in PUBLIC["evgp"] if name not in ERRORS]
RESULTS = {"Certificate", "Plan", "PoolData", "Selection"}  # attributes, not parameters
# `Request.of` documents the arguments of a request; a strategy is any callable.
IN_ROOMS = [
    (room, name)
    for room, names in PUBLIC.items()
    for name in names
    if room not in ("evgp", "evgp.errors", "evgp.search", "evgp.datasets")
    and not name.endswith("Error")
    and name not in ("Request", "Strategy")
]
# Results of other functions, and names that need a cluster, a file or a posterior.
NO_EXAMPLE = {
    "Audit", "Ceiling", "Choice", "Confirmation", "LeakyRelu", "Prediction", "Round", "Setting",
    "Truth", "ceiling", "certify", "connect", "executor", "read_rows", "strategy_named",
}  # fmt: skip


def sections(text: str) -> dict[str, list[str]]:
    """The lines of each section of a docstring, by its title."""
    lines = inspect.cleandoc(text).splitlines()
    title, actual = "", dict[str, list[str]]()
    for line, following in zip(lines, [*lines[1:], ""], strict=True):
        if line and following == "-" * len(line):
            title = line
            actual[title] = []
        elif title and line and set(line) != {"-"}:
            actual[title].append(line)
    return actual


def documented(lines: list[str]) -> list[str]:
    """The names of a section such as Parameters: `a, b : float` is two of them."""
    heads = [line.partition(" : ")[0] for line in lines if not line.startswith(" ")]
    return [name for head in heads for name in head.split(", ")]


def test_sections_and_names_are_found() -> None:
    text = """Do it.

    Parameters
    ----------
    a, b : float
        Two numbers.
    c
        One more.

    Returns
    -------
    int
    """
    assert documented(sections(text)["Parameters"]) == ["a", "b", "c"]
    assert sections(text)["Returns"] == ["int"]


@pytest.mark.parametrize("name", NAMES)
def test_the_documented_parameters_are_those_of_the_signature(name: str) -> None:
    thing = getattr(evgp, name)
    parameters = [key for key in inspect.signature(thing).parameters if key[0] != "_"]
    title = "Attributes" if name in RESULTS else "Parameters"
    lines = sections(inspect.getdoc(thing) or "").get(title, [])
    assert sorted(documented(lines)) == sorted(parameters)


@pytest.mark.parametrize("name", NAMES)
def test_there_is_an_example_and_a_result(name: str) -> None:
    thing = getattr(evgp, name)
    actual = sections(inspect.getdoc(thing) or "")
    assert any(line.startswith(">>> ") for line in actual.get("Examples", [])), "no example"
    assert isinstance(thing, type) or actual.get("Returns"), "nothing about the result"


def test_errors_say_what_they_are() -> None:
    assert all((getattr(evgp, name).__doc__ or "").endswith(".") for name in ERRORS)
    assert ERRORS < set(PUBLIC["evgp"])


@pytest.mark.parametrize(("room", "name"), IN_ROOMS, ids=lambda part: part)
def test_names_in_rooms_have_the_same_sections(room: str, name: str) -> None:
    thing = getattr(import_module(room), name)
    text = inspect.getdoc(thing) or ""
    actual = sections(text)
    parameters = [key for key in inspect.signature(thing).parameters if key[0] != "_"]
    lines = actual.get("Parameters", actual.get("Attributes", []))
    assert sorted(documented(lines)) == sorted(parameters)
    if not isinstance(thing, type) and inspect.signature(thing).return_annotation is not None:
        assert actual.get("Returns"), "nothing about the result"
    shown = any(line.startswith(">>> ") for line in actual.get("Examples", []))
    assert shown == (name not in NO_EXAMPLE)
