"""Plan while acting, by Monte Carlo tree search: the solver, and the policy that it returns."""

from __future__ import annotations

import logging
import time
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from missmdp._kernels.pomcp.deciding import Mind
from missmdp._kernels.pomcp.search import GenerativeModel, SearchRules
from missmdp.checks import checked_seed
from missmdp.data.simulation import seed_words
from missmdp.model.missmdp import MissMDP
from missmdp.model.pomdp import POMDP
from missmdp.plan.acting import check_acts_in, check_interface, checked_planning_model
from missmdp.plan.pomcp.search import (
    BeliefKind,
    SearchOptions,
    check_lists,
    checked_options,
    compile_generative,
    new_mind,
    search_rules,
)
from missmdp.plan.solving import PlanResult, Status

if TYPE_CHECKING:
    from missmdp._kernels.simulator import Simulation
    from missmdp.data.simulation import EpisodeRunner
    from missmdp.plan.pomcp.agent import POMCPAgent

_log = logging.getLogger(__name__)


class POMCPPolicy:
    """A policy that searches from its belief before every decision; `POMCP.solve` returns it.

    Attributes
    ----------
    model : MissMDP or POMDP
        The model that is searched, and under which agents track the belief.
    options : SearchOptions
        How it is searched.
    seed : int or None
        The seed of agents that are not given one; None for a fresh one each. `evaluate` does not use it; see `runner`.
    """

    knows_ranks = True
    """See `BulkPolicy`."""

    def __init__(self, model: MissMDP | POMDP, options: SearchOptions, *, seed: int | None = None) -> None:
        options.check_memory(model.n_actions)
        self.model = model
        self.options = options
        self.seed = seed

    def __repr__(self) -> str:
        return f"POMCPPolicy({self.options}; for {self.model!r})"

    @property
    def actions(self) -> tuple[Any, ...]:
        """The names of the actions."""
        return tuple(self.model.actions)

    @property
    def observe_initial(self) -> bool:
        """Whether an observation comes before the first action."""
        return isinstance(self.model, MissMDP) or self.model.observe_initial

    @cached_property
    def generative(self) -> GenerativeModel:
        """The model as the kernels search it."""
        return compile_generative(self.model)

    @cached_property
    def rules(self) -> SearchRules:
        """The options as the kernels see them."""
        chosen = self.options
        return search_rules(chosen.max_depth, chosen.exploration, chosen.tree_queries)

    def new_mind(self) -> Mind:
        """Return room for the policy's decisions, one episode at a time."""
        chosen, model = self.options, self.generative
        return new_mind(
            len(model.terminal),
            model.n_actions,
            max_depth=chosen.max_depth,
            tree_queries=chosen.tree_queries,
            particles=chosen.particles,
            at_once=chosen.at_once,
        )

    def agent(self, model: MissMDP | POMDP | None = None, *, seed: int | None = None) -> POMCPAgent:
        """Return a new agent, which tracks the belief under the policy's own model and searches that model.

        Parameters
        ----------
        model
            What the agent will act in, optional. It may differ from the policy's model in its probabilities, as the
            true model differs from a learned one, but not in its features and actions.
        seed
            With the same seed and the same observations an agent does the same again, unless `timeout` cuts a search
            short. By default the policy's.
        """
        from missmdp.plan.pomcp.agent import POMCPAgent

        if model is not None:
            check_interface(self.model, model)
        return POMCPAgent(self, seed_words(self.seed if seed is None else seed)[1])

    def runner(
        self, model: MissMDP | POMDP, simulation: Simulation, words: NDArray[np.uint64], horizon: int
    ) -> EpisodeRunner:
        """Return what simulates the policy in a model, for `evaluate`; see `BulkPolicy`.

        Decisions are those of agents with the same words; with `timeout` they depend on the clock.

        The searches draw from `words`, the evaluation's seed, and not from the policy's own `seed`: what is drawn
        is addressed by (seed, episode, step, simulation), so policies evaluated with one seed are compared on
        common random numbers. Policies that differ only in `seed` are the same to an evaluation.
        """
        from missmdp.plan.pomcp.episodes import pomcp_runner

        check_acts_in(self.model, self.observe_initial, model)
        return pomcp_runner(self, model, simulation, words, horizon)


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class POMCPResult(PlanResult):
    """What POMCP returns: a policy that plans while it acts.

    There are no bounds. Only simulation tells what the policy is worth: `evaluate`.
    """

    policy: POMCPPolicy
    """The policy."""
    status: Status = "online"
    """Planning happens while acting."""

    def __str__(self) -> str:
        return f"plans while acting: {self.policy.options}; no bounds, evaluate(policy, model) says what it is worth"


