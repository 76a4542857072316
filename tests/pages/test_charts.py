"""Charts put things where the numbers say; what is written stays inside."""

import math
import re
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from experiments.report.sample_run import bounds, sample, write
from missmdp.experiments.report.write import write_report
from missmdp.pages.bounds_chart import BoundsPanel, bounds_chart
from missmdp.pages.graph_chart import graph_chart
from missmdp.pages.row_charts import Bar, Dot, Heading, bar_chart, dot_chart
from missmdp.pages.svg import NARROW, WIDE, Axis, fitted, padded, text_width, wrapped
from missmdp.words import printable
from pages.read_page import read_page

WIDTHS = pytest.mark.parametrize("width", [WIDE, NARROW])
names = st.text(min_size=1, max_size=120).filter(str.strip)
finite = st.floats(-1e6, 1e6)


def picture(draw, width):
    return read_page(draw(width).to_html("key", "title", "description")).one("svg")


def mark_places(svg):
    """Return where the middle of every circle, square and path of a mark is."""
    places = []
    for mark in svg.all("g", class_="mark"):
        body = mark.children[-1]
        if body.tag == "circle":
            places.append(body.number("cx"))
        elif body.tag == "rect":
            places.append(body.number("x") + body.number("width") / 2)
        else:
            places.append(float(re.match(r"M([\d.-]+) ", body.attributes["d"])[1]))
    return places


def tick_scale(svg):
    """Return the function from numbers to pixels that grid lines and their labels promise; percentages are shares."""
    labels = [
        node.text for node in svg.all("text", class_="tick") if re.fullmatch(r"[−\d.,]+(\u00a0%)?", node.text)
    ]
    shares = all(label.endswith("%") for label in labels)
    numbers = [float(label.replace("−", "-").rstrip("\u00a0%")) / (100 if shares else 1) for label in labels]
    lines = sorted({line.number("x1") for line in svg.all("line", class_="grid")})
    assert len(lines) == len(numbers)
    return lambda value: lines[0] + (value - numbers[0]) / (numbers[-1] - numbers[0]) * (lines[-1] - lines[0])


@WIDTHS
def test_bars_are_as_long_as_their_shares(width):
    svg = picture(bar_chart([Bar("a", 0.625, "62.5 %"), Bar("b", 0.25, "25 %"), Bar("c", 0.0, "0 %")]), width)
    first, second = svg.all("rect", class_="bar")
    assert first.number("width") / second.number("width") == pytest.approx(2.5, rel=1e-3)
    scale = tick_scale(svg)
    assert scale(0.25) == pytest.approx(second.number("x") + second.number("width"), abs=0.1)


@WIDTHS
def test_dots_are_where_the_axis_says(width):
    rows = [
        Heading("group"),
        Dot("one", -3.0, -3.5, -2.0, "−3", shape="square", truth=-2.5),
        Dot("two", 1.0, 0.5, None, "1", shape="diamond"),
    ]
    svg = picture(dot_chart(rows, domain=(-4.0, 2.0)), width)
    scale = tick_scale(svg)
    assert mark_places(svg) == pytest.approx([scale(-3.0), scale(1.0)], abs=0.1)
    first, second = svg.all("line", class_="whisker")
    assert (first.number("x1"), first.number("x2")) == pytest.approx((scale(-3.5), scale(-2.0)), abs=0.1)
    # An end that is unknown runs to the edge.
    assert (second.number("x1"), second.number("x2")) == pytest.approx((scale(0.5), scale(2.0)), abs=0.1)
    assert svg.one("line", class_="truth").number("x1") == pytest.approx(scale(-2.5), abs=0.1)


@WIDTHS
@pytest.mark.parametrize(("value", "left"), [(-100.0, True), (100.0, False)])
def test_what_lies_outside_becomes_an_arrow_at_the_edge(width, value, left):
    svg = picture(dot_chart([Dot("far", value, value, value, "far")], domain=(0.0, 1.0)), width)
    assert not svg.all("g", class_="mark")
    x, step = map(
        float, re.match(r"M([\d.-]+) [\d.]+l(-?\d+)", svg.one("path", class_="mark").attributes["d"]).groups()
    )
    assert (step > 0) == left
    assert (x < width / 2) == left


def test_the_figures_of_a_run_are_drawn_to_scale(tmp_path):
    """From run.json to pixels: AsMAR's estimates, and the truth beside them."""
    run = sample()
    page = read_page(write_report(write(run, tmp_path)).read_text(encoding="utf-8"))
    patterns = [p for group in run["learners"][1]["groups"] for p in group["patterns"]]
    for kind in ("wide", "narrow"):
        svg = page.one("svg", **{"aria-labelledby": f"learned-asmar-{kind}-title learned-asmar-{kind}-desc"})
        scale = tick_scale(svg)
        assert mark_places(svg) == pytest.approx([scale(p["estimate"]) for p in patterns], abs=0.2)
        truths = [line.number("x1") for line in svg.all("line", class_="truth")]
        assert truths == pytest.approx([scale(p["truth"]) for p in patterns], abs=0.2)


