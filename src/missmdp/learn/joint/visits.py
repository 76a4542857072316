"""How much of the log each part of T̂ rests on, and what to make of it: pessimism, and which decisions rest on little.

For planning, (s, a) can be made worse by γ ε(s, a) (V_max − V_min). If T̂(· | s, a) is within total variation ε(s, a) of
the truth everywhere, and b₀, M and rewards are right, then every policy, whatever it remembers, is worth at least as
much in truth as in that model. Here ε is the standard deviation of estimated distributions, not a bound; so this leans
towards caution, with a guarantee under that assumption only.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from missmdp.checks import checked_integer, checked_number
from missmdp.data.collect import collect
from missmdp.learn.joint.dynamics import Variables
from missmdp.learn.joint.fit import JointFit
from missmdp.learn.joint.model import expanded, start_rows
from missmdp.model.mdp import FactoredMDP
from missmdp.model.missmdp import MissMDP
from missmdp.model.policy import Policy
from missmdp.model.space import NO_ACTION
from missmdp.words import percent

_EXAMPLES = 5


@dataclass(frozen=True, eq=False)
class Visits:
    """What T̂ rests on."""

    steps: NDArray[np.float64]
    """How often each action was taken in each state, in expectation given the log, shape (S, A)."""
    doubt: NDArray[np.float64]
    """How far T̂(· | s, a) may be off, in total variation, by its standard deviation, shape (S, A)."""


@dataclass(frozen=True)
class Support:
    """How many of a policy's decisions rest on little data."""

    fewest: float
    """A decision rests on little if the action was taken less often than this in the state."""
    share: float
    """The share of decisions that do."""
    stderr: float
    """Its standard error: of a simulation, by whole episodes."""
    decisions: int
    """How many decisions were simulated."""
    examples: tuple[tuple[Any, Any, float], ...]
    """The most frequent of them: state, action, and how often it was tried there."""

    def describe(self) -> str:
        """Return it in words."""
        lines = [
            f"{percent(self.share, 1)} ± {percent(self.stderr, 1)} of the policy's decisions are in states in which "
            f"the log has the action fewer than {self.fewest:g} times (simulated in the learned model, "
            f"{self.decisions:,} decisions)"
        ]
        lines += [
            f"  {action} in {tuple(state)!r}: tried {times:.1f} times"
            for state, action, times in self.examples
        ]
        return "\n".join(lines)


def visits_of(fit: JointFit, mdp: FactoredMDP) -> Visits:
    """Return what T̂ rests on."""
    layout = fit.dynamics.layout
    variables = Variables(layout.features, layout.n_actions)
    before = layout.state_of[layout.steps.before]
    place = before * layout.n_actions + layout.steps.action[:, None]
    size = mdp.n_states * mdp.n_actions
    steps = np.bincount(place.reshape(-1), fit.expected.moved.sum(axis=2).reshape(-1), minlength=size)
    families, thetas = fit.dynamics.steps.families, fit.parameters.dynamics.steps
    counted = fit.dynamics.steps.counted(fit.expected.moved.reshape(-1))
    doubt = np.zeros((mdp.n_states, mdp.n_actions))
    for action in range(mdp.n_actions):
        rows, weight = start_rows(layout, variables, action), np.ones(mdp.n_states)
        for family, theta, counts in zip(families, thetas, counted, strict=True):
            # Each step is counted once in each way of telling.
            told = family.outcomes.way[family.outcomes.block] == family.way[:, None]
            of_leaf = np.where(told, counts, 0.0).sum(axis=1)
            free = np.maximum((family.fallback > 0.0).sum(axis=1) / told.sum(axis=1), 0.0) * variables.size(
                family.target
            )
            off = np.minimum(0.5 * np.sqrt(np.maximum(free - 1.0, 0.0) / np.maximum(of_leaf, 1e-9)), 1.0)
            leaf = family.partition.leaf(rows.column, rows.count)
            certain = np.zeros(rows.count, dtype=np.bool_)
            if family.known is not None:
                certain = family.known.row[rows.state_index, action] >= 0
            doubt[:, action] += np.bincount(
                rows.state_index, weight * np.where(certain, 0.0, off[leaf]), minlength=mdp.n_states
            )
            rows, more = expanded([family], [theta], rows, variables)
            weight = weight[rows.came_from] * more
    return Visits(
        steps.astype(np.float64).reshape(mdp.n_states, mdp.n_actions),
        np.where(mdp.terminal[:, None], 0.0, np.minimum(doubt, 1.0)),
    )


def pessimistic_model(model: MissMDP, visits: Visits, caution: float, fewest: float) -> MissMDP:
    """Return a model in which what rests on little data is worth less.

    Parameters
    ----------
    caution
        How many standard deviations T̂ may be off.
    fewest
        Actions that were taken less often than this in a state are forbidden there: they cost as much as the best and
        the worst policy can differ by.
    """
    checked_number("caution", caution, least=0.0, most=1e6)
    checked_number("fewest", fewest, least=0.0, most=1e18)
    mdp = model.mdp
    alive = ~mdp.terminal
    inside = mdp.reward[alive]
    low, high = float(inside.min(initial=0.0)), float(inside.max(initial=0.0))
    span = (high - low) / (1.0 - mdp.discount)
    off = np.minimum(caution * visits.doubt, 1.0)
    reward = mdp.reward - mdp.discount * off * span
    reward = reward - np.where(visits.steps < fewest, span, 0.0)
    penalised = FactoredMDP(
        mdp.space.features,
        mdp.actions,
        list(mdp.transition),
        np.where(alive[:, None], reward, 0.0),
        mdp.initial,
        mdp.terminal,
        mdp.discount,
        states=mdp.space,
    )
    return MissMDP(penalised, model.missingness, name=model.name)


def support_of(
    policy: Policy,
    model: MissMDP,
    visits: Visits,
    fewest: float,
    steps: int,
    seed: int,
    progress: bool | None = None,
) -> Support:
    """Return the share of a policy's decisions that rest on little data; see `JointEM.support_of`."""
    checked_number("fewest", fewest, least=0.0, most=1e18)
    log = collect(
        model,
        checked_integer("steps", steps, least=1),
        policy,
        seed=seed,
        keep_states=True,
        progress=progress,
    )
    assert log.states is not None, "they were asked for"
    taken = np.flatnonzero(log.actions != NO_ACTION)
    pair = log.states[taken].astype(np.int64) * model.mdp.n_actions + log.actions[taken]
    tried = visits.steps.reshape(-1)
    little = tried[pair] < fewest
    episode = np.repeat(np.arange(log.n_episodes), log.lengths)[taken]
    per_episode = np.bincount(episode, minlength=log.n_episodes).astype(np.float64)
    share = float(little.mean()) if len(little) else 0.0
    left = np.bincount(episode, little, minlength=log.n_episodes) - share * per_episode
    stderr = float(np.sqrt((left**2).sum())) / max(len(taken), 1)
    which, times = np.unique(pair[little], return_counts=True)
    examples = [
        (
            model.mdp.states[int(p) // model.mdp.n_actions],
            model.mdp.actions[int(p) % model.mdp.n_actions],
            float(tried[p]),
        )
        for p in which[np.argsort(-times, kind="stable")[:_EXAMPLES]]
    ]
    return Support(fewest, share, stderr, len(taken), tuple(examples))
