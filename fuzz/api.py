"""Random arguments for every public name: mostly valid ones, with one or two that are wrong.

Valid values are found by the name of the parameter, wrong ones come from a list that fits nothing, or are valid ones
with something changed. What is made is used too: learners learn, solvers solve, policies act.
"""

from __future__ import annotations

import contextlib
import inspect
import io
import os
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pandas as pd

import missmdp as mm
from fuzz.harness import Kind
from fuzz.material import tiger, ward
from fuzz.mutations import mutate_array

_RESULTS = {
    "BehaviourScore", "Bound", "Certificate", "Comparison", "Coverage", "DataPlan", "DataReport",
    "Description", "Diagnosis", "Difference", "DynamicsCheck", "DynamicsRow", "Evaluation", "GroupBound",
    "HeldOutScore", "Identifiability", "LearnedBehaviour", "LogLikelihood", "LoggedValue",
    "MissingnessTypes", "NormalisedValue", "OffPolicyValue", "OnlineResult", "POMCPResult", "PPOResult",
    "PlanResult", "Reproduction", "RunResult", "SampleSize", "SensitivityRow", "SolveResult", "Support",
    "TotalVariation", "ValueInterval",
}  # fmt: skip
"""Functions return these; nobody else makes them, so their constructors check nothing. Their methods are tried."""

_NOT_MADE = {
    "Agent", "Policy", "Solver", "MissingnessEstimator", "CountingEstimator", "MissMDPError", "DataError",
    "FormatError", "ModelError", "ParameterError", "ImpossibleObservation", "MissingExtra", "AssumptionWarning",
    "POMCPPolicy", "PPOPolicy", "OnlinePolicy", "AlphaVectorPolicy", "FiniteController", "__version__",
}  # fmt: skip
"""Protocols, bases and errors; and policies whose parts only solvers and files make, which are tried as files."""

_INNER = {
    "runner", "table", "structure", "check_declared", "check_parameters", "group_truths", "observe", "sample_codes",
    "likelihood_of_codes", "occurring", "rate_texts", "from_ranks", "logits", "seen", "places_of_codes",
    "defaults_of_codes", "default", "new_mind", "encoder", "makers", "suited", "probabilities", "add_note",
    "with_traceback", "text", "shares_luck_with", "cells", "codes", "together", "observation_of", "checked_belief",
    "from_memory", "from_observations",
    "as_integer_ratio", "bit_count", "bit_length", "conjugate", "from_bytes", "to_bytes", "get_params",
    "expect", "spread",
}  # fmt: skip
"""What layers call of each other with codes and arrays of their own making, step by step; and methods of int."""

_RARELY = {
    "run": 0.02,
    "reproduce": 0.1,
    "certify": 0.2,
    "plan_data": 0.2,
    "POMCP": 0.5,
    "identifiability": 0.5,
}
"""How often long ones are kept once they are drawn."""


class _Hostile:
    """Has no length, no value of truth, and is equal to nothing; numpy cannot make an array of it."""

    __hash__ = None  # type: ignore[assignment]

    def __eq__(self, other: object) -> bool:
        raise mm.DataError("compared")

    def __repr__(self) -> str:
        return "<hostile>"


class _Odd:
    def __repr__(self) -> str:
        return "<odd>"


def _wrong() -> list[Any]:
    """Return values that fit hardly anything, made anew for each case."""
    return [
        None, True, False, 0, 1, -1, 2, 10**6, 10**30, -(10**30), 0.0, 0.5, -0.5, 1.0, 1e-300, 1e300, float("nan"),
        float("inf"), -float("inf"), 1j, "", "x", "level", "wait", "a" * 500, "\x1b[31m\x00", b"bytes", b"", [], [[]],
        [None], [1, 2], [0.5, 0.5], ["level"], ["level", "level"], [["level", "alarm"]], [("a", "b", "c")], {}, (),
        {"level": 0.5}, {"wait": 1.0}, {"wait": "x"}, {1: 2}, {None: None}, set(), {"level"}, range(3),
        np.int64(3), np.float32(0.5), np.bool_(True), np.array(3.0), np.zeros(0), np.zeros(3), np.ones((2, 2)),
        np.full((3, 2), np.nan), np.array([1 + 1j]), np.array(["a", "b"]), np.array([None, 1], dtype=object),
        np.zeros((6, 6)), np.zeros(6, dtype=bool), np.array(["2020-01-01"], dtype="datetime64[D]"), object, len,
        lambda *_: None, lambda *_: 1 / 0, (i for i in range(3)), iter([]), pd.DataFrame(),
        pd.DataFrame({"a": [1, None]}),
        pd.Series([1, 2]), nx.DiGraph(), _Odd(), _Hostile(), Path("nowhere"), Path("."), io.StringIO("a,b\n1,2\n"),
        NotImplemented, Ellipsis, mm.MISSING, float, slice(None), {"a": {"b": []}}, [[1, 2], [3]], 3.7, "0.5", "1",
    ]  # fmt: skip


