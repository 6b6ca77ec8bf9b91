"""HTML of results in notebooks: a title, a small table and remarks, all escaped."""

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from math import floor, isfinite, isnan


def html_card(
    title: str, columns: Mapping[str, Sequence[object]], remarks: Iterable[str] = ()
) -> str:
    """A title, a table of columns, and remarks below it, as HTML without style.

    Notebooks have their own style for tables, light or dark.

    >>> html_card("One pick", {"row": ["7"]}, ["a < b"]).split("</table>")[1]
    '<p>a &lt; b</p></div>'
    """
    head = "".join(f"<th>{escape(name)}</th>" for name in columns)
    rows = "".join(
        f"<tr>{''.join(f'<td>{escape(cell_text(cell))}</td>' for cell in row)}</tr>"
        for row in zip(*columns.values(), strict=True)
    )
    table = f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"
    below = "".join(f"<p>{escape(remark)}</p>" for remark in remarks)
    return f"<div><p><b>{escape(title)}</b></p>{table}{below}</div>"


def cell_text(value: object) -> str:
    """A value as text for a table: numbers in short form, missing values as a dash.

    >>> cell_text(0.123456), cell_text(12000), cell_text(None), cell_text(float("nan"))
    ('0.1235', '12,000', '–', '–')
    """
    if value is None or (isinstance(value, float) and isnan(value)):
        return "–"
    if isinstance(value, float):
        return f"{value:.4g}"
    return f"{value:,}" if isinstance(value, int) else str(value)


def guaranteed(share: float) -> str:
    """A guaranteed share in percent, rounded down, so that it is never more than proved.

    >>> guaranteed(0.81291), guaranteed(1.0)
    ('81.2 %', '100.0 %')
    """
    return f"{floor(1000 * share) / 10:.1f} %" if isfinite(1000 * share) else f"{share} %"


def several(count: int, noun: str) -> str:
    """A count with its noun, in the plural if needed.

    >>> several(1, "row"), several(1797, "row")
    ('1 row', '1,797 rows')
    """
    return f"{count:,} {noun}" + ("" if count == 1 else "s")


def duration(seconds: float) -> str:
    """Format a number of seconds for people.

    >>> duration(200)
    '3 minutes'
    """
    if seconds < 1.5:
        return "a second"
    if seconds < 90:
        return f"{seconds:.0f} seconds"
    return f"{seconds / 60:.0f} minutes" if seconds < 5400 else f"{seconds / 3600:.1f} hours"
