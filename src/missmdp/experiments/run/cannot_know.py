"""What the data of a run cannot tell, in sentences."""

from __future__ import annotations

from collections.abc import Iterator

from missmdp.experiments.run.result import RunResult
from missmdp.learn.bounds import counted

__all__ = ["cannot_know"]

_WIDE_GAP = 0.05
"""Relative gap from which a solved policy deserves a word."""


def cannot_know(result: RunResult) -> list[str]:
    """Return sentences on what is assumed, guessed or left open, the weightiest first."""
    return [
        *_truth(result),
        *_self_censoring(result),
        *_likelihood(result),
        *_dynamics(result),
        *_always_observed(result),
        *_without_data(result),
        *_guarantee(result),
        *_behaviour(result),
        *_solving(result),
    ]


def _truth(result: RunResult) -> Iterator[str]:
    if result.problem.truth is None:
        yield (
            "How values really go missing is not known, so what policies are worth is computed in the worlds in which "
            "one of the learners is right. If none is, policies may be worth more or less than any of these values."
        )
    elif result.log.simulated:
        yield (
            "Distances from the truth, optimal and normalised values are known here only because the data were "
            "simulated. Data of your own do not give them."
        )
    elif result.log.ruled_out:
        yield (
            "Values did not go missing in these data as the model says: some episodes could not have happened. So what "
            "policies are worth in the truth is not what they are worth where the data come from."
        )
    else:
        yield (
            "What policies are worth in the truth holds if values went missing in these data as the model says, which "
            "was not tested. A run with an unknown truth does not take that for granted."
        )


def _self_censoring(result: RunResult) -> Iterator[str]:
    features = result.log.description.can_go_missing
    if not features:
        yield (
            "Nothing is missing in these data, so they tell nothing of how values go missing; all learners take "
            "every feature as always observed."
        )
        return
    counting = [found.name for found in result.learned.values() if found.bound.guaranteed]
    others = [found.name for found in result.learned.values() if not found.bound.guaranteed]
    text = (
        f"Whether {_listed(features, 'or')} goes missing because of what the value would have been (self-censoring) "
        "cannot be seen in single rows: a missing value does not show what it was."
    )
    if counting:
        who = (
            "The learners assume" if not others else f"{_listed(counting)} assume{'s' * (len(counting) == 1)}"
        )
        text += f" {who} that this does not happen."
    for name in others:
        text += f" {name} infers it from what came before and after, as far as the dynamics give it away."
    yield text


def _likelihood(result: RunResult) -> Iterator[str]:
    if result.heldout is None:
        yield "Nothing could be held out, so that the learners are not compared on data that they have not seen."
    elif len(result.learned) > 1:
        yield (
            "Held-out likelihood ranks the learners, but does not say that the best one is right: missingness "
            "functions that make the same observations equally likely cannot be told apart by any amount of data."
        )


def _dynamics(result: RunResult) -> Iterator[str]:
    if result.log.simulated:
        return
    fits = (
        "every step in the log is possible in it"
        if result.log.report.ok
        else "some steps in the log are impossible in it"
    )
    tried = (
        " What was tried of other transitions shows how much may depend on them."
        if result.sensitivity
        else ""
    )
    yield (
        f"Transition probabilities and rewards are taken from the model ({fits}); whether the probabilities are right "
        f"was not tested.{tried}"
    )


def _always_observed(result: RunResult) -> Iterator[str]:
    declared = result.settings.always_observed
    names = tuple(name for name in result.log.description.never_missing if name not in declared)
    if names and result.log.description.can_go_missing:
        steps = result.log.dataset.n_steps
        rate = 1.0 - 0.05 ** (1.0 / steps)
        were = "was" if len(names) == 1 else "were"
        yield (
            f"{_listed(names)} {were} never missing in {counted(steps, 'observation')}, and taken as always observed; "
            f"if rows were independent, up to {100 * rate:.2g} % of each could still go missing, with 95 % confidence."
        )


def _without_data(result: RunResult) -> Iterator[str]:
    never = len(result.log.report.never_visited)
    if never:
        yield (
            f"{counted(never, 'reachable state')} {'was' if never == 1 else 'were'} certainly never visited: nothing "
            "in the data is about them."
        )
    unseen = result.recommended.learner.unseen_
    if unseen:
        yield (
            f"{result.recommended.name} has no data at all for {counted(len(unseen), 'group')} of reachable states; "
            f"what goes missing there is a guess ({unseen[0].gets})."
        )


def _guarantee(result: RunResult) -> Iterator[str]:
    for found in result.learned.values():
        if not found.bound.guaranteed:
            yield (
                f"How far {found.name} may be from the truth is not known for certain: its intervals come from a "
                "bootstrap, which is right with much data and may be too narrow with little."
            )


def _behaviour(result: RunResult) -> Iterator[str]:
    bounded = any(found.bound.guaranteed for found in result.learned.values())
    if bounded and result.settings.behaviour is None and result.log.dataset.behaviour is None:
        yield (
            "The data do not say whether whoever acted reacted to what was seen. Bounds hold in either case; they are "
            "tighter where it is known that nobody did (behaviour blind)."
        )


def _solving(result: RunResult) -> Iterator[str]:
    searches = {label: result.solved[label] for label in result.solved}
    searches |= {name: base.result for name, base in result.baselines.items() if base.result is not None}
    wide = [name for name, search in searches.items() if search.relative_gap > _WIDE_GAP]
    if wide:
        yield (
            f"Not solved to the end: {_listed(wide)}. Better policies may exist, up to the solver's upper bounds; more "
            "time for solving would tell."
        )


def _listed(names: tuple[str, ...] | list[str], word: str = "and") -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} {word} {names[-1]}"
