"""Plan while acting, with bounds at the root: the solver, and the policy that it returns."""

from __future__ import annotations

import logging
import time
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from missmdp._kernels.online.expanding import BoundedModel, Limits
from missmdp.checks import checked_seed, checked_shape
from missmdp.data.simulation import seed_words
from missmdp.errors import ParameterError
from missmdp.model.missmdp import MissMDP
from missmdp.model.pomdp import POMDP
from missmdp.model.probabilities import as_floats
from missmdp.plan.acting import check_acts_in, check_interface, checked_planning_model
from missmdp.plan.online.bounds import StateBounds, state_bounds
from missmdp.plan.online.search import (
    Mind,
    OnlineOptions,
    check_size,
    checked_options,
    compile_bounded,
    observation_rows,
)
from missmdp.plan.solving import PlanResult, Status
from missmdp.words import outward

if TYPE_CHECKING:
    from missmdp._kernels.beliefs import Tracker
    from missmdp._kernels.simulator import Simulation
    from missmdp.data.simulation import EpisodeRunner
    from missmdp.plan.online.agent import OnlineAgent
    from missmdp.plan.pomcp.episodes import Decides

_log = logging.getLogger(__name__)


class OnlinePolicy:
    """A policy that searches from its belief before every decision; `OnlinePlanner.solve` returns it.

    Attributes
    ----------
    model : MissMDP or POMDP
        The model that is searched, and under which agents track the belief.
    options : OnlineOptions
        How it is searched.
    bounds : StateBounds
        What is known of every state without a search.
    seed : int or None
        The seed of agents that are not given one; None for a fresh one each. `evaluate` does not use it.
    """

    knows_ranks = True
    """See `BulkPolicy`."""

    def __init__(
        self,
        model: MissMDP | POMDP,
        options: OnlineOptions,
        *,
        lower: NDArray[np.float64] | None = None,
        upper: NDArray[np.float64] | None = None,
        seed: int | None = None,
    ) -> None:
        self.model = model
        self.options = options
        self.seed = seed
        check_size(model)
        seen = observation_rows(model)
        self.bounds: StateBounds = state_bounds(model, seen, upper)
        self.bounded: BoundedModel = compile_bounded(model, seen, self.bounds, lower)
        self.limits: Limits = options.limits(model.n_states, len(self.bounds.simple))
        self.new_mind()  # raises where one expansion would not fit

    def __repr__(self) -> str:
        return f"OnlinePolicy({self.options}; for {self.model!r})"

    @property
    def actions(self) -> tuple[Any, ...]:
        """The names of the actions."""
        return tuple(self.model.actions)

    @property
    def observe_initial(self) -> bool:
        """Whether an observation comes before the first action."""
        return isinstance(self.model, MissMDP) or self.model.observe_initial

    def new_mind(self) -> Mind:
        """Return room for the policy's decisions, one episode at a time."""
        return Mind(self.bounded, len(self.bounds.simple), self.limits)

    def agent(self, model: MissMDP | POMDP | None = None, *, seed: int | None = None) -> OnlineAgent:
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
        from missmdp.plan.online.agent import OnlineAgent

        if model is not None:
            check_interface(self.model, model)
        return OnlineAgent(self, seed_words(self.seed if seed is None else seed)[1])

    def runner(
        self, model: MissMDP | POMDP, simulation: Simulation, words: NDArray[np.uint64], horizon: int
    ) -> EpisodeRunner:
        """Return what simulates the policy in a model, for `evaluate`; see `BulkPolicy`.

        Decisions are those of agents with the same words; with `timeout` they depend on the clock. As with POMCP, the
        searches draw from the evaluation's seed.
        """
        from missmdp.plan.online.agent import decide, make_ready
        from missmdp.plan.pomcp.episodes import runner_by_decisions

        check_acts_in(self.model, self.observe_initial, model)

        def decides() -> Decides:
            return partial(decide, self, self.new_mind())

        def ready(tracker: Tracker, numbers: NDArray[np.int64]) -> None:
            make_ready(self, self.new_mind(), tracker)

        return runner_by_decisions(self, model, simulation, words, horizon, decides, ready)


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class OnlineResult(PlanResult):
    """What `OnlinePlanner` returns: a policy that plans while it acts, and bounds on what the best policy is worth.

    Nothing is proved about the policy itself, so `lower` and `upper` are None; `evaluate` says what it is worth.
    """

    policy: OnlinePolicy
    """The policy."""
    best_lower: float
    """The best policy is worth at least this at the start: so much is earned by acting on what was seen last."""
    best_upper: float
    """No policy is worth more at the start: so much would be earned if the state were seen."""
    status: Status = "online"
    """Planning happens while acting."""

    def __str__(self) -> str:
        low, high = outward(self.best_lower, self.best_upper)
        best = f"the best policy is worth between {low} and {high} at the start"
        return f"plans while acting: {self.policy.options}; {best}"


