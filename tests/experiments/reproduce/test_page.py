"""The page and its tables against what is computed by hand from the cells."""

import re
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pytest

from experiments.reproduce.fake_run import TINY, fake_result, fake_run
from missmdp.errors import MissMDPError
from missmdp.experiments.reproduce.findings import ComparedPolicy, claims
from missmdp.experiments.reproduce.page import write_page
from missmdp.experiments.reproduce.pictures import draw_figures
from missmdp.experiments.reproduce.plan import all_cells
from missmdp.experiments.reproduce.summary import summarise
from missmdp.experiments.reproduce.text import (
    approximation,
    assumptions,
    markdown_tables,
    model_free,
    plus_minus,
    text_tables,
    values,
)
from missmdp.experiments.tables import put_tables

ICU, PREDATOR = TINY.benchmarks
ONE = replace(TINY, benchmarks=(ICU,), fully_observed=False)
NAMES = ["claims", "learning", "wtv", "values", "baselines", "nothing_missing", "separation", "timings"]


@pytest.fixture(scope="module")
def summary(tmp_path_factory):
    return summarise(fake_run(tmp_path_factory.mktemp("page")))


@pytest.fixture(scope="module")
def text(summary):
    return write_page(summary).read_text(encoding="utf-8")


def results(**wanted):
    return [
        fake_result(cell)
        for cell in all_cells(TINY)
        if all(
            getattr(cell, name, False) == value for name, value in {"fully_observed": False, **wanted}.items()
        )
    ]


def stderr(sample):
    return np.std(sample, ddof=1) / np.sqrt(len(sample))


def cells_of(table, *first):
    """Return the cells of the one line of a Markdown table that begins so, or of its head; figures are not broken."""
    assert " ± " not in table
    breakable = table.replace("\N{NO-BREAK SPACE}", " ")
    lines = [[cell.strip() for cell in line.strip("|").split("|")] for line in breakable.splitlines()]
    (found,) = [line for line in lines if tuple(line[: len(first)]) == first] if first else [lines[0]]
    return found


def row_of(rows, **wanted):
    (found,) = [row for row in rows if all(row[name] == value for name, value in wanted.items())]
    return found


def test_every_table_is_there(summary):
    tables = markdown_tables(summary)
    assert list(tables) == NAMES
    for table in tables.values():
        lines = table.splitlines()
        assert len({line.count("|") for line in lines}) == 1
        assert set(lines[1]) <= set("|:- ")


@pytest.mark.parametrize(("name", "measure"), [("learning", "atv"), ("wtv", "wtv")])
def test_total_variation_in_tables(summary, name, measure):
    table = markdown_tables(summary)[name]
    assert cells_of(table)[3:] == ["10³ steps", "10⁵ steps"]
    sample = [r.found["AIMI"][measure] for r in results(kind="learning", benchmark=ICU, size=1_000)]
    line = cells_of(table, ICU, "AIMI")
    assert line[2] == "holds"
    assert line[3] == f"{np.mean(sample):.3f} ± {stderr(sample):.3f}"
    assert cells_of(table, PREDATOR, "AIMI")[2] == "does not"


def test_values_in_tables(summary):
    row = row_of(summary.values, benchmark=ICU, learner="AMCAR", size=1_000)
    line = cells_of(markdown_tables(summary)["values"], ICU, "AMCAR")
    assert line[3] == f"{row['normalised']:.3f} ± {row['normalised_stderr']:.3f}".replace("-", "−")


def test_baselines_in_tables(summary):
    table = markdown_tables(summary)["baselines"]
    sample = [r.estimates.mean() for r in results(kind="baseline", benchmark=PREDATOR, policy="ppo")]
    line = cells_of(table, PREDATOR, "PPO")
    assert line[2:4] == ["3", f"{np.mean(sample):.3f} ± {stderr(sample):.3f}"]
    assert line[4].split(" ")[0] == f"{max(sample):.3f}"
    assert line[6].split(" ")[0] >= line[5].split(" ")[0]
    assert [cells_of(table, ICU, name)[5] for name in ("optimal", "prior")] == ["1", "0"]
    (made_once,) = results(kind="baseline", benchmark=PREDATOR, policy="random")
    episodes = made_once.estimates.ravel()
    assert cells_of(table, PREDATOR, "random")[3] == f"{episodes.mean():.3f} ± {stderr(episodes):.3f}"


