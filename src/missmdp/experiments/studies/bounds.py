"""How often bounds hold, over many simulated datasets.

Two questions. Do the bounds hold as often as they say, for behaviour that is blind and for behaviour that reacts to
what it sees? And what happens to a bound for a fixed number of samples when somebody looks at the data as they come in
and stops when it suits them?
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import product
from typing import Any, TypedDict

import numpy as np
from numpy.typing import NDArray

from missmdp.data.collect import collect
from missmdp.experiments.grid.cell import Cell, CellResult, Count, Finite, each
from missmdp.experiments.studies.study import Finished, Rows, Study
from missmdp.experiments.tables import markdown_table
from missmdp.learn.aimi import AIMI
from missmdp.learn.asmar import AMCAR, AsMAR
from missmdp.learn.base import CountingEstimator
from missmdp.learn.bounds import Bound, GroupBound
from missmdp.learn.limits import group_limits
from missmdp.model.mdp import FactoredMDP
from missmdp.model.missingness import MissingnessFunction
from missmdp.model.missmdp import MissMDP

DATASETS, STEPS, SEED = 1_000, 400, 2026
CONFIDENCE = 0.9
METHODS = ("okamoto", "clopper-pearson", "weissman", "anytime", "auto")
BEHAVIOURS = ("blind", "adaptive")
CASES: dict[str, CountingEstimator] = {
    "AMCAR": AMCAR(),
    "AsMAR": AsMAR(),
    "AIMI": AIMI(always_observed=["ward"]),
    "AIMI, ward not declared": AIMI(),
    # In many datasets pulse seems to be always observed, and the groups are others.
    "AsMAR, pulse seldom missing": AsMAR(),
}
"""Learners, each with a miss-MDP that fulfils what it assumes."""
_LOOKS: NDArray[np.int64] = np.unique(np.geomspace(1, 2_000, 250).astype(int))
"""Numbers of samples at which somebody who peeks looks at the bound."""
_SLACK = 1e-12


class Held(TypedDict):
    """How often bounds held, and how wide they were."""

    held: Count
    worst: Finite
    tv: Finite


@dataclass(frozen=True)
class CoverageCell(Cell, kind="coverage", version=1):
    """How often the bounds of one learner held, by method."""

    case: str
    behaviour: str
    datasets: int = DATASETS

    def label(self) -> str:
        """Return what it is in a few words."""
        return f"coverage-{self.case.replace(', ', '-').replace(' ', '-')}-{self.behaviour}"

    def found_type(self) -> Any:
        """Return the type of what is found, by method."""
        return each(METHODS, Held)

    def expected_seconds(self) -> float:
        """Return how long it may take."""
        return 0.02 * self.datasets

    def work(self) -> CellResult:
        """Return for each method how many bounds held, and how wide they were on average."""
        learner, model = CASES[self.case], model_of(self.case)
        found = {method: {"held": 0, "worst": 0.0, "tv": 0.0} for method in METHODS}
        for seed in range(self.datasets):
            policy = None if self.behaviour == "blind" else _react
            data = collect(model, STEPS, policy, seed=SEED + seed, horizon=40, threads=1)
            assert data.behaviour == self.behaviour
            learner.fit(data)
            for method, own in found.items():
                bound = learner.bound(CONFIDENCE, method)  # pyright: ignore[reportArgumentType]
                own["held"] += int(_holds(bound, learner, model))
                own["worst"] += bound.worst / self.datasets
                own["tv"] += bound.tv / self.datasets
        return CellResult(found)


@dataclass(frozen=True)
class PeekingCell(Cell, kind="peeking", version=1):
    """How often bounds on one indicator held at every look.

    Whoever stops when the bound happens to be wrong is right as often as the bound holds at every look.
    """

    behaviour: str
    datasets: int = DATASETS
    probability: float = 0.3

    def label(self) -> str:
        """Return what it is in a few words."""
        return f"peeking-{self.behaviour}"

    def found_type(self) -> Any:
        """Return the type of what is found, by method."""
        return each(METHODS, Count)

    def work(self) -> CellResult:
        """Return how many bounds held at every look, by method."""
        random = np.random.default_rng(SEED)
        missing = random.random((self.datasets, _LOOKS[-1])) < self.probability
        successes = np.cumsum(missing, axis=1)[:, _LOOKS - 1]
        counts = np.stack([_LOOKS - successes, successes], axis=2).reshape(-1, 2)
        estimate = counts / counts.sum(axis=1, keepdims=True)
        found: dict[str, Any] = {}
        for method in METHODS:
            limits = group_limits(counts, estimate, 0, 1.0 - CONFIDENCE, method, self.behaviour)  # pyright: ignore[reportArgumentType]
            inside = (limits.lower[:, 1] <= self.probability) & (self.probability <= limits.upper[:, 1])
            found[method] = int(inside.reshape(self.datasets, -1).all(axis=1).sum())
        return CellResult(found)


def model_of(case: str) -> MissMDP:
    """Return the miss-MDP of a case: a chain of wards, where vital signs come and go."""
    mdp = FactoredMDP(
        features={"ward": ["a", "b"], "fever": [0, 1], "pulse": [0, 1, 2]},
        actions=["stay", "move"],
        transition=_transition,
        reward=0.0,
        initial={("a", 0, 0): 0.5, ("a", 1, 1): 0.5},
        discount=0.9,
    )
    M = MissingnessFunction
    match case:
        case "AMCAR":
            return MissMDP(mdp, M.from_patterns(mdp, lambda s: _patterns(0.35, 0.05, 0.2)))
        case "AsMAR":
            by_ward = {"a": _patterns(0.1, 0.3, 0.2), "b": _patterns(0.5, 0.02, 0.08)}
            return MissMDP(mdp, M.from_patterns(mdp, lambda s: by_ward[s.ward]))
        case "AsMAR, pulse seldom missing":
            return MissMDP(
                mdp, M.independent(mdp, {"fever": lambda s: 0.2 + 0.5 * (s.ward == "a"), "pulse": 0.004})
            )
        case _:
            chances: dict[str, Callable[[Any], float]] = {
                "fever": lambda s: 0.1 + 0.2 * s.pulse + 0.2 * (s.ward == "b"),
                "pulse": lambda s: 0.15 + 0.5 * s.fever,
            }
            return MissMDP(mdp, M.independent(mdp, chances))


def _transition(state: Any, action: Any) -> list[tuple[tuple[Any, ...], float]]:
    ward = {"a": "b", "b": "a"}[state.ward] if action == "move" else state.ward
    fever = [(state.fever, 0.7), (1 - state.fever, 0.3)]
    pulse = [(state.pulse, 0.4), ((state.pulse + 1 + state.fever) % 3, 0.6)]
    return [((ward, f, p), pf * pp) for f, pf in fever for p, pp in pulse]


def _patterns(both: float, fever: float, pulse: float) -> dict[tuple[int, int, int], float]:
    """Return P(fever and pulse missing), P(only fever missing), P(only pulse missing) as patterns."""
    return {(1, 0, 0): both, (1, 0, 1): fever, (1, 1, 0): pulse, (1, 1, 1): 1.0 - both - fever - pulse}


def _react(observation: Any) -> Any:
    """Return an action that depends on what is seen: stay as long as fever is missing."""
    return "stay" if observation.fever is None else {"stay": 0.2, "move": 0.8}


def _holds(bound: Bound, learner: CountingEstimator, model: MissMDP) -> bool:
    """Return whether everything that a bound says is true: per state, in total variation, and per group."""
    truth, estimate = model.missingness, learner.missingness_
    keys = {tuple(pattern) for M in (truth, estimate) for pattern in M.patterns.tolist()}
    gap = np.stack([np.abs(_column(estimate, key) - _column(truth, key)) for key in sorted(keys)])
    if (gap.max(axis=0) > bound.per_state + _SLACK).any():
        return False
    if (0.5 * gap.sum(axis=0) > bound.per_state_tv + _SLACK).any():
        return False
    return all(_group_holds(group, model) for group in bound.per_group)


def _column(M: MissingnessFunction, pattern: tuple[bool, ...]) -> NDArray[np.float64]:
    found = np.flatnonzero((M.patterns == np.array(pattern)).all(axis=1))
    return M.probabilities[:, found[0]] if len(found) else np.zeros(len(M.space))


def _group_holds(group: GroupBound, model: MissMDP) -> bool:
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
        if not lower - _SLACK <= true <= upper + _SLACK:
            return False
    return True


def cells() -> list[Cell]:
    """Return all cells."""
    coverage: list[Cell] = [CoverageCell(case, behaviour) for case, behaviour in product(CASES, BEHAVIOURS)]
    return [*coverage, *(PeekingCell(behaviour) for behaviour in BEHAVIOURS)]


def rows(finished: Finished) -> dict[str, Rows]:
    """Return a row per learner, behaviour and method, and one per behaviour and method of who peeks."""
    coverage: Rows = []
    peeking: Rows = []
    for cell, result in finished.items():
        for method in METHODS:
            found = result.found[method]
            row = {"behaviour": cell.behaviour, "method": method, "datasets": str(cell.datasets)}
            if isinstance(cell, CoverageCell):
                numbers = {
                    "held": str(found["held"]),
                    "worst": f"{found['worst']:.6f}",
                    "tv": f"{found['tv']:.6f}",
                }
                coverage.append({"learner": cell.case, **row, **numbers})
            else:
                peeking.append({**row, "held": str(found)})
    return {"coverage": coverage, "peeking": peeking}


def tables(found: Mapping[str, Rows]) -> dict[str, str]:
    """Return shares of datasets in which bounds held, and mean bounds."""
    columns = ("learner", "behaviour", "method", "held", "mean bound on \\|M̂ − M\\|", "mean bound on TV")
    coverage = [
        (
            *(row[name] for name in ("learner", "behaviour", "method")),
            _share(row),
            *(f"{float(row[name]):.3f}" for name in ("worst", "tv")),
        )
        for row in found["coverage"]
    ]
    peeking = [(f"{row['behaviour']} behaviour", row["method"], _share(row)) for row in found["peeking"]]
    return {
        "coverage": markdown_table(columns, coverage, words=range(3)),
        "peeking": markdown_table(("bound for", "method", "right at every look"), peeking, words=range(2)),
    }


def _share(row: dict[str, str]) -> str:
    return f"{int(row['held']) / int(row['datasets']):.1%}"


BOUNDS = Study(
    "bounds", "how often bounds hold, in 1,000 datasets: minutes", "../bounds.md", cells, rows, tables
)
