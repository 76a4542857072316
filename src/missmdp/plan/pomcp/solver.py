"""Plan while acting, by Monte Carlo tree search."""

from __future__ import annotations

import logging
from dataclasses import dataclass

from missmdp.checks import checked_seed
from missmdp.errors import ModelError
from missmdp.model.missmdp import MissMDP
from missmdp.model.pomdp import POMDP
from missmdp.plan.pomcp.options import BeliefKind, checked_options
from missmdp.plan.pomcp.policy import POMCPPolicy

__all__ = ["POMCP", "POMCPResult"]

_log = logging.getLogger(__name__)


@dataclass(frozen=True, eq=False)
class POMCPResult:
    """What POMCP returns: a policy that does its planning while it acts.

    There are no bounds. What the policy is worth, only a simulation can tell: `evaluate`.
    """

    policy: POMCPPolicy
    """The policy."""

    def __str__(self) -> str:
        return f"plans while acting: {self.policy.options}; no bounds, evaluate(policy, model) says what it is worth"

    def __repr__(self) -> str:
        return f"POMCPResult({self})"


class POMCP:
    """Partially observable Monte Carlo planning (Silver and Veness, 2010): the paper's online baseline.

    Nothing is computed ahead. Before every decision a tree of histories is built from the current belief, by
    simulations: each draws a state from the belief and descends by UCB1, Q(h, a) + c √(ln N(h) / N(h, a)), untried
    actions first. The first history that is not in the tree is added to it, and random actions, all equally likely,
    go on until `max_depth` steps are simulated or the episode ends. Q(h, a) is the mean of the discounted rewards
    after (h, a). The action of highest mean is taken, and the tree forgotten.

    Parameters
    ----------
    max_depth
        How many steps a simulation looks ahead.
    exploration
        UCB1's c: how much is given to actions that were seldom tried, in units of the reward. Returns of benchmarks
        with large rewards, such as the ICU's, differ by far more than 1.
    tree_queries
        Simulations per decision.
    max_time
        Seconds after which a search ends early; None for never. Results then depend on the machine.
    belief
        What simulations start from. "particles": an unweighted particle filter; every particle is sent through the
        model and kept if its simulated observation is the one seen. "exact": the belief by Bayes' rule.
    particles
        How many particles are sent through the model at each step; by default `tree_queries`.
    seed
        For agents only, those that are not given one; by default each has a fresh one. `evaluate` does not use it:
        there the searches draw from the seed of the evaluation.

    Notes
    -----
    If no particle survives, the particles are drawn anew from the exact belief, which is tracked besides, and the
    collapse is counted. The paper supplies its baseline with the true belief in that case.

    Deviation: the paper uses BasicPOMCP.jl 0.3.12. As there, depth counts actions from the root, leaves are valued by
    rollouts down to the same depth, ties in the tree are broken at random, and survivors of the particle filter take
    turns until as many were tried as there are particles. Differently from there,

    - the belief is tracked under the policy's own model, which is the true one only if that is what was solved;
    - after the first visit of a history, untried actions come next even if the first return was positive;
    - of actions that are equally good at the end the first is taken, not the last, and never one that was not tried;
    - histories that end in a terminal state, or at `max_depth`, take no node;
    - where only terminal states are believed in, the first action is returned, and nothing is raised.
    """

    def __init__(
        self,
        *,
        max_depth: int = 20,
        exploration: float = 1.0,
        tree_queries: int = 1000,
        max_time: float | None = None,
        belief: BeliefKind = "particles",
        particles: int | None = None,
        seed: int | None = None,
    ) -> None:
        self.options = checked_options(
            max_depth=max_depth,
            exploration=exploration,
            tree_queries=tree_queries,
            max_time=max_time,
            belief=belief,
            particles=particles,
        )
        self.seed = None if seed is None else checked_seed(seed)

    def __repr__(self) -> str:
        chosen = self.options
        names = ("max_depth", "exploration", "tree_queries", "max_time", "belief")
        listed = [f"{name}={getattr(chosen, name)!r}" for name in names]
        if chosen.belief == "particles":
            listed.append(f"particles={chosen.particles}")
        return f"POMCP({', '.join([*listed, f'seed={self.seed!r}'])})"

    def solve(self, model: MissMDP | POMDP) -> POMCPResult:
        """Return a policy for a model; its agents search that model and track the belief under it."""
        if not isinstance(model, MissMDP | POMDP):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise ModelError(f"expected a MissMDP or a POMDP, got {type(model).__name__}")
        result = POMCPResult(POMCPPolicy(model, self.options, seed=self.seed))
        _log.info("POMCP %s", result)
        return result
