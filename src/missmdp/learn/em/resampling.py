"""The bootstrap of DynamicsEM: M fitted to the log resampled, and what that says about M. It is not guaranteed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from missmdp.checks import checked_confidence
from missmdp.learn.blocks import Blocks
from missmdp.learn.bootstrap import FEWEST_EPISODES
from missmdp.learn.bounds import Bound, GroupBound
from missmdp.learn.em.histories import Histories
from missmdp.learn.em.iterate import EMFit, Maximised, PenalisedFactors, iterate
from missmdp.learn.em.structures import Factor
from missmdp.learn.groups import Unseen
from missmdp.model.mdp import FactoredMDP
from missmdp.progress import show_progress
from missmdp.words import listed

_MOST_ITERATIONS = 100

_NO_DATA = 0.5
"""Expected observations below which a group counts as one without data."""

_MOST_LISTED = 8


def units_of(histories: Histories) -> str:
    """Return what is drawn: "episodes", or "pieces" of history where there are few episodes."""
    return "episodes" if len(np.unique(histories.piece_episode)) >= FEWEST_EPISODES else "pieces"


def resampled_fits(
    histories: Histories,
    fit: EMFit,
    draws: int,
    seed: int,
    threads: int | None = None,
    progress: bool | None = None,
) -> Iterator[Maximised]:
    """Yield M fitted to logs that are drawn from the log with replacement; the structure stays as it is.

    Parameters
    ----------
    histories
        The log.
    fit
        M fitted to it: where each fit starts.
    draws
        How many logs to draw.
    seed
        Decides what is drawn.
    progress
        Whether to show progress; by default on a terminal.
    """
    generator = np.random.default_rng(seed)
    episodes, owner = np.unique(histories.piece_episode, return_inverse=True)
    whole = units_of(histories) == "episodes"
    size = len(episodes) if whole else len(histories.end_node)
    with show_progress("Resampling the log", draws, enabled=progress) as advance:
        for _ in range(draws):
            times: NDArray[np.float64] = np.bincount(
                generator.integers(size, size=size), minlength=size
            ).astype(np.float64)
            drawn = histories.reweighted(times[owner.reshape(-1)] if whole else times)
            yield iterate(
                drawn, fit.model, fit.table, tolerance=1e-6, max_iterations=_MOST_ITERATIONS, threads=threads
            ).maximised
            advance()


def bootstrap_bound(
    mdp: FactoredMDP, fit: EMFit, fits: Sequence[Maximised], confidence: float, assumes: str
) -> Bound:
    """Return the spread of M over bootstrap fits, each interval at the given confidence on its own."""
    checked_confidence(confidence)
    tables = np.stack([one.table for one in fits])
    apart = np.abs(tables - fit.table)
    per_state_tv = np.quantile(0.5 * apart.sum(axis=1), confidence, axis=0)
    per_state = np.quantile(apart.max(axis=1), confidence, axis=0)
    reachable = mdp.reachable
    worst = float(np.quantile(apart[:, :, reachable].max(axis=(1, 2)), confidence))
    tv = float(np.quantile(0.5 * apart[:, :, reachable].sum(axis=1).max(axis=1), confidence))
    per_state[~reachable] = per_state_tv[~reachable] = 1.0
    groups: list[GroupBound] = []
    if isinstance(fit.model, PenalisedFactors):
        for i, part in enumerate(fit.model.factors.parts):
            drawn = np.stack([one.parameters[i] for one in fits])
            groups += _groups(mdp, fit, i, part, drawn, confidence)
    return Bound(
        confidence,
        "bootstrap",
        "adaptive",
        assumes,
        tuple(groups),
        per_state,
        per_state_tv,
        worst,
        tv,
        guaranteed=False,
    )


def _groups(
    mdp: FactoredMDP,
    fit: EMFit,
    index: int,
    part: Factor,
    drawn: NDArray[np.float64],
    confidence: float,
) -> list[GroupBound]:
    estimate = fit.maximised.parameters[index]
    samples = part.counts(fit.expected).sum(axis=1)
    low, high = np.quantile(drawn, [(1.0 - confidence) / 2.0, (1.0 + confidence) / 2.0], axis=0)
    low, high = np.minimum(low, estimate), np.maximum(high, estimate)
    tv = np.quantile(0.5 * np.abs(drawn - estimate).sum(axis=2), confidence, axis=0)
    names, shown = outcomes(fit.model.blocks, part)
    return [
        GroupBound(
            names,
            group_values(mdp, fit.model.blocks, part, int(g)),
            round(float(samples[g])),
            shown,
            estimate[g],
            low[g],
            high[g],
            float(np.maximum(high[g] - estimate[g], estimate[g] - low[g]).max()),
            float(tv[g]),
        )
        for g in np.unique(part.label[:, mdp.reachable])
    ]


def outcomes(blocks: Blocks, part: Factor) -> tuple[tuple[str, ...], NDArray[np.bool_]]:
    """Return the features of a factor, and which of them each of its outcomes shows, shape (O, features)."""
    names = tuple(name for i in part.blocks for name in blocks.names[i])
    widths = [len(blocks.names[i]) for i in part.blocks]
    first = np.unique(part.outcome, return_index=True)[1]
    missing = blocks.missing[first][:, list(part.blocks)]
    return names, ~np.repeat(missing, widths, axis=1)


def group_values(mdp: FactoredMDP, blocks: Blocks, part: Factor, group: int) -> dict[str, Any]:
    """Return what the reachable states of a group have in common: the values of each feature that groups go by.

    A feature that takes all its values in the group is left out; several values are listed as text. Indicators of
    earlier blocks are named R_feature.
    """
    features = mdp.space.features
    pattern, state = np.nonzero((part.label == group) & mdp.reachable[None, :])
    found: dict[str, Any] = {}
    for name in part.given:
        place = features.position(name)
        present, everywhere = np.unique(mdp.space.codes[state, place]), mdp.space.codes[mdp.reachable, place]
        if len(present) < len(np.unique(everywhere)):
            values = [features.values[place][code] for code in present]
            found[name] = values[0] if len(values) == 1 else _values_in_words(values)
    for block in part.after:
        missing = np.unique(blocks.missing[pattern, block])
        if len(missing) == 1:
            found[f"R_{blocks.names[block][0]}"] = "missing" if missing[0] else "seen"
    return found


def cells_without_data(mdp: FactoredMDP, fit: EMFit) -> tuple[Unseen, ...]:
    """Return the groups of reachable states that were hardly ever visited: the prior decides there."""
    if not isinstance(fit.model, PenalisedFactors):
        return ()
    found: list[Unseen] = []
    for part in fit.model.factors.parts:
        samples = part.counts(fit.expected).sum(axis=1)
        reached = np.unique(part.label[:, mdp.reachable])
        names, _ = outcomes(fit.model.blocks, part)
        for g in reached[samples[reached] < _NO_DATA]:
            states = np.flatnonzero((part.label == g).any(axis=0) & mdp.reachable)
            found.append(Unseen(names, group_values(mdp, fit.model.blocks, part, int(g)), states, "AsMAR"))
    return tuple(found)


def _values_in_words(values: Sequence[Any]) -> str:
    if len(values) > _MOST_LISTED:
        return f"{', '.join(map(str, values[:_MOST_LISTED]))}, … ({len(values)} values)"
    return listed([str(value) for value in values], "or")
