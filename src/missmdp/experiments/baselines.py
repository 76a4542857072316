"""Policies to compare with, those of the paper and others, by name, and all that it takes to make them again."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal

from missmdp.errors import ModelError, ParameterError
from missmdp.model.missmdp import MissMDP, prior_model
from missmdp.model.policy import Policy, UniformPolicy
from missmdp.model.pomdp import POMDP
from missmdp.plan.ppo.extra import require
from missmdp.plan.ppo.settings import PPOSettings
from missmdp.plan.ppo.solver import PPO
from missmdp.plan.sarsop.solver import Sarsop
from missmdp.words import did_you_mean


@dataclass(frozen=True, kw_only=True)
class BaselineSettings:
    """How baselines are made; the defaults are the paper's (App., "Timeouts & precision", "POMCP Baseline")."""

    solve_timeout: float | None = 300.0
    """Seconds for solving, of the optimal policy and of the prior's each; None for no limit."""
    precision: float = 1e-3
    """Relative gap between the bounds at which solving stops."""
    max_trials: int | None = None
    """Trials after which solving stops; None for no limit."""
    tree_queries: int = 1000
    max_depth: int = 20
    exploration: float = 1.0
    belief: Literal["particles", "exact"] = "particles"
    expansions: int = 1000
    """Of `OnlinePlanner`, per decision."""
    ppo: PPOSettings = field(default_factory=PPOSettings)
    ppo_memory: PPOSettings = field(default_factory=lambda: PPOSettings(memory=True))
    seed: int = 0
    """For all that is random in making policies. POMCP is ready at once; its search draws when it acts."""

    def __post_init__(self) -> None:
        if self.ppo.memory or not self.ppo_memory.memory:
            raise ModelError("ppo takes settings without memory, ppo_memory settings with memory")


@dataclass(frozen=True, eq=False)
class MadePolicy:
    """A policy, and where it comes from."""

    policy: Policy
    kind: str
    """A baseline's name, or "file"."""
    how: str
    """In words: what was done, and what came out."""
    settings: dict[str, Any] = field(default_factory=dict[str, Any])
    """What it takes to make it again."""
    seconds: float | None = None
    """What it took to make it."""
    lower: float | None = None
    upper: float | None = None
    """Bounds on its value in the model that it was made for: of the policy from below, of any policy from above."""
    status: str | None = None
    """Why solving or training ended."""

    @property
    def relative_gap(self) -> float | None:
        """(upper − lower)/|lower|, as in `SolveResult`; None where there are no bounds."""
        if self.lower is None or self.upper is None:
            return None
        if self.upper == self.lower:
            return 0.0
        return (self.upper - self.lower) / abs(self.lower) if self.lower != 0.0 else math.inf


def check_baseline(name: str, model: MissMDP | POMDP) -> None:
    """Raise if a baseline cannot be made for a model, or not with what is installed; call it before long work.

    Raises
    ------
    ModelError
        If there is no such baseline, or it needs to know which features a model has.
    MissingExtra
        If it needs an extra that is not installed.
    """
    if name not in BASELINES:
        problem = (
            f"there is no policy {name!r}; there are {', '.join(BASELINES)}{did_you_mean(name, BASELINES)}"
        )
        raise ParameterError("name", name, f"one of {', '.join(BASELINES)}", problem)
    if name in FEATURES_NEEDED and not isinstance(model, MissMDP):
        raise ModelError(
            f"{name} is for miss-MDPs: in a POMDP no features go missing; there are "
            f"{', '.join(known for known in BASELINES if known not in FEATURES_NEEDED)}"
        )
    if name.startswith("ppo"):
        require("stable_baselines3")


def make_baseline(
    name: str,
    model: MissMDP | POMDP,
    settings: BaselineSettings | None = None,
    *,
    progress: bool | None = None,
) -> MadePolicy:
    """Return one of the baselines for a model: solved, trained, or ready to plan.

    Parameters
    ----------
    name
        "random", "prior" (optimal under the uninformed guess at M), "optimal" (under the model's own M), "pomcp",
        "ppo", "ppo-memory" or "online" (`OnlinePlanner`).
    model
        The model that the policy is for: the truth.
    settings
        How to make it.
    progress
        Whether to show progress; by default on a terminal.
    """
    check_baseline(name, model)
    chosen = baseline_settings(name, BaselineSettings() if settings is None else settings)
    return _MAKERS[name](model, chosen, progress)


