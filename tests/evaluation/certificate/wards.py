"""A small ward whose patients can be treated, and learners with ways of going missing that they can learn."""

from __future__ import annotations

import warnings

import missmdp as mm

__all__ = ["CASES", "learned", "react", "ward"]


def ward() -> mm.FactoredMDP:
    """Return a ward: fevers come, by day more often, and treatment ends them; treating the healthy harms."""

    def transition(state, action):
        day = "night" if state.day == "day" else "day"
        rises = 0.35 if state.day == "day" else 0.15
        fever = 0.1 if action == "treat" else (0.85 if state.fever else rises)
        return [
            ((day, f, p), (fever if f else 1.0 - fever) * (0.8 if p == f else 0.2))
            for f in (0, 1)
            for p in (0, 1)
        ]

    return mm.FactoredMDP(
        features={"day": ["day", "night"], "fever": [0, 1], "pulse": [0, 1]},
        actions=["wait", "treat"],
        transition=transition,
        reward=lambda s, a: (-2.0 if s.fever else 0.0) - (1.0 if a == "treat" else 0.0),
        initial={("day", 0, 0): 0.7, ("day", 1, 1): 0.3},
        discount=0.8,
    )


def _by_day(state):
    return (
        {(1, 1, 1): 0.5, (1, 0, 1): 0.3, (1, 0, 0): 0.2}
        if state.day == "day"
        else {(1, 1, 1): 0.1, (1, 0, 1): 0.4, (1, 0, 0): 0.5}
    )


def _cases() -> dict[str, tuple[mm.CountingEstimator, mm.MissMDP]]:
    mdp, M = ward(), mm.MissingnessFunction
    always = {(1, 1, 1): 0.4, (1, 0, 1): 0.35, (1, 0, 0): 0.25}
    independent = {"fever": lambda s: 0.3 + 0.4 * s.pulse, "pulse": lambda s: 0.1 + 0.1 * (s.day == "day")}
    return {
        "AMCAR": (mm.AMCAR(), mm.MissMDP(mdp, M.from_patterns(mdp, lambda s: always))),
        "AsMAR": (mm.AsMAR(), mm.MissMDP(mdp, M.from_patterns(mdp, _by_day))),
        "AsMAR, unsmoothed": (mm.AsMAR(smoothing=0.0), mm.MissMDP(mdp, M.from_patterns(mdp, _by_day))),
        "AIMI": (mm.AIMI(), mm.MissMDP(mdp, M.independent(mdp, independent))),
    }


CASES = _cases()


def react(observation):
    """Return what a policy does that reacts to what it sees, and to what it does not."""
    return (
        {"wait": 0.2, "treat": 0.8}
        if observation.fever is None
        else ("treat" if observation.fever else "wait")
    )


def learned(case: str, steps: int, seed: int, policy=None) -> mm.CountingEstimator:
    """Return a learner that has seen so many steps of its ward."""
    learner, model = CASES[case]
    data = mm.collect(model, steps, policy, seed=seed, horizon=40, threads=1, progress=False)
    with warnings.catch_warnings():
        # With so many datasets some show what looks like a broken assumption.
        warnings.simplefilter("ignore", mm.AssumptionWarning)
        return type(learner)(**learner.get_params()).fit(data)
