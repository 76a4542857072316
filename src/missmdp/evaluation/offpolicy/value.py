"""What another policy would have earned, had it decided in place of the one that made a log."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from missmdp.checks import checked_choice, checked_integer, checked_seed
from missmdp.data.dataset import Dataset
from missmdp.errors import Argument, DataError, ParameterError
from missmdp.evaluation.offpolicy.behaviour import LearnedBehaviour, described, learn_behaviour
from missmdp.evaluation.offpolicy.decisions import (
    Decisions,
    EmptyRewards,
    actions_of,
    check_same_names,
    checked_discount,
    checked_log,
    decisions_of,
    rewards_of,
)
from missmdp.evaluation.offpolicy.doubts import warnings_of, why_no_interval
from missmdp.evaluation.offpolicy.estimators import doubly_robust_terms, weighted_terms
from missmdp.evaluation.offpolicy.fitted import fitted_values
from missmdp.evaluation.offpolicy.method import EPISODE_WISE, METHODS, Method
from missmdp.evaluation.offpolicy.modelled import modelled_values
from missmdp.evaluation.offpolicy.result import OffPolicyValue
from missmdp.evaluation.offpolicy.target import choices
from missmdp.evaluation.offpolicy.weights import Weights
from missmdp.evaluation.value import evaluate
from missmdp.model.mdp import FactoredMDP
from missmdp.model.missmdp import MissMDP, checked_model
from missmdp.model.policy import Policy, as_policy
from missmdp.model.probabilities import as_floats

_NEARLY_ONE = 1.0 - 1e-12
"""A discount that models take, and with which sums of rewards are the same to ten digits."""

Behaving = LearnedBehaviour | Policy | Callable[[Any], Any] | ArrayLike | None


def off_policy_value(
    policy: Policy | Callable[[Any], Any] | None,
    log: Dataset,
    *,
    discount: float,
    method: Method = "wpdis",
    behaviour: Behaving = None,
    model: MissMDP | None = None,
    horizon: int | None = None,
    rewards: ArrayLike | None = None,
    empty_rewards: EmptyRewards = "error",
    episodes: int = 2000,
    folds: int = 5,
    seed: int = 0,
    progress: bool | None = None,
) -> OffPolicyValue:
    """Return what a policy would have earned where a log was made by another.

    It assumes that what was done rested on the recorded history only. Episodes that were cut count up to the cut.

    Parameters
    ----------
    policy
        The policy; a function from observation to action will do, and None is uniformly random.
    log
        The log, with rewards.
    discount
        γ, from 0 to 1. It is never assumed.
    method
        "is", "pdis", "wis", "wpdis", "dr" or "model"; docs/off-policy.md says what each is good for. Short: "wpdis" has
        little bias and never leaves the range of what was earned, "dr" also uses action values, fitted to other
        episodes or taken from `model`, and "model" simulates the policy in `model`.
    behaviour
        With which probabilities the log's actions were taken: a `LearnedBehaviour`, the policy that made the log, or
        an array, of the probabilities of what was done, shape (rows of the log,), or of all actions, shape (rows, A);
        last rows of episodes are ignored. By default it is learned from the log.
    model
        For "model", the model to simulate; for "dr", where action values come from. Also passed to policies that ask
        for one.
    horizon
        How many decisions of each episode count; by default all. Fewer leave larger effective samples.
    rewards, empty_rewards
        As for `logged_value`.
    episodes
        How many episodes to simulate for "model".
    folds
        In how many parts episodes are dealt, for "dr" without a model and for learning the behaviour.
    seed
        For policies and models that draw, and for dealing.
    progress
        Whether to show progress; by default on a terminal.

    Examples
    --------
    >>> import missmdp as mm
    >>> log = mm.collect(mm.load_benchmark("icu-smar"), 20_000, seed=0, keep_states=True)
    >>> value = mm.off_policy_value(None, log, discount=0.95, behaviour=mm.UniformPolicy())
    >>> round(value.mean - mm.logged_value(log, discount=0.95).mean, 9)
    0.0
    """
    policy, log, discount = as_policy(policy), checked_log(log), checked_discount(discount)
    method = checked_choice("method", method, METHODS)
    folds, seed = checked_integer("folds", folds, least=2), checked_seed(seed)
    if model is not None:
        model = checked_model(model)
        check_same_names(log, model)
    decisions = decisions_of(log, horizon)
    if not len(decisions.rows):
        raise DataError("there is no decision in the log")
    if method == "model":
        return _simulated(policy, log, decisions, discount, model, horizon, episodes, seed, progress)
    earned = rewards_of(log, decisions, rewards, empty_rewards)
    done = log.actions[decisions.rows].astype(np.int64)
    chosen = choices(policy, log, decisions, model=model, seed=seed, progress=progress)
    likely, source = _behaving(behaviour, log, decisions, done, model, folds, seed, progress)
    weights = Weights(decisions, _ratios(chosen.of(done), likely, decisions))
    if method != "dr":
        terms = plain = weighted_terms(method, weights, earned, discount)
        if method in EPISODE_WISE and not weights.last.any():
            terms = np.full(decisions.episodes, np.nan)
    else:
        start = (
            fitted_values(log, decisions, chosen, earned, discount, folds=folds, seed=seed)
            if model is None
            else modelled_values(policy, model, log, decisions, chosen, discount, seed=seed)
        )
        plain = weighted_terms("pdis", weights, earned, discount)
        terms = doubly_robust_terms(weights, earned, discount, start.action_values, start.values)
    return OffPolicyValue(
        method=method,
        terms=terms,
        discount=discount,
        horizon=horizon,
        behaviour=source,
        cut=decisions.cut,
        decisions=len(decisions.rows),
        agreement=float(chosen.of(done)[chosen.known].mean()),
        followed=float(chosen.known.mean()),
        effective=weights.effective,
        effective_by_step=weights.effective_by_step,
        mean_weight_by_step=weights.totals / decisions.episodes,
        largest_weight=weights.largest,
        no_interval=why_no_interval(method, weights, discount, terms, plain),
        warnings=warnings_of(weights, chosen),
    )


def _ratios(
    wanted: NDArray[np.float64], likely: NDArray[np.float64], decisions: Decisions
) -> NDArray[np.float64]:
    """Return π / β at each decision."""
    impossible = np.flatnonzero((likely <= 0.0) & (wanted > 0.0))
    if impossible.size:
        raise DataError(
            "what was done has probability 0 under ",
            Argument("behaviour"),
            f": {decisions.named(impossible)}",
        )
    return np.divide(wanted, likely, out=np.zeros_like(wanted), where=likely > 0.0)


def _behaving(
    behaviour: Behaving,
    log: Dataset,
    decisions: Decisions,
    done: NDArray[np.int64],
    model: MissMDP | None,
    folds: int,
    seed: int,
    progress: bool | None,
) -> tuple[NDArray[np.float64], str]:
    """Return the probability of what was done at each decision, shape (D,), and where it comes from in words."""
    place = np.arange(len(done))
    if behaviour is None:
        behaviour = learn_behaviour(log, folds=folds, seed=seed)
    if isinstance(behaviour, LearnedBehaviour):
        return behaviour.probabilities(log)[decisions.rows, done], described(behaviour)
    if callable(behaviour) or (isinstance(behaviour, Policy) and not isinstance(behaviour, type)):
        given = as_policy(cast("Policy", behaviour))
        found = choices(given, log, decisions, model=model, seed=seed, progress=progress)
        if found.drawn and (found.of(done) < 1.0).any():
            wrong = np.flatnonzero(found.known & (found.of(done) < 1.0))
            problem = (
                f"this policy, asked step by step, would have done something else ({decisions.named(wrong)}); if it "
                "draws its actions, give an array of probabilities"
            )
            raise ParameterError("behaviour", behaviour, "the policy that made the log", problem)
        return found.of(done), f"given: {given!r}"
    array = as_floats(behaviour, "behaviour")
    if array.shape not in ((log.n_steps,), (log.n_steps, len(actions_of(log)))):
        shapes = f"({log.n_steps},) or ({log.n_steps}, {len(actions_of(log))})"
        raise ParameterError("behaviour", array.shape, f"a policy or an array of shape {shapes}")
    rows = array[decisions.rows]
    likely = rows if rows.ndim == 1 else rows[place, done]
    wrong = np.flatnonzero(~((likely > 0.0) & (likely <= 1.0)))
    if wrong.size:
        problem = f"{likely[wrong[0]]:g} is no probability of what was done: {decisions.named(wrong)}"
        raise ParameterError("behaviour", float(likely[wrong[0]]), "above 0 and at most 1", problem)
    return likely, "given: an array of probabilities"


def _simulated(
    policy: Policy,
    log: Dataset,
    decisions: Decisions,
    discount: float,
    model: MissMDP | None,
    horizon: int | None,
    episodes: int,
    seed: int,
    progress: bool | None,
) -> OffPolicyValue:
    if model is None:
        raise ParameterError("model", None, "a MissMDP", "the method 'model' needs a model to simulate")
    own = model if discount == model.discount else _discounted(model, min(discount, _NEARLY_ONE))
    found = evaluate(policy, own, episodes, seed, horizon=decisions.longest, progress=progress)
    return OffPolicyValue(
        method="model",
        terms=found.returns,
        discount=discount,
        horizon=horizon,
        behaviour="not needed",
        cut=decisions.cut,
        decisions=len(decisions.rows),
        agreement=np.nan,
        followed=np.nan,
        effective=np.nan,
        effective_by_step=np.empty(0),
        mean_weight_by_step=np.empty(0),
        largest_weight=np.nan,
        no_interval=None,
        evaluation=found,
    )


def _discounted(model: MissMDP, discount: float) -> MissMDP:
    """Return a model with another discount."""
    mdp = model.mdp
    dynamics = mdp.factors if mdp.by_factors else mdp.transition
    assert dynamics is not None
    other = FactoredMDP(
        mdp.space.features,
        mdp.actions,
        dynamics,
        mdp.reward,
        mdp.initial,
        mdp.terminal,
        discount,
        states=mdp.space,
    )
    return MissMDP(other, model.missingness, name=model.name)
