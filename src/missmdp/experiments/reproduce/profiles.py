"""Ready-made configurations: from a check that everything works to the paper's own grid."""

from __future__ import annotations

from missmdp.errors import DataError
from missmdp.experiments.reproduce.config import ReproduceConfig

__all__ = ["PROFILES", "profile"]

PROFILES = {
    "smoke": ReproduceConfig(
        benchmarks=("icu-smar", "predator-smar"),
        sizes=(100, 1_000, 10_000),
        runs=4,
        value_sizes=(100, 10_000),
        value_runs=2,
        episodes=200,
        max_trials=5,
        optimal_trials=6,
        prior_trials=2,
        solve_timeout=None,
        baseline_timeout=None,
        baselines=("random", "prior", "optimal", "pomcp"),
        baseline_seeds=1,
        pomcp_episodes=10,
        tree_queries=100,
        fully_observed=False,
    ),
    "small": ReproduceConfig(
        value_sizes=(100, 1_000, 10_000, 100_000),
        value_runs=5,
        episodes=4_000,
        max_trials=16,
        optimal_trials=24,
        prior_trials=12,
        solve_timeout=None,
        baseline_timeout=None,
        baseline_seeds=2,
        pomcp_episodes=100,
        only={
            "predator-smar": {"prior_trials": 6},
            "predator-mnar-unid": {"prior_trials": 6},
            # Policies differ less there, and it is the hardest to solve.
            "predator-mcar": {"episodes": 20_000, "max_trials": 24, "optimal_trials": 36, "prior_trials": 6},
        },
    ),
    "paper": ReproduceConfig(),
}
"""smoke: whether it works, in under three minutes. small: about an hour on two cores, and the same on every machine,
since solving is limited by trials. paper: everything as in the paper's appendix, in more than a day."""


def profile(name: str) -> ReproduceConfig:
    """Return a ready-made configuration by its name."""
    if name not in PROFILES:
        raise DataError(f"there is no profile {name!r}; there are {', '.join(PROFILES)}")
    return PROFILES[name]
