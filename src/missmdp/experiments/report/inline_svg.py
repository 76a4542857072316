"""Pictures that other tools drew, as part of a page."""

from __future__ import annotations

import re

from missmdp.experiments.report.markup import Html, element, safe

__all__ = ["inline_svg"]

_HEAD = re.compile(r"^.*?<svg\b[^>]*>", re.DOTALL)
_VIEW = re.compile(r'viewBox="([^"]*)"')
_METADATA = re.compile(r"<metadata>.*?</metadata>", re.DOTALL)
_NAMES = re.compile(r'(\bid="|\bhref="#|url\(#)')


def inline_svg(svg: str, key: str, title: str, description: str) -> Html:
    """Return an SVG file that we trust, such as matplotlib's, for `picture`; on phones it scrolls in its own box.

    Parameters
    ----------
    svg
        The text of the file; it must have a viewBox.
    key
        Unique on the page; what has a name inside gets it as a prefix, so that pictures do not share names.
    title, description
        For those who cannot see it.
    """
    head = _HEAD.match(svg)
    view = None if head is None else _VIEW.search(head[0])
    if head is None or view is None:
        raise ValueError("not an SVG picture with a viewBox")
    body = _METADATA.sub("", svg[head.end() : svg.rindex("</svg>")])
    body = _NAMES.sub(lambda found: f"{found[1]}{safe(key)}-", body).replace("xlink:href", "href")
    drawn = element(
        "svg",
        element("title", title, id=f"{key}-title"),
        element("desc", description, id=f"{key}-desc"),
        Html(body),
        viewBox=view[1],
        role="img",
        aria_labelledby=f"{key}-title {key}-desc",
    )
    return element("div", drawn, class_="picture", tabindex="0", role="region", aria_label=title)
