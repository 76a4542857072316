"""JointEM: T, b₀, rewards and M from a log alone."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Self, cast

import numpy as np
from numpy.typing import NDArray

from missmdp.checks import (
    checked_flag,
    checked_instance,
    checked_integer,
    checked_names,
    checked_number,
    checked_seed,
    checked_threads,
)
from missmdp.data.dataset import Behaviour, Dataset
from missmdp.errors import AssumptionWarning, DataError, ParameterError
from missmdp.learn.assumptions import AssumptionFinding
from missmdp.learn.base import MissingnessEstimator
from missmdp.learn.blocks import checked_feature_blocks
from missmdp.learn.bounds import Bound
from missmdp.learn.em.estimator import DynamicsEM, StructureChoice, checked_structure
from missmdp.learn.em.iterate import PenalisedFactors, StructureModel
from missmdp.learn.em.learned_structure import factors_graph
from missmdp.learn.em.logistic import logistic_model
from missmdp.learn.em.search import allowed_parents
from missmdp.learn.em.structures import graph_factors, named_factors
from missmdp.learn.joint.description import describe_dynamics, draw_dynamics
from missmdp.learn.joint.dynamics import Variables
from missmdp.learn.joint.evidence import prepare_with_rewards
from missmdp.learn.joint.findings import log_findings, model_findings
from missmdp.learn.joint.fit import JointFit, fit_jointly
from missmdp.learn.joint.given import Transitions, order_of, rules_of
from missmdp.learn.joint.layout import Prepared, prepare
from missmdp.learn.joint.model import ending_chance, initial_distribution, matrices
from missmdp.learn.joint.rewards import (
    LearnedRewards,
    given_rewards,
    learn_rewards,
    n_arguments,
    over_transitions,
    rewards_before,
)
from missmdp.learn.joint.search import Found, JointSearch, Tell
from missmdp.learn.joint.structure import Rules, Structure
from missmdp.learn.joint.visits import Support, Visits, pessimistic_model, support_of, visits_of
from missmdp.learn.limits import Method
from missmdp.model.mdp import FactoredMDP
from missmdp.model.mgraph import MissingnessGraph
from missmdp.model.missingness import MissingnessFunction
from missmdp.model.missmdp import MissMDP
from missmdp.model.policy import Policy
from missmdp.model.probabilities import checked_discount
from missmdp.model.space import NO_ACTION, FeatureSpace
from missmdp.progress import show_status
from missmdp.words import count

Reward = Callable[..., Any] | float | None
_ENDS_AT = 0.5
"""P(ended) above which a state counts as terminal."""
_NO_INTERVALS = (
    "JointEM has no intervals: nobody has shown that resampling covers the truth where dynamics are learned"
)


class JointEM(MissingnessEstimator):
    """Learns T, b₀, rewards and M together, from a log alone.

    What came before and after says how likely each hidden state was, given T and M; T and M are fitted to that; and
    so on, until the likelihood stops rising. Their structures are found in the data: T has a decision tree for the next
    value of each feature, and so has M for each feature that goes missing. The behaviour in the log may have reacted to
    what was seen, but to nothing else.

    Parameters
    ----------
    missingness
        What M may look like, as in `DynamicsEM`: "auto", "mcar", "smar", "logistic", "saturated" or a
        `MissingnessGraph`.
    transitions
        What T may look like. "trees" finds it in the data. "saturated" has a distribution of its own for each state
        and action, as counting has: for logs almost without gaps. {feature: features that its next value depends on}
        is a structure of your own; "next_x" stands for the next value of x. A `FactoredMDP` is known dynamics: then
        only M is learned, by `DynamicsEM`.
    discount
        γ; by default that of the log's MDP, if it has one. There is no other default.
    reward
        The reward: a number, a function (state, action) → number, or a function (state, action, next state) → number,
        which is added up over T̂. By default it is learned from the log's rewards; if the log has none, but an MDP,
        it is the MDP's.
    reward_evidence
        Whether logged rewards also say something about the state: states that would have paid something else are ruled
        out. That takes a column of rewards, and a function as `reward` without luck in it. The policy still acts on
        observations alone.
    initial
        b₀, if it is known: {state: probability}, or {feature: first value or {value: probability}}.
    terminal
        Which states are terminal, if that is known: a function, a pair (features, function of their values), or a
        collection of states. By default it is learned from the marks at the ends of episodes.
    known
        What is known of T for certain: {feature: function (state, action) → next value, {next value: probability}, or
        None where it is not known}.
    blocks
        Features that go missing together, such as [("x", "y")]; by default those that do so in the data.
    always_observed
        The features that are known to be always observed.
    pseudo_count
        Observations added to each group of states of M, distributed as AsMAR estimates them.
    tolerance
        Stop when an expectation step gains less than this per observation, in nats.
    max_iterations
        Stop the last fit after so many expectation steps, with a warning.
    seed
        Decides what `DynamicsEM` draws, where the dynamics are given.
    threads
        How many threads to use; by default one per core. The result does not depend on it.
    progress
        Whether to show progress, with the log-likelihood; by default on a terminal.

    Attributes
    ----------
    mdp_ : FactoredMDP
        The MDP that was learned, over all combinations of values.
    miss_mdp_ : MissMDP
        The MDP with M̂.
    missingness_ : MissingnessFunction
        M̂.
    log_likelihood_ : float
        The log-likelihood of the observations given the actions, in nats; marks of ends count as observed.
    n_parameters_ : int
        The free parameters of T, b₀ and M.
    bic_ : float
        The log-likelihood minus half the number of parameters times log n: higher is better.
    trace_ : tuple of float
        The penalised log-likelihood of the last fit, step by step; it never falls.
    converged_ : bool
        Whether the last fit converged.
    graph_ : MissingnessGraph
        What M depends on.
    rewards_ : LearnedRewards or None
        What was learned of the rewards, if they were learned.
    visits_ : Visits
        How often states and actions came in the log, in expectation, and how much each row of T̂ rests on.
    structure_ : Structure or None
        The trees of T̂ and b̂₀; None if the dynamics were given.

    Notes
    -----
    If the log has an MDP, its dynamics are not used.

    There is no guarantee. The fit is consistent if T and M are in the class that is searched and are identified by the
    log's distribution, and if the search finds the best structure. Where the log hardly went, T̂ is a guess: see
    `pessimistic_model` and `support_of`.

    If Ctrl-C is pressed, the best fit so far is kept, with a warning.

    Examples
    --------
    >>> import missmdp as mm
    >>> truth = mm.load_benchmark("icu-smar")
    >>> log = mm.collect(truth, 5_000, seed=0)
    >>> learner = mm.JointEM(discount=0.95, reward=lambda state, action: -state.infection).fit(log)
    >>> learner.mdp_.n_states
    800
    """

    needs_histories = True

    mdp_: FactoredMDP
    miss_mdp_: MissMDP
    log_likelihood_: float
    bic_: float
    trace_: tuple[float, ...]
    converged_: bool
    rewards_: LearnedRewards | None
    visits_: Visits
    structure_: Structure | None
    fit_: JointFit | None
    prepared_: Prepared | None

    def __init__(
        self,
        missingness: StructureChoice = "auto",
        transitions: Transitions = "trees",
        *,
        discount: float | None = None,
        reward: Reward = None,
        reward_evidence: bool = False,
        initial: Any = None,
        terminal: Any = None,
        known: Mapping[str, Callable[[Any, Any], Any]] | None = None,
        blocks: Sequence[Sequence[str]] | None = None,
        always_observed: Sequence[str] | None = None,
        pseudo_count: float = 1.0,
        tolerance: float = 1e-7,
        max_iterations: int = 200,
        seed: int = 0,
        threads: int | None = None,
        progress: bool | None = None,
    ) -> None:
        self.missingness = missingness
        self.transitions = transitions
        self.discount = discount
        self.reward = reward
        self.reward_evidence = reward_evidence
        self.initial = initial
        self.terminal = terminal
        self.known = known
        self.blocks = blocks
        self.always_observed = always_observed
        self.pseudo_count = pseudo_count
        self.tolerance = tolerance
        self.max_iterations = max_iterations
        self.seed = seed
        self.threads = threads
        self.progress = progress

    @property
    def assumes(self) -> str:
        """That the features are the state, that behaviour depended on what was recorded, and the structures."""
        what = (
            "m-graph" if isinstance(self.missingness, MissingnessGraph) else f"structure {self.missingness!r}"
        )
        return (
            "that the features are the whole state, that actions depended on recorded observations and actions only, "
            f"dynamics {self._dynamics_in_words()}, and for missingness the {what}"
        )

    def _dynamics_in_words(self) -> str:
        if isinstance(self.transitions, FactoredMDP):
            return "as given"
        if isinstance(self.transitions, Mapping):
            return "with the given parents"
        return "that the trees found in the data can tell" if self.transitions == "trees" else "of any kind"

    def check_parameters(self, features: FeatureSpace) -> None:
        """Raise `ParameterError` if a parameter is invalid."""
        checked_structure(self.missingness, "missingness")
        checked_number("pseudo_count", self.pseudo_count, least=0.0, most=1e9)
        checked_number("tolerance", self.tolerance, above=0.0, below=1.0)
        checked_integer("max_iterations", self.max_iterations, least=1)
        checked_seed(self.seed)
        checked_threads(self.threads)
        checked_flag("reward_evidence", self.reward_evidence)
        if self.discount is not None:
            checked_discount(self.discount)
        if callable(self.reward):
            n_arguments(self.reward)
        if self.blocks is not None:
            checked_feature_blocks(features, self.blocks)
        if self.always_observed is not None:
            checked_names("always_observed", self.always_observed, features.names)

    def fit(self, data: Dataset) -> Self:
        """Learn from a log, and return self."""
        log = self._checked(data)
        discount = self._discount(log)
        if isinstance(self.transitions, FactoredMDP):
            return self._with_known_dynamics(log, self.transitions, discount)
        findings = [*log_findings(log, self.always_observed or ())]
        ends = bool(log.terminated.any())
        with show_status("Learning dynamics and missingness", enabled=self.progress) as say:
            marked = ends or self.terminal is not None
            if self.reward_evidence and callable(self.reward):
                prepared = prepare_with_rewards(log, self.blocks, self.reward, ends=marked)
            else:
                prepared = prepare(log, self.blocks, ends=marked)
            rules = self._rules(prepared, log, ends=ends)

            def tell(name: str, value: float) -> None:
                say(f"{name}, log-likelihood {value:,.1f}")

            search = JointSearch(prepared, rules, self.pseudo_count, threads=self.threads, tell=tell)
            try:
                found = self._last_fit(search, self._searched(search), tell)
            except KeyboardInterrupt:
                if search.best is None:
                    raise
                found = search.best
                findings.append(
                    AssumptionFinding("stopped early: this is the best fit so far, not a finished one", ())
                )
            self._keep(log, prepared, found, discount)
        findings += model_findings(self, log, found)
        self.warnings_ = tuple(findings)
        for finding in self.warnings_:
            warnings.warn(str(finding), AssumptionWarning, stacklevel=2)
        return self

    def _checked(self, data: Any) -> Dataset:
        advice = "read a table with Dataset.from_table(table)"
        log = checked_instance("data", data, Dataset, "a Dataset", advice)
        self.check_parameters(log.feature_space)
        if log.n_steps == 0:
            raise DataError("there are no observations to learn from")
        taken = log.actions != NO_ACTION
        if not taken.any():
            raise DataError(
                "there are no actions in this log, so it says nothing of what follows on what: every episode has one "
                "observation, or the column of actions is empty"
            )
        goes_on = np.ones(log.n_steps, dtype=np.bool_)
        goes_on[log.offsets[1:] - 1] = False
        if (goes_on & ~taken).any():
            raise DataError("an episode goes on after a step without an action; see missmdp.validate")
        for name, rate in log.missing_rates().items():
            if rate == 1.0:
                raise DataError(
                    f"the feature {name!r} is never seen, so nothing can be learned of it; leave it out of the log"
                )
            if rate > 0.0 and name in (self.always_observed or ()):
                raise DataError(f"{name!r} is declared always observed, but it goes missing")
        if self.reward_evidence and (log.logged_rewards is None or not callable(self.reward)):
            what = "a column of rewards" if log.logged_rewards is None else "a function as reward"
            raise ParameterError("reward_evidence", True, "False", f"evidence takes {what}")
        if self.reward is None and log.logged_rewards is None and log.mdp is None:
            raise ParameterError(
                "reward",
                None,
                "a function or a number",
                "the log has no rewards: give a function (state, action) or (state, action, next state), or read a "
                "column with Dataset.from_table(…, reward='…')",
            )
        if self.reward is None and log.logged_rewards is not None:
            goes_on &= ~np.isnan(log.logged_rewards)
            if not goes_on.any():
                raise DataError("the log's column of rewards is empty")
        return log

    def _discount(self, log: Dataset) -> float:
        if self.discount is not None:
            return checked_discount(self.discount)
        if isinstance(self.transitions, FactoredMDP):
            return self.transitions.discount
        if log.mdp is not None:
            return log.mdp.discount
        problem = "say how future rewards count, such as discount=0.95; there is no default"
        raise ParameterError("discount", None, "a number in [0, 1)", problem)

    def _rules(self, prepared: Prepared, log: Dataset, *, ends: bool) -> Rules:
        layout = prepared.histories.layout
        rules = rules_of(
            layout.states.space,
            log.action_names,
            transitions=cast("Any", self.transitions),
            known=self.known,
            initial=self.initial,
            terminal=self.terminal,
            ends=ends,
        )
        return rules.ordered(order_of(rules, Variables(layout.features, layout.n_actions)))

    def _with_known_dynamics(self, log: Dataset, mdp: FactoredMDP, discount: float) -> Self:
        for name in ("initial", "terminal", "known", "reward_evidence"):
            if getattr(self, name) is not None and getattr(self, name) is not False:
                problem = "dynamics that are given as a whole have their own; leave it out"
                raise ParameterError(name, getattr(self, name), "left out", problem)
        own = DynamicsEM(
            mdp,
            cast("StructureChoice", self.missingness),
            blocks=self.blocks,
            always_observed=self.always_observed,
            pseudo_count=self.pseudo_count,
            tolerance=self.tolerance,
            seed=self.seed,
            threads=self.threads,
            progress=self.progress,
        )
        known = log if log.mdp is mdp else log.with_mdp(mdp)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", AssumptionWarning)
            own.fit(known)
        self.mdp_ = self._with_own_rewards(mdp, discount)
        self.missingness_ = own.missingness_
        self.miss_mdp_ = MissMDP(self.mdp_, own.missingness_)
        self.log_likelihood_, self.bic_, self.trace_ = own.log_likelihood_, own.bic_, own.trace_
        self.converged_, self.n_parameters_, self.graph_ = own.converged_, own.n_parameters_, own.graph_
        self.always_observed_, self.unseen_, self.data_ = own.always_observed_, own.unseen_, known
        self.structure_ = self.fit_ = self.prepared_ = self.rewards_ = None
        self.assumed_, self.warnings_ = self.assumes, own.warnings_
        for finding in self.warnings_:
            warnings.warn(str(finding), AssumptionWarning, stacklevel=3)
        return self

    def _with_own_rewards(self, mdp: FactoredMDP, discount: float) -> FactoredMDP:
        """Return known dynamics with the rewards and the discount that were given, if any were."""
        if self.reward is None and discount == mdp.discount:
            return mdp
        reward = mdp.reward
        if self.reward is not None:
            reward = given_rewards(self.reward, mdp.space, mdp.actions, mdp.transition)
        return FactoredMDP(
            mdp.space.features,
            mdp.actions,
            list(mdp.transition),
            np.where(mdp.terminal[:, None], 0.0, reward),
            mdp.initial,
            mdp.terminal,
            discount,
            states=mdp.space,
        )

    def _searched(self, search: JointSearch) -> Found:
        """Return the structures with the best score, looked for in a part of a long log first."""
        thin = search.thinned()
        if thin is None:
            return self._of_choice(search, None)
        try:
            first = self._of_choice(thin, None)
        except KeyboardInterrupt:
            search.best = thin.best
            raise
        search.best = first
        return self._of_choice(search, first)

    def _of_choice(self, search: JointSearch, before: Found | None) -> Found:
        layout = search.layout
        structure, blocks = self.missingness, layout.blocks
        if isinstance(structure, MissingnessGraph):
            factors = graph_factors(layout.states, blocks, structure)
            if not blocks.names:
                return search.with_model(search.penalised(factors), before)
            return search.searched(allowed_parents(layout.states, blocks, structure), before)
        name = checked_structure(structure, "missingness")
        if name == "auto" and blocks.names:
            everything = layout.features.names
            return search.searched([(everything, tuple(range(i))) for i in range(len(blocks.names))], before)
        return search.with_model(self._named(search, name), before)

    def _named(self, search: JointSearch, name: str) -> StructureModel:
        layout = search.layout
        if name == "logistic" and layout.blocks.names:
            everything = [layout.features.names] * len(layout.blocks.names)
            return logistic_model(layout.states, layout.blocks, everything, search.prior, self.pseudo_count)
        shape = "mcar" if name in ("auto", "logistic") else name
        return search.penalised(named_factors(layout.states, layout.blocks, shape))

    def _last_fit(self, search: JointSearch, found: Found, tell: Tell) -> Found:
        """Return the fit with the structures that were found, to the last digit."""
        fit = fit_jointly(
            search.histories,
            found.fit.dynamics,
            found.fit.model,
            found.fit.parameters,
            tolerance=self.tolerance,
            max_iterations=self.max_iterations,
            threads=self.threads,
            report=lambda value: tell("last fit", value),
        )
        return search.scored(found.structure, fit, found.trees)

    def _keep(self, log: Dataset, prepared: Prepared, found: Found, discount: float) -> None:
        layout, fit = prepared.histories.layout, found.fit
        space = layout.states.space
        self.fit_, self.structure_, self.prepared_, self.data_ = fit, found.structure, prepared, log
        transition = matrices(fit.dynamics, fit.parameters.dynamics)
        terminal = ending_chance(fit.dynamics, fit.parameters.dynamics) > _ENDS_AT
        self.rewards_ = None
        if self.reward is not None:
            reward = given_rewards(self.reward, space, log.action_names, transition)
        elif log.logged_rewards is not None:
            self.rewards_ = learn_rewards(prepared, fit, rewards_before(log))
            reward = over_transitions(self.rewards_, space, transition)
        else:
            own = log.known_mdp
            place = own.space.find(space.codes)
            reward = np.where(place[:, None] >= 0, own.reward[np.maximum(place, 0)], 0.0)
        self.mdp_ = FactoredMDP(
            layout.features,
            log.action_names,
            transition,
            reward,
            initial_distribution(fit.dynamics, fit.parameters.dynamics),
            terminal,
            discount,
            states=space,
        )
        table = np.ascontiguousarray(fit.table.T)
        self.missingness_ = MissingnessFunction(space, layout.blocks.patterns, table)
        self.miss_mdp_ = MissMDP(self.mdp_, self.missingness_)
        self.log_likelihood_, self.trace_, self.converged_ = fit.log_likelihood, fit.trace, fit.converged
        self.n_parameters_ = _n_parameters(fit, layout.states.reachable)
        self.bic_ = self.log_likelihood_ - 0.5 * self.n_parameters_ * math.log(log.n_steps)
        self.graph_ = factors_graph(layout.states, fit.model)
        self.always_observed_ = tuple(n for n in layout.features.names if n not in layout.blocks.features)
        self.visits_ = visits_of(fit, self.mdp_)
        self.unseen_ = ()
        self.assumed_ = self.assumes

    def bound(
        self,
        confidence: float = 0.95,
        method: Method = "auto",
        *,
        behaviour: Behaviour | None = None,
        draws: int = 100,
        seed: int = 0,
    ) -> Bound:
        """Raise `DataError`: no interval for M̂ has been shown to hold while T is learned too."""
        raise DataError(_NO_INTERVALS)

    def bootstrap(self, draws: int = 100, seed: int = 0) -> list[MissingnessFunction]:
        """Raise `DataError`; see `bound`."""
        raise DataError(_NO_INTERVALS)

    def title(self) -> str:
        """Return the learner as a heading."""
        structure = "m-graph" if isinstance(self.missingness, MissingnessGraph) else self.missingness
        return f"JointEM(missingness={structure!r})"

    def details(self) -> list[str]:
        """Return how well the fit explains the data, and what M depends on."""
        self.check_fitted()
        ended = "converged" if self.converged_ else "not converged"
        lines = [
            f"log-likelihood {f'{self.log_likelihood_:,.1f}'.replace('-', '−')}, "
            f"{count(self.n_parameters_, 'free parameter')}, {ended}"
        ]
        graph = cast("MissingnessGraph", self.graph_)
        for feature in graph.can_go_missing:
            parents = graph.parents(feature)
            own = ": it hides itself" if feature in parents else ""
            depends = f"depends on {', '.join(parents)}{own}" if parents else "does not depend on any value"
            lines.append(f"whether {feature} is missing {depends}")
        return lines

    def describe(self) -> str:
        """Return what was learned: the trees of T̂ with their distributions, rewards, ends, M, and what to doubt."""
        self.check_fitted()
        return describe_dynamics(self)

    def pessimistic_model(self, caution: float = 1.0, *, fewest: float = 0.0) -> MissMDP:
        """Return the learned model with less reward where T̂ rests on little data, for planning with care.

        R(s, a) falls by γ ε(s, a) (V_max − V_min), where ε is `caution` times the standard deviation of T̂(· | s, a) in
        total variation. If T̂ is nowhere further from T than ε, and b₀, M and rewards are right, every policy is worth
        at least as much in truth as in this model. Whether T̂ is that close cannot be known from the log alone.

        Parameters
        ----------
        caution
            How many standard deviations T̂ may be off.
        fewest
            Actions that were taken less often than this in a state cost V_max − V_min there on top, so the planner
            keeps to actions that were tried.
        """
        self.check_fitted()
        return pessimistic_model(self.miss_mdp_, self._visits(), caution, fewest)

    def support_of(
        self, policy: Policy, *, fewest: float = 10.0, steps: int = 20_000, seed: int = 0
    ) -> Support:
        """Return the share of a policy's decisions that rest on little data, by simulating it in the learned model.

        Parameters
        ----------
        policy
            The policy.
        fewest
            A decision rests on little data if the log has the action fewer times than this in the state.
        steps
            How many observations to simulate.
        seed
            Decides the simulation.
        """
        self.check_fitted()
        return support_of(policy, self.miss_mdp_, self._visits(), fewest, steps, seed, self.progress)

    def _visits(self) -> Visits:
        if self.fit_ is None:
            raise DataError("the dynamics were given, so nothing was counted of them")
        return self.visits_

    def draw(self, path: str | Path) -> Path:
        """Draw which features the next values, and the gaps, depend on; the name ends in .svg, .png or .pdf."""
        self.check_fitted()
        return draw_dynamics(self, Path(path))


def _n_parameters(fit: JointFit, reachable: NDArray[np.bool_]) -> int:
    dynamics, expected = fit.dynamics, fit.expected
    pairs = dynamics.fitted(dynamics.counted(expected.moved, expected.began))
    own = sum(family.n_parameters(counts) for family, counts in pairs)
    has_rows = isinstance(fit.model, PenalisedFactors) or bool(fit.model.blocks.names)
    return own + (fit.model.n_parameters(reachable) if has_rows else 0)
