"""From a run's folder to its page."""

from __future__ import annotations

from pathlib import Path

from missmdp.experiments.record.coding import RUN_FILE, read_record
from missmdp.experiments.record.record import RunRecord
from missmdp.experiments.report.certainty_sections import (
    certificate_section,
    limitations_section,
    sensitivity_section,
)
from missmdp.experiments.report.data_section import data_section
from missmdp.experiments.report.graph_section import graph_section
from missmdp.experiments.report.headline import headline_box, headline_title
from missmdp.experiments.report.learned_section import learned_section
from missmdp.experiments.report.method_section import method_section
from missmdp.experiments.report.policy_sections import solver_section, values_section
from missmdp.experiments.report.trust_sections import assumptions_section, heldout_section
from missmdp.experiments.report.why_section import why_section
from missmdp.files import write_atomically
from missmdp.pages.page import page

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
    limitations_section,
    method_section,
)


def write_report(folder: Path) -> Path:
    """Write a page on what `missmdp run` found, from its run.json alone, and return the page's path.

    The same run.json gives the same bytes. The page needs no other file and no network.

    Raises
    ------
    FormatError
        If there is no run in the folder, or its file is damaged or of another version.
    """
    text = report_page(read_record(folder / RUN_FILE))
    path = folder / REPORT_FILE
    write_atomically(path, text.encode())
    return path


def report_page(run: RunRecord) -> str:
    """Return the page of a run."""
    sections = [section for make in _SECTIONS if (section := make(run)) is not None]
    return page(
        headline_title(run),
        kicker=f"missmdp run · {run.model.name}",
        lead=[headline_box(run)],
        sections=sections,
        footer=f"Made by missmdp {run.version} from {RUN_FILE} alone; seed {run.settings.seed}.",
    )
