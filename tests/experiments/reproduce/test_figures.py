"""Figures against what is computed by hand from the cells."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from experiments.reproduce.fake_run import TINY, fake_result, fake_run
from missmdp.errors import MissMDPError
from missmdp.experiments.reproduce.curve_pictures import (
    LOWEST,
    Curve,
    curves,
    curves_figure,
    limits,
    map_figure,
)
from missmdp.experiments.reproduce.findings import common_size, compared_policies
from missmdp.experiments.reproduce.page_charts import CurvesPanel, curves_chart
from missmdp.experiments.reproduce.pictures import (
    LEFT,
    baselines_figure,
    draw_figures,
    nothing_missing_figure,
)
from missmdp.experiments.reproduce.plan import all_cells
from missmdp.experiments.reproduce.style import COLOURS, size_text
from missmdp.experiments.reproduce.summary import summarise
from missmdp.learn.registry import learners
from missmdp.model.picture import save_picture
from missmdp.pages import page

STYLE_SHEET = Path(page.__file__).with_name("style.css")
ICU, PREDATOR = TINY.benchmarks
ONE = replace(TINY, benchmarks=(ICU,), fully_observed=False)


@pytest.fixture(scope="module")
def summary(tmp_path_factory):
    return summarise(fake_run(tmp_path_factory.mktemp("figures")))


def results(**wanted):
    """Return the results of cells of the tiny run, by run."""
    return {
        cell.run: fake_result(cell)
        for cell in all_cells(TINY)
        if all(
            getattr(cell, name, False) == value for name, value in {"fully_observed": False, **wanted}.items()
        )
    }


def distances(learner, measure, size):
    found = results(kind="learning", benchmark=ICU, size=size).values()
    return np.array([result.found[learner][measure] for result in found])


def gaps(estimates, run, benchmark=ICU):
    """Return V − V_prior in a policy's episodes, and V_optimal − V_prior in all of the run, on average."""
    optimal, prior = (
        results(kind="baseline", benchmark=benchmark, policy=end)[0] for end in ("optimal", "prior")
    )
    above = estimates - prior.estimates[run, : len(estimates)]
    return above.mean(), (optimal.estimates[run] - prior.estimates[run]).mean()


def normalised(learner, size):
    found = results(kind="value", benchmark=ICU, policy=learner, size=size)
    pairs = np.array([gaps(result.estimates[0], run) for run, result in found.items()])
    return pairs[:, 0].mean() / pairs[:, 1].mean(), pairs[:, 0] / pairs[:, 1]


def line(axes, learner):
    (found,) = [drawn for drawn in axes.lines if drawn.get_label() == learner]
    return found


def texts(figure):
    return {text.get_text() for axes in figure.axes for text in axes.texts}


def key(figure):
    return [text.get_text() for text in figure.legends[0].get_texts()]


def test_total_variation_is_drawn_as_measured(summary):
    average, worst, _ = curves_figure(summary, [ICU]).axes
    for learner in TINY.learners:
        for axes, measure in ((average, "atv"), (worst, "wtv")):
            drawn = line(axes, learner)
            assert tuple(drawn.get_xdata()) == TINY.sizes
            expected = [distances(learner, measure, size).mean() for size in TINY.sizes]
            assert drawn.get_ydata() == pytest.approx(np.array(expected))
            assert axes.get_ylim()[1] > max(drawn.get_ydata())


def test_areas_are_the_quartiles(summary):
    (curve,) = [one for one in curves(summary, ICU, "wtv") if one.learner == "AIMI"]
    expected = [np.quantile(distances("AIMI", "wtv", size), (0.25, 0.75)) for size in TINY.sizes]
    assert np.array(curve.quartiles) == pytest.approx(np.array(expected))
    worst = curves_figure(summary, [ICU]).axes[1]
    corners = worst.collections[TINY.learners.index("AIMI")].get_paths()[0].vertices
    for size, ends in zip(TINY.sizes, expected, strict=True):
        assert sorted(set(corners[corners[:, 0] == size, 1])) == pytest.approx(sorted(set(ends)))


def test_values_are_drawn_on_the_scale_from_prior_to_optimal(summary):
    axes = curves_figure(summary, [ICU]).axes[2]
    for learner in TINY.learners:
        drawn = line(axes, learner)
        assert tuple(drawn.get_xdata()) == TINY.value_sizes
        expected = [normalised(learner, size)[0] for size in TINY.value_sizes]
        assert drawn.get_ydata() == pytest.approx(np.array(expected))
    (curve,) = [one for one in curves(summary, ICU, "normalised") if one.learner == "AsMAR"]
    runs = normalised("AsMAR", 1_000)[1]
    assert curve.quartiles[0] == pytest.approx(tuple(np.quantile(runs, (0.25, 0.75))))


