"""The building blocks of a page that needs nothing but itself: sections, figures, tables, notes."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from missmdp.pages.markup import Html, element, joined
from missmdp.pages.svg import Chart

_STYLE = Path(__file__).with_name("style.css")
_SHORT_TABLE = 14
"""Rows up to which a table is kept on one page when it is printed."""
_OPEN_IN_PRINT = (
    "addEventListener('beforeprint',()=>document.querySelectorAll('details:not([open])')"
    ".forEach(d=>{d.open=true;d.dataset.printed=1}));"
    "addEventListener('afterprint',()=>document.querySelectorAll('details[data-printed]')"
    ".forEach(d=>{d.open=false;delete d.dataset.printed}))"
)
"""For browsers whose style sheets cannot open what is folded; the page does without."""


def _policy() -> str:
    """Return what browsers may do with a page: show it, and run its one script; nothing is loaded or sent."""
    digest = base64.b64encode(hashlib.sha256(_OPEN_IN_PRINT.encode()).digest()).decode()
    return f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'; form-action 'none'"


@dataclass(frozen=True)
class Section:
    """A part of a page with a heading of its own."""

    key: str
    """Its place in links; letters, digits and hyphens."""
    title: str
    content: tuple[str, ...]

    def to_html(self) -> Html:
        """Return the section."""
        heading = element("h2", self.title, id=f"{self.key}-heading")
        return element("section", heading, *self.content, id=self.key, aria_labelledby=f"{self.key}-heading")


def subsection(title: str, *content: str) -> Html:
    """Return a part of a section with a smaller heading."""
    return element("div", element("h3", title), *content, class_="part")


def paragraph(*parts: str, kind: str | None = None) -> Html:
    """Return sentences; parts are put together as they are, with spaces between."""
    return element("p", joined(parts, " "), class_=kind)


def bullets(items: Iterable[str], kind: str | None = None) -> Html:
    """Return a list."""
    return element("ul", *(element("li", item) for item in items), class_=kind)


def note(*parts: str, kind: str = "info") -> Html:
    """Return a remark that stands out: "info", "warning" or "good"; the kind is also said in a word."""
    word = {"info": "Note", "warning": "Take care", "good": "Good"}[kind]
    return element("p", element("strong", f"{word}:"), " ", joined(parts, " "), class_=f"note {kind}")


def figure(chart: Chart, *caption: str, key: Iterable[str] = ()) -> Html:
    """Return a chart with its title above, its key, and below what it means."""
    legend = list(key)
    return element(
        "figure",
        element("p", chart.title, class_="figure-title"),
        *([element("p", *legend, class_="legend")] if legend else []),
        chart.to_html(),
        element("figcaption", joined(caption, " ")),
    )


def table(
    caption: str,
    columns: Sequence[str],
    rows: Iterable[Sequence[str]],
    *,
    numbers: Iterable[int] = (),
) -> Html:
    """Return a table that scrolls in its own box where it is too wide; the first column names the rows.

    Parameters
    ----------
    caption
        What is in it.
    columns
        The headings.
    rows
        Cells, as many as there are columns.
    numbers
        The positions of columns that are set to the right.
    """
    right, cells = set(numbers), list(rows)

    def style(position: int) -> str | None:
        return "number" if position in right else None

    head = element("tr", *(element("th", c, scope="col", class_=style(i)) for i, c in enumerate(columns)))
    body = (
        element(
            "tr",
            *(
                element("td", cell, class_=style(i))
                if i
                else element("th", cell, scope="row", class_=style(i))
                for i, cell in enumerate(row)
            ),
        )
        for row in cells
    )
    inner = element(
        "table",
        element("caption", caption),
        element("thead", head),
        element("tbody", joined(body, Html("\n"))),
        class_="short" if len(cells) <= _SHORT_TABLE else None,
    )
    return element("div", inner, class_="scroll", tabindex="0", role="region", aria_label=caption)


def facts(pairs: Iterable[tuple[str, str]]) -> Html:
    """Return names and what they are, in two columns."""
    return element(
        "dl",
        *(element("div", element("dt", name), element("dd", text)) for name, text in pairs),
        class_="facts",
    )


def details(summary: str, *content: str) -> Html:
    """Return something that is folded until it is asked for, or printed."""
    return element("details", element("summary", summary), element("div", *content, class_="folded"))


def code(text: str) -> Html:
    """Return lines of code."""
    return element("pre", element("code", text), tabindex="0")


@dataclass(frozen=True)
class Tile:
    """One figure that matters."""

    label: str
    figure: str
    detail: str


def headline(tiles: Iterable[Tile], *content: str) -> Html:
    """Return the box that says what counts."""
    shown = (
        element(
            "div",
            element("dt", tile.label),
            element("dd", element("span", tile.figure, class_="figure"), element("span", tile.detail)),
        )
        for tile in tiles
    )
    return element("div", element("dl", *shown, class_="tiles"), *content, class_="headline")


def page(title: str, *, kicker: str, lead: Sequence[str], sections: Sequence[Section], footer: str) -> str:
    """Return a whole document.

    Parameters
    ----------
    title
        The heading, and the title of the window.
    kicker
        A line above the heading.
    lead
        What comes before the sections.
    sections
        In order; the contents link to them.
    footer
        The last line.
    """
    links = element(
        "ol",
        *(element("li", element("a", part.title, href=f"#{part.key}")) for part in sections),
    )
    body = element(
        "body",
        element("a", "Skip to the findings", href="#findings", class_="skip"),
        "\n",
        element(
            "header",
            element("p", kicker, class_="kicker"),
            element("h1", title),
        ),
        element(
            "main",
            joined(lead, "\n"),
            element("nav", element("h2", "Contents", id="contents"), links, aria_labelledby="contents"),
            "\n",
            joined((section.to_html() for section in sections), "\n"),
            id="findings",
        ),
        "\n",
        element("footer", element("p", footer)),
        element("script", Html(_OPEN_IN_PRINT)),
    )
    head = element(
        "head",
        Html('<meta charset="utf-8">'),
        element("meta", http_equiv="Content-Security-Policy", content=_policy()),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("meta", name="color-scheme", content="light dark"),
        element("title", title),
        element("style", Html(_STYLE.read_text(encoding="utf-8"))),
    )
    return f"<!DOCTYPE html>\n{element('html', head, body, lang='en')}\n"
