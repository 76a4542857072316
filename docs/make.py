"""Make the pictures and tables of the documents.

python docs/make.py figures            # docs/figures; the same library versions give the same files
python docs/make.py results FOLDER     # all tables, from the cells that `missmdp reproduce -o FOLDER` has finished
"""

from __future__ import annotations

import csv
import shutil
import sys
from collections.abc import Iterable
from pathlib import Path

import missmdp as mm
from missmdp.experiments.reproduce.config import is_reproduction
from missmdp.experiments.reproduce.pictures import draw_figures
from missmdp.experiments.reproduce.summary import write_tables
from missmdp.experiments.reproduce.text import markdown_tables
from missmdp.experiments.studies.catalogue import STUDIES
from missmdp.experiments.studies.study import write_study
from missmdp.experiments.tables import put_tables
from missmdp.interop import read_model
from missmdp.plan.trace import TraceBuilder

DOCS = Path(__file__).parent
FIGURES, RESULTS = DOCS / "figures", DOCS / "results"
FIGURES_OF_RESULTS = RESULTS / "figures"


def make_results(folder: Path) -> None:
    """Put the tables of all studies, and those of the paper's experiments, into docs/results and the pages."""
    for name, study in STUDIES.items():
        rows = write_study(study, folder)
        if not rows:
            print(f"{name}: nothing is finished; its page stays as it is")
            continue
        copy_tables(folder, rows)
        page = RESULTS / study.page
        if study.template and not page.exists():
            page.write_text(study.template)
        put = put_tables(study.tables(rows), page)
        if study.draw is not None:
            put += [path.name for path in study.draw(rows, FIGURES_OF_RESULTS)]
        print(f"{name}: {', '.join(put)} in {study.page}")
    if is_reproduction(folder):
        make_paper(folder)


def make_paper(folder: Path) -> None:
    """Put the tables and figures of the paper's experiments into docs/results, if all of them are finished."""
    summary = write_tables(folder)
    if summary.finished < len(summary.cells):
        print(
            f"paper: {summary.finished:,} of {len(summary.cells):,} cells are finished; its page stays as it is"
        )
        return
    copy_tables(folder, summary.tables())
    shutil.copyfile(folder / "config.toml", RESULTS / "config.toml")
    draw_figures(summary, folder=FIGURES_OF_RESULTS)
    print(f"paper: {', '.join(put_tables(markdown_tables(summary), RESULTS / 'index.md'))} in index.md")


def copy_tables(folder: Path, names: Iterable[str]) -> None:
    """Copy tables as CSV."""
    for name in names:
        shutil.copyfile(folder / "tables" / f"{name}.csv", RESULTS / "tables" / f"{name}.csv")


def draw_all(folder: Path) -> list[Path]:
    """Draw m-graphs of all models, what is missing in a log, a policy and a search; return the paths."""
    drawn: list[Path] = []
    for name in [*mm.list_benchmarks(), *mm.list_examples()]:
        types = mm.load_benchmark(name).types()
        path = folder / f"mgraph-{name}.svg"
        drawn.append(mm.load_benchmark(name).mgraph().draw(path, title=f"{name}: {types.name}"))
    return [*drawn, draw_description(folder), draw_policy(folder), draw_search(folder)]


def draw_description(folder: Path) -> Path:
    """Draw what is missing in a simulated log of the ICU."""
    name, steps, seed = "icu-mnar-unid", 10_000, 0
    data = mm.collect(mm.load_benchmark(name), steps, seed=seed)
    title = f"{name}: what is missing in {steps:,} simulated steps (seed {seed})"
    return mm.describe(data).draw(folder / f"describe-{name}.svg", title=title)


def draw_policy(folder: Path) -> Path:
    """Draw what to do in the tiger problem."""
    policy = mm.Sarsop(precision=1e-6, progress=False).solve(read_model(DOCS / "tiger.pomdp")).policy
    return policy.graph().draw(folder / "policy-tiger.svg", title="tiger.pomdp: what to do")


def draw_search(folder: Path) -> Path:
    """Draw the bounds of a search that was recorded, but for its first second, in which they are far apart.

    Times differ from run to run. To record another:
    `missmdp solve icu-smar --precision 0 --timeout 30 --trace docs/trace-icu-smar.csv`.
    """
    trace = TraceBuilder()
    with (DOCS / "trace-icu-smar.csv").open(newline="") as file:
        for row in csv.DictReader(file):
            counts = {name: int(row[name]) for name in ("trials", "backups", "vectors", "points")}
            numbers = {name: float(row[name]) for name in ("seconds", "lower", "upper")}
            if numbers["seconds"] >= 1.0:
                trace.append(**counts, **numbers)
    return trace.build().plot(folder / "trace-icu-smar.svg", title="icu-smar: bounds over time")


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["figures"]:
            print(*draw_all(FIGURES), sep="\n")
        case ["results", run]:
            make_results(Path(run))
        case _:
            sys.exit(__doc__)
