"""Markup whose safety is part of its type: what is not `Html` is text, and is escaped wherever it ends up."""

from __future__ import annotations

import html
from collections.abc import Iterable

from missmdp.words import printable

_VOID = frozenset({"br", "meta", "line", "circle", "rect", "path", "polygon"})
"""Elements without content."""


class Html(str):
    """Markup that can be put on a page as it is.

    Adding plain strings gives a plain string, which would be escaped: mistakes are seen, not executed.
    """

    __slots__ = ()


def safe(content: str) -> Html:
    """Return markup as it is, and anything else escaped."""
    if isinstance(content, Html):
        return content
    return Html(html.escape(printable(str(content)), quote=True))


def joined(parts: Iterable[str], between: str = "") -> Html:
    """Return pieces of markup or text one after the other."""
    return Html(str(safe(between)).join(map(safe, parts)))


def element(tag: str, *content: str, **attributes: str | float | None) -> Html:
    """Return an element; attributes end in "_" where Python has the word, have "-" for "_", and are left out if None.

    Examples
    --------
    >>> element("p", "a & b", class_="note")
    '<p class="note">a &amp; b</p>'
    """
    given = joined(
        Html(f' {key.rstrip("_").replace("_", "-")}="{safe(_attribute(value))}"')
        for key, value in attributes.items()
        if value is not None
    )
    if tag in _VOID:
        return Html(f"<{tag}{given}>") if tag in ("br", "meta") else Html(f"<{tag}{given}/>")
    return Html(f"<{tag}{given}>{joined(content)}</{tag}>")


def _attribute(value: str | float) -> str:
    return value if isinstance(value, str) else f"{round(value, 2):g}"


def name(text: str) -> Html:
    """Return a name that a user chose, set apart from the sentence around it, whatever way it is written."""
    return element("bdi", text, class_="name")
