"""What cannot be known."""

from __future__ import annotations

from missmdp.experiments.report.run_file import RunFile
from missmdp.pages.page import Section, bullets, paragraph
from missmdp.words import sentence

__all__ = ["limits_section"]


def limits_section(run: RunFile) -> Section:
    """Return the section on what the data cannot tell."""
    content = (
        bullets(map(sentence, run["cannot_know"]))
        if run["cannot_know"]
        else paragraph("Nothing was noted, which does not mean that everything is known.")
    )
    return Section("limits", "What cannot be known from these data", (content,))
