"""The rows of a diagnosis: classes, tests and drivers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from missmdp.model.mgraph import MissingnessGraph

__all__ = ["ClassScore", "Driver", "NestedTest", "graph_as_dict"]


@dataclass(frozen=True, eq=False)
class ClassScore:
    """A class of reasons, and how well its best structure explains the data."""

    name: str
    """"MCAR", "simple MAR", "MAR", "no self-censoring", "all parents"; "shown values" for single observations."""
    log_likelihood: float
    n_parameters: int
    score: float
    """Log-likelihood minus what it takes to tell the structure, as BIC has it: higher is better."""
    behind: float
    """How much lower the score is than the best one, in nats."""
    graph: MissingnessGraph
    """What the best structure of the class depends on."""

    def as_dict(self) -> dict[str, Any]:
        """Return plain values."""
        return {
            "name": self.name,
            "log_likelihood": self.log_likelihood,
            "n_parameters": self.n_parameters,
            "score": self.score,
            "behind": self.behind,
            "graph": graph_as_dict(self.graph),
        }


@dataclass(frozen=True)
class NestedTest:
    """A likelihood-ratio test of a class within a wider one."""

    null: str
    """What is tested, such as "simple MAR"."""
    alternative: str
    """What it is tested against, such as "no self-censoring"."""
    features: tuple[str, ...]
    """The features whose missingness it is about."""
    statistic: float
    """Twice the difference of the log-likelihoods."""
    freedom: int
    """Degrees of freedom of the chi-square distribution."""
    p_value: float
    level: float

    @property
    def rejected(self) -> bool:
        """Whether the data speak against what is tested, at the level."""
        return self.p_value < self.level

    def as_dict(self) -> dict[str, Any]:
        """Return plain values."""
        return {
            "null": self.null,
            "alternative": self.alternative,
            "features": list(self.features),
            "statistic": self.statistic,
            "freedom": self.freedom,
            "p_value": self.p_value,
            "level": self.level,
            "rejected": self.rejected,
        }


@dataclass(frozen=True)
class Driver:
    """What makes a feature or block go missing, and how much.

    Rates are standardised: all else is distributed as it was visited, whatever the value of the driver.
    """

    features: tuple[str, ...]
    """What goes missing."""
    driver: str
    """The feature on whose value that depends, or the first feature of the block on whose indicator it does."""
    indicator: bool
    """Whether it depends on that being missing, rather than on its value."""
    lowest: Any
    highest: Any
    """The values at which the rate is lowest and highest; "seen" or "missing" for indicators."""
    lowest_rate: float
    highest_rate: float
    interval: tuple[float, float] | None
    """Of the difference, at 95 %, from a bootstrap, which is no guarantee; None if none was made."""

    @property
    def difference(self) -> float:
        """How much more often it is missing at the one value than at the other."""
        return self.highest_rate - self.lowest_rate

    @property
    def own(self) -> bool:
        """Whether this is self-censoring."""
        return not self.indicator and self.driver in self.features

    def as_dict(self) -> dict[str, Any]:
        """Return plain values."""
        return {
            "features": list(self.features),
            "driver": self.driver,
            "indicator": self.indicator,
            "own": self.own,
            "lowest": _plain(self.lowest),
            "highest": _plain(self.highest),
            "lowest_rate": self.lowest_rate,
            "highest_rate": self.highest_rate,
            "difference": self.difference,
            "interval": None if self.interval is None else list(self.interval),
        }


def graph_as_dict(graph: MissingnessGraph) -> dict[str, Any]:
    """Return an m-graph as plain values."""
    return {
        "features": list(graph.features),
        "can_go_missing": list(graph.can_go_missing),
        "edges": [list(edge) for edge in graph.edges],
        "dependent": [list(pair) for pair in graph.dependent],
    }


def _plain(value: Any) -> Any:
    if isinstance(value, np.generic):
        return cast("Any", value).item()
    return value if value is None or isinstance(value, bool | int | float | str) else str(value)
