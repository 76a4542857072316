"""What a reproduction found, as one self-contained page made from its finished cells alone."""

from __future__ import annotations

from pathlib import Path

from missmdp._version import __version__
from missmdp.errors import MissMDPError
from missmdp.experiments.reproduce.config import ReproduceConfig
from missmdp.experiments.reproduce.curve_pictures import MEASURES, curves, limits
from missmdp.experiments.reproduce.findings import LEAST, claims, compared_policies, kind_of, learnable_by
from missmdp.experiments.reproduce.page_charts import CurvesPanel, curves_chart, curves_key, policies_chart
from missmdp.experiments.reproduce.pictures import draw_figures
from missmdp.experiments.reproduce.style import POLICIES, size_text
from missmdp.experiments.reproduce.summary import Summary, summarise
from missmdp.experiments.reproduce.text import (
    TextTable,
    approximation,
    assumptions,
    model_free,
    plus_minus,
    text_tables,
    values,
)
from missmdp.files import write_atomically
from missmdp.pages.markup import Html, element
from missmdp.pages.page import (
    Section,
    Tile,
    bullets,
    code,
    details,
    facts,
    figure,
    headline,
    note,
    page,
    paragraph,
    table,
)
from missmdp.pages.svg import Chart
from missmdp.words import count, duration, listed

PAGE = "report.html"
Tables = dict[str, TextTable]


def write_page(run: str | Path | Summary) -> Path:
    """Write a page on what `missmdp reproduce` has found so far, and return its path.

    The page needs no other file and no network; the same cells give the same bytes.

    Raises
    ------
    MissMDPError
        If the folder has no run in it, or nothing is finished.
    """
    summary = run if isinstance(run, Summary) else summarise(run)
    path = summary.folder / PAGE
    write_atomically(path, reproduction_page(summary).encode())
    return path


def reproduction_page(summary: Summary) -> str:
    """Return the page of a run."""
    if not summary.finished:
        raise MissMDPError(
            f"{summary.folder}: nothing to report, none of {len(summary.cells):,} cells is finished"
        )
    tables = text_tables(summary)
    sections = [
        _what_was_run(summary),
        _claim(tables),
        _question_one(summary, tables),
        _question_two(summary, tables),
        _question_three(summary, tables),
        _question_four(summary, tables),
        _times(tables),
    ]
    return page(
        "The paper’s experiments, run again",
        kicker="missmdp reproduce",
        lead=_lead(summary),
        sections=[section for section in sections if section is not None],
        footer=f"Made by missmdp {__version__} from stored cells alone; seed {summary.config.seed}.",
    )


def _lead(summary: Summary) -> list[Html]:
    cells, found = len(summary.cells), claims(summary)
    work = duration(sum(row["seconds"] for row in summary.timings))
    tiles = [Tile("Finished", f"{summary.finished:,} of {cells:,}", f"cells; {work} of work")]
    verdict: list[Html] = []
    if found:
        verdicts = [claim.verdict for claim in found]
        among = "benchmarks with a right learner"
        if "open" in verdicts:
            among += f"; {verdicts.count('open')} cannot be decided with so few runs"
        lowest = min(found, key=lambda claim: claim.row["normalised"])
        tiles = [
            Tile("The claim holds on", f"{verdicts.count('yes')} of {len(found)}", among),
            Tile(
                "Lowest value of a right learner",
                plus_minus(lowest.row["normalised"], lowest.row["normalised_stderr"]).split(" ±")[0],
                f"{lowest.learner} on {lowest.benchmark}, {size_text(lowest.size)} steps; optimal is 1, prior 0",
            ),
            *tiles,
        ]
        verdict.append(paragraph(values(summary)[0], kind="verdict"))
    first = [sentences[0] for sentences in (approximation(summary), model_free(summary)) if sentences]
    box = headline(tiles, *verdict, *([paragraph(*first)] if first else []))
    if summary.finished == cells:
        return [box]
    unfinished = f"The run is not finished: all below is from {summary.finished:,} of {cells:,} cells."
    return [note(unfinished, kind="warning"), box]


