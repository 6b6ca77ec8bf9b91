"""Annotations are checked while tests run; those without shapes at a small cost."""

import inspect
from collections.abc import Callable
from typing import Any, get_args

import jaxtyping

BEARTYPE = "beartype.beartype(conf=beartype.BeartypeConf(is_pep484_tower=True))"


def names_shapes(annotation: object) -> bool:
    """Whether an annotation holds the shape of an array; one that is a string may."""
    if isinstance(annotation, type) and issubclass(annotation, jaxtyping.AbstractArray):
        return True
    return isinstance(annotation, str) or any(map(names_shapes, get_args(annotation)))


def sparing(jaxtyped: Callable[..., Any]) -> Callable[..., Any]:
    """A decorator that leaves functions without shapes to the type checker alone.

    For each call of any function, jaxtyping binds the arguments and checks them twice, which took
    half of the time of many tests.
    """

    def decorate(*, typechecker: Callable[..., Any]) -> Callable[..., Any]:
        def check(made: Any) -> Any:
            if not inspect.isfunction(made) or any(
                map(names_shapes, made.__annotations__.values())
            ):
                return jaxtyped(made, typechecker=typechecker)
            return typechecker(made)

        return check

    return decorate


def check_annotations() -> None:
    """Do so in the experiments too; the option of pytest takes one package only."""
    jaxtyping.install_import_hook("experiments", BEARTYPE)
    jaxtyping.jaxtyped = sparing(jaxtyping.jaxtyped)
