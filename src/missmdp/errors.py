"""The errors that missmdp raises: all derive from `MissMDPError` and speak to the user."""

from __future__ import annotations

from functools import partial
from typing import Any

__all__ = [
    "AssumptionWarning",
    "DataError",
    "FormatError",
    "ImpossibleObservation",
    "MissMDPError",
    "MissingExtra",
    "ModelError",
]


class MissMDPError(Exception):
    """Base of every error that missmdp raises on purpose."""


class ModelError(MissMDPError, ValueError):
    """A model that cannot be: the message names the feature, state or action at fault."""


class DataError(MissMDPError, ValueError):
    """Data that cannot be used: the message names the file, row, episode or column at fault."""


class FormatError(MissMDPError, ValueError):
    """A file that is damaged, foreign, or from a version that this one cannot read."""


class MissingExtra(MissMDPError, ImportError):  # noqa: N818 (it says what is not there)
    """Something that comes with an extra which is not installed: the message says how to get it."""


class ImpossibleObservation(MissMDPError):  # noqa: N818 (it says what was seen, not what went wrong)
    """An observation of probability zero under the model.

    Attributes
    ----------
    belief : numpy.ndarray
        The belief before the step, shape (S,).
    action
        The action taken, or None for the first observation.
    observation : tuple
        What was seen, None for missing.
    """

    def __init__(self, message: str, *, belief: object, action: object, observation: object) -> None:
        super().__init__(message)
        self.belief = belief
        self.action = action
        self.observation = observation

    def __reduce__(self) -> tuple[Any, ...]:
        """Survive the way back from a worker process."""
        rebuild = partial(type(self), belief=self.belief, action=self.action, observation=self.observation)
        return (rebuild, self.args)


class AssumptionWarning(UserWarning):
    """The data speak against something that a learner assumes."""
