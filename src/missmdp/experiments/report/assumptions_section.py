"""Which assumptions the data contradict."""

from __future__ import annotations

from missmdp.experiments.report.run_file import RunFile
from missmdp.pages.markup import Html
from missmdp.pages.page import Section, bullets, note, paragraph, subsection
from missmdp.words import sentence

__all__ = ["assumptions_section"]

_TESTED = "The tests found nothing that speaks against this."
_CHOSEN = (
    "This was chosen because it explains the data best, so it is not tested against them once more; wherever the "
    "search began, it ended with the same chances."
)


def assumptions_section(run: RunFile) -> Section:
    """Return the section on what speaks against the learners' assumptions."""
    content: list[Html] = []
    for learner in run.learners:
        title = f"{learner['name']}: {run.assumption(learner)}"
        counts = run.is_guaranteed(learner)
        if learner["warnings"]:
            doubt = "the data speak against this." if counts else "what was learned is in doubt."
            verdict = note(doubt, kind="warning")
            content.append(subsection(title, verdict, bullets(map(sentence, learner["warnings"]))))
        else:
            content.append(subsection(title, paragraph(_TESTED if counts else _CHOSEN)))
    if any(learner["warnings"] and run.is_guaranteed(learner) for learner in run.learners):
        content.append(
            paragraph(
                "A number p is the chance of data as extreme as these if the assumption were true; a tiny one is a "
                "contradiction, and a reason to distrust that learner’s policy.",
                kind="after",
            )
        )
    content.append(
        paragraph(
            "No contradiction is no proof: that a value hides itself, for one, cannot be seen in single records, "
            "which are all that these tests look at.",
            kind="after",
        )
    )
    return Section("assumptions", "Do the data contradict an assumption?", tuple(content))