class POMCP:
    """Partially observable Monte Carlo planning (Silver and Veness, 2010): the paper's online baseline.

    Nothing is computed in advance. Before every decision a tree of histories is built from the current belief, by
    simulations: each draws a state from the belief and descends by UCB1, Q(h, a) + c √(ln N(h) / N(h, a)), untried
    actions first. The first history that is not in the tree is added to it, and random actions, all equally likely,
    follow until `max_depth` steps are simulated or the episode ends. Q(h, a) is the mean of the discounted rewards
    after (h, a). The action with the highest mean is taken, and the tree is discarded.

    Parameters
    ----------
    max_depth
        How many steps a simulation looks ahead.
    exploration
        UCB1's c: how much to favour actions that were rarely tried, in units of the reward. Returns of benchmarks
        with large rewards, such as the ICU's, differ by far more than 1.
    tree_queries
        Simulations per decision.
    timeout
        Seconds after which the search before a decision ends early; None for never. Results then depend on the
        machine.
    belief
        What simulations start from. "particles": an unweighted particle filter; every particle is simulated one
        step and kept if its observation is the one seen. "exact": the belief by Bayes' rule.
    particles
        How many particles are simulated at each step; by default `tree_queries`.
    seed
        Only for agents that are not given a seed; by default each has a fresh one. `evaluate` does not use it:
        there the searches draw from the seed of the evaluation.
    progress
        As for every solver; solving takes no time, so there is nothing to show.

    Notes
    -----
    If no particle survives, the particles are drawn again from the exact belief, which is tracked as well, and the
    collapse is counted. The paper supplies its baseline with the true belief in that case.

    Deviation: the paper uses BasicPOMCP.jl 0.3.12. As there, depth counts actions from the root, leaves are valued
    by rollouts down to the same depth, ties in the tree are broken at random, and survivors of the particle filter
    take turns until as many were tried as there are particles. In contrast to it,

    - the belief is tracked under the policy's own model, which is the true one only if that is what was solved;
    - after the first visit of a history, untried actions come next even if the first return was positive;
    - of actions that are equally good at the end the first is taken, not the last, and never one that was not tried;
    - histories that end in a terminal state, or at `max_depth`, take no node;
    - if the belief contains only terminal states, the first action is returned, and nothing is raised.
    """

    def __init__(
        self,
        *,
        max_depth: int = 20,
        exploration: float = 1.0,
        tree_queries: int = 1000,
        timeout: float | None = None,
        belief: BeliefKind = "particles",
        particles: int | None = None,
        seed: int | None = None,
        progress: bool | None = None,
    ) -> None:
        self.options = checked_options(
            max_depth=max_depth,
            exploration=exploration,
            tree_queries=tree_queries,
            timeout=timeout,
            belief=belief,
            particles=particles,
        )
        self.seed = None if seed is None else checked_seed(seed)
        self.timeout = self.options.timeout
        self.progress = progress

    def __repr__(self) -> str:
        chosen = self.options
        names = ("max_depth", "exploration", "tree_queries", "timeout", "belief")
        listed = [f"{name}={getattr(chosen, name)!r}" for name in names]
        if chosen.belief == "particles":
            listed.append(f"particles={chosen.particles}")
        return f"POMCP({', '.join([*listed, f'seed={self.seed!r}'])})"

    def solve(self, model: MissMDP | POMDP) -> POMCPResult:
        """Return a policy for a model; its agents search that model and track the belief under it."""
        start = time.perf_counter()
        check_lists(checked_planning_model(model))
        policy = POMCPPolicy(model, self.options, seed=self.seed)
        result = POMCPResult(policy=policy, seconds=time.perf_counter() - start)
        _log.info("POMCP %s", result)
        return result
