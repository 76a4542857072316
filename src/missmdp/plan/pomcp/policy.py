"""A policy that plans while it acts."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from missmdp._kernels.pomcp.deciding import Mind
from missmdp._kernels.pomcp.search import GenerativeModel, SearchRules
from missmdp.data.simulation import seed_words
from missmdp.model.missmdp import MissMDP
from missmdp.model.pomdp import POMDP
from missmdp.plan.interface import check_acts_in, check_interface
from missmdp.plan.pomcp.compile import compile_generative, search_rules
from missmdp.plan.pomcp.memory import new_mind
from missmdp.plan.pomcp.options import SearchOptions

if TYPE_CHECKING:
    from missmdp._kernels.simulator import Simulation
    from missmdp.data.simulation import EpisodeRunner
    from missmdp.plan.pomcp.agent import POMCPAgent

__all__ = ["POMCPPolicy"]


class POMCPPolicy:
    """A policy that searches before every decision, from what it believes; `POMCP.solve` makes it.

    Attributes
    ----------
    model : MissMDP or POMDP
        The model that is searched, and under which agents track the belief.
    options : SearchOptions
        How it is searched.
    seed : int or None
        The seed of agents that are not given one; None for a fresh one each. `evaluate` does not use it; see `runner`.
    """

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
            What the agent will act in, if somebody wants to say. It may differ from the policy's model in its
            probabilities, as the true model differs from a learned one, but not in its features and actions.
        seed
            With the same seed and the same observations an agent does the same again, unless `max_time` cuts a search
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

        Decisions are those of agents with the same words; with `max_time` they depend on the clock.

        The searches draw from `words`, the evaluation's seed, and not from the policy's own `seed`: what is drawn
        is addressed by (seed, episode, step, simulation), so that policies evaluated with one seed are compared on
        common random numbers. Policies that differ in nothing but `seed` are the same to an evaluation.
        """
        from missmdp.plan.pomcp.episodes import pomcp_runner

        check_acts_in(self.model, self.observe_initial, model)
        return pomcp_runner(self, model, simulation, words, horizon)