def test_nothing_missing_in_tables(summary):
    sample = [
        r.estimates.mean()
        for r in results(kind="baseline", benchmark=ICU, policy="pomcp", fully_observed=True)
    ]
    line = cells_of(markdown_tables(summary)["nothing_missing"], "ICU", "POMCP")
    assert line[2:4] == ["−48.251", "3"]
    assert float(line[4].split(" ")[0].replace("−", "-")) == pytest.approx(np.mean(sample), abs=0.005)
    assert float(line[5].split(" ")[0].replace("−", "-")) == pytest.approx(max(sample), abs=0.005)


def test_separation_and_times_in_tables(summary):
    tables = markdown_tables(summary)
    (optimal,), (prior,) = (
        results(kind="baseline", benchmark=ICU, policy=end) for end in ("optimal", "prior")
    )
    gap = (optimal.estimates - prior.estimates).ravel()
    line = cells_of(tables["separation"], ICU)
    assert line[1] == f"{gap.mean():.2f} ± {stderr(gap):.2f}"
    assert line[2] == f"{gap.mean() / stderr(gap):.0f}"
    # 2 × 3 × 4 cells of 0.5 s, 2 × 2 × 3 × 3 of 3.25 s, 2 × (3 + 3 × 3) + 2 × 2 × 3 of 3.25 s.
    assert cells_of(tables["timings"], "all")[1:] == [
        "12.0 s (0.5 s)",
        "1 min 57 s (3.2 s)",
        "1 min 57 s (3.2 s)",
        "4 min 6 s (3.2 s)",
    ]


def test_the_claim_is_about_the_lower_limit(summary):
    (claim,) = claims(summary)
    row = row_of(summary.values, benchmark=ICU, learner="AsMAR", size=100_000)
    assert (claim.benchmark, claim.learner, claim.size, claim.row) == (ICU, "AsMAR", 100_000, row)
    assert claim.holds == (row["normalised_low"] >= 0.93)
    for low, high, verdict in (
        (0.93, 1.0, "yes"),
        (0.92, 0.93, "open"),
        (0.9, 0.92, "no"),
        (None, None, "open"),
    ):
        assert replace(claim, row={**row, "normalised_low": low, "normalised_high": high}).verdict == verdict
    assert [other["learner"] for other in claim.others] == ["AMCAR", "AIMI"]
    for low, holds in ((0.93, True), (0.9299, False), (None, False)):
        assert replace(claim, row={**row, "normalised_low": low}).holds is holds
    line = cells_of(markdown_tables(summary)["claims"], ICU)
    assert line[1] == "AsMAR, 10⁵"
    assert line[2] == plus_minus(row["normalised"], row["normalised_stderr"])
    assert line[3].split(" to ")[0] == f"{row['normalised_low']:.3f}"
    assert line[4] == claim.verdict
    assert line[5].startswith("AMCAR 0.0")


def test_the_claim_is_about_at_most_a_hundred_thousand_steps(tmp_path):
    config = replace(ONE, value_sizes=(1_000, 10_000, 1_000_000))
    (claim,) = claims(summarise(fake_run(tmp_path, config)))
    assert claim.size == 10_000


