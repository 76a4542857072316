"""What the report says is what the numbers say."""

import pytest
from msgspec.structs import replace

from experiments.report.sample_run import sample, sample_record, single_groups, write
from missmdp.experiments.report.learned_groups import chosen_groups, covered, some_left_out
from missmdp.experiments.report.write import write_report
from pages.read_page import read_page


@pytest.fixture
def say(tmp_path):
    """Return the text of a section, or of the headline."""

    def text(run, key="headline"):
        page = read_page(write_report(write(run, tmp_path)).read_text(encoding="utf-8"))
        part = page.one("div", class_="headline") if key == "headline" else page.one("section", id=key)
        return part.text.replace("\u00a0", " ")

    return text


def with_share(share, stderr=0.01):
    run = sample()
    row = next(row for row in run["values"][0]["rows"] if row["policy"] == "asmar")
    row |= {"normalised": share, "normalised_stderr": stderr}
    row |= {"normalised_low": share - 2 * stderr, "normalised_high": share + 2 * stderr}
    return run


@pytest.mark.parametrize(
    ("share", "verdict"),
    [
        (0.87, "AsMAR gets 87.0 % of what perfect knowledge of the missingness would gain over guessing."),
        (0.999, "gets, as far as can be told, all of what perfect knowledge"),
        (1.02, "gets, as far as can be told, all of what perfect knowledge"),
        (
            1.2,
            "gets more than what perfect knowledge of the missingness would gain over guessing: the policy with",
        ),
        (-0.4, "is worse than guessing"),
        (0.015, "AsMAR and guessing how values go missing cannot be told apart"),
        (-0.015, "AsMAR and guessing how values go missing cannot be told apart"),
    ],
)
def test_the_headline_says_what_the_policy_gains(say, share, verdict):
    assert verdict in say(with_share(share))


def test_the_headline_compares_with_all(say):
    text = say(sample())
    for part in (
        "−10.02 per episode",
        "−10.00 for perfect knowledge",
        "−17.00 for guessing",
        "−90.00 for acting at random",
    ):
        assert part in text
    assert "infection is missing most often: 62 % of the time" in text
    assert "gaps depend on test" in text
    assert "AsMAR predicts best." in text


def test_the_headline_says_what_the_recommended_learner_assumes(say):
    assert "AsMAR assumes: gaps depend only on values that are always recorded." in say(sample())


def test_the_headline_warns_where_the_data_do_not_fit(say):
    run = sample()
    run["data"]["fits"] = True
    assert "do not fit" not in say(run)
    run["data"] |= {"fits": False, "problems": ["one", "two"]}
    assert "Take care: The data do not fit the model (2 problems, listed below)" in say(run)


@pytest.mark.parametrize(("worst", "told"), [(0.49, False), (0.5, True), (1.0, True)])
def test_the_headline_warns_where_a_bound_says_nothing(say, worst, told):
    run = sample()
    run["learners"][1]["bound"]["worst"] = worst
    assert ("too few data to rely on what AsMAR learned" in say(run)) == told


def test_a_gain_of_the_size_of_rounding_is_none(say):
    run = sample()
    for row in run["values"][0]["rows"]:
        row |= dict.fromkeys(("normalised", "normalised_stderr", "normalised_low", "normalised_high"))
        row |= {"value": -17.0 - 1e-7 * (row["policy"] == "asmar"), "stderr": 1e-7}
    run["values"][0]["recommended"][-2] |= {"mean": -1e-7, "stderr": 1e-7, "low": -3e-7, "high": 1e-7}
    assert run["values"][0]["recommended"][-2]["than"] == "prior"
    text = say(run)
    assert "Better than guessing by0.00guessing assumes" in text
    assert "0.000000" not in text


def test_a_scale_that_is_unsure_is_not_sold_as_sure(say):
    run = with_share(0.9)
    row = next(row for row in run["values"][0]["rows"] if row["policy"] == "asmar")
    row |= {"normalised_low": None, "normalised_high": None}
    assert "the data do not settle this" in say(run)
    assert "cannot be told: that is too little here" in say(run)


@pytest.mark.parametrize(
    ("gain", "verdict"),
    [(1.0, "worth 1.000 more than"), (-1.0, "worth less than"), (-0.05, "cannot be told apart")],
)
def test_without_a_scale_the_policy_is_held_against_guessing(say, gain, verdict):
    """Perfect knowledge may gain nothing; then differences count, in the same episodes."""
    run = sample()
    for row in run["values"][0]["rows"]:
        row |= dict.fromkeys(("normalised", "normalised_stderr", "normalised_low", "normalised_high"))
    over_prior(run).update({"mean": gain, "low": gain - 0.1, "high": gain + 0.1})
    assert verdict in say(run)


