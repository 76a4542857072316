"""Which assumptions the data contradict."""

from __future__ import annotations

from missmdp.experiments.report.markup import Html
from missmdp.experiments.report.page import Section, bullets, note, paragraph, subsection
from missmdp.experiments.report.run_file import RunFile
from missmdp.experiments.report.words import sentence

__all__ = ["assumptions_section"]


def assumptions_section(run: RunFile) -> Section:
    """Return the section on what speaks against the learners' assumptions."""
    content: list[Html] = []
    for learner in run.learners:
        title = f"{learner['name']}: {run.assumption(learner)}"
        if learner["warnings"]:
            verdict = note("the data speak against this.", kind="warning")
            content.append(subsection(title, verdict, bullets(map(sentence, learner["warnings"]))))
        else:
            content.append(subsection(title, paragraph("The tests found nothing that speaks against this.")))
    if any(learner["warnings"] for learner in run.learners):
        content.append(
            paragraph(
                "A number p is the chance of data as extreme as these if the assumption were true; a tiny one is a "
                "contradiction, and a reason to distrust that learner’s policy.",
                kind="after",
            )
        )
    content.append(
        paragraph(
            "No contradiction is no proof: that a value hides itself, for one, cannot be seen in single records.",
            kind="after",
        )
    )
    return Section("assumptions", "Do the data contradict an assumption?", tuple(content))