@WIDTHS
def test_bounds_end_where_they_ended(width):
    rows = bounds(-10.0, -9.9)
    columns = [tuple(getattr(row, key) for row in rows) for key in ("seconds", "lower", "upper")]
    svg = picture(bounds_chart([BoundsPanel("AsMAR", "text", *columns, "is-asmar")]), width)
    ticks = [
        (float(n.text.replace("−", "-")), n.number("y") - 4.0)
        for n in svg.all("text", class_="tick")
        if "s" not in n.text
    ]
    (a, x), (b, y) = ticks[:2]
    for style, value in (("lower", rows[-1].lower), ("upper", rows[-1].upper)):
        path = svg.one("path", class_=style).attributes["d"]
        last = float(path.rsplit(",", 1)[1])
        assert last == pytest.approx(x + (value - a) / (b - a) * (y - x), abs=0.3)
        # Bounds never go back: the lower one only rises (smaller y), the upper one only falls.
        heights = [float(corner.split(",")[1]) for corner in re.findall(r"[\d.]+,[\d.]+", path)]
        assert heights == sorted(heights, reverse=style == "lower")


@WIDTHS
def test_arrows_lead_from_values_to_gaps(width):
    features = ["a", "b", "c"]
    svg = picture(graph_chart(features, ["a", "c"], [("a", "a"), ("b", "c")], [("a", "c")]), width)
    rows = {
        node.number("cy"): name
        for node, name in zip(
            svg.all("circle", class_="seen") + svg.all("circle", class_="hidden"), "bac", strict=True
        )
    }
    assert len(svg.all("circle", class_="indicator")) == 2
    ends = []
    for arrow in svg.all("g", class_="arrow"):
        line, head = arrow.one("line"), arrow.one("path")
        tip = float(re.match(r"M[\d.]+ ([\d.]+)", head.attributes["d"])[1])
        nearest = [min(rows, key=lambda y, at=at: abs(y - at)) for at in (line.number("y1"), tip)]
        ends.append((*(rows[y] for y in nearest), "self" in arrow.attributes["class"]))
        assert line.number("x2") > line.number("x1")
    assert sorted(ends) == [("a", "a", True), ("b", "c", False)]
    assert len(svg.all("path", class_="joined")) == 1


@given(st.lists(names, min_size=1, max_size=5), st.sampled_from([WIDE, NARROW]))
def test_nothing_is_drawn_outside(labels, width):
    """By our own estimate of widths; tests in a browser measure it."""
    dots = [Dot(label, 0.5, 0.1, 0.9, label[::-1], short="50 %") for label in labels]
    charts = [
        dot_chart([Heading(labels[0]), *dots], axis_title=labels[-1]),
        bar_chart([Bar(label, 0.5, "50 %") for label in labels], labels[0]),
        graph_chart(list(dict.fromkeys(labels)), labels, [(labels[0], labels[-1])]),
    ]
    for draw in charts:
        drawing = draw(width)
        svg = read_page(drawing.to_html("key", "t", "d")).one("svg")
        for node in svg.all("text"):
            size = 11.5 if node.has(class_="tick") else 12.5
            wide = sum(
                text_width(child, size) if isinstance(child, str) else text_width(child.text, 11.5)
                for child in node.children
                if getattr(child, "tag", "") != "title"
            )
            wide *= 1.06 if node.has(class_="strong") else 1.0
            x, anchor = node.number("x"), node.attributes.get("text-anchor", "start")
            left = x - {"start": 0.0, "middle": wide / 2, "end": wide}[anchor]
            assert left >= -1.0
            assert left + wide <= width + 1.0
            assert 0.0 < node.number("y") <= drawing.height


@given(names, st.floats(20.0, 400.0))
def test_what_does_not_fit_is_cut_in_the_middle(text, width):
    shown, text = fitted(text, width), printable(text)
    if text_width(text) <= width:
        assert shown == text
    else:
        assert "…" in shown
        assert text_width(shown) <= width or len(shown) <= 2
        before, after = shown.split("…", 1) if text.count("…") == 0 else (shown[:1], "")
        assert text.startswith(before)
        assert text.endswith(after)


@given(st.lists(st.text("abc", min_size=1, max_size=12), min_size=1, max_size=20), st.floats(60.0, 400.0))
def test_wrapping_keeps_words_and_their_order(words, width):
    lines = wrapped(" ".join(words), width)
    assert all(text_width(line) <= width for line in lines)
    if max(map(text_width, words)) <= width:
        assert " ".join(lines).split(" ") == words


@given(finite, st.floats(1e-6, 1e6), st.integers(2, 8))
def test_ticks_are_round_and_inside(low, span, most):
    axis = Axis(low, low + span, 0.0, 300.0)
    if axis.high - axis.low < 1e-9 * abs(low):
        return
    ticks = axis.ticks(most)
    assert len(ticks) <= most + 1
    assert all(axis.holds(tick) for tick in ticks)
    steps = {round(b - a, 9) for a, b in pairwise(ticks)}
    if len(ticks) > 2 and span > 1e-3 and abs(low) < 1e3:
        assert max(steps) - min(steps) < 1e-6
        mantissa = float(f"{max(steps):e}".split("e")[0])
        assert min(abs(mantissa - round_) for round_ in (1, 2, 2.5, 5, 10)) < 1e-3


@given(st.lists(finite | st.none(), max_size=6))
def test_ranges_hold_all_that_is_known(values):
    low, high = padded(values)
    assert low < high
    assert all(low <= value <= high for value in values if value is not None)
    assert math.isfinite(high - low)
