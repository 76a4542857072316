"""Rewards in a table."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from missmdp.data.tables.ordered_rows import TableRows
from missmdp.errors import DataError


def kept_rewards(rows: TableRows) -> tuple[NDArray[np.float64] | None, list[str]]:
    """Return the reward of each step, NaN where there is none, and notes; None if rewards are not read.

    The last row of an episode has no action, so a reward there belongs to nothing.
    """
    if rows.table.encoders.reward is None:
        return None, []
    name, last = rows.table.encoders.names.reward, rows.offsets[1:] - 1
    rewards = np.array(rows.rewards)
    late = int(np.count_nonzero(~np.isnan(rewards[last])))
    rewards[last] = np.nan
    steps = len(rewards) - len(last)
    absent = int(np.count_nonzero(np.isnan(rewards))) - len(last)
    if steps and absent == steps:
        raise DataError(f"{rows.table.parts[0].shown}: the column {name!r} has no reward for any action")
    notes: list[str] = []
    if late:
        notes.append(
            f"episodes with a reward in their last row, which has no action: {late:,} of {len(last):,}; these rewards "
            "are left out"
        )
    if absent:
        notes.append(f"{name!r} is missing for {absent:,} of {steps:,} actions")
    return rewards, notes