class Api(Kind):
    """Calls of public names."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        os.chdir(folder)  # for names of files without a folder
        self._made = 0
        self._objects = _objects(folder)
        self._valid = _valid(self._objects, folder)
        self._targets: dict[str, list[tuple[str, Callable[..., Any] | property, Any]]] = {}
        for target in self._all_targets():
            name = target[0].split("#")[0].split(".")[0]
            self._targets.setdefault(name, []).append(target)

    def _all_targets(self) -> Iterator[tuple[str, Callable[..., Any] | property, Any]]:
        """Yield label, callable and owner; a property has no callable of its own."""
        for name in sorted(mm.__all__):
            public = getattr(mm, name)
            if not inspect.isclass(public):
                if callable(public):
                    yield name, public, None
                continue
            if name not in _RESULTS | _NOT_MADE:
                yield name, public, None
            for method, static in inspect.getmembers_static(public):
                if method.startswith("_") or method in _INNER:
                    continue
                if isinstance(static, classmethod | staticmethod):
                    yield f"{name}.{method}", getattr(public, method), None
                elif callable(static):
                    for i, owner in enumerate(self._objects.get(name, ())):
                        yield f"{name}#{i}.{method}", getattr(owner, method), owner
                elif isinstance(static, property):
                    for i, owner in enumerate(self._objects.get(name, ())):
                        yield f"{name}#{i}.{method}", static, owner

    def run(self, rng: random.Random) -> None:
        """Call something with arguments of which one or two are wrong."""
        label, target, owner = self._target(rng)
        with contextlib.suppress(mm.ParameterError):
            mm.forget_learner("made-up")
        if isinstance(target, property):
            self.note = label
            with contextlib.suppress(AttributeError):
                repr(target.__get__(owner))
            return
        arguments, note = self._arguments(label, target, rng)
        self.note = f"{label}({note})"
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            found = target(**arguments)
            repr(found)
            self._use(found)

    def _target(self, rng: random.Random) -> tuple[str, Callable[..., Any] | property, Any]:
        """Return something to call, of every public name as often; properties and long ones less often."""
        while True:
            found = rng.choice(self._targets[rng.choice(list(self._targets))])
            often = 0.05 if isinstance(found[1], property) else _RARELY.get(found[0], 1.0)
            if rng.random() < often:
                return found

    def _arguments(
        self, label: str, target: Callable[..., Any], rng: random.Random
    ) -> tuple[dict[str, Any], str]:
        name = label.split(".")[0].split("#")[0]
        given: dict[str, Any] = {}
        for key, parameter in inspect.signature(target).parameters.items():
            if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
                continue
            needed = parameter.default is parameter.empty
            pool = self._valid.get(f"{label}:{key}", self._valid.get(f"{name}:{key}", self._valid.get(key)))
            if pool is not None and (needed or rng.random() < 0.3 or key in _LIMITS):
                value = rng.choice(pool)
                given[key] = value() if isinstance(value, _Fresh) else value
            elif needed:
                given[key] = rng.choice(_wrong())
        wrong: list[str] = []
        keys = [
            key for key in inspect.signature(target).parameters if key not in _LIMITS or rng.random() < 0.2
        ]
        keys = [
            key for key in keys if key not in ("options", "parameters", "history", "self", "work", "dask")
        ]
        for key in rng.sample(keys, min(len(keys), rng.choice((0, 1, 1, 1, 2)))):
            given[key], how = self._spoiled(given.get(key), rng)
            if key in _LIMITS and isinstance(given[key], int | float) and given[key] > 1000:
                given[key] = -1
            wrong.append(f"{key}={how}")
        if label == "reproduce":
            given["config"] = rng.choice(_wrong())
        if "folder" in given and label in ("run", "reproduce") and "folder" not in " ".join(wrong):
            self._made += 1
            given["folder"] = self.folder / f"made{self._made}"
        return given, ", ".join(wrong) or "valid"

    def _spoiled(self, value: Any, rng: random.Random) -> tuple[Any, str]:
        """Return a wrong value, and what it is."""
        if isinstance(value, np.ndarray) and rng.random() < 0.6:
            changed, how = mutate_array(value, rng)
            return changed, f"array {how}"
        if isinstance(value, list | tuple) and value and rng.random() < 0.4:
            changed = list(value)
            changed[rng.randrange(len(changed))] = rng.choice(_wrong())
            return changed, f"{repr(changed)[:80]}"
        if isinstance(value, dict) and value and rng.random() < 0.5:
            changed = dict(value)
            changed[rng.choice(list(changed))] = rng.choice(_wrong())
            return changed, f"{repr(changed)[:80]}"
        if rng.random() < 0.2:
            other = rng.choice([one for some in self._objects.values() for one in some])
            return other, type(other).__name__
        wrong = rng.choice(_wrong())
        return wrong, f"{type(wrong).__name__} {repr(wrong)[:60]}"

    def _use(self, found: Any) -> None:
        """Do with it what it is for."""
        truth: mm.MissMDP = self._objects["MissMDP"][0]
        if isinstance(found, mm.MissingnessEstimator):
            if not hasattr(found, "missingness_"):
                found.fit(self._objects["Dataset"][0])
            found.bound(draws=2)
        elif isinstance(found, mm.Sarsop | mm.POMCP):
            if isinstance(found, mm.Sarsop):
                found.timeout, found.max_trials = 0.2, 3
            mm.evaluate(found.solve(truth).policy, truth, episodes=2, seed=0, horizon=5)
        elif isinstance(found, mm.UniformPolicy | mm.BlindPolicy | mm.ObservationPolicy):
            mm.evaluate(found, truth, episodes=2, seed=0, horizon=5)
        elif isinstance(found, mm.Dataset | mm.ObservationCounts):
            mm.AsMAR().fit(found)
        elif isinstance(found, mm.MissMDP):
            mm.collect(found, 20, seed=0, horizon=10)


class _Fresh:
    """A value that is used up, and made anew each time."""

    def __init__(self, make: Callable[[], Any]) -> None:
        self._make = make

    def __call__(self) -> Any:
        return self._make()


_LIMITS = {
    "steps", "episodes", "draws", "timeout", "max_trials", "tree_queries", "max_depth", "threads", "progress",
    "folds", "max_episodes", "horizon", "max_iterations", "starts", "particles", "max_nodes", "workers",
    "occupancy_episodes", "max_states",
}  # fmt: skip
"""What keeps calls short: given always, and spoiled rarely and never with something large."""


def _objects(folder: Path) -> dict[str, list[Any]]:
    """Return valid objects by the name of their class."""
    truth = ward()
    mdp = truth.mdp
    log = mm.collect(truth, 60, seed=0, horizon=8)
    with_states = mm.collect(truth, 30, seed=1, horizon=8, keep_states=True)
    learners = {
        "AsMAR": mm.AsMAR(),
        "AMCAR": mm.AMCAR(),
        "AIMI": mm.AIMI(),
        "ICIN": mm.ICIN(),
        "DynamicsEM": mm.DynamicsEM(mdp, starts=1, max_iterations=20, progress=False),
    }
    for learner in learners.values():
        learner.fit(log)
    solved = mm.Sarsop(timeout=1.0, max_trials=5).solve(truth)
    pomcp = mm.POMCP(tree_queries=10, max_depth=5, seed=0).solve(truth)
    uniform = mm.UniformPolicy()
    found = {
        "MissMDP": [truth],
        "FactoredMDP": [mdp],
        "MissingnessFunction": [truth.missingness],
        "MissingnessGraph": [truth.mgraph()],
        "MissingnessTypes": [truth.types()],
        "POMDP": [truth.to_pomdp(), tiger(folder)],
        "Dataset": [log, with_states, mm.Dataset.from_table(with_states.to_arrow(), reward="reward")],
        "ObservationCounts": [mm.ObservationCounts.from_dataset(log)],
        "SolveResult": [solved],
        "AlphaVectorPolicy": [solved.policy],
        "FiniteController": [mm.FiniteController.from_policy(solved.policy)],
        "POMCPResult": [pomcp],
        "POMCPPolicy": [pomcp.policy],
        "UniformPolicy": [uniform],
        "BlindPolicy": [mm.BlindPolicy({"wait": 0.5, "treat": 0.5})],
        "ObservationPolicy": [mm.ObservationPolicy(lambda z: "wait")],
        "Sarsop": [mm.Sarsop(timeout=0.2, max_trials=2, progress=False)],
        "POMCP": [mm.POMCP(tree_queries=10, max_depth=5, seed=0)],
        "Binning": [mm.Binning.from_edges([0.0, 1.0, 2.0])],
        "Bound": [learners["AsMAR"].bound(), learners["DynamicsEM"].bound(draws=3)],
        "Coverage": [mm.behaviour_coverage(truth, steps=1000)],
        "Evaluation": [mm.evaluate(uniform, truth, episodes=20, seed=0)],
        "LoggedValue": [mm.logged_value(with_states, discount=0.9)],
        "LearnedBehaviour": [mm.learn_behaviour(log)],
        "OffPolicyValue": [
            mm.off_policy_value(
                solved.policy, with_states, discount=0.9, method=method, model=truth, episodes=4
            )
            for method in ("wpdis", "dr", "model")
        ],
        "Comparison": [mm.compare({"a": uniform, "b": solved.policy}, truth, episodes=20, seed=0)],
        "Description": [mm.describe(log)],
        "DataReport": [mm.validate(log, mdp)],
        "Diagnosis": [mm.diagnose(log, mdp, draws=0, progress=False)],
        "DynamicsCheck": [mm.check_dynamics(log, mdp, progress=False)],
        "Identifiability": [mm.identifiability(mdp, "smar")],
        "TotalVariation": [mm.total_variation(learners["AsMAR"].missingness_, truth)],
        "RunSettings": [mm.RunSettings(steps=50, timeout=0.2, certificate=False, learners=("amcar",))],
        "ReproduceConfig": [mm.ReproduceConfig()],
        "PPOSettings": [mm.PPOSettings()],
    }
    found["Difference"] = [found["Comparison"][0].difference("a", "b")]
    found["NormalisedValue"] = [mm.normalised_value(1.0, 2.0, 0.5)]
    agents = [policy.agent(truth, seed=0) for policy in (uniform, solved.policy)]
    return {**found, **{name: [learner] for name, learner in learners.items()}, "Agent": agents}


def _valid(objects: dict[str, list[Any]], folder: Path) -> dict[str, list[Any]]:
    """Return valid arguments by the name of the parameter, or by "name of the callable:parameter"."""
    truth: mm.MissMDP = objects["MissMDP"][0]
    mdp, log = truth.mdp, objects["Dataset"][0]
    codes = objects["ObservationCounts"][0]
    solved = objects["SolveResult"][0]
    learners = [objects[name][0] for name in ("AsMAR", "AMCAR", "AIMI")]
    files = _files(objects, folder)
    policies = [
        *objects["UniformPolicy"],
        *objects["BlindPolicy"],
        solved.policy,
        *objects["FiniteController"],
        None,
    ]
    belief = dict.fromkeys(mdp.states, 1.0 / mdp.n_states)
    matrices = tuple(mdp.transition)
    return {
        **files,
        "mdp": [mdp],
        "model": [truth],
        "truth": [truth, truth.missingness],
        "estimate": [learner.missingness_ for learner in learners],
        "missingness": [truth.missingness],
        "data": [log, codes],
        "log": [objects["Dataset"][1]],
        "logged_value:rewards": [np.zeros(30), None],
        "off_policy_value:rewards": [np.zeros(30), None],
        "empty_rewards": ["error", "zero"],
        "off_policy_value:method": ["is", "pdis", "wis", "wpdis", "dr", "model"],
        "off_policy_value:behaviour": [np.full(30, 0.5), *objects["LearnedBehaviour"], None],
        "dataset": [log],
        "source": [_Fresh(lambda: log.to_pandas()), log.to_arrow(), files["csv"][0]],
        "policy": policies,
        "policies": [{"a": policies[0], "b": policies[1]}, policies[0]],
        "AlphaVectorPolicy:policy": [solved.policy],
        "FiniteController.from_policy:policy": [solved.policy],
        "value_interval:policy": [policies[0], objects["FiniteController"][0]],
        "value_interval:learner": [*learners, objects["DynamicsEM"][0]],
        "learner": learners,
        "learners": [{"a": mm.AsMAR(), "b": mm.AMCAR()}, [mm.AsMAR()]],
        "RunSettings:learners": [("amcar", "asmar")],
        "ReproduceConfig:learners": [("AMCAR",)],
        "result": [solved],
        "warm_start": [solved, None],
        "bound": [objects["Bound"][0], None],
        "confidence": [0.9, 0.95],
        "method": ["auto"],
        "behaviour": ["blind", "adaptive", None],
        "draws": [2],
        "diagnose:draws": [0, 2],
        "seed": [0, 7],
        "episodes": [4],
        "steps": [20],
        "Coverage#0.describe:steps": [1000],
        "Coverage#0.rare:steps": [1000],
        "horizon": [3],
        "threads": [1],
        "progress": [False],
        "timeout": [0.2],
        "POMCP:timeout": [0.02],
        "plan_data:timeout": [0.0],
        "max_trials": [2],
        "tree_queries": [10],
        "max_depth": [5],
        "max_iterations": [20],
        "starts": [1],
        "folds": [2],
        "max_episodes": [8],
        "max_nodes": [5],
        "max_states": [100],
        "particles": [10],
        "occupancy_episodes": [0],
        "workers": [1],
        "level": [0.01],
        "epsilon": [0.2],
        "precision": [0.1],
        "smoothing": [0.1],
        "prior": [0.5],
        "normalised_value:prior": [0.0],
        "value": [1.0, objects["Evaluation"][0]],
        "optimal": [2.0, objects["Evaluation"][0]],
        "structure": ["smar", "mcar", "auto", truth.mgraph()],
        "blocks": [[("level", "alarm")], [("level",)]],
        "always_observed": [[], None],
        "ignore": [["alarm"]],
        "unseen": ["uniform", "pooled"],
        "patterns": ["all", "seen"],
        "MissingnessFunction:patterns": [truth.missingness.patterns],
        "graph": [truth.mgraph()],
        "MissingnessGraph.from_networkx:graph": [truth.mgraph().to_networkx()],
        "space": [mdp.space],
        "probabilities": [truth.missingness.probabilities],
        "MissingnessFunction.blocks:missing": [{("level", "alarm"): 0.2}],
        "missing": [{"level": 0.2, "alarm": lambda s: 0.1}],
        "MissingnessFunction.from_patterns:function": [lambda s: {(True, True): 0.5, (False, True): 0.5}],
        "function": [lambda z: "wait"],
        "weights": [{"wait": 1.0, "treat": 3.0}],
        "observation": [("low", False), (None, True), (None, None), {"level": "mid", "alarm": None}],
        "state": [("low", False), mdp.states[0]],
        "sample:states": [[("low", False)]],
        "MissingnessFunction#0.sample:states": [[("low", False), mdp.states[1]]],
        "FactoredMDP:states": [None],
        "belief": [belief, mdp.initial.copy()],
        "action": ["wait"],
        "feature": ["level", "alarm"],
        "features": [{"level": ("low", "mid", "high"), "alarm": (False, True)}],
        "MissingnessGraph:features": [["level", "alarm"], None],
        "actions": [["wait", "treat"]],
        "transition": [matrices, lambda s, a: {s: 1.0}],
        "reward": [0.0, lambda s, a: 1.0],
        "initial": [{("low", False): 1.0}],
        "terminal": [None, lambda s: False],
        "discount": [0.9],
        "edges": [[("level", "alarm")], [0.0, 1.0]],
        "Binning.from_edges:edges": [[0.0, 1.0]],
        "Binning:edges": [(0.0, 1.0)],
        "values": [[1.0, 2.0, 3.0, None]],
        "bins": [2],
        "content": [{"edges": [0.0, 1.0]}],
        "can_go_missing": [["alarm"], None],
        "dependent": [[("level", "alarm")], ()],
        "observations": [log.observations],
        "Dataset:actions": [log.actions],
        "Dataset:terminated": [log.terminated],
        "offsets": [log.offsets],
        "codes": [codes.codes],
        "counts": [codes.counts],
        "index": [0, 1],
        "name": ["x"],
        "load_benchmark:name": ["icu-smar", "ex:smar"],
        "Comparison#0.difference:name": ["a"],
        "other": ["b", None],
        "Evaluation#0.shares_luck_with:other": [objects["Evaluation"][0]],
        "q": [0.5, [0.1, 0.9]],
        "visits": [10.0],
        "total_variation:visits": [np.ones(mdp.n_states), objects["Coverage"][0]],
        "reachable": [mdp.reachable, None],
        "total_variation": [True, False],
        "settings": [objects["RunSettings"][0]],
        "PPO.from_settings:settings": [objects["PPOSettings"][0]],
        "given": [{"steps": 5}],
        "text": ["{}"],
        "label": ["made-up"],
        "make": [mm.AsMAR],
        "assumes": ["nothing"],
        "config": [objects["ReproduceConfig"][0]],
        "base": [None],
        "benchmark": ["icu-smar"],
        "shares": [(0.1,)],
        "most": [3],
        "max_nodes_": [5],
        "depth": [2],
        "min_probability": [0.01],
        "diagnosis": objects["Diagnosis"],
        "title": ["a title", None],
        "POMDP:states": [objects["POMDP"][1].states],
        "POMDP:actions": [objects["POMDP"][1].actions],
        "POMDP:observations": [objects["POMDP"][1].observations],
        "POMDP:transition": [objects["POMDP"][1].transition],
        "POMDP:reward": [objects["POMDP"][1].reward],
        "POMDP:observation": [objects["POMDP"][1].observation],
        "POMDP:initial": [objects["POMDP"][1].initial],
        "POMDP:terminal": [objects["POMDP"][1].terminal],
        "transitions": [_Fresh(lambda: _transitions(mdp))],
        "rewards": [_Fresh(lambda: _rewards(mdp))],
        "FactoredMDP.from_tables:initial": [_Fresh(lambda: _initial(mdp))],
        "run:model": [truth, mdp, "icu-smar"],
        "run:data": [log, None],
        "folder": [folder / "some"],
        "evaluate:model": [truth, objects["POMDP"][1]],
    }


def _files(objects: dict[str, list[Any]], folder: Path) -> dict[str, list[Any]]:
    """Return files to read, and names to write to."""
    truth, log = objects["MissMDP"][0], objects["Dataset"][0]
    csv, model, policy = folder / "log.csv", folder / "model.mmdp", folder / "policy.mmpolicy"
    controller, counts, config = (
        folder / "controller.mmpolicy",
        folder / "counts.mmcounts",
        folder / "config.toml",
    )
    log.to_csv(csv)
    truth.save(model)
    objects["AlphaVectorPolicy"][0].save(policy)
    objects["FiniteController"][0].save(controller)
    objects["ObservationCounts"][0].save(counts)
    objects["ReproduceConfig"][0].save(config)
    every = [csv, model, policy, controller, counts, config, folder]
    return {
        "csv": [csv],
        "path": [folder / "out.svg", folder / "out.bin", str(folder / "out.csv")],
        "MissMDP.load:path": [model, *every],
        "load_policy:path": [policy, controller, *every],
        "AlphaVectorPolicy.load:path": [policy, *every],
        "FiniteController.load:path": [controller, *every],
        "PPOPolicy.load:path": every,
        "ObservationCounts.load:path": [counts, *every],
        "ReproduceConfig.load:path": [config, *every],
        "MissingnessGraph.from_dot:source": ["digraph { level -> R_alarm }", csv],
    }


def _transitions(mdp: mm.FactoredMDP) -> pd.DataFrame:
    rows: list[dict[str, Any]] = []
    for a, action in enumerate(mdp.actions):
        matrix = mdp.transition[a].tocoo()
        for s, t, p in zip(matrix.row, matrix.col, matrix.data, strict=True):
            old, new = mdp.states[s], mdp.states[t]
            rows.append(
                {
                    "level": old[0],
                    "alarm": old[1],
                    "action": action,
                    "level'": new[0],
                    "alarm'": new[1],
                    "probability": p,
                }
            )
    return pd.DataFrame(rows)


def _rewards(mdp: mm.FactoredMDP) -> pd.DataFrame:
    rows = [
        {"level": state[0], "alarm": state[1], "action": action, "reward": mdp.reward[s, a]}
        for s, state in enumerate(mdp.states)
        for a, action in enumerate(mdp.actions)
    ]
    return pd.DataFrame(rows)


def _initial(mdp: mm.FactoredMDP) -> pd.DataFrame:
    rows = [
        {"level": state[0], "alarm": state[1], "probability": mdp.initial[s]}
        for s, state in enumerate(mdp.states)
    ]
    return pd.DataFrame(rows)