def _what_was_run(summary: Summary) -> Section:
    return Section(
        "run",
        "What was run",
        (
            run_facts(summary),
            details(
                "All settings",
                paragraph(
                    "Saved as mine.toml, this gives the same tables on any machine, if no time limit is set:"
                ),
                code(summary.config.to_toml()),
                code("missmdp reproduce --config mine.toml -o results"),
            ),
        ),
    )


def _claim(tables: Tables) -> Section | None:
    if "claims" not in tables:
        return None
    return Section(
        "claim",
        "Does the claim hold?",
        (
            paragraph(
                "The claim: a policy for what the right learner has learned from 10⁵ steps, or the most below that",
                "were run, is nearly as good as one that knows how values go missing. It holds where the 95 %",
                f"interval of the normalised value does not go below {LEAST}, fails where it stays below, and is open",
                "where neither is so. A normalised value of 1 is the optimal",
                "policy’s, 0 that of a prior that assumes that every gap is a coin toss. The right learner is the",
                "first of AMCAR, AsMAR and AIMI whose assumption holds.",
            ),
            _shown(tables, "claims"),
        ),
    )


def _question_one(summary: Summary, tables: Tables) -> Section | None:
    return _question(
        "q1",
        "Q1: Do the learners find how values go missing?",
        approximation(summary),
        [
            _curves_figure(
                summary,
                "atv",
                "Average total variation between M̂ and M over the size of the dataset",
                "Total variation is 0 where M̂ is right and at most 1; here its average over states.",
            ),
            _shown(tables, "learning"),
        ],
    )


def _question_two(summary: Summary, tables: Tables) -> Section | None:
    return _question(
        "q2",
        "Q2: What do wrong assumptions do?",
        assumptions(summary),
        [
            _curves_figure(
                summary,
                "wtv",
                "Worst total variation over states",
                "States that random behaviour hardly ever visits decide here: it falls more slowly than the average.",
            ),
            _shown(tables, "wtv"),
        ],
    )


def _question_three(summary: Summary, tables: Tables) -> Section | None:
    return _question(
        "q3",
        "Q3: Do the policies become as good as the optimal one?",
        values(summary),
        [
            _curves_figure(
                summary,
                "normalised",
                "Normalised value of the policy for M̂ over the size of the dataset",
                "1 is the optimal policy’s value, 0 the prior’s. An arrow points to what lies below.",
            ),
            _shown(tables, "values"),
            _shown(tables, "separation"),
        ],
    )


def _question_four(summary: Summary, tables: Tables) -> Section | None:
    found = {name: ones for name in summary.config.benchmarks if (ones := compared_policies(summary, name))}
    content: list[Html | None] = []
    if found:
        described = (
            f"{name}: {', '.join(f'{one.policy} {plus_minus(one.normalised, one.stderr)}' for one in ones)}"
            for name, ones in found.items()
        )
        chart = Chart(
            "standings", "Normalised values of all policies", "; ".join(described), policies_chart(found)
        )
        stroke = element("span", element("span", class_="tick-mark"), "best seed")
        content.append(
            figure(
                chart,
                "Learned policies are those of the largest dataset that all learners have. Lines are standard errors; "
                "bold names a learner whose assumption holds; an arrow points to what lies further left.",
                key=[stroke] if any(one.best is not None for ones in found.values() for one in ones) else [],
            )
        )
    content += [_shown(tables, "baselines"), _shown(tables, "nothing_missing")]
    return _question("q4", "Q4: Do model-free methods compete?", model_free(summary), content)


def _times(tables: Tables) -> Section | None:
    if "timings" not in tables:
        return None
    return Section("times", "How long it took", (_shown(tables, "timings"),))


