"""Copy the tables and figures of a run of `missmdp reproduce` to docs/results, and put its numbers into the page there.

missmdp reproduce --profile small -o small
python docs/make_results.py small
"""

from __future__ import annotations

import argparse
import shutil
from pathlib import Path

from missmdp.experiments.reproduce.pictures import draw_figures
from missmdp.experiments.reproduce.summary import Summary, summarise
from missmdp.experiments.reproduce.text import markdown_tables
from missmdp.experiments.tables import put_tables

TARGET = Path(__file__).parent / "results"


def copy_tables(summary: Summary) -> None:
    """Copy the tables as CSV, and the configuration that they come from."""
    run = summary.store.folder
    (TARGET / "tables").mkdir(parents=True, exist_ok=True)
    for name in summary.tables():
        shutil.copyfile(run / "tables" / f"{name}.csv", TARGET / "tables" / f"{name}.csv")
    shutil.copyfile(run / "config.toml", TARGET / "config.toml")


def main() -> None:
    """Do all of it; refuse runs that are not finished."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("run", type=Path, help="a folder of `missmdp reproduce`")
    summary = summarise(parser.parse_args().run)
    if summary.finished < len(summary.cells):
        parser.error(f"{summary.finished} of {len(summary.cells)} cells are finished; go on with it first")
    copy_tables(summary)
    figures = draw_figures(summary, folder=TARGET / "figures")
    tables = put_tables(markdown_tables(summary), TARGET / "index.md")
    print(f"{len(figures)} figures and the tables {', '.join(tables)} are in {TARGET}")


if __name__ == "__main__":
    main()
