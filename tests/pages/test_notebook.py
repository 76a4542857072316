"""What notebooks show of models, data and results: small tables in which everything is escaped."""

import re

import pytest

import missmdp as mm
from missmdp.pages.notebook import notebook_table
from pages.read_page import read_page

ODD = "<b>infection</b>"


@pytest.fixture(scope="module")
def model():
    """A model whose names are markup: infections go missing in 20 or 70 % of the steps."""
    mdp = mm.FactoredMDP(
        features={ODD: ["<i>no</i>", "yes"], "ward": ["icu", "normal"]},
        actions=["wait", "<treat>"],
        transition=lambda state, action: [(state, 0.5), (("yes", "icu"), 0.5)],
        reward=lambda state, action: 1.0,
        initial={("<i>no</i>", "normal"): 1.0},
        discount=0.9,
        progress=False,
    )
    rates = {ODD: lambda state: 0.2 if state.ward == "icu" else 0.7}
    return mm.MissMDP(mdp, mm.MissingnessFunction.independent(mdp, rates), name="a & b")


def cells(shown):
    """Return the title and the rows of a table."""
    page = read_page(shown._repr_html_())
    assert not page.all("b")
    assert not page.all("i")
    rows = [
        [cell.text.replace("\u00a0", " ") for cell in row.all("td")] for row in page.one("tbody").all("tr")
    ]
    return page.one("strong").text, rows


def test_models(model):
    title, rows = cells(model.mdp)
    assert title == "FactoredMDP: 2 states, actions wait and <treat>, discount 0.9"
    assert [row[0] for row in rows] == [ODD, "ward"]
    assert "<i>no</i>" in rows[0][1]
    title, rows = cells(model)
    assert title.startswith("MissMDP a & b: 2 states")
    assert [row[-1] for row in rows] == ["20–70 %", "0 %"]
    assert cells(model.missingness) == (
        "MissingnessFunction: 2 patterns over 2 states",
        [[ODD, "20–70 %"], ["ward", "0 %"]],
    )


def test_data_and_bounds(model):
    log = mm.collect(model, 500, seed=1)
    title, rows = cells(log)
    assert title.startswith("Dataset: 500 observations in ")
    rate = log.missing_rates()[ODD]
    assert rows == [[ODD, f"{100 * rate:.1f} %"], ["ward", "0.0 %"]]
    bound = mm.AsMAR().fit(log).bound(0.9)
    title, rows = cells(bound)
    assert f"within {bound.worst:.3g} of M with confidence 0.9 (guaranteed)" in title
    assert rows[0][-1] == f"{bound.tv:.3g}"
    assert {row[1] for row in rows} == {"ward = icu", "ward = normal"}


def test_values(model):
    values = mm.compare({"one": None, "<two>": None}, model, 20, 1, progress=False)
    title, rows = cells(values)
    assert title == "Comparison"
    assert [row[0] for row in rows] == ["one", "<two>"]
    assert [row[3] for row in rows] == ["20", "20"]
    assert rows[0][-1] == "–"
    title, (row,) = cells(values["one"])
    assert title == "Evaluation"
    assert row == rows[0][1:4]


def test_long_tables_are_cut():
    shown = notebook_table("long", ["n"], [[str(i)] for i in range(25)])
    assert len(re.findall("<td>", shown)) == 20
    assert "… and 5 more rows" in shown
