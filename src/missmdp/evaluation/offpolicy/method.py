"""The names of the estimators, and what each is in words."""

from __future__ import annotations

from typing import Literal

Method = Literal["is", "pdis", "wis", "wpdis", "dr", "model"]

WORDS: dict[Method, str] = {
    "is": "importance sampling, whole episodes",
    "pdis": "importance sampling, decision by decision",
    "wis": "self-normalised importance sampling, whole episodes",
    "wpdis": "self-normalised importance sampling, decision by decision",
    "dr": "doubly robust, decision by decision",
    "model": "simulated in a model",
}
METHODS = tuple(WORDS)
EPISODE_WISE = ("is", "wis")
"""Those that give a whole episode one weight."""