def test_values_below_the_picture_are_pointed_to_with_their_number(summary):
    figure = curves_figure(summary, [ICU])
    assert normalised("AIMI", 1_000)[0] < LOWEST
    assert {f"−{abs(normalised('AIMI', size)[0]):.1f}" for size in TINY.value_sizes} <= texts(figure)
    arrows = [drawn for drawn in figure.axes[2].lines if drawn.get_marker() == "v"]
    assert [drawn.get_color() for drawn in arrows] == [COLOURS["AIMI"]] * 2
    assert figure.axes[2].get_ylim()[0] == LOWEST


def test_learners_that_assume_what_is_not_so_are_dashed(summary):
    axes = curves_figure(summary, [ICU]).axes[0]
    dashed = {learner: line(axes, learner).is_dashed() for learner in TINY.learners}
    assert dashed == {"AMCAR": True, "AsMAR": False, "AIMI": False}
    board, *panels = map_figure(summary, PREDATOR).axes
    assert all(line(axes, learner).is_dashed() for axes in panels for learner in TINY.learners)
    assert board.get_title() == PREDATOR


def test_the_map_stands_beside_its_benchmark(summary):
    board = map_figure(summary, PREDATOR).axes[0]
    words = [text.get_text() for text in board.texts]
    assert words.count("▲") == 4
    assert {"plains", "jungle", "mountain"} <= set(words)
    colours = [patch.get_facecolor() for patch in board.patches]
    assert (
        colours.count(board.patches[0].get_facecolor()) == 8 + 1
    )  # the top left corner is jungle; one in the key


def test_policies_stand_side_by_side(summary):
    assert common_size(summary, ICU) == 100_000
    found = {one.policy: one for one in compared_policies(summary, ICU)}
    names = ["optimal", "AMCAR", "AsMAR", "AIMI", "prior", "ppo-memory", "ppo", "pomcp", "random"]
    assert list(found) == names
    assert found["AsMAR"].normalised == pytest.approx(normalised("AsMAR", 100_000)[0])
    assert found["AsMAR"].best is None
    runs = results(kind="baseline", benchmark=ICU, policy="pomcp")
    pairs = np.array([gaps(result.estimates[0], run) for run, result in runs.items()])
    assert found["pomcp"].normalised == pytest.approx(pairs[:, 0].mean() / pairs[:, 1].mean())
    assert found["pomcp"].best == pytest.approx((pairs[:, 0] / pairs[:, 1]).max())
    assert (found["optimal"].normalised, found["prior"].normalised) == (1.0, 0.0)


def test_dots_are_where_values_are(summary):
    figure = baselines_figure(summary, TINY.benchmarks)
    axes = figure.axes[0]
    labels = [label.get_text() for label in axes.get_yticklabels()]
    row = labels.index("AsMAR")
    shown = [drawn for drawn in axes.lines if list(drawn.get_ydata()) == [row]]
    assert shown[0].get_xdata()[0] == pytest.approx(normalised("AsMAR", 100_000)[0])
    arrows = [drawn.get_ydata()[0] for drawn in axes.lines if drawn.get_marker() == "<"]
    assert arrows == [labels.index(one) for one in ("AIMI", "random")]
    assert all(
        one.normalised < LEFT for one in compared_policies(summary, ICU) if one.policy in ("AIMI", "random")
    )
    assert key(figure) == ["mean ± standard error", "best seed", "further left", "1 optimal, 0 prior"]


def test_nothing_missing_beside_the_optimum(summary):
    figure = nothing_missing_figure(summary)
    assert [axes.get_title() for axes in figure.axes] == ["ICU", "Predator, small map"]
    runs = results(kind="baseline", benchmark=ICU, policy="ppo", fully_observed=True).values()
    means = [result.estimates.mean() for result in runs]
    axes = figure.axes[0]
    row = [label.get_text() for label in axes.get_yticklabels()].index("PPO")
    dot, best = [drawn.get_xdata()[0] for drawn in axes.lines if list(drawn.get_ydata()) == [row]]
    assert dot == pytest.approx(np.mean(means))
    assert best == pytest.approx(max(means))
    assert axes.lines[-1].get_xdata()[0] == pytest.approx(-48.25, abs=0.01)


