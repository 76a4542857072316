"""What was seen in one model, as a policy's own model and its tracker number it."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from missmdp._kernels.beliefs import Tracker
from missmdp.data.simulation import seen_codes
from missmdp.model.missmdp import MissMDP
from missmdp.model.pomdp import POMDP, Labels
from missmdp.plan.tracking import compile_tracker

__all__ = ["ObservationReader", "own_numbers"]


def own_numbers(own: MissMDP | POMDP, model: MissMDP | POMDP) -> NDArray[np.int64]:
    """Return the number in a policy's own model of each observation of a model, −1 where it has none; shape (Z,)."""
    if isinstance(own, MissMDP):
        assert isinstance(model, MissMDP)
        return _numbers(own, seen_codes(model))
    return np.arange(own.n_observations, dtype=np.int64)


def _numbers(own: MissMDP, codes: NDArray[np.integer[Any]]) -> NDArray[np.int64]:
    features = own.space.features
    ranks, wanted = features.rank(seen_codes(own)), features.rank(codes)
    place = np.minimum(np.searchsorted(ranks, wanted), len(ranks) - 1)
    return np.where(ranks[place] == wanted, place, -1).astype(np.int64)


class ObservationReader:
    """What users say they saw → numbers, and a tracker that knows them.

    The tracker's observations are those of the policy's own model, and one more, for what that model never shows;
    what that one is, is written into the tracker when it is seen.
    """

    def __init__(self, own: MissMDP | POMDP) -> None:
        self._own = own
        tracker, numbers = compile_tracker(own, own), own_numbers(own, own)
        if isinstance(own, MissMDP):
            unknown = np.zeros((1, tracker.observation_codes.shape[1]), dtype=np.int64)
            tracker = tracker._replace(
                seen_start=np.append(tracker.seen_start, tracker.seen_start[-1]),
                observation_codes=np.concatenate([tracker.observation_codes, unknown]),
            )
            numbers = np.append(numbers, -1)
        self._labels = None if isinstance(own, MissMDP) else Labels(own.observations, "observation")
        self.tracker: Tracker = tracker
        self.own_numbers: NDArray[np.int64] = numbers

    def number(self, observation: Any) -> int:
        """Return the tracker's number of an observation; raise `ModelError` for values that the model lacks."""
        if isinstance(self._own, MissMDP):
            codes = np.array([self._own.space.features.encode_observation(observation)])
            number = int(_numbers(self._own, codes)[0])
            if number < 0:
                number = len(self.own_numbers) - 1
                self.tracker.observation_codes[number] = codes[0]
            return number
        assert self._labels is not None
        return self._labels.index(observation)

    def shown(self, observation: Any) -> Any:
        """Return an observation as messages show it."""
        if isinstance(self._own, MissMDP):
            features = self._own.space.features
            return features.decode_observation(features.encode_observation(observation))
        return observation
