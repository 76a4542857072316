"""What the data of a run cannot tell, in sentences."""

from __future__ import annotations

from collections.abc import Iterator

from missmdp.experiments.record.record import RunRecord
from missmdp.words import count, listed

WIDE_GAP = 0.05
"""Relative gap from which a solved policy deserves a word."""


def limitations(run: RunRecord) -> list[str]:
    """Return sentences on what is assumed, guessed or left open, the weightiest first."""
    return [
        *_truth(run),
        *_self_censoring(run),
        *_likelihood(run),
        *_dynamics(run),
        *_always_observed(run),
        *_without_data(run),
        *_guarantee(run),
        *_behaviour(run),
        *_solving(run),
    ]


def _truth(run: RunRecord) -> Iterator[str]:
    if not run.truth_known:
        yield (
            "How values really go missing is not known, so what policies are worth is computed in the worlds in which "
            "one of the learners is right. If none is, policies may be worth more or less than any of these values."
        )
    elif run.data.source == "simulated":
        yield (
            "Distances from the truth, optimal and normalised values are known here only because the data were "
            "simulated. Data of your own do not give them."
        )
    elif run.data.ruled_out:
        yield (
            "Values did not go missing in these data as the model says: some episodes could not have happened. So what "
            "policies are worth in the truth is not what they are worth where the data come from."
        )
    else:
        yield (
            "What policies are worth in the truth holds if values went missing in these data as the model says, which "
            "was not tested. A run with an unknown truth does not take that for granted."
        )


def _self_censoring(run: RunRecord) -> Iterator[str]:
    features = list(run.data.gaps)
    if not features:
        yield (
            "Nothing is missing in these data, so they tell nothing of how values go missing; all learners take "
            "every feature as always observed."
        )
        return
    counting = [learner.name for learner in run.learners if learner.bound.guaranteed]
    others = [learner.name for learner in run.learners if not learner.bound.guaranteed]
    text = (
        f"Whether {listed(features, 'or')} goes missing because of what the value would have been (self-censoring) "
        "cannot be seen in single rows: a missing value does not show what it was."
    )
    if counting:
        who = (
            "The learners assume" if not others else f"{listed(counting)} assume{'s' * (len(counting) == 1)}"
        )
        text += f" {who} that this does not happen."
    for name in others:
        text += f" {name} infers it from what came before and after, as far as the dynamics give it away."
    yield text


def _likelihood(run: RunRecord) -> Iterator[str]:
    if run.learner.heldout is None:
        yield "Nothing could be held out, so the learners are not compared on data that they have not seen."
    elif len(run.learners) > 1:
        yield (
            "Held-out likelihood ranks the learners, but does not say that the best one is right: missingness "
            "functions that make the same observations equally likely cannot be told apart by any amount of data."
        )


def _dynamics(run: RunRecord) -> Iterator[str]:
    if run.data.source == "simulated":
        return
    fits = (
        "every step in the log is possible in it"
        if run.data.fits
        else "some steps in the log are impossible in it"
    )
    tried = (
        " What was tried of other transitions shows how much may depend on them."
        if run.sensitivity is not None and run.sensitivity.rows
        else ""
    )
    yield (
        f"Transition probabilities and rewards are taken from the model ({fits}); whether the probabilities are right "
        f"was not tested.{tried}"
    )


def _always_observed(run: RunRecord) -> Iterator[str]:
    declared = run.settings.always_observed
    names = [name for name, rate in run.data.missing_rates.items() if not rate and name not in declared]
    if names and run.data.gaps and run.data.steps > 0:
        steps = run.data.steps
        rate = 1.0 - 0.05 ** (1.0 / steps)
        were = "was" if len(names) == 1 else "were"
        yield (
            f"{listed(names)} {were} never missing in {count(steps, 'observation')}, and taken as always observed; "
            f"if rows were independent, up to {100 * rate:.2g} % of each could still go missing, with 95 % confidence."
        )


def _without_data(run: RunRecord) -> Iterator[str]:
    never = run.data.never_visited
    if never:
        yield (
            f"{count(never, 'reachable state')} {'was' if never == 1 else 'were'} certainly never visited: nothing "
            "in the data is about them."
        )
    learner = run.learner
    if learner.unseen_groups:
        yield (
            f"{learner.name} has no data at all for {count(learner.unseen_groups, 'group')} of reachable states; "
            f"what goes missing there is a guess ({learner.unseen_get})."
        )


def _guarantee(run: RunRecord) -> Iterator[str]:
    for learner in run.learners:
        if not learner.bound.guaranteed:
            yield (
                f"How far {learner.name} may be from the truth is not known for certain: its intervals come from a "
                "bootstrap, which is right with much data and may be too narrow with little."
            )


def _behaviour(run: RunRecord) -> Iterator[str]:
    if not run.data.behaviour_known and any(learner.bound.guaranteed for learner in run.learners):
        yield (
            "The data do not say whether whoever acted reacted to what was seen. Bounds hold in either case; they are "
            "tighter where it is known that nobody did (behaviour blind)."
        )


def _solving(run: RunRecord) -> Iterator[str]:
    wide = [
        policy
        for policy, search in run.searches.items()
        if search.relative_gap is None or search.relative_gap > WIDE_GAP
    ]
    if wide:
        stuck = [policy for policy in wide if run.searches[policy].status == "exhausted"]
        more = "more time for solving would tell"
        if stuck:
            where = "there" if stuck == wide else f"for {listed(stuck)}"
            more = f"the solver has nothing more to try {where}"
        yield (
            f"Not solved to the end: {listed(wide)}. Better policies may exist, up to the solver's upper bounds; "
            f"{more}."
        )