def test_the_same_cells_give_the_same_files(summary, tmp_path):
    names = ["learning-curves", PREDATOR, "baselines", "baselines-selected", "nothing-missing"]
    paths = draw_figures(summary, folder=tmp_path)
    assert [path.stem for path in paths] == names
    again = summarise(summary.folder)
    for path, figure in [(paths[0], curves_figure(again, [ICU])), (paths[4], nothing_missing_figure(again))]:
        assert save_picture(figure, tmp_path / "again.svg").read_bytes() == path.read_bytes()


def test_figures_go_into_the_folder_of_the_run(tmp_path):
    folder = fake_run(tmp_path, ONE, lambda cell: cell.kind != "baseline")
    paths = draw_figures(folder, (".png", ".pdf", ".png"))
    assert [path.relative_to(folder).as_posix() for path in paths] == [
        "figures/baselines.png",
        "figures/baselines.pdf",
    ]
    before = [path.read_bytes() for path in paths]
    assert [path.read_bytes() for path in draw_figures(folder, (".png", ".pdf"))] == before


def test_what_is_not_finished_is_said(tmp_path):
    late = lambda cell: cell.kind == "value" and cell.benchmark == ICU  # noqa: E731
    figure = curves_figure(summarise(fake_run(tmp_path, TINY, late)), TINY.benchmarks)
    assert len(figure.axes) == 6
    assert [text.get_text() for text in figure.axes[4].texts] == ["not run yet"]
    assert "not run yet" not in {text.get_text() for text in figure.axes[5].texts}


def test_without_the_ends_of_the_scale_there_are_no_values(tmp_path):
    found = summarise(fake_run(tmp_path, ONE, lambda cell: getattr(cell, "policy", "") == "prior"))
    figure = curves_figure(found, [ICU])
    assert len(figure.axes) == 2
    assert "1 optimal, 0 prior" not in key(figure)
    assert baselines_figure(found, [ICU]) is None
    assert compared_policies(found, ICU) == []
    assert nothing_missing_figure(found) is None


def test_some_learners_may_be_ahead_of_others(tmp_path):
    late = lambda cell: cell.kind == "value" and cell.policy == "AIMI" and cell.size == 100_000  # noqa: E731
    found = summarise(fake_run(tmp_path, ONE, late))
    assert common_size(found, ICU) == 1_000


def test_one_run_has_no_quartiles(tmp_path):
    config = replace(ONE, runs=1, value_runs=1, baseline_seeds=1)
    found = summarise(fake_run(tmp_path, config))
    figure = curves_figure(found, [ICU])
    assert all(len(axes.collections) == 0 for axes in figure.axes)
    assert "middle half of runs" not in key(figure)
    assert all(one.best is None for one in compared_policies(found, ICU))
    assert "best seed" not in key(baselines_figure(found, [ICU]))


def test_nothing_to_draw(tmp_path):
    with pytest.raises(MissMDPError, match="no run of `missmdp reproduce`"):
        draw_figures(tmp_path)
    with pytest.raises(MissMDPError, match=r"a picture's name must end in \.svg"):
        draw_figures(tmp_path, (".gif",))
    fake_run(tmp_path, ONE, lambda cell: True)
    with pytest.raises(MissMDPError, match="nothing to draw, none of .* cells is finished"):
        draw_figures(tmp_path)
    fake_run(tmp_path, ONE, lambda cell: getattr(cell, "policy", "") != "random")
    assert draw_figures(tmp_path) == []


def test_sizes_are_short():
    sizes = (10, 50, 100, 500, 1_000, 5_000, 120, 10_000_000)
    assert [size_text(size) for size in sizes] == ["10", "50", "10²", "5·10²", "10³", "5·10³", "120", "10⁷"]


def test_learners_have_the_same_colours_as_on_pages():
    light = STYLE_SHEET.read_text(encoding="utf-8").split("@media")[0]
    for learner in learners().values():
        assert f"--{learner.label}: {COLOURS[learner.name].lower()};" in light
    assert {"AMCAR", "AsMAR", "AIMI", "DynamicsEM", "DynamicsEM+graph"} <= set(COLOURS)


@pytest.mark.parametrize(("measure", "value"), [("atv", 0.0), ("atv", 5e-324), ("normalised", 1e300)])
def test_numbers_of_any_size_can_be_drawn(measure, value):
    curve = Curve("AsMAR", (10, 100), (value, value), ((value, value),) * 2, 2)
    domain = limits(measure, [[curve]])
    assert domain[0] < domain[1] < np.inf
    assert curves_chart([CurvesPanel("icu-smar", "", (curve,))], domain)(600.0).height > 0.0
