"""The bootstrap of DynamicsEM: M fitted to the log resampled, and what that says about M. It is not guaranteed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from missmdp.checks import checked_confidence
from missmdp.learn.blocks import Blocks
from missmdp.learn.bootstrap import FEWEST_EPISODES, Known, drawn_ends, known_bound, never_missing
from missmdp.learn.bounds import Bound, GroupBound
from missmdp.learn.em.histories import Histories
from missmdp.learn.em.iterate import EMFit, Maximised, PenalisedFactors, iterate
from missmdp.learn.em.structures import Factor
from missmdp.learn.groups import Unseen
from missmdp.model.mdp import FactoredMDP
from missmdp.model.missingness import MissingnessFunction
from missmdp.progress import show_progress
from missmdp.words import listed

_MOST_ITERATIONS = 100

_NO_DATA = 0.5
"""Expected observations below which a group counts as one without data."""

_MOST_LISTED = 8


def units_of(histories: Histories) -> str:
    """Return what is drawn: "episodes", or "pieces" of history where there are few episodes."""
    return "episodes" if len(np.unique(histories.piece_episode)) >= FEWEST_EPISODES else "pieces"


def n_units(histories: Histories) -> int:
    """Return how many episodes or pieces there are to draw from."""
    whole = units_of(histories) == "episodes"
    return len(np.unique(histories.piece_episode)) if whole else len(histories.end_node)


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
    owner = np.unique(histories.piece_episode, return_inverse=True)[1]
    whole, size = units_of(histories) == "episodes", n_units(histories)
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
    mdp: FactoredMDP,
    fit: EMFit,
    fits: Iterable[Maximised],
    confidence: float,
    assumes: str,
    declared: Sequence[str] = (),
) -> Bound:
    """Return the spread of M over bootstrap fits, each interval at the given confidence on its own.

    No interval is narrower than the exact one for as many rows in known states. Without fits nothing is claimed.
    """
    checked_confidence(confidence)
    cells: list[NDArray[np.float64]] = []
    distance: list[NDArray[np.float64]] = []
    drawn: list[tuple[NDArray[np.float64], ...]] = []
    for one in fits:
        apart = np.abs(one.table - fit.table)
        cells.append(apart.max(axis=0))
        distance.append(0.5 * apart.sum(axis=0))
        drawn.append(one.parameters)
    parts = fit.model.factors.parts if isinstance(fit.model, PenalisedFactors) else ()
    groups: list[GroupBound] = []
    for i, part in enumerate(parts):
        groups += _groups(mdp, fit, i, part, [one[i] for one in drawn], confidence)
    failure = 1.0 - confidence
    function = MissingnessFunction(mdp.space, fit.model.blocks.patterns, np.ascontiguousarray(fit.table.T))
    known, all_known = (
        _known(fit, function, own, declared, int(mdp.reachable.sum()))
        for own in (failure, failure / max(len(groups), 1))
    )
    return known_bound(cells, distance, known, all_known, mdp.reachable, confidence, assumes, groups)


def _known(
    fit: EMFit, function: MissingnessFunction, failure: float, declared: Sequence[str], n_reachable: int
) -> Known:
    """Return how far M̂ may be from M even if the state of every row were known."""
    never = never_missing(function, max(round(float(fit.expected.sum())), 1), declared, failure)
    if isinstance(fit.model, PenalisedFactors):
        parts = fit.model.factors.parts
        counts = fit.model.factors.counts(fit.expected)
        return Known.of_groups(
            counts, fit.maximised.parameters, [part.label for part in parts], failure, never
        )
    # Effects are shared by states: each has its share of the rows.
    missing = fit.model.blocks.missing
    states: NDArray[np.int64] = np.arange(len(function.space), dtype=np.int64)
    n_effects = fit.model.n_parameters(states >= 0)
    rows = (
        float(fit.expected.sum()) * missing.shape[1] / min(max(n_effects, 1), n_reachable * missing.shape[1])
    )
    rates = missing.T.astype(np.float64) @ fit.table
    estimates = [np.stack([1.0 - rate, rate], axis=1) for rate in rates]
    return Known.of_groups(
        [rows * own for own in estimates], estimates, [states] * len(rates), failure, never
    )


def _groups(
    mdp: FactoredMDP,
    fit: EMFit,
    index: int,
    part: Factor,
    drawn: Sequence[NDArray[np.float64]],
    confidence: float,
) -> list[GroupBound]:
    estimate = fit.maximised.parameters[index]
    counts = part.counts(fit.expected)
    samples = counts.sum(axis=1)
    low, high, tv = drawn_ends(drawn, estimate, counts, confidence)
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
