"""A small ward, and miss-MDPs of every type on it."""

import missmdp as mm


def ward():
    """Return a chain of wards: an action moves a patient or lets him stay, vital signs come and go."""
    return mm.FactoredMDP(
        features={"ward": ["a", "b"], "fever": [0, 1], "pulse": [0, 1, 2]},
        actions=["stay", "move"],
        transition=_transition,
        reward=0.0,
        initial={("a", 0, 0): 0.5, ("a", 1, 1): 0.5},
        discount=0.9,
    )


def _transition(state, action):
    moved = {"a": "b", "b": "a"}[state.ward] if action == "move" else state.ward
    fever = [(state.fever, 0.8), (1 - state.fever, 0.2)]
    pulse = [(state.pulse, 0.4), ((state.pulse + 1 + state.fever) % 3, 0.6)]
    return [((moved, f, p), pf * pp) for f, pf in fever for p, pp in pulse]


def patterns(both, fever, pulse):
    """Return P(fever and pulse missing), P(only fever missing), P(only pulse missing) as patterns."""
    return {(1, 0, 0): both, (1, 0, 1): fever, (1, 1, 0): pulse, (1, 1, 1): 1.0 - both - fever - pulse}


def fever_first(state):
    """MAR: whether the pulse is taken depends on the fever where that was measured."""
    taken = {0: 0.9, 1: 0.3}[state.fever]
    return patterns(0.4 * 0.5, 0.4 * 0.5, 0.6 * (1.0 - taken))


def pulse_first(state):
    """MAR, the other way round."""
    taken = {0: 0.9, 1: 0.6, 2: 0.2}[state.pulse]
    return patterns(0.4 * 0.5, 0.6 * (1.0 - taken), 0.4 * 0.5)


def models(mdp):
    """Return miss-MDPs by name."""
    M = mm.MissingnessFunction
    functions = {
        "independent": M.independent(mdp, {"fever": 0.4, "pulse": 0.3}),
        "dependent": M.from_patterns(mdp, lambda s: patterns(0.35, 0.05, 0.2)),
        "block": M.blocks(mdp, {("fever", "pulse"): lambda s: 0.6}),
        "by ward": M.independent(mdp, {"fever": lambda s: {"a": 0.2, "b": 0.6}[s.ward], "pulse": 0.3}),
        "dependent by ward": M.from_patterns(
            mdp, lambda s: patterns(0.35, 0.05, 0.2) if s.ward == "a" else patterns(0.1, 0.4, 0.1)
        ),
        "fever first": M.from_patterns(mdp, fever_first),
        "pulse first": M.from_patterns(mdp, pulse_first),
        "other feature": M.independent(mdp, {"fever": lambda s: (0.1, 0.4, 0.8)[s.pulse], "pulse": 0.4}),
        "own value": M.independent(mdp, {"fever": lambda s: (0.2, 0.8)[s.fever], "pulse": 0.3}),
        "own block": M.blocks(mdp, {("fever", "pulse"): lambda s: (0.3, 0.8)[s.fever]}),
    }
    return {name: mm.MissMDP(mdp, function) for name, function in functions.items()}
