"""XML as a tree whose elements know their line and column; entities and external references are refused."""

from __future__ import annotations

import math
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

from missmdp.errors import FormatError
from missmdp.files import read_bytes
from missmdp.interop.incoming import error_at

_MAX_DEPTH = 200


class Element:
    """An element with its place in the file."""

    __slots__ = ("attributes", "children", "column", "line", "path", "tag", "text")

    def __init__(
        self, path: str | Path, tag: str, attributes: dict[str, str], line: int, column: int
    ) -> None:
        self.path = path
        self.tag = tag
        self.attributes = attributes
        self.line = line
        self.column = column
        self.text = ""
        self.children: list[Element] = []

    def error(self, message: str) -> FormatError:
        """Return the error for this place."""
        return error_at(self.path, self.line, self.column, message)

    @property
    def words(self) -> list[str]:
        """The text between the tags, split at white space."""
        return self.text.split()

    def all(self, *tags: str) -> Iterator[Element]:
        """Yield the children, all of which must have one of these tags."""
        for child in self.children:
            if child.tag not in tags:
                expected = ", ".join(f"<{tag}>" for tag in tags)
                raise child.error(f"<{child.tag}> has no place in <{self.tag}>; expected {expected}")
            yield child

    def one(self, tag: str) -> Element:
        """Return the child with a tag, of which there must be exactly one."""
        found = [child for child in self.children if child.tag == tag]
        if not found:
            raise self.error(f"<{self.tag}> has no <{tag}>")
        if len(found) > 1:
            raise found[1].error(f"<{self.tag}> has <{tag}> twice")
        return found[0]

    def word(self) -> str:
        """Return the text, which must be one word."""
        words = self.words
        if len(words) != 1:
            raise self.error(f"<{self.tag}> must hold one word, not {len(words)}")
        return words[0]

    def number(self, word: str) -> float:
        """Return a word of this element as a finite number."""
        try:
            value = float(word)
        except ValueError:
            value = math.nan
        if not math.isfinite(value) or "_" in word:
            raise self.error(f"expected a finite number, found {word!r}")
        return value

    def attribute(self, name: str) -> str:
        """Return an attribute that must be there and not blank."""
        value = self.attributes.get(name, "").strip()
        if not value:
            raise self.error(f'<{self.tag}> has no {name}="…"')
        return value


class _Builder:
    """Collects elements while the parser runs; the parser is told to it after both are made."""

    def __init__(self, path: str | Path) -> None:
        self.path = path
        self.parser: Any = None
        self.root: Element | None = None
        self._open: list[Element] = []
        self._text: list[str] = []

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        """Open an element."""
        at = self.parser
        name = tag.rpartition("}")[2]
        element = Element(self.path, name, attributes, at.CurrentLineNumber, at.CurrentColumnNumber + 1)
        if self._open:
            self._open[-1].children.append(element)
            if len(self._open) > _MAX_DEPTH:
                raise element.error(f"elements are nested more than {_MAX_DEPTH} deep")
        else:
            self.root = element
        self._open.append(element)
        self._text.clear()

    def end(self, tag: str) -> None:
        """Close an element; only elements without children have text that counts."""
        element = self._open.pop()
        if not element.children:
            element.text = "".join(self._text)
        self._text.clear()

    def data(self, data: str) -> None:
        """Take a piece of text."""
        self._text.append(data)

    def close(self) -> Element | None:
        """Return the root."""
        return self.root


def read_xml(path: str | Path) -> Element:
    """Return the root of an XML file.

    Raises
    ------
    FormatError
        If the file cannot be read, is not well-formed, or declares entities.
    """
    content = read_bytes(path)
    builder = _Builder(path)
    # Loaded here, and untyped: the package has no type information.
    parser = import_module("defusedxml.ElementTree").DefusedXMLParser(target=builder)
    builder.parser = parser.parser
    try:
        parser.feed(content)
        parser.close()
    except FormatError:
        raise
    except SyntaxError as error:
        line, column = getattr(error, "position", (1, 0))
        message = str(error).partition(": line")[0]
        raise error_at(path, line, column + 1, f"this is not well-formed XML ({message})") from error
    except (ValueError, LookupError) as error:
        place = builder.parser
        reason = "it declares entities" if type(error).__name__.endswith("Forbidden") else error
        raise error_at(
            path, place.CurrentLineNumber, place.CurrentColumnNumber + 1, f"this XML is not read ({reason})"
        ) from error
    if builder.root is None:
        raise error_at(path, 1, 1, "there is no element")
    return builder.root
