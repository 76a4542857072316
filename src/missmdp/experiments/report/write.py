"""From a run's folder to its page."""

from __future__ import annotations

from pathlib import Path

from missmdp.errors import FormatError
from missmdp.experiments.report.assumptions_section import assumptions_section
from missmdp.experiments.report.certificate_section import certificate_section
from missmdp.experiments.report.data_section import data_section
from missmdp.experiments.report.graph_section import graph_section
from missmdp.experiments.report.headline import headline_box, headline_title
from missmdp.experiments.report.heldout_section import heldout_section
from missmdp.experiments.report.learned_section import learned_section
from missmdp.experiments.report.limits_section import limits_section
from missmdp.experiments.report.method_section import method_section
from missmdp.experiments.report.run_file import RUN_FILE, RunFile, read_run
from missmdp.experiments.report.sensitivity_section import sensitivity_section
from missmdp.experiments.report.solver_section import solver_section
from missmdp.experiments.report.values_section import values_section
from missmdp.experiments.report.why_section import why_section
from missmdp.model.archive import write_atomically
from missmdp.pages.page import page

__all__ = ["REPORT_FILE", "report_page", "write_report"]

REPORT_FILE = "report.html"

_SECTIONS = (
    data_section,
    why_section,
    graph_section,
    learned_section,
    assumptions_section,
    heldout_section,
    solver_section,
    values_section,
    certificate_section,
    sensitivity_section,
    limits_section,
    method_section,
)


def write_report(folder: Path) -> Path:
    """Write a page on what `missmdp run` found, from its run.json alone, and return the page's path.

    The same run.json gives the same bytes. The page needs no other file and no network.

    Raises
    ------
    FormatError
        If there is no run in the folder, or its file is damaged.
    """
    run = read_run(folder)
    try:
        text = report_page(run)
    except (KeyError, TypeError, IndexError, AttributeError, ValueError) as error:
        reason = f"{type(error).__name__}: {error}"
        raise FormatError(f"{folder / RUN_FILE}: damaged or of another version ({reason})") from error
    path = folder / REPORT_FILE
    write_atomically(path, text.encode())
    return path


def report_page(run: RunFile) -> str:
    """Return the page of a run."""
    sections = [section for make in _SECTIONS if (section := make(run)) is not None]
    return page(
        headline_title(run),
        kicker=f"missmdp run · {run.model['name']}",
        lead=[headline_box(run)],
        sections=sections,
        footer=f"Made by missmdp {run['version']} from {RUN_FILE} alone; seed {run['seed']}.",
    )