def over_prior(run, world="truth"):
    """Return how much more the recommended policy is worth than the prior's."""
    (where,) = [one for one in run["values"] if one["world"] == world]
    (gap,) = [one for one in where["recommended"] if one["than"] == "prior"]
    return gap


def test_without_the_truth_the_headline_is_conditional(say):
    text = say(sample(known=False))
    assert (
        "If what AsMAR assumes is true (gaps depend only on values that are always recorded), the policy"
        in text
    )
    assert "7.000 more than guessing" in text
    assert "perfect knowledge" not in text


@pytest.mark.parametrize(
    ("difference", "verdict"),
    [(7.0, "7.000 more than guessing"), (-7.0, "worth less than guessing"), (0.05, "cannot be told apart")],
)
def test_without_the_truth_guessing_may_win(say, difference, verdict):
    run = sample(known=False)
    over_prior(run, "asmar").update({"mean": difference, "low": difference - 0.1, "high": difference + 0.1})
    assert verdict in say(run)


def test_every_world_is_weighed(say):
    text = say(sample(known=False), "values")
    # AMCAR's world: AsMAR −13, the best tried −12.
    assert (
        "Should AMCAR be right instead, which the data contradict: the recommended policy would lose 1.00"
        in text
    )


@pytest.mark.parametrize(
    ("difference", "verdict"),
    [(-0.05, "cannot be told apart there"), (0.5, "would be worth 0.500 more than that of AMCAR")],
)
def test_what_may_be_chance_is_no_loss_in_another_world(say, difference, verdict):
    run = sample(known=False)
    row = next(row for row in run["values"][0]["rows"] if row["policy"] == "asmar")
    row |= {"difference": difference, "difference_low": difference - 0.1, "difference_high": difference + 0.1}
    assert verdict in say(run, "values")


def test_a_policy_that_is_better_in_a_foreign_world_loses_nothing_there(say):
    run = sample(known=False)
    for row in run["values"][1]["rows"]:
        row |= {"difference": 0.1, "difference_low": 0.05, "difference_high": 0.15}
    text = say(run, "values")
    assert "those of other learners are worth less cannot be told from chance" in text
    assert "lose −" not in text


def test_a_difference_that_may_be_chance_is_called_so(say):
    assert "AsMAR and perfect knowledge (optimal) cannot be told apart here" in say(sample(), "values")
    run = sample()
    row = next(row for row in run["values"][0]["rows"] if row["policy"] == "asmar")
    row |= {"difference": -0.5, "difference_low": -0.6, "difference_high": -0.4}
    assert "AsMAR is worth 0.500 less than perfect knowledge (optimal)" in say(run, "values")


def test_learned_graphs_are_held_against_the_true_one(say):
    text = say(sample(), "graph")
    assert "Of 2 true arrows 1 not found (infection → R infection)" in text
    assert "one more is not true, but noise or a wrong assumption (test → R heart_rate)" in text
    run = sample()
    run["learners"][1]["graph"]["edges"] = run["model"]["truth"]["graph"]["edges"]
    assert "These are exactly the true arrows." in say(run, "graph")


def test_self_censoring_is_named(say):
    alone = "No learner can learn from single records how infection hides itself"
    assert f"{alone}; only DynamicsEM can, through the dynamics." in say(sample(), "graph")
    run = sample()
    del run["learners"][3]
    assert f"{alone}; none here does." in say(run, "graph")
    run["model"]["truth"]["graph"]["edges"] = [["test", "infection"]]
    assert "No value hides itself; but no learner here assumes just that." in say(run, "graph")
    run["model"]["truth"]["fitting_learners"] = ["AsMAR", "AIMI"]
    assert "No value hides itself; what AsMAR or AIMI assumes holds." in say(run, "graph")


def test_what_can_go_missing_in_truth_is_not_read_off_the_data(say):
    run = sample()
    for drawn in (run["model"]["truth"]["graph"], run["learners"][1]["graph"]):
        drawn |= {"edges": [], "dependent": [], "can_go_missing": ["test"]}
    run["learners"] = run["learners"][1:2]
    text = say(run, "graph")
    assert text.count("is test missing?") == 4, "in both graphs and widths"
    assert "is infection missing?" not in text


def test_a_learner_that_looks_for_nothing_is_not_said_to_have_found_nothing(say):
    assert "AMCAR looks for nothing that drives missingness" in say(sample(), "graph")


def without_always_observed():
    run = sample()
    run["learners"][1]["always_observed"] = run["learners"][1]["graph"]["edges"] = []
    run["learners"][1]["groups"] = run["learners"][0]["groups"]
    return run