def baseline_settings(name: str, settings: BaselineSettings) -> dict[str, Any]:
    """Return what decides how a baseline is made, apart from the model."""
    match name:
        case "prior" | "optimal":
            chosen: dict[str, Any] = {"timeout": settings.solve_timeout, "precision": settings.precision}
            if settings.max_trials is not None:
                chosen["max_trials"] = settings.max_trials
        case "pomcp":
            # Without a seed: when it is evaluated, its search draws from the seed of the episodes.
            return {
                key: getattr(settings, key) for key in ("tree_queries", "max_depth", "exploration", "belief")
            }
        case "online":
            return {"expansions": settings.expansions}  # without a seed, as POMCP
        case "ppo":
            chosen = asdict(settings.ppo)
        case "ppo-memory":
            chosen = asdict(settings.ppo_memory)
        case _:
            return {}
    return {**chosen, "seed": settings.seed}


def _random(model: MissMDP | POMDP, settings: dict[str, Any], progress: bool | None) -> MadePolicy:
    return MadePolicy(UniformPolicy(), "random", "uniformly random actions", settings)


def _optimal(model: MissMDP | POMDP, settings: dict[str, Any], progress: bool | None) -> MadePolicy:
    result = Sarsop(**settings, progress=progress).solve(model)
    return MadePolicy(
        policy=result.policy,
        kind="optimal",
        how=f"{result.bounds_text}, {result.ended} after {result.seconds:.1f} s",
        settings=settings,
        seconds=result.seconds,
        lower=result.lower,
        upper=result.upper,
        status=result.status,
    )


def _prior(model: MissMDP | POMDP, settings: dict[str, Any], progress: bool | None) -> MadePolicy:
    assert isinstance(model, MissMDP)
    made = _optimal(prior_model(model), settings, progress)
    return replace(made, kind="prior", how=f"under the prior, {made.how}")


def _pomcp(model: MissMDP | POMDP, settings: dict[str, Any], progress: bool | None) -> MadePolicy:
    from missmdp.plan.pomcp.solver import POMCP

    queries, depth = settings["tree_queries"], settings["max_depth"]
    return MadePolicy(
        policy=POMCP(**settings).solve(model).policy,
        kind="pomcp",
        how=f"plans while acting: {queries:,} tree queries per action, depth {depth}, c = {settings['exploration']:g}, "
        f"belief: {settings['belief']}",
        settings=settings,
    )


def _online(model: MissMDP | POMDP, settings: dict[str, Any], progress: bool | None) -> MadePolicy:
    from missmdp.plan.online.solver import OnlinePlanner

    result = OnlinePlanner(**settings).solve(model)
    return MadePolicy(
        policy=result.policy, kind="online", how=str(result), settings=settings, seconds=result.seconds
    )


def _ppo(model: MissMDP | POMDP, settings: dict[str, Any], progress: bool | None) -> MadePolicy:
    assert isinstance(model, MissMDP)
    result = PPO(**settings, progress=progress).solve(model)
    return MadePolicy(
        policy=result.policy,
        kind="ppo-memory" if result.settings.memory else "ppo",
        how=str(result),
        settings=settings,
        seconds=result.seconds,
        status=result.status,
    )


_MAKERS: dict[str, Callable[[MissMDP | POMDP, dict[str, Any], bool | None], MadePolicy]] = {
    "random": _random,
    "prior": _prior,
    "optimal": _optimal,
    "pomcp": _pomcp,
    "ppo": _ppo,
    "ppo-memory": _ppo,
    "online": _online,
}
BASELINES = tuple(_MAKERS)
"""The names of baselines."""
PAPER_BASELINES = tuple(name for name in BASELINES if name != "online")
"""Those of the paper."""
FEATURES_NEEDED = ("prior", "ppo", "ppo-memory")
"""Baselines that need to know which features can go missing: not for POMDPs from files."""
