"""Simulate how often bounds hold, and write the tables of docs/bounds.md.

Two questions. Do the bounds hold as often as they say, over many datasets, for behaviour that is blind and for
behaviour that reacts to what it sees? And what happens to a bound for a fixed number of samples when somebody
looks at the data as they come in and stops when it suits him?
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy import stats

import missmdp as mm
from missmdp.learn.limits import group_limits

PAGE = Path(__file__).parent / "bounds.md"
DATASETS = 1_000
STEPS = 400
CONFIDENCE = 0.9
METHODS = ("okamoto", "clopper-pearson", "weissman", "anytime", "auto")
LOOKS = np.unique(np.geomspace(1, 2_000, 250).astype(int))
"""Numbers of samples at which somebody who peeks looks at the bound."""
SEED = 2026


def small_mdp() -> mm.FactoredMDP:
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
    ward = {"a": "b", "b": "a"}[state.ward] if action == "move" else state.ward
    fever = [(state.fever, 0.7), (1 - state.fever, 0.3)]
    pulse = [(state.pulse, 0.4), ((state.pulse + 1 + state.fever) % 3, 0.6)]
    return [((ward, f, p), pf * pp) for f, pf in fever for p, pp in pulse]


def _patterns(both: float, fever: float, pulse: float) -> dict[tuple[int, int, int], float]:
    """Return P(fever and pulse missing), P(only fever missing), P(only pulse missing) as patterns."""
    return {(1, 0, 0): both, (1, 0, 1): fever, (1, 1, 0): pulse, (1, 1, 1): 1.0 - both - fever - pulse}


def cases() -> Iterator[tuple[str, mm.CountingEstimator, mm.MissMDP]]:
    """Yield learners with miss-MDPs that fulfil what they assume."""
    mdp = small_mdp()
    M = mm.MissingnessFunction
    same = M.from_patterns(mdp, lambda s: _patterns(0.35, 0.05, 0.2))
    by_ward = M.from_patterns(
        mdp, lambda s: _patterns(0.1, 0.3, 0.2) if s.ward == "a" else _patterns(0.5, 0.02, 0.08)
    )
    independent = M.independent(
        mdp,
        {
            "fever": lambda s: 0.1 + 0.2 * s.pulse + 0.2 * (s.ward == "b"),
            "pulse": lambda s: 0.15 + 0.5 * s.fever,
        },
    )
    yield "AMCAR", mm.AMCAR(), mm.MissMDP(mdp, same)
    yield "AsMAR", mm.AsMAR(), mm.MissMDP(mdp, by_ward)
    # Pulse is seldom missing, so that in many datasets it seems to be always observed, and the groups are others.
    seldom = M.independent(mdp, {"fever": lambda s: 0.2 + 0.5 * (s.ward == "a"), "pulse": 0.004})
    yield "AIMI", mm.AIMI(always_observed=["ward"]), mm.MissMDP(mdp, independent)
    yield "AIMI, ward not declared", mm.AIMI(), mm.MissMDP(mdp, independent)
    yield "AsMAR, pulse seldom missing", mm.AsMAR(), mm.MissMDP(mdp, seldom)


def react(observation):
    """Return an action that depends on what is seen: stay as long as fever is missing."""
    return "stay" if observation.fever is None else {"stay": 0.2, "move": 0.8}


@dataclass(frozen=True)
class Row:
    """How often one bound held."""

    learner: str
    behaviour: str
    method: str
    datasets: int
    held: int
    worst: float
    """Mean over datasets of the bound on |M̂ − M|."""
    tv: float
    """Mean over datasets of the bound on total variation."""

    @property
    def p_value(self) -> float:
        """P(at most as many held | each holds with the stated confidence)."""
        return float(stats.binom.cdf(self.held, self.datasets, CONFIDENCE))


def simulate(datasets: int = DATASETS) -> list[Row]:
    """Return how often every method's bound held, for every learner and both behaviours."""
    rows: list[Row] = []
    for name, learner, model in cases():
        for behaviour, policy in (("blind", None), ("adaptive", react)):
            held = dict.fromkeys(METHODS, 0)
            worst, tv = dict.fromkeys(METHODS, 0.0), dict.fromkeys(METHODS, 0.0)
            for seed in range(datasets):
                data = mm.collect(model, STEPS, policy, seed=SEED + seed, horizon=40, threads=1)
                assert data.behaviour == behaviour
                with warnings.catch_warnings():
                    # With so many datasets some show what looks like a broken assumption.
                    warnings.simplefilter("ignore", mm.AssumptionWarning)
                    learner.fit(data)
                for method in METHODS:
                    bound = learner.bound(CONFIDENCE, method)
                    held[method] += holds(bound, learner, model)
                    worst[method] += bound.worst / datasets
                    tv[method] += bound.tv / datasets
            rows += [Row(name, behaviour, m, datasets, held[m], worst[m], tv[m]) for m in METHODS]
    return rows


