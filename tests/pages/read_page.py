"""A page as a tree, by the standard library's parser; mistakes that a browser would forgive are errors here."""

from dataclasses import dataclass, field
from html.parser import HTMLParser

VOID = {"meta", "br"}


@dataclass
class Node:
    """An element, with its text and elements in order."""

    tag: str
    attributes: dict
    children: list = field(default_factory=list)

    def walk(self):
        """Yield this element and all in it."""
        yield self
        for child in self.children:
            if isinstance(child, Node):
                yield from child.walk()

    def all(self, tag, **attributes):
        """Return the elements with a tag and attributes; class_ is one of its classes."""
        return [node for node in self.walk() if node.tag == tag and node.has(**attributes)]

    def one(self, tag, **attributes):
        """Return the only such element."""
        (node,) = self.all(tag, **attributes)
        return node

    def has(self, class_=None, **attributes):
        """Return whether it has these attributes."""
        kinds = (self.attributes.get("class") or "").split()
        return (class_ is None or class_ in kinds) and all(
            self.attributes.get(key) == value for key, value in attributes.items()
        )

    def number(self, name):
        """Return an attribute as a number."""
        return float(self.attributes[name])

    @property
    def text(self):
        """All text in it."""
        return "".join(child if isinstance(child, str) else child.text for child in self.children)


class _Reader(HTMLParser):
    def __init__(self):
        super().__init__()
        self.open = [Node("document", {})]

    def handle_starttag(self, tag, attrs):
        assert len(dict(attrs)) == len(attrs), f"an attribute twice in <{tag}>"
        node = Node(tag, dict(attrs))
        self.open[-1].children.append(node)
        if tag not in VOID:
            self.open.append(node)

    def handle_startendtag(self, tag, attrs):
        self.open[-1].children.append(Node(tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.open[-1].tag == tag, f"</{tag}> closes <{self.open[-1].tag}>"
        self.open.pop()

    def handle_data(self, data):
        self.open[-1].children.append(data)


def read_page(text):
    """Return the document; raise where elements do not nest."""
    reader = _Reader()
    reader.feed(text)
    reader.close()
    (document,) = reader.open
    return document