def test_asmar_without_always_observed_features_is_amcar(say):
    assert "the same as AMCAR" not in say(sample(), "graph") + say(sample(), "learned")
    run = without_always_observed()
    assert "AsMAR is here the same as AMCAR, since no feature is always recorded." in say(run, "graph")
    assert "AsMAR looks for nothing" not in say(run, "graph")
    assert "No feature is always recorded in these data, so AsMAR is here the same as AMCAR." in say(
        run, "learned"
    )


def test_warnings_are_shown_under_their_learner(say):
    text = say(sample(), "assumptions")
    amcar = text.index("AMCAR:")
    assert text.index("what is missing depends on test (p = 1e-9), which MCAR rules out.") > amcar
    assert text.index("AsMAR:") < amcar
    assert text.count("The tests found nothing against this.") == 2
    assert text.index("This was chosen because it explains the data best") > text.index("DynamicsEM:")
    run = sample()
    run["learners"][3]["warnings"] = ["M is not identified"]
    text = say(run, "assumptions")
    assert "Take care: what was learned is in doubt.M is not identified." in text
    assert text.count("the data contradict this.") == 1


@pytest.mark.parametrize(
    ("margin", "verdict"),
    [
        (0.05, "AsMAR predicts new data clearly best"),
        (0.06, "AMCAR cannot be told from it"),
        (None, "AMCAR cannot be told from it"),
    ],
)
def test_predictions_are_judged_by_their_margin(say, margin, verdict):
    run = sample()
    for learner, difference in zip(run["learners"], (-0.06, 0.0, -1.0, None), strict=True):
        learner["heldout"] |= {"difference": difference, "margin": margin if difference == -0.06 else 0.0}
    assert verdict in say(run, "heldout")


@pytest.mark.parametrize(("outside", "settles"), [(0, True), (111, True), (112, False), (9000, False)])
def test_steps_that_could_not_be_used_are_told_and_weighed(say, outside, settles):
    run = sample()
    for learner, difference in zip(run["learners"], (-0.3, 0.0, -1.0, -1.0), strict=True):
        learner["heldout"] |= {"difference": difference, "outside": outside, "settles": settles}
    text = say(run, "heldout")
    told = f"{outside:,} of {outside + 1000:,} steps could not be used: the model rules out the rest of these"
    assert (told in text) == (outside > 0)
    assert ("AsMAR predicts new data clearly best" in text) == settles
    assert ("too little of the data to settle it" in text) == (not settles)


def test_equally_good_predictions_have_no_winner(say):
    run = sample()
    for learner in run["learners"]:
        learner["heldout"] = run["learners"][1]["heldout"]
    text = say(run, "heldout")
    assert "All predict new data equally well" in text
    assert "is ahead" not in text
    assert "less likely" not in text


def test_the_best_prediction_is_the_best_also_where_something_was_held_for_impossible(say):
    run = sample()
    for learner, difference in zip(run["learners"], (0.0, -0.01, -0.5, -0.5), strict=True):
        learner["heldout"] = {
            **learner["heldout"],
            "per_step": None,
            "difference": difference,
            "difference_stderr": 0.02,
            "margin": 0.04,
            "impossible": 1,
        }
    text = say(run, "heldout")
    assert "AMCAR is ahead, but AsMAR cannot be told from it" in text
    assert "AIMI held 1 episode for impossible" in text


def test_a_small_loss_that_is_sure_is_not_hidden_by_a_large_one_that_is_not(say):
    run = sample()
    run["sensitivity"]["rows"][1]["difference_stderr"] = 1.0
    run["sensitivity"]["rows"][3]["difference_stderr"] = 1.0
    assert "The largest loss is 0.400" in say(run, "sensitivity")


def test_a_loss_beyond_chance_is_named(say):
    assert "The largest loss is 0.800 (changes of how the state moves on: share 10%)." in say(
        sample(), "sensitivity"
    )
    run = sample()
    for row in run["sensitivity"]["rows"]:
        row["difference_stderr"] = 1.0
    assert "None of these changes costs the policy anything" in say(run, "sensitivity")


def test_badly_solved_problems_are_named(say):
    run = sample()
    assert "not solved well" not in say(run, "solving")
    run["learners"][1]["search"]["relative_gap"] = 0.3
    assert "AsMAR is not solved well (gap 30 %)" in say(run, "solving")


def test_impossible_observations_are_told(say):
    run = sample()
    run["values"][0]["rows"][1]["impossible"] = 1234
    assert "AsMAR saw 1,234 times what its own model says cannot be" in say(run, "values")


def test_coverage_is_counted(say):
    assert covered(sample_record().learners[1].groups) == (8, 7)
    text = say(sample(), "learned")
    assert "Of 8 true probabilities 7 lie inside their intervals" in text
    assert (
        "Outside: nothing missing where test = 0 (learned 10.0 %, interval 5.0 % to 15.0 %, truth 18.0 %)."
        in text
    )
    assert "one or more lie outside by bad luck with probability 5 % at most" in text