def holds(bound: mm.Bound, learner: mm.CountingEstimator, model: mm.MissMDP) -> bool:
    """Return whether everything that a bound says is true: per state, in total variation, and per group."""
    truth, estimate = model.missingness, learner.missingness_
    keys = {tuple(pattern) for M in (truth, estimate) for pattern in M.patterns.tolist()}
    gap = np.stack([np.abs(_column(estimate, key) - _column(truth, key)) for key in sorted(keys)])
    slack = 1e-12
    if (gap.max(axis=0) > bound.per_state + slack).any():
        return False
    if (0.5 * gap.sum(axis=0) > bound.per_state_tv + slack).any():
        return False
    return all(_group_holds(group, model) for group in bound.per_group)


def _column(M: mm.MissingnessFunction, pattern: tuple[bool, ...]) -> np.ndarray:
    found = np.flatnonzero((M.patterns == np.array(pattern)).all(axis=1))
    return M.probabilities[:, found[0]] if len(found) else np.zeros(len(M.space))


def _group_holds(group: mm.GroupBound, model: mm.MissMDP) -> bool:
    names = model.space.features.names
    state = next(
        i
        for i, s in enumerate(model.states)
        if all(s[names.index(feature)] == value for feature, value in group.given.items())
    )
    places = [names.index(feature) for feature in group.features]
    shown = model.missingness.patterns[:, places]
    for pattern, lower, upper in zip(group.patterns, group.lower, group.upper, strict=True):
        true = model.missingness.probabilities[state, (shown == pattern).all(axis=1)].sum()
        if not lower - 1e-12 <= true <= upper + 1e-12:
            return False
    return True


@dataclass(frozen=True)
class Peek:
    """How often a bound held at every look."""

    method: str
    behaviour: str
    datasets: int
    held: int

    @property
    def p_value(self) -> float:
        """P(at most as many held | each holds with the stated confidence)."""
        return float(stats.binom.cdf(self.held, self.datasets, CONFIDENCE))


def simulate_peeking(datasets: int = DATASETS, probability: float = 0.3) -> list[Peek]:
    """Return how often bounds on one indicator held at every look.

    Whoever stops when the bound happens to be wrong is right as often as the bound holds at every look.
    """
    random = np.random.default_rng(SEED)
    missing = random.random((datasets, LOOKS[-1])) < probability
    successes = np.cumsum(missing, axis=1)[:, LOOKS - 1]
    counts = np.stack([LOOKS - successes, successes], axis=2).reshape(-1, 2)
    estimate = counts / counts.sum(axis=1, keepdims=True)
    rows: list[Peek] = []
    for behaviour in ("blind", "adaptive"):
        for method in METHODS:
            limits = group_limits(counts, estimate, 0, 1.0 - CONFIDENCE, method, behaviour)
            inside = (limits.lower[:, 1] <= probability) & (probability <= limits.upper[:, 1])
            held = int(inside.reshape(datasets, -1).all(axis=1).sum())
            rows.append(Peek(method, behaviour, datasets, held))
    return rows


def coverage_table(rows: list[Row]) -> str:
    """Return the rows as a table in Markdown."""
    lines = [
        "| learner | behaviour | method | held | mean bound on \\|M̂ − M\\| | mean bound on TV |",
        "|---|---|---|---|---|---|",
    ]
    lines += [
        f"| {r.learner} | {r.behaviour} | {r.method} | {r.held / r.datasets:.1%} | {r.worst:.3f} | {r.tv:.3f} |"
        for r in rows
    ]
    return "\n".join(lines)


def peeking_table(rows: list[Peek]) -> str:
    """Return the rows as a table in Markdown."""
    lines = ["| bound for | method | right at every look |", "|---|---|---|"]
    lines += [f"| {r.behaviour} behaviour | {r.method} | {r.held / r.datasets:.1%} |" for r in rows]
    return "\n".join(lines)


def replace(page: str, name: str, table: str) -> str:
    """Return the page with a new table between its markers."""
    start, end = f"<!-- {name} -->", f"<!-- end of {name} -->"
    before, rest = page.split(start)
    _, after = rest.split(end)
    return f"{before}{start}\n{table}\n{end}{after}"


if __name__ == "__main__":
    page = PAGE.read_text()
    page = replace(page, "coverage", coverage_table(simulate()))
    page = replace(page, "peeking", peeking_table(simulate_peeking()))
    PAGE.write_text(page)
    print(f"wrote the tables of {PAGE}")
