"""Pictures of other tools on one page."""

import matplotlib as mpl
import pytest
from matplotlib.figure import Figure

from experiments.report.read_page import read_page
from missmdp.experiments.report.inline_svg import inline_svg
from missmdp.experiments.report.page import Section, page, paragraph, picture


def drawn(tmp_path):
    figure = Figure(figsize=(4, 3))
    axes = figure.add_subplot()
    axes.plot([1, 2, 3], [1, 4, 9], marker="o")
    axes.set_xlim(1.5, 3)
    path = tmp_path / "a.svg"
    with mpl.rc_context({"svg.hashsalt": "missmdp"}):
        figure.savefig(path, metadata={"Date": None})
    return path.read_text()


def test_two_pictures_do_not_share_names(tmp_path):
    svg = drawn(tmp_path)
    parts = [
        picture("Squares", inline_svg(svg, key, "Squares", "They rise."), "They rise.") for key in ("a", "b")
    ]
    text = page(
        "Two",
        kicker="test",
        lead=[paragraph("Look.")],
        sections=[Section("only", "Only", tuple(parts))],
        footer="end",
    )
    document = read_page(text)
    ids = [node.attributes["id"] for node in document.walk() if "id" in node.attributes]
    assert len(ids) == len(set(ids))
    for key in ("a", "b"):
        names = {name for name in ids if name.startswith(f"{key}-")}
        svg_node = document.one("svg", **{"aria-labelledby": f"{key}-title {key}-desc"})
        used = {node.attributes["href"][1:] for node in svg_node.walk() if node.tag == "use"}
        used |= {
            node.attributes["clip-path"][5:-1] for node in svg_node.walk() if "clip-path" in node.attributes
        }
        assert len(used) >= 3
        assert used <= names
    assert "http://purl.org" not in text
    assert "<?xml" not in text


def test_what_is_no_picture_is_refused():
    with pytest.raises(ValueError, match="viewBox"):
        inline_svg("<svg></svg>", "a", "t", "d")
