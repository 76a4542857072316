"""Small valid things to begin with."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import numpy as np

import missmdp as mm
from missmdp.interop import read_model

TIGER = (Path(__file__).parents[1] / "docs" / "tiger.pomdp").read_text(encoding="utf-8")
"""A POMDP that no miss-MDP is behind, as the documents have it."""


def ward() -> mm.MissMDP:
    """Return a model of six states of which one is terminal, with two features that go missing."""
    mdp = mm.FactoredMDP(
        {"level": ("low", "mid", "high"), "alarm": (False, True)},
        ["wait", "treat"],
        lambda s, a: (
            [(("low", s.alarm), 0.7), (("mid", not s.alarm), 0.3)]
            if a == "treat"
            else [(s, 0.6), (("mid" if s.level == "low" else "high", s.alarm), 0.4)]
        ),
        lambda s, a: {"low": 1.0, "mid": 0.0, "high": -1.0}[s.level] - (0.3 if a == "treat" else 0.0),
        {("low", False): 0.5, ("mid", True): 0.5},
        lambda s: s.level == "high" and s.alarm,
        discount=0.8,
    )
    chances = {"level": lambda s: 0.6 if s.alarm else 0.2, "alarm": 0.3}
    return mm.MissMDP(mdp, mm.MissingnessFunction.independent(mdp, chances), name="ward")


def tiger(folder: Path) -> mm.POMDP:
    """Return a POMDP that no miss-MDP is behind."""
    path = folder / "tiger.pomdp"
    path.write_text(TIGER)
    return read_model(path)


def network(model: mm.MissMDP) -> mm.PPOPolicy:
    """Return a network that nobody trained."""
    from missmdp.plan.ppo.encoding import Encoder
    from missmdp.plan.ppo.policy import Layer

    rng = np.random.default_rng(0)
    encoder = Encoder(model.space.features, model.n_actions, "scaled", 2)
    sizes = [encoder.size, 5, model.n_actions]
    layers = [Layer(rng.normal(size=(a, b)), rng.normal(size=b)) for a, b in pairwise(sizes)]
    return mm.PPOPolicy(model.actions, layers, encoder)


def mdp_tables(folder: Path) -> Path:
    """Return a folder of tables that describe an MDP."""
    folder.mkdir(parents=True, exist_ok=True)
    moves = ["0,wait,0,0.5", "0,wait,1,0.5", "1,wait,2,1", "2,wait,2,1", "0,treat,0,1", "1,treat,0,1"]
    moves += ["2,treat,1,0.5", "2,treat,2,0.5"]
    (folder / "transitions.csv").write_text("\n".join(["level,action,next_level,probability", *moves, ""]))
    (folder / "rewards.csv").write_text("level,action,reward\n0,wait,1\n1,treat,-0.5\n2,treat,-2.5\n")
    (folder / "initial.csv").write_text("level,probability\n0,0.5\n1,0.5\n")
    (folder / "discount.txt").write_text("0.9\n")
    (folder / "features.csv").write_text("feature,value\nlevel,0\nlevel,1\nlevel,2\n")
    return folder
