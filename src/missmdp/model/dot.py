"""Read the nodes and edges of a directed graph in DOT, in time that grows with the length of the text.

What is about looks (attributes, ranks, ports) is skipped; clusters and subgraphs are part of the graph.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from missmdp.errors import FormatError
from missmdp.files import read_text

_TOKEN = re.compile(
    r"""
      (?P<skip>\s+|//[^\n]*|\#[^\n]*|/\*.*?\*/)
    | (?P<quoted>"[^"\\]*(?:\\.[^"\\]*)*")
    | (?P<word>-?[\w.]+)
    | (?P<sign>->|--|[{}\[\];,:=+])
    | (?P<html><)
    """,
    re.VERBOSE | re.DOTALL,
)
_HTML = re.compile(r"[<>]")
_ESCAPED = re.compile(r'\\(["\\\n])')
_MOST_BYTES = 16 * 2**20


class _Token(NamedTuple):
    text: str
    """A name without its quotes, or a sign."""
    is_name: bool
    is_quoted: bool
    place: int
    """Where it begins."""

    def means(self, *words: str) -> bool:
        """Return whether it is one of some words of the grammar."""
        return not self.is_quoted and self.text.lower() in words


def read_dot(source: str | Path) -> tuple[list[str], list[tuple[str, str]], str]:
    """Return the nodes and edges of a graph in a DOT file or text, and what to call it in errors."""
    if isinstance(source, str) and "{" in source:
        where, text = "DOT text", source
    else:
        where, text = str(source), read_text(source, _MOST_BYTES)
    reader = _Reader(text, where)
    reader.read()
    nodes = [*reader.nodes, *(node for edge in reader.edges for node in edge)]
    return list(dict.fromkeys(name for name in nodes if name)), list(dict.fromkeys(reader.edges)), where


class _Reader:
    """One text on its way to nodes and edges."""

    def __init__(self, text: str, where: str) -> None:
        self._text, self._where = text, where
        self.nodes: list[str] = []
        self.edges: list[tuple[str, str]] = []
        self._tokens = self._words()
        self._next = next(self._tokens, None)

    def error(self, what: str, place: int | None = None) -> FormatError:
        """Return the error for the next word, or for a place."""
        if place is None:
            place = len(self._text) if self._next is None else self._next.place
        line = self._text.count("\n", 0, place) + 1
        return FormatError(f"{self._where}: not a graph in DOT (line {line}: {what})")

    def _words(self) -> Iterator[_Token]:
        """Yield words and signs, without comments."""
        place = 0
        while place < len(self._text):
            found = _TOKEN.match(self._text, place)
            if found is None:
                raise self.error(f"cannot make sense of {self._text[place : place + 20]!r}", place)
            start, place = place, found.end()
            match found.lastgroup:
                case "skip":
                    continue
                case "quoted":
                    text = _ESCAPED.sub(lambda m: m[1].strip("\n"), found[0][1:-1])
                    yield _Token(text, True, True, start)
                case "html":
                    place = self._end_of_html(start)
                    yield _Token(self._text[start:place], True, True, start)
                case kind:
                    yield _Token(found[0], kind == "word", False, start)

    def _end_of_html(self, start: int) -> int:
        depth = 0
        for found in _HTML.finditer(self._text, start):
            depth += 1 if found[0] == "<" else -1
            if depth == 0:
                return found.end()
        raise self.error("a < without its >", start)

    def _take(self) -> _Token:
        if self._next is None:
            raise self.error("the text ends early")
        token, self._next = self._next, next(self._tokens, None)
        return token

    def _at(self, *signs: str) -> bool:
        return self._next is not None and not self._next.is_name and self._next.text in signs

    def _skip(self, sign: str) -> bool:
        """Return whether the next word is a sign, and go past it."""
        if not self._at(sign):
            return False
        self._take()
        return True

    def _name(self) -> _Token:
        """Return a name, of which quoted parts may be joined by +."""
        first = self._part()
        parts = [first.text]
        while first.is_quoted and self._skip("+"):
            parts.append(self._part().text)
        return first._replace(text="".join(parts))

    def _part(self) -> _Token:
        token = self._take()
        if not token.is_name:
            raise self.error(f"expected a name, found {token.text!r}", token.place)
        return token

    def read(self) -> None:
        """Read the whole text."""
        first = self._take()
        if first.means("strict"):
            first = self._take()
        if first.means("graph"):
            raise FormatError(f"{self._where}: an m-graph is directed; write digraph")
        if not first.means("digraph"):
            raise self.error(f"expected digraph, found {first.text[:20]!r}", first.place)
        if not self._at("{"):
            self._name()
        if not self._skip("{"):
            raise self.error("expected {")
        depth = 1
        while depth:
            depth += self._statement()
        if self._next is not None:
            raise self.error(f"there is more after its end: {self._next.text[:20]!r}")

    def _statement(self) -> int:
        """Read a statement; return 1 for one that opens a subgraph, −1 for the end of one, else 0."""
        if self._skip("}"):
            self._refuse_groups()
            return -1
        if self._skip("{"):
            return 1
        if self._skip(";") or self._skip(","):
            return 0
        token = self._name()
        if token.means("subgraph"):
            if not self._at("{"):
                self._name()
            if not self._skip("{"):
                raise self.error("expected {")
            return 1
        if token.means("graph", "node", "edge") and self._at("["):
            self._attributes()
        elif self._skip("="):
            self._name()
        else:
            self._chain(token)
        return 0

    def _chain(self, token: _Token) -> None:
        """Read a node, or edges from one node to the next."""
        self._port()
        names = [token.text]
        while self._skip("->"):
            if self._at("{") or (self._next is not None and self._next.means("subgraph")):
                self._refuse_groups(now=True)
            names.append(self._name().text)
            self._port()
        if self._at("--"):
            raise self.error("edges of a digraph are written ->")
        self._attributes()
        if len(names) == 1:
            self.nodes += names
        elif "" in names:
            raise self.error("an edge joins a node without a name", token.place)
        self.edges += pairwise(names)

    def _port(self) -> None:
        while self._skip(":"):
            self._name()

    def _attributes(self) -> None:
        while self._skip("["):
            while not self._skip("]"):
                if not (self._skip(";") or self._skip(",")):
                    self._name()
                    if self._skip("="):
                        self._name()

    def _refuse_groups(self, *, now: bool = False) -> None:
        if now or self._at("->", "--"):
            raise FormatError(
                f"{self._where}: edges between groups of nodes are not supported; write one edge per line"
            )
