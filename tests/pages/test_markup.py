"""What is not markup is escaped, wherever it ends up."""

import xml.etree.ElementTree as ET

from hypothesis import given
from hypothesis import strategies as st

from missmdp.pages.markup import Html, element, joined, name, safe
from missmdp.pages.svg import Drawing
from missmdp.words import printable


def test_what_is_not_markup_is_escaped():
    assert safe("<b>") == "&lt;b&gt;"
    assert safe(Html("<b>")) == "<b>"
    assert element("p", "a < b", Html("<br>"), class_="x", title='"', id=None) == (
        '<p class="x" title="&quot;">a &lt; b<br></p>'
    )
    assert joined(["<", Html("<br>")], " & ") == "&lt; &amp; <br>"
    assert name("a&b") == '<bdi class="name">a&amp;b</bdi>'


def test_mixing_markup_and_text_fails_on_the_safe_side():
    mixed = Html("<b>") + "<script>"
    assert "<" not in safe(mixed)


def test_numbers_in_attributes_are_short():
    assert element("rect", x=1 / 3, y=2.0, data_of="a_b") == '<rect x="0.33" y="2" data-of="a_b"/>'


def test_characters_that_no_document_holds_are_escaped():
    assert safe("in\x00fec\x1btion\ud800\u202e") == r"in\x00fec\x1btion\ud800\u202e"


@given(st.text(st.characters(categories=("L", "N", "P", "S", "Z", "C"))))
def test_whatever_a_name_is_drawings_are_xml(text):
    drawing = Drawing(100.0, 50.0)
    drawing.text(1.0, 2.0, text, full=text + "…")
    drawing.mark("circle", 1.0, 2.0, "seen", text)
    drawing.add("g", class_=text)
    read = ET.fromstring(drawing.to_html("key", text, text))
    expected = printable(text)
    assert [node.text or "" for node in read.iter("title")] == [expected, f"{expected}…", expected]
    assert " ".join(read[-1].attrib["class"].split()) == " ".join(expected.split())