def test_sentences_say_what_was_measured(summary):
    def end(benchmark, learner, measure="atv"):
        return row_of(summary.learning, benchmark=benchmark, learner=learner, size=100_000)[measure]

    first = approximation(summary)
    assert first[0].endswith(f"at most {end(ICU, 'AsMAR'):.3f} ({ICU}, 10⁵ steps).")
    assert f"{end(ICU, 'AsMAR'):.3f} at 10⁵ steps, worst TV {end(ICU, 'AsMAR', 'wtv'):.3f}" in first[1]
    second = assumptions(summary)
    least = min(end(PREDATOR, learner) for learner in TINY.learners)
    assert f"{least:.3f} (AsMAR on {PREDATOR})" in second[0]
    assert (
        second[1]
        == f"{ICU}: AMCAR at {end(ICU, 'AMCAR'):.3f} (worst TV {end(ICU, 'AMCAR', 'wtv'):.3f}) after 10⁵ steps."
    )
    assert second[-1].endswith(
        f"an average TV of {end(ICU, 'AIMI'):.3f} at 10⁵ steps, where AsMAR has {end(ICU, 'AsMAR'):.3f}."
    )
    third = values(summary)
    held = sum(claim.holds for claim in claims(summary))
    assert f"on {held} of 1 benchmarks" in third[0]
    assert ("icu-smar" in third[0]) == (not held)
    assert third[-1].startswith(
        f"On {PREDATOR}, where no learner’s assumption holds, AsMAR gets furthest: 0.9"
    )
    fourth = model_free(summary)
    assert "below the learned policy on 2 of 2 benchmarks; on 2 one of them is better" in fourth[0]
    assert fourth[1].startswith(f"{ICU}: PPO, memory is the best of them with 0.")
    assert fourth[-1].startswith("Predator, small map, with nothing missing and the best seed: ")


def test_the_best_seed_of_any_method_counts_against_the_learned_policy(summary, monkeypatch):
    """Also that of a method which is not the best on average."""
    found = [
        ComparedPolicy("AsMAR", 0.9, 0.01, 3, None),
        ComparedPolicy("ppo-memory", 0.5, 0.1, 2, 0.6),
        ComparedPolicy("pomcp", 0.2, 0.8, 2, 1.0),
    ]
    monkeypatch.setattr("missmdp.experiments.reproduce.text.compared_policies", lambda *_: found)
    assert "below the learned policy on 0 of 2 benchmarks" in model_free(summary)[0]


def test_a_claim_that_does_not_hold_is_not_said_to_hold(tmp_path):
    # With little data the made-up values are far below the optimum.
    found = summarise(fake_run(tmp_path, replace(ONE, value_sizes=(100,))))
    assert values(found)[0].endswith("on 0 of 1 benchmarks; not on icu-smar.")
    assert cells_of(markdown_tables(found)["claims"], ICU)[4] == "no"


class Tags(HTMLParser):
    """Checks that what is opened is closed, and keeps what is linked to."""

    def __init__(self):
        super().__init__()
        self.open, self.links, self.ids = [], [], []

    def handle_starttag(self, tag, attrs):
        given = dict(attrs)
        self.links += [given[name] for name in ("href", "src") if name in given]
        self.ids += [given["id"]] if "id" in given else []
        if tag not in ("meta", "br"):
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        pass

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def test_the_page_needs_nothing_but_itself(text):
    tags = Tags()
    tags.feed(text)
    assert tags.open == []
    assert len(set(tags.ids)) == len(tags.ids)
    assert all(link.startswith("#") and link[1:] in tags.ids for link in tags.links)
    assert "url(" not in text
    assert "nan" not in re.sub(r"<style>.*?</style>", "", text, flags=re.S).split()


def test_the_page_has_all_questions_tables_and_sentences(summary, text):
    for part in ("run", "claim", "q1", "q2", "q3", "q4", "times"):
        assert f'<section id="{part}"' in text
    for name, table in text_tables(summary).items():
        assert f"<caption>{table.caption}</caption>" in text, name
        assert all(cell in text for row in table.rows for cell in row), name
    for answer in (approximation, assumptions, values, model_free):
        assert all(sentence in text for sentence in answer(summary))
    assert "not finished" not in text
    assert "seed = 0" in text


def test_the_same_cells_give_the_same_page(summary, text):
    path = write_page(summary.folder)
    assert path == summary.folder / "report.html"
    assert path.read_text(encoding="utf-8") == text


@pytest.mark.parametrize(
    ("left_out", "absent"),
    [
        (lambda cell: cell.kind == "value", ["claim"]),
        (lambda cell: cell.kind == "learning", ["q1", "q2"]),
        (lambda cell: cell.kind == "baseline", ["claim", "q3", "q4"]),
        (lambda cell: cell.kind == "value" and cell.policy == "AsMAR", ["claim"]),
        (lambda cell: cell.run > 0, []),
    ],
)
def test_pages_of_unfinished_runs(tmp_path, left_out, absent):
    folder = fake_run(tmp_path, ONE, left_out)
    text = write_page(folder).read_text(encoding="utf-8")
    done = sum(not left_out(cell) for cell in all_cells(ONE))
    assert f"The run is not finished: all below is from {done} of 42 cells." in text
    everything = ["run", "claim", "q1", "q2", "q3", "q4", "times"]
    sections = re.findall(r'<section id="(\w+)"', text)
    assert sections == [name for name in everything if name not in absent]
    assert "None" not in text


