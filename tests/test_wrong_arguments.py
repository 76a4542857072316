"""Wrong arguments of public names are refused by name: one or more of each cause that random calls found.

`python -m fuzz api` tries many more.
"""

from __future__ import annotations

import numpy as np
import pytest

import missmdp as mm

TRUTH = mm.load_benchmark(mm.list_examples()[0])
MDP = TRUTH.mdp
WRONG_PATHS = [None, 3, 0.5, b"x", ["x"], np.array([1.0])]


@pytest.mark.parametrize("path", WRONG_PATHS)
@pytest.mark.parametrize(
    "read",
    [
        mm.load_policy,
        mm.MissMDP.load,
        mm.FiniteController.load,
        mm.MemoryPolicy.load,
        mm.ReproduceConfig.load,
        mm.ReproduceConfig.of_run,
        lambda path: mm.ObservationCounts.load(path, MDP),
        lambda path: mm.MissingnessGraph([("a", "a")]).draw(path),
    ],
)
def test_paths(read, path):
    with pytest.raises(mm.ParameterError, match="must be the name of a file or folder"):
        read(path)


CALLS = {
    "weights must be|expected a mapping from action": [
        lambda: mm.BlindPolicy(None),
        lambda: mm.BlindPolicy([1, 2]),
        lambda: mm.BlindPolicy(3),
    ],
    "function must be a function": [lambda: mm.ObservationPolicy("wait"), lambda: mm.ObservationPolicy(int)],
    "seed must be an integer of at least 0": [
        lambda: mm.UniformPolicy().agent(TRUTH, seed="x"),
        lambda: TRUTH.missingness.sample([], seed=1e300),
    ],
    "expected a MissMDP": [lambda: mm.UniformPolicy().agent(MDP), lambda: mm.collect(3, 10)],
    "states must be a list": [lambda: TRUTH.missingness.sample(7), lambda: TRUTH.missingness.sample("ab")],
    "mdp must be a FactoredMDP": [
        lambda: mm.MissingnessFunction.independent([None], {}),
        lambda: mm.MissingnessFunction.from_patterns(None, lambda s: {}),
        lambda: mm.MissingnessFunction.fully_observed(3),
    ],
    "must be a list of": [
        lambda: mm.MissingnessGraph(3),
        lambda: mm.MissingnessGraph((), features=1.5),
        lambda: mm.MissingnessGraph((), can_go_missing=b"x"),
        lambda: mm.MissingnessGraph((), dependent=np.array(3.0)),
        lambda: mm.MissingnessGraph((), notes=3),
    ],
    "an m-graph is directed": [lambda: mm.MissingnessGraph.from_networkx(3)],
    "expected a MissingnessFunction": [lambda: mm.MissingnessGraph.from_missingness(None)],
    "reachable must be a boolean array": [
        lambda: mm.MissingnessGraph.from_missingness(TRUTH.missingness, np.zeros(10**6, dtype=bool))
    ],
    "tolerance must be a number": [
        lambda: mm.MissingnessGraph.from_missingness(TRUTH.missingness, tolerance=len)
    ],
    "there is no feature": [lambda: mm.MissingnessGraph([("a", "b")]).parents(np.array(["a", "b"]))],
    "title must be text": [lambda: mm.MissingnessGraph([("a", "a")]).draw("x.svg", title=2)],
    "name must be text": [lambda: mm.load_benchmark([1]), lambda: MDP.with_last_action(name=np.zeros(2))],
    "none must be a value": [lambda: MDP.with_last_action(none=np.zeros(2))],
    "label must be": [
        lambda: mm.forget_learner(slice(None)),
        lambda: mm.register_learner(len, 3, assumes="x"),
    ],
    "make must be": [lambda: mm.register_learner(len, "made-up", assumes="x")],
    "assumes must be text": [lambda: mm.register_learner(mm.AsMAR, "made-up", assumes=3)],
    "learners must be": [lambda: mm.RunSettings(learners=3)],
    "expected a ReproduceConfig": [
        lambda: mm.reproduce(3, "x"),
        lambda: mm.ReproduceConfig.from_dict({}, base=-1),
    ],
    "benchmark must be text": [lambda: mm.ReproduceConfig().of({})],
    "expected settings by name": [
        lambda: mm.ReproduceConfig.from_dict(3),
        lambda: mm.PPOSettings.from_dict([1]),
    ],
    "text must be text": [lambda: mm.PPOSettings.from_json(2)],
    "expected PPOSettings": [lambda: mm.PPO.from_settings(object)],
    "keep_states must be True or False": [lambda: mm.collect(TRUTH, 10, seed=0, keep_states=np.zeros(2))],
    "progress must be True, False or None": [lambda: mm.collect(TRUTH, 10, seed=0, progress=np.zeros(2))],
    "total_variation must be True or False": [
        lambda: mm.histories_needed(TRUTH, total_variation=np.zeros(2))
    ],
    "structure must be": [lambda: mm.identifiability(MDP, np.array(["a", "b"]))],
    "ignore: there is no feature": [
        lambda: mm.AsMAR(ignore=[np.zeros(2)]).fit(mm.collect(TRUTH, 10, seed=0))
    ],
    "threads must be an integer": [
        lambda: mm.diagnose(mm.collect(TRUTH, 10, seed=0), threads=set()),
        lambda: mm.DynamicsEM(MDP, threads=0.5).fit(mm.collect(TRUTH, 10, seed=0)),
    ],
    "timeout must be a number": [lambda: mm.plan_data(TRUTH, 0.1, timeout={})],
    "benchmarks must be a list": [lambda: mm.ReproduceConfig(benchmarks=np.array(["a", "b"]))],
    "edges must be a list of numbers": [lambda: mm.Binning.from_edges(np.array([1.0 + 1.0j]))],
    "epsilon must be": [lambda: mm.plan_data(TRUTH, np.complex64(1.0j))],
    "folder must be the name": [lambda: mm.run(TRUTH, folder=3)],
    "expected a policy of α-vectors": [lambda: mm.FiniteController.from_policy(3)],
    "missingness must be a list": [
        lambda: mm.sensitivity(None, TRUTH, draws=1, episodes=2, shares=(0.1,), missingness=1j)
    ],
}


@pytest.mark.parametrize(
    ("call", "message"), [(call, message) for message, calls in CALLS.items() for call in calls]
)
def test_wrong_arguments_are_named(call, message):
    with pytest.raises(mm.MissMDPError, match=message):
        call()


def test_results_check_what_they_are_asked():
    log = mm.collect(TRUTH, 50, seed=0)
    coverage = mm.behaviour_coverage(TRUTH, steps=100)
    described = mm.describe(log)
    compared = mm.compare({"a": None, "b": None}, TRUTH, episodes=4, seed=0)
    calls = [
        lambda: coverage.rare(visits=[1, 2]),
        lambda: coverage.rare(steps="x"),
        lambda: coverage.steps_for(b"x"),
        lambda: log.episode("x"),
        lambda: described.strongest(object()),
        lambda: described.describe(-1.5),
        lambda: compared.difference([None]),
    ]
    for call in calls:
        with pytest.raises(mm.ParameterError):
            call()
