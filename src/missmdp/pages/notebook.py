"""Small tables that notebooks show instead of a line of text (`_repr_html_`)."""

from __future__ import annotations

from collections.abc import Sequence

from missmdp.pages.markup import element
from missmdp.words import count

_MOST_ROWS = 20


def notebook_table(title: str, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a title and a table, cut after 20 rows; everything that is not markup is escaped."""
    head = element("tr", *(element("th", column) for column in columns))
    body = (element("tr", *(element("td", cell) for cell in row)) for row in rows[:_MOST_ROWS])
    left = len(rows) - _MOST_ROWS
    more = [element("p", f"… and {count(left, 'more row', 'more rows')}")] if left > 0 else []
    table = element("table", element("thead", head), element("tbody", *body))
    return str(element("div", element("p", element("strong", title)), table, *more))
