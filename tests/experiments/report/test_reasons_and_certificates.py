"""What the report says about why values are missing, and about what is certain."""

import pytest
from msgspec import to_builtins

from experiments.report.sample_reasons import certificate
from experiments.report.sample_run import sample, write
from missmdp.experiments.record.coding import plain
from missmdp.experiments.report.write import write_report
from pages.read_page import read_page


@pytest.fixture
def say(tmp_path):
    """Return the text of a section, with plain spaces."""

    def text(run, section):
        page = read_page(write_report(write(run, tmp_path)).read_text(encoding="utf-8"))
        return page.one("section", id=section).text.replace("\u00a0", " ")

    return text


@pytest.fixture
def run():
    return sample()


def test_the_type_is_said_in_plain_words(say, run):
    text = say(run, "why")
    assert "Gaps depend on values that are themselves not always seen (MNAR)." in text
    assert "What is more, infection hides itself" in text
    assert "That is right: the true model says so." in text
    run["model"]["truth"]["name"] = "MCAR"
    assert "In the true model it is MCAR: the true model says so." in say(run, "why")


def test_reasons_have_effects_with_intervals(say, run):
    text = say(run, "why")
    assert (
        "infection is missing in 75 % of the steps where its value is 2, and in 12 % where it is 0." in text
    )
    assert "infection itself: 62 points (55 to 70)" in text
    assert (
        "heart_rate is missing in 40 % of the steps where infection is missing, and in 20 % where it is seen"
        in text
    )
    assert "heart_rate by whether infection is missing: 20 points" in text
    assert "95 % intervals from a bootstrap, which guarantees nothing" in text
    assert "a remark on reasons." in text


def test_classes_and_tests_are_tables(say, run):
    text = say(run, "why")
    assert "MCAR: on nothing" in text
    assert "−45.6" in text
    assert "1,234" in text
    assert "1e−20contradicted" in text
    assert "< 1e−300contradicted" in text
    assert "0.25not contradicted" in text


def test_the_learner_that_suits_is_named_and_what_is_recommended_instead(say, run):
    text = say(run, "why")
    assert "The learner that suits this: DynamicsEM. Values of infection go missing" in text
    assert "This run recommends AsMAR nevertheless" in text
    run["recommended"]["label"] = "em"
    run["settings"]["learners"] = ["auto"]
    text = say(run, "why")
    assert "Chosen by this: DynamicsEM." in text
    assert "nevertheless" not in text


def test_what_was_not_looked_at_is_said(say, run):
    run["diagnosis"] = {"why_not": "it was interrupted", "found": None}
    assert "This was not examined: it was interrupted." in say(run, "why")
    run = sample()
    run["diagnosis"]["found"] |= {"blocks": [], "drivers": []}
    assert "Nothing is missing in these data." in say(run, "why")


def test_what_is_certain_is_said_with_its_conditions(say, run):
    text = say(run, "certificate")
    assert "with 95 % confidence the policy is at most 12.4 worse per episode than the best policy" in text
    assert "That is 2 % of 500" in text
    assert "what this policy is worth: 7.0" in text
    assert "Most of the bound comes from what this policy is worth if values go missing differently." in text
    assert "About 5,678 more samples would halve the bound (6,678 in all, 6.68 times as many)." in text
    assert "This holds for the policy graph in certified.mmpolicy, a finite memory" in text
    assert "there are too many nodes" in text
    assert "The data come from a policy that does not react to observations." in text
    assert "it is at most" not in text
    headline = read_page_headline(run, say)
    assert (
        "If what AsMAR assumes is true, its policy graph is at most 12.4 worse than the best policy"
        in headline
    )


def read_page_headline(run, say):
    say(run, "certificate")
    folder = say.__closure__[0].cell_contents
    page = read_page((folder / "report.html").read_text(encoding="utf-8"))
    return page.one("div", class_="headline").text.replace("\u00a0", " ")


@pytest.mark.parametrize(
    ("mean", "stderr", "words"),
    [
        (
            0.5,
            0.01,
            "is 0.500 ± 0.010 worse than the policy that was solved for the truth. The bound holds here.",
        ),
        (0.01, 0.01, "cannot be told apart from the optimal policy"),
        (20.0, 0.1, "The bound does not hold here!"),
    ],
)
def test_where_the_truth_is_known_the_bound_is_held_against_it(say, run, mean, stderr, words):
    run["certificates"][0]["loss"] |= {"mean": mean, "stderr": stderr}
    assert words in say(run, "certificate")


def test_without_the_truth_nothing_is_said_of_it(say):
    assert "The truth is known here" not in say(sample(known=False), "certificate")


def test_a_bound_that_says_nothing_is_called_so(say, run):
    found = certificate(vacuous=True, epsilon=500.0, method="trivial", deploys="policy")
    run["certificates"][0] |= {"found": plain(to_builtins(found)), "file": None}
    text = say(run, "certificate")
    assert (
        "The bound says nothing yet (it is vacuous): even without data no policy is more than 500 worse"
        in text
    )
    assert "confidence the policy is at most" not in text
    assert "is not certain: for that there are too few data" in read_page_headline(run, say)


def test_doubts_about_the_assumption_are_doubts_about_the_bound(say, run):
    run["certificates"][0]["contradicted"] = "the diagnosis says MNAR"
    text = say(run, "certificate")
    assert "Take care: That assumption is in doubt, and the bound with it: the diagnosis says MNAR." in text


def test_a_learner_without_bounds_has_no_certificate_but_a_likely_value(say, run):
    run["recommended"]["label"] = "em"
    text = say(run, "certificate")
    assert "There is no certificate for the policy of DynamicsEM: DynamicsEM has no bound." in text
    assert "between −11.25 and −9.75 per episode in 95 % of 40 such logs (a bootstrap)" in text
    assert "This is not a guarantee:" in text
    assert "AsMAR12.4for its policy graph" in text
    del run["certificates"][0]
    assert "confidence" not in say(run, "certificate")


def test_without_certificates_there_is_no_such_section(tmp_path, run):
    run["certificates"] = []
    page = read_page(write_report(write(run, tmp_path)).read_text(encoding="utf-8"))
    assert not page.all("section", id="certificate")
