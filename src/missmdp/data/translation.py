"""A log in terms of an MDP: features, values and actions are matched by what they are called."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from missmdp.data.binning import bin_notes
from missmdp.data.tables.matching import UNKNOWN, Matcher
from missmdp.errors import DataError
from missmdp.model.mdp import FactoredMDP
from missmdp.model.space import MISSING, FeatureSpace
from missmdp.words import did_you_mean, listed, preview

if TYPE_CHECKING:
    from missmdp.data.dataset import Dataset


def in_terms_of(log: Dataset, mdp: FactoredMDP) -> Dataset:
    """Return a log in terms of an MDP; see `Dataset.with_mdp`."""
    features, own = mdp.space.features, log.feature_space
    notes: list[str] = []
    left_out = [name for name in own.names if name not in features.names]
    if left_out:
        notes.append(f"left out, since the MDP has no such feature: {listed([*map(repr, left_out)])}")
    observations = np.empty((log.n_steps, len(features)), dtype=features.code_dtype)
    code_of: list[NDArray[np.int64]] = []
    for position, (name, values) in enumerate(features.as_dict().items()):
        if name not in own.names:
            meant = did_you_mean(name, left_out)
            raise DataError(
                f"the log has no feature {name!r}, which the MDP has; the log's features are "
                f"{', '.join(own.names)}{meant}"
            )
        column = log.observations[:, own.position(name)]
        known = own.as_dict()[name]
        binning = None if log.bins is None else log.bins.get(name)
        if binning is not None and known == binning.labels() and len(known) == len(values):
            notes += bin_notes({name: binning}, {name: values}) if known != values else []
            codes = np.arange(len(known))
        else:
            codes = _matched(known, values, column, f"feature {name!r}")
        # The entry at the end is for MISSING, which is −1.
        code_of.append(np.append(codes, MISSING).astype(np.int64))
        observations[:, position] = code_of[-1][column]
    actions = np.append(_matched(log.action_names, mdp.actions, log.actions, "the actions"), MISSING)
    # Codes of actions are as wide as those of a feature with as many values.
    dtype = FeatureSpace({"action": mdp.actions}).code_dtype
    kept_bins = {name: b for name, b in (log.bins or {}).items() if name in features.names}
    return replace(
        log,
        mdp=mdp,
        observations=observations,
        actions=actions[log.actions].astype(dtype),
        states=_states(log, mdp, code_of),
        bins=kept_bins or None,
        notes=(*log.notes, *notes),
        feature_space=features,
        action_names=mdp.actions,
    )


def _matched(
    known: Sequence[Any], values: Sequence[Any], column: NDArray[np.integer[Any]], what: str
) -> NDArray[np.int64]:
    """Return the new code of each value of a log, `MISSING` for those that the MDP lacks and the log does not have."""
    matcher = Matcher(values)
    codes = np.array([matcher.code(value) for value in known], dtype=np.int64)
    lacking = np.flatnonzero((codes == UNKNOWN) | (codes == MISSING))
    used = lacking[np.isin(lacking, column)]
    if used.size:
        value = known[int(used[0])]
        rows = int(np.count_nonzero(column == used[0]))
        meant = did_you_mean(str(value), values)
        raise DataError(
            f"{what}: the log has {value!r} (in {rows:,} of {len(column):,} rows), which the MDP lacks; the MDP has "
            f"{preview(values)}{meant}"
        )
    codes[lacking] = MISSING
    return codes


def _states(log: Dataset, mdp: FactoredMDP, code_of: Sequence[NDArray[np.int64]]) -> NDArray[np.int32] | None:
    """Return the numbers of the true states in an MDP, if they are known."""
    if log.states is None:
        return None
    before, own = log.known_mdp.space, log.feature_space
    if before == mdp.space:
        return log.states
    codes = before.codes[log.states]
    names = mdp.space.features.names
    told = [code[codes[:, own.position(name)]] for name, code in zip(names, code_of, strict=True)]
    found = mdp.space.find(np.stack(told, axis=1))
    if (found < 0).any():
        state = before.state(int(log.states[np.flatnonzero(found < 0)[0]]))
        raise DataError(f"the log was simulated, and its true state {state!r} is none of the MDP")
    return found.astype(np.int32)
