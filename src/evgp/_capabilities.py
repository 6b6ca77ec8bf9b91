"""What criteria, kernels, searches and sources say they can do.

Nobody asks for their class: whoever writes one of their own says what holds for it as an attribute,
and has it used.
"""


def can(thing: object, what: str) -> bool:
    """Whether it says so; an attribute that is missing says no.

    >>> class Mine:
    ...     by_features = True
    >>> can(Mine(), "by_features"), can(Mine(), "certifiable")
    (True, False)
    """
    return bool(getattr(thing, what, False))