def test_pages_of_single_runs(tmp_path):
    config = replace(ONE, runs=1, value_runs=1, baseline_seeds=1)
    found = summarise(fake_run(tmp_path, config))
    text = write_page(found).read_text(encoding="utf-8")
    assert "middle half" not in text
    line = cells_of(markdown_tables(found)["baselines"], ICU, "PPO")
    assert [line[2], line[4], line[6]] == ["1", "–", "–"]
    assert "None" not in text


def test_no_page_of_nothing(tmp_path):
    with pytest.raises(MissMDPError, match="no run of `missmdp reproduce`"):
        write_page(tmp_path)
    fake_run(tmp_path, ONE, lambda cell: True)
    with pytest.raises(MissMDPError, match="nothing to report, none of 42 cells is finished"):
        write_page(tmp_path)


def test_tables_are_put_between_their_marks(summary, tmp_path):
    page = tmp_path / "README.md"
    page.write_text(
        "# Ours\n<!-- claims -->\nold\n<!-- end of claims -->\nprose\n<!-- wtv --><!-- end of wtv -->\nend\n"
    )
    assert put_tables(markdown_tables(summary), page) == ["claims", "wtv"]
    tables = markdown_tables(summary)
    expected = (
        f"# Ours\n<!-- claims -->\n{tables['claims']}\n<!-- end of claims -->\nprose\n"
        f"<!-- wtv -->\n{tables['wtv']}\n<!-- end of wtv -->\nend\n"
    )
    assert page.read_text() == expected
    put_tables(markdown_tables(summarise(summary.folder)), page)
    assert page.read_text() == expected


def test_a_new_page_has_all_tables(summary, tmp_path):
    page = tmp_path / "new" / "README.md"
    assert put_tables(markdown_tables(summary), page) == NAMES
    assert all(table in page.read_text() for table in markdown_tables(summary).values())


def test_pages_that_tables_cannot_be_put_into(summary, tmp_path):
    page = tmp_path / "README.md"
    page.write_text("<!-- end of values --> <!-- values -->")
    with pytest.raises(
        MissMDPError, match="there is <!-- values --> without <!-- end of values --> after it"
    ):
        put_tables(markdown_tables(summary), page)
    assert page.read_text() == "<!-- end of values --> <!-- values -->"
    with pytest.raises(MissMDPError, match="cannot be read"):
        put_tables(markdown_tables(summary), tmp_path)


def test_numbers_have_the_decimals_that_their_errors_deserve():
    assert plus_minus(-1.23456, 0.0456) == "−1.235 ± 0.046"
    assert plus_minus(-86.2, 0.4) == "−86.20 ± 0.40"
    assert plus_minus(0.5, 0.00001) == "0.500 ± 0.000"
    assert plus_minus(0.5, None) == "0.500"
    assert plus_minus(None, None) == "–"


def test_learners_beyond_the_papers_have_their_place(tmp_path):
    learners = ("AsMAR", "DynamicsEM", "DynamicsEM+graph", "ICIN")
    config = replace(TINY, learners=learners, fully_observed=False, baselines=("random", "prior", "optimal"))
    found = summarise(fake_run(tmp_path, config))
    # What ICIN assumes holds on the one benchmark, and not where values censor themselves.
    table = markdown_tables(found)["learning"]
    assert cells_of(table, ICU, "ICIN")[2] == cells_of(table, ICU, "DynamicsEM+graph")[2] == "holds"
    assert cells_of(table, "predator-mnar-unid", "ICIN")[2] == "does not"
    assert cells_of(table, "predator-mnar-unid", "DynamicsEM")[2] == "holds"
    text = write_page(found).read_text()
    assert "is-em" in text
    assert "DynamicsEM, m-graph" in text
    assert len(draw_figures(found)) >= 3