@pytest.mark.parametrize("known", [True, False])
def test_intervals_of_a_bootstrap_are_never_a_guarantee(say, known):
    run = sample(known=known)
    text = say(run, "learned")
    assert "The intervals of AsMAR, AMCAR and AIMI hold all at once with 95 % confidence" in text
    assert "Those of DynamicsEM come from a bootstrap, 95 % each separately, and are not guaranteed." in text
    run["learners"] = run["learners"][3:]
    run["recommended"]["label"] = "em"
    run["values"][0]["world"] = "truth" if known else "em"
    text = say(run, "learned")
    assert "hold all at once" not in text
    assert "The bound in full" not in text
    assert "at most" not in text
    assert "The intervals in words" in text
    if not known:
        assert "single situations can be further off" in text
        assert "records have other gaps" not in text


def test_learned_structures_have_no_threshold_and_may_have_red_arrows(say):
    text = say(sample(known=False), "graph")
    assert "red ones cannot appear, since AsMAR cannot see them." in text
    assert "Red ones are inferred through the dynamics" in text
    assert "infection = 2, R_heart_rate = missing" in say(sample(), "learned").replace("\u00a0", " ")


def test_where_nothing_is_missing_there_is_nothing_to_learn(say):
    run = sample()
    whole = {**run["learners"][1]["groups"][0]["patterns"][0], "missing": []}
    for learner in run["learners"]:
        learner["groups"] = [{**learner["groups"][0], "features": [], "patterns": [whole]}]
    text = say(run, "learned")
    assert text.count("Nothing is missing in these data, so there was nothing to learn.") == 4
    assert "probability" not in text


def test_a_truth_that_differs_within_a_group_must_lie_inside_all_over_it():
    group = sample_record().learners[1].groups[1]
    inside = [replace(p, truth_low=p.lower, truth_high=p.upper) for p in group.patterns]
    assert covered([replace(group, patterns=tuple(inside))]) == (4, 4)
    inside[0] = replace(inside[0], truth_high=inside[0].upper + 0.01)
    assert covered([replace(group, patterns=tuple(inside))]) == (4, 3)


def test_a_figure_has_the_groups_with_most_data_and_the_least_certain():
    groups = [
        replace(group, samples=group.samples + 1, given={"n": str(i)})
        for i, group in enumerate(single_groups(known=True) * 3)
        if not group.never_missing
    ]
    wide = tuple(replace(p, lower=0.0, upper=1.0) for p in groups[0].patterns)
    groups[0] = replace(groups[0], patterns=wide)
    (shown,) = chosen_groups(groups)
    assert len(shown.rows) == 18
    assert some_left_out(groups, [shown])
    labels = [row.label.replace("\u00a0", " ") for row in shown.rows]
    most = sorted(groups, key=lambda group: -group.samples)[:12]
    assert {f"n = {group.given['n']} · {group.samples}" for group in most} <= set(labels)
    assert labels[0] == "n = 0 · 1"
    # What is shown is the chance of the gap, not of its absence.
    assert shown.rows[-1].estimate == groups[-1].patterns[1].estimate


def test_groups_without_data_are_not_drawn_but_told(say):
    groups = single_groups(known=False)[:1]
    assert groups[0].samples == 0
    assert chosen_groups(groups) == []
    assert "For 3 groups of situations there are no data at all" in say(sample(), "learned")


def test_how_to_use_the_policy_is_python(tmp_path):
    page = read_page(write_report(write(sample(), tmp_path)).read_text(encoding="utf-8"))
    code = page.one("pre").text
    compile(code.replace("…", "'other': 1"), "report", "exec")
    assert code.count("\n") == 4
    assert 'mm.load_policy("policy.mmpolicy").agent()' in code
    assert "'infection': None" in code


def test_settings_that_say_nothing_are_left_out(say):
    run = sample(known=False)
    empty = {"missing": [], "bins": {}}
    run["settings"] |= {"unknown_truth": True, "table": empty, "max_trials": 3}
    text = say(run, "method")
    assert (
        "All settingsdataread from a tablehow values really go missingset aside, as if it were not known"
        in text
    )
    assert "max trials3" in text
    for absent in ("none", "false", "timeout", "observations", "bins"):
        assert absent not in text


def test_settings_seeds_and_files_are_told(say):
    text = say(sample(), "method")
    for part in (
        "missmdp 1.2.3",
        "ab" * 32,
        "1 min 2 s",
        "learners/asmar/policy.mmpolicy",
        "12, of which 11 can be reached",
    ):
        assert part in text
