"""A small ward, in which infections go missing by the ward, for tests of runs."""

import missmdp as mm


def ward_mdp():
    return mm.FactoredMDP(
        features={"infection": range(3), "ward": ["normal", "icu"]},
        actions=["wait", "treat"],
        transition=lambda state, action: (
            [((max(state.infection - 1, 0), state.ward), 0.9), (state, 0.1)]
            if action == "treat"
            else [
                ((min(state.infection + 1, 2), state.ward), 0.3),
                ((state.infection, "icu"), 0.1),
                ((state.infection, "normal"), 0.1),
                (state, 0.5),
            ]
        ),
        reward=lambda state, action: -5 * state.infection - 4 * (action == "treat"),
        initial={(0, "normal"): 0.6, (1, "normal"): 0.4},
        discount=0.8,
        progress=False,
    )


def ward():
    """Return a simple MAR miss-MDP of 6 states, without a name."""
    mdp = ward_mdp()
    rates = {"infection": lambda state: 0.2 if state.ward == "icu" else 0.7}
    return mm.MissMDP(mdp, mm.MissingnessFunction.independent(mdp, rates))


def censored_ward():
    """Return the same where the sick are seldom tested: no learner is right, and the prior's policy is not optimal."""
    mdp = ward_mdp()
    rates = {"infection": lambda state: (0.05 if state.ward == "icu" else 0.15) + 0.4 * state.infection}
    return mm.MissMDP(mdp, mm.MissingnessFunction.independent(mdp, rates), name="censored")


def quick(**changes):
    """Return settings for runs that take about a second, and are not stopped by time."""
    return mm.RunSettings(
        **{
            "steps": 3000,
            "precision": 1e-3,
            "timeout": None,
            "episodes": 200,
            "folds": 3,
            "sensitivity_episodes": 20,
            "sensitivity_draws": 2,
            **changes,
        }
    )


def without_times(contents):
    """Return what run.json holds, without what may differ between two equal runs."""
    contents = {key: value for key, value in contents.items() if key != "timings"}
    for one in contents["learners"] + contents["baselines"]:
        for row in (one["search"] or {"trace": ()})["trace"]:
            del row["seconds"]
    return contents


def three_dice():
    """Return an MDP with features of 2, 3 and 2 values that are drawn anew in every step."""
    return mm.FactoredMDP(
        features={"a": range(2), "b": range(3), "c": range(2)},
        actions=["stay"],
        transition=lambda state, action: {
            (a, b, c): 1 / 12 for a in range(2) for b in range(3) for c in range(2)
        },
        reward=lambda state, action: 0.0,
        initial={(0, 0, 0): 1.0},
        progress=False,
    )
