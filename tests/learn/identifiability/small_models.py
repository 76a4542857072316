"""Small MDPs and structures whose identifiability can be found out by brute force."""

from __future__ import annotations

import numpy as np

import missmdp as mm
from missmdp.learn.blocks import Blocks
from missmdp.learn.em.structures import Factors, block_factor
from missmdp.learn.identifiability.check import as_structure

__all__ = ["graph_of", "iid", "narrow_problem", "random_problem"]


def iid(sizes=(3, 3), seed=1, *, independent=False):
    """Return an MDP whose states are drawn anew at every step, with features x and y."""
    rng = np.random.default_rng(seed)
    if independent:
        chances = np.outer(*(rng.dirichlet(np.full(n, 3.0)) for n in sizes)).reshape(-1)
    else:
        chances = rng.dirichlet(np.full(int(np.prod(sizes)), 3.0))
    return mm.FactoredMDP(
        {"x": range(sizes[0]), "y": range(sizes[1])},
        ["wait"],
        [np.tile(chances, (len(chances), 1))],
        0.0,
        chances,
    )


def graph_of(edges, **others):
    return mm.MissingnessGraph(edges, features=["x", "y"], can_go_missing=["x", "y"], **others)


def random_problem(seed):
    """Return a random MDP, some of its states terminal, every state possible at the start, and a structure."""
    rng = np.random.default_rng(seed)
    sizes = (int(rng.integers(2, 4)), 2, int(rng.integers(1, 3)))
    n, n_actions, n_rows = int(np.prod(sizes)), int(rng.integers(1, 3)), int(rng.integers(1, 4))
    rows = rng.dirichlet(np.ones(n), size=n_rows)
    if rng.random() < 0.5:
        rows *= rng.random(rows.shape) < 0.6
        rows[:, 0] += 0.01
        rows /= rows.sum(axis=1, keepdims=True)
    terminal = (rng.random(n) < 0.2) & (np.arange(n) > 0) if rng.random() < 0.5 else None
    mdp = mm.FactoredMDP(
        {"x": range(sizes[0]), "y": range(sizes[1]), "c": range(sizes[2])},
        range(n_actions),
        [rows[rng.integers(n_rows, size=n)] for _ in range(n_actions)],
        0.0,
        rng.dirichlet(np.full(n, 2.0)),
        terminal,
    )
    return mdp, _structure(mdp, rng)


def narrow_problem(seed):
    """Return a problem in which single steps often leave open what longer histories say: two rows of T only."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(3, 5)) * 3
    rows = rng.dirichlet(np.ones(n), size=2)
    mdp = mm.FactoredMDP(
        {"x": range(n // 3), "y": range(3), "c": range(1)},
        ["wait"],
        [rows[rng.integers(2, size=n)]],
        0.0,
        rows[0],
    )
    return mdp, _structure(mdp, rng)


def _structure(mdp: mm.FactoredMDP, rng: np.random.Generator) -> Factors:
    names = ["x", "y", "c"]
    edges = [(a, b) for a in names for b in "xy" if rng.random() < 0.75]
    match int(rng.integers(5)):
        case 0:
            return as_structure(mdp, "saturated", [["x"], ["y"]])
        case 1:
            return as_structure(mdp, "saturated", [["x", "y"]])
        case 2:
            blocks = Blocks.of(mdp.space.features, [["x"], ["y"]])
            parts = (
                block_factor(mdp, blocks, 0, ["x", "c"]),
                block_factor(mdp, blocks, 1, ["x", "y"], after=[0]),
            )
            return Factors("one after the other", blocks, parts)
        case kind:
            dependent = [("x", "y")] if kind == 3 else []
            graph = mm.MissingnessGraph(edges, features=names, can_go_missing=["x", "y"], dependent=dependent)
            return as_structure(mdp, graph, None)