def _question(key: str, title: str, answer: list[str], content: list[Html | None]) -> Section | None:
    """Return the section of a question: the answer in short, what it rests on, and the sentences behind it."""
    shown = [part for part in content if part]
    if not answer and not shown:
        return None
    short = (
        [paragraph(answer[0], kind="verdict"), *([bullets(answer[1:])] if answer[1:] else [])]
        if answer
        else []
    )
    return Section(key, title, (*short, *shown))


def _curves_figure(summary: Summary, measure: str, title: str, meaning: str) -> Html | None:
    panels = [
        CurvesPanel(name, _subtitle(name), tuple(found))
        for name in summary.config.benchmarks
        if (found := curves(summary, name, measure))
    ]
    if not panels:
        return None
    described = (
        f"{panel.benchmark}: "
        + ", ".join(f"{one.learner} {one.mean[-1]:.3f} at {one.sizes[-1]:,} steps" for one in panel.curves)
        for panel in panels
    )
    draw = curves_chart(
        panels,
        limits(measure, [panel.curves for panel in panels]),
        (0.0, 1.0) if measure == "normalised" else (),
    )
    runs = max(curve.runs for panel in panels for curve in panel.curves)
    spread = f"Lines are means of {count(runs, 'dataset')}, areas hold the middle half." if runs > 1 else ""
    return figure(
        Chart(measure, title, f"{MEASURES[measure]}; {'; '.join(described)}", draw),
        meaning,
        spread,
        key=curves_key(panels),
    )


def _subtitle(benchmark: str) -> str:
    holding = learnable_by(benchmark)
    return kind_of(benchmark) + (f": {', '.join(holding)}" if holding else "")


def _shown(tables: Tables, name: str) -> Html:
    """Return a table, folded if it is long; nothing if there is none."""
    found = tables.get(name)
    if found is None:
        return Html("")
    drawn = table(found.caption, found.columns, found.rows, numbers=found.numbers)
    return (
        drawn
        if len(found.rows) <= 7
        else details(f"Table: {found.caption.split(';')[0].split(':')[0]}", drawn)
    )


def draw_and_write(folder: str | Path) -> None:
    """Draw the figures and write report.html from the cells of a folder."""
    summary = summarise(folder)
    draw_figures(summary)
    write_page(summary)


def run_facts(summary: Summary) -> Html:
    """Return what was run, as names and texts."""
    config = summary.config
    pairs = [
        ("benchmarks", listed(config.benchmarks)),
        ("learners", listed(config.learners)),
        ("total variation", f"{count(config.runs, 'dataset')} each of {_sizes(config.sizes)} steps"),
        ("policies", _policies(config)),
        ("solver", _solver(config)),
        ("baselines", _baselines(config)),
        ("cells", f"{summary.finished:,} of {len(summary.cells):,} finished"),
        ("seed", f"{config.seed}; every cell has seeds of its own, made from it"),
        ("version", f"missmdp {__version__}"),
    ]
    if config.only:
        pairs.append(("other settings for", listed(list(config.only))))
    return facts(pairs)


def _sizes(sizes: tuple[int, ...]) -> str:
    return listed([size_text(size) for size in sizes], most=12)


def _policies(config: ReproduceConfig) -> str:
    if not config.value_sizes:
        return "none"
    return (
        f"for {count(config.value_runs, 'dataset')} each of {_sizes(config.value_sizes)} steps, "
        f"evaluated in {config.episodes:,} episodes each"
    )


def _solver(config: ReproduceConfig) -> str:
    limits = [
        f"to a gap of {100 * config.precision:g} %",
        *([f"at most {config.max_trials} trials"] if config.max_trials is not None else []),
        *([f"at most {config.solve_timeout:g} s"] if config.solve_timeout is not None else []),
    ]
    return ", ".join(limits)


def _baselines(config: ReproduceConfig) -> str:
    if not config.baselines:
        return "none"
    names = listed([name for policy, name in POLICIES.items() if policy in config.baselines], most=12)
    if not {"pomcp", "ppo", "ppo-memory"} & set(config.baselines):
        return names
    return f"{names}; {count(config.baseline_seeds, 'seed')} where chance has a part"