class OnlinePlanner:
    """Planning while acting, by a search with bounds: where bounds of a policy for all beliefs stay far apart.

    Before the first decision two things are worked out for every state: what it would be worth if the state were seen
    (the value of the MDP), and what a simple policy is worth, which acts on the last observation alone or always does
    the same. They bound what any belief is worth, from above and from below.

    Before every decision a tree of beliefs is built from the current one. It grows where the upper bound promises
    most and the bounds are furthest apart, as in DESPOT (Somani et al., 2013) and AdaOPS (Wu et al., 2021): to the
    action of the highest upper bound, and to the observation with the largest product of probability and gap. The
    action with the highest lower bound is taken, and the tree is discarded.

    The belief of the agent is exact. A belief in the tree is a list of at most `particles` states with weights, which
    Bayes' rule updates; no simulated observation has to agree with a seen one. Where all that can follow fits, it is
    listed, and the tree's bounds are bounds. Where it does not, a sample stands for the rest, without bias, and they
    are estimates. Draws only decide by how much a search improves on the bounds that are known for every belief, so
    they add little noise. `agent.search` says which it was, with bounds that hold in any case (`OnlineSearch`).

    With a seed and without `timeout`, results are the same again on any machine.

    Parameters
    ----------
    expansions
        Beliefs that are expanded per decision, at most.
    timeout
        Seconds after which the search before a decision ends early; None for never. Results then depend on the
        machine. It is looked at every few expansions; at least one is made.
    particles
        How many states stand for a belief in the tree, at most.
    branches
        How many observations are followed per action, at most.
    max_depth
        How many decisions ahead the tree may reach.
    lower
        Values by state of further policies that do not see the state, such as α-vectors, shape (n, S); optional. The
        highest of them bounds the value of a belief from below. Nobody checks that they are what they should be.
    upper
        An upper bound on what each state is worth to somebody who knows it now, shape (S,), optional; used where it is
        below the value of the MDP. Nobody checks that it is one.
    seed
        Only for agents that are not given a seed; by default each has a fresh one. `evaluate` does not use it:
        there the searches draw from the seed of the evaluation.
    progress
        As for every solver; what is worked out in advance takes seconds, and nothing is shown.
    """

    def __init__(
        self,
        *,
        expansions: int = 1000,
        timeout: float | None = None,
        particles: int = 256,
        branches: int = 8,
        max_depth: int = 100,
        lower: Any = None,
        upper: Any = None,
        seed: int | None = None,
        progress: bool | None = None,
    ) -> None:
        self.options = checked_options(
            expansions=expansions,
            particles=particles,
            branches=branches,
            max_depth=max_depth,
            timeout=timeout,
        )
        self.lower = None if lower is None else _checked_values("lower", lower, 2)
        self.upper = None if upper is None else _checked_values("upper", upper, 1)
        self.seed = None if seed is None else checked_seed(seed)
        self.timeout = self.options.timeout
        self.progress = progress

    def __repr__(self) -> str:
        names = ("expansions", "timeout", "particles", "branches", "max_depth")
        listed = [f"{name}={getattr(self.options, name)!r}" for name in names]
        return f"OnlinePlanner({', '.join([*listed, f'seed={self.seed!r}'])})"

    def solve(self, model: MissMDP | POMDP) -> OnlineResult:
        """Return a policy for a model; its agents search that model and track the belief under it."""
        start = time.perf_counter()
        model = checked_planning_model(model)
        if self.lower is not None:
            checked_shape("lower", self.lower, (len(self.lower), model.n_states), "(policies, states)")
        if self.upper is not None:
            checked_shape("upper", self.upper, (model.n_states,), "(states,)")
        policy = OnlinePolicy(model, self.options, lower=self.lower, upper=self.upper, seed=self.seed)
        low, high = _at_start(policy, self.lower)
        result = OnlineResult(
            policy=policy, best_lower=low, best_upper=high, seconds=time.perf_counter() - start
        )
        _log.info("OnlinePlanner %s", result)
        return result


def _checked_values(name: str, given: Any, axes: int) -> NDArray[np.float64]:
    values = as_floats(given, name)
    if values.ndim != axes or not np.isfinite(values).all():
        expected = f"finite numbers, shape {'(n, S)' if axes == 2 else '(S,)'}"
        raise ParameterError(name, values.shape, expected)
    return values


def _at_start(policy: OnlinePolicy, given: NDArray[np.float64] | None) -> tuple[float, float]:
    """Return bounds on the best value at the start, before the first observation if there is one."""
    model, bounds = policy.model, policy.bounds
    initial = (model.mdp if isinstance(model, MissMDP) else model).initial
    lower, upper = [float(initial @ bounds.lower)], [float(initial @ bounds.upper)]
    if given is not None:
        lower.extend((given @ initial).tolist())
    if not policy.observe_initial:
        lower.extend((initial @ bounds.lower_actions).tolist())
        upper.append(float((initial @ bounds.upper_actions).max()))
    return max(lower), min(upper)
