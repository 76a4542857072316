"""Policies with one node per feature: agents, whole episodes, files, explanations and wrong arguments."""

from __future__ import annotations

import dataclasses
import itertools
import logging

import numpy as np
import pytest

import missmdp as mm
from memory_policies import random_memory, small_model
from missmdp.cli.files import read_policy
from missmdp.cli.printing_results import first_action
from missmdp.data.simulation import runs_in_bulk
from missmdp.interop.pomdpx.policyx import write_policyx
from missmdp.plan.factored.explain import Situation


class Slow:
    """What the agent should do, by the definition: names and values instead of numbers, one thing after the other."""

    def __init__(self, policy: mm.MemoryPolicy, seed: int) -> None:
        self.policy, self.random = policy, np.random.default_rng(seed)
        self.values = policy.model.space.features.as_dict()
        self.scene: dict[str, object] = {}
        self.nodes: dict[str, int] = {}
        self.impossible = 0

    def first(self, observation):
        likely: dict[tuple, float] = {}
        model = self.policy.model
        for s in range(model.n_states):
            state = dict(zip(self.values, model.space.state(s), strict=True))
            key = tuple(state[name] for name in ("load", "shift"))
            likely[key] = likely.get(key, 0.0) + model.mdp.initial[s]
        self.scene = dict(zip(("load", "shift"), max(likely, key=likely.__getitem__), strict=True))
        return self.taken(observation, None)

    def then(self, observation):
        return self.taken(observation, self.action())

    def taken(self, observation, action):
        seen = dict(zip(self.values, observation, strict=True))
        before = self.number()
        self.impossible += any(seen[name] is None for name in self.scene)
        self.scene = {name: old if seen[name] is None else seen[name] for name, old in self.scene.items()}
        for k, name in enumerate(("wear", "leak")):
            if seen[name] is not None:
                self.nodes[name] = self.values[name].index(seen[name])
            elif action is None:
                self.nodes[name] = self.drawn(self.policy.first[k][self.number()])
            else:
                a = self.policy.actions.index(action)
                self.nodes[name] = self.drawn(
                    self.policy.steps[k][a, before, self.number(), self.nodes[name]]
                )
        return self.action()

    def number(self) -> int:
        return 2 * self.values["load"].index(self.scene["load"]) + self.values["shift"].index(
            self.scene["shift"]
        )

    def action(self):
        return self.policy.actions[self.policy.table[self.number(), self.nodes["wear"], self.nodes["leak"]]]

    def drawn(self, row) -> int:
        if (row > 0.0).sum() == 1:
            return int(np.flatnonzero(row)[0])
        u, total = self.random.random(), 0.0
        for node, p in enumerate(row):
            total += p
            if p > 0.0 and u < total:
                return node
        return int(np.flatnonzero(row)[-1])


@pytest.mark.parametrize("load_missing", [0.0, 0.4])
def test_agents_do_what_the_definition_says(load_missing):
    policy = random_memory(small_model(), 1)
    log = mm.collect(small_model(load_missing=load_missing), 400, seed=2, horizon=40)
    agent, slow = policy.agent(seed=5), Slow(policy, 5)
    for k in range(log.n_episodes):
        for step, (seen, _) in enumerate(log.episode(k)):
            expected = slow.first(seen) if step == 0 else slow.then(seen)
            assert (agent.reset(seen) if step == 0 else agent.step(seen)) == expected
            assert agent.last_action == expected == policy.action(agent.situation)
            assert agent.situation == Situation(slow.number(), (slow.nodes["wear"], slow.nodes["leak"]))
    assert agent.impossible == slow.impossible
    assert (agent.impossible > 0) == (load_missing > 0.0)
    assert agent.fallbacks == {"admitted": agent.impossible, "restarted": 0, "ignored": 0}


def exact_value(policy: mm.MemoryPolicy, model: mm.MissMDP) -> float:
    """Return the value in the policy's own model: linear equations over states and nodes."""
    space, mdp = model.space, model.mdp
    sites = [space.features.position(name) for name in policy.sites]
    seen = [space.features.position(name) for name in policy.scene_features]
    scene = space.codes[:, seen] @ np.array([2, 1])
    pairs = list(itertools.product(range(model.n_states), *map(range, policy.nodes)))
    place = {pair: k for k, pair in enumerate(pairs)}

    def remembered(s, rows):
        """Yield nodes and probabilities when a state is reached."""
        for pattern, p in zip(model.missingness.patterns, model.missingness.probabilities[s], strict=True):
            shown = [np.eye(n)[space.codes[s, i]] for i, n in zip(sites, policy.nodes, strict=True)]
            whole = [shown[j] if pattern[i] else rows[j] for j, i in enumerate(sites)]
            for nodes in itertools.product(*(np.flatnonzero(row).tolist() for row in whole)):
                yield nodes, p * np.prod([row[n] for row, n in zip(whole, nodes, strict=True)])

    system, reward, start = np.eye(len(pairs)), np.zeros(len(pairs)), np.zeros(len(pairs))
    for k, (s, *nodes) in enumerate(pairs):
        a = policy.table[scene[s], *nodes]
        reward[k] = mdp.reward[s, a]
        row = mdp.transition[a][[s]].toarray()[0]
        for after in np.flatnonzero(row).tolist():
            moved = [
                steps[a, scene[s], scene[after], n] for steps, n in zip(policy.steps, nodes, strict=True)
            ]
            for following, p in remembered(after, moved):
                system[k, place[after, *following]] -= mdp.discount * row[after] * p
    for s in np.flatnonzero(mdp.initial).tolist():
        for nodes, p in remembered(s, [first[scene[s]] for first in policy.first]):
            start[place[s, *nodes]] += mdp.initial[s] * p
    return float(start @ np.linalg.solve(system, reward))


class ByAgents:
    """The same policy without its kernel."""

    def __init__(self, policy: mm.MemoryPolicy) -> None:
        self.policy = policy

    def agent(self, model=None, *, seed=None):
        return self.policy.agent(model, seed=seed)


def test_episodes_are_worth_what_the_equations_say():
    """Each may fail with probability 6e-5."""
    model = small_model()
    for seed in range(2):
        policy = random_memory(model, seed)
        exact = exact_value(policy, model)
        for deployed, episodes in ((policy, 20_000), (ByAgents(policy), 400)):
            found = mm.evaluate(deployed, model, episodes, seed=7)
            assert abs(found.mean - exact) < 4.0 * found.stderr + 0.001


def test_impossible_observations_are_counted_and_acted_on_alike_by_kernels_and_agents(caplog):
    truth, policy = small_model(load_missing=0.3), random_memory(small_model(), 3)
    fast = mm.evaluate(policy, truth, 4000, seed=1, horizon=30)
    slow = mm.evaluate(ByAgents(policy), truth, 300, seed=1, horizon=30)
    assert abs(fast.mean - slow.mean) < 4.0 * np.hypot(fast.stderr, slow.stderr)
    assert abs(fast.impossible / (4000 * 30) - 0.3) < 0.01
    caplog.clear()
    agent = policy.agent()
    with caplog.at_level(logging.WARNING):
        agent.reset((None, "new", "day", None))
        agent.step((None, "new", None, None))
    assert agent.impossible == 2
    assert [record.getMessage().split(",")[0] for record in caplog.records] == ["'load' is missing"]


@pytest.mark.parametrize("load_missing", [0.0, 0.3])
def test_where_observations_are_numbered_by_rank_kernels_do_what_agents_do(monkeypatch, load_missing):
    monkeypatch.setattr("missmdp.model.missingness._SMALL", 10)
    truth = small_model(load_missing=load_missing)
    drawn = random_memory(small_model(), 3)
    certain = [np.eye(steps.shape[-1])[steps.argmax(axis=-1)] for steps in drawn.steps]
    first = [np.eye(rows.shape[-1])[rows.argmax(axis=-1)] for rows in drawn.first]
    policy = mm.MemoryPolicy(drawn.model, drawn.beliefs, certain, first, drawn.table)
    assert not truth.missingness.is_small
    assert runs_in_bulk(policy, truth)
    fast = mm.evaluate(policy, truth, 200, seed=1, horizon=30)
    slow = mm.evaluate(ByAgents(policy), truth, 200, seed=1, horizon=30)
    np.testing.assert_allclose(fast.returns, slow.returns, rtol=1e-12)
    assert (fast.impossible > 0) == (load_missing > 0.0)


def test_first_observations_that_lack_what_is_always_seen_begin_in_the_likely_scene():
    policy = random_memory(small_model(), 0)
    agent = policy.agent(seed=0)
    agent.reset((None, "old", None, True))
    assert policy.scene_values(agent.situation.scene) == {"load": 1, "shift": "night"}
    agent.step((0, "old", None, True))
    assert policy.scene_values(agent.situation.scene) == {"load": 0, "shift": "night"}
    assert agent.situation.nodes == (1, 1)


def test_wrong_values_leave_an_agent_as_it_was():
    agent = random_memory(small_model(), 0).agent(seed=0)
    with pytest.raises(mm.ModelError, match="call reset first"):
        agent.step((0, "new", "day", True))
    with pytest.raises(mm.ModelError, match="call reset"):
        agent.reset()
    agent.reset((0, "new", "day", True))
    before = agent.situation
    with pytest.raises(mm.ModelError, match="torn"):
        agent.step((0, "torn", "day", True))
    assert agent.situation == before
    agent.step({"load": 1, "wear": "old", "shift": "day"})  # what a mapping leaves out is missing
    assert agent.situation.scene == 2


def test_beliefs_over_states_stand_for_the_nearest_nodes():
    policy = random_memory(small_model(), 4)
    agent = policy.agent(seed=0)
    for step, (seen, _) in enumerate(mm.collect(policy.model, 30, seed=0, horizon=30).episode(0)):
        action = agent.reset(seen) if step == 0 else agent.step(seen)
        belief = agent.belief
        assert belief.sum() == pytest.approx(1.0)
        for name, expected in agent.beliefs.items():
            codes = policy.model.space.codes[:, policy.model.space.features.position(name)]
            assert np.bincount(codes, belief) == pytest.approx(list(expected.values()))
        assert policy.action(belief) == action
        assert str(policy.explain(belief)) == str(policy.explain(agent.situation))


def test_round_trips_are_exact(tmp_path):
    policy = random_memory(small_model(), 6)
    policy.save(tmp_path / "a.mmpolicy")
    loaded = mm.load_policy(tmp_path / "a.mmpolicy")
    assert isinstance(loaded, mm.MemoryPolicy)
    assert loaded.model == policy.model
    for name in ("beliefs", "steps", "first"):
        for one, two in zip(getattr(policy, name), getattr(loaded, name), strict=True):
            assert one.tobytes() == two.tobytes()
    assert np.array_equal(policy.table, loaded.table)
    loaded.save(tmp_path / "b.mmpolicy")
    assert (tmp_path / "a.mmpolicy").read_bytes() == (tmp_path / "b.mmpolicy").read_bytes()
    same = [mm.evaluate(one, policy.model, 50, seed=0).returns for one in (policy, loaded)]
    assert np.array_equal(*same)


def test_files_for_other_features_are_refused(tmp_path):
    from archives import archive_contents
    from missmdp.model.archive import write_archive

    random_memory(small_model(), 0).save(tmp_path / "a.mmpolicy")
    meta, arrays = archive_contents(tmp_path / "a.mmpolicy")
    write_archive(tmp_path / "b.mmpolicy", "policy with memory", meta | {"sites": ["wear", "load"]}, arrays)
    with pytest.raises(mm.FormatError, match="what can go missing is something else"):
        mm.load_policy(tmp_path / "b.mmpolicy")
    with pytest.raises(mm.FormatError, match="holds 'policy with memory', not 'policy'"):
        mm.AlphaVectorPolicy.load(tmp_path / "a.mmpolicy")


def test_explanations_say_what_is_believed_and_what_it_depends_on():
    policy = mm.MemoryPolicy.from_action(small_model(), "fix")
    table = policy.table.copy()
    table[:, 0, 0] = 0
    beliefs = [
        np.concatenate([array, [np.full(array.shape[1], 1.0 / array.shape[1])]]) for array in policy.beliefs
    ]
    table = np.pad(table, [(0, 0), (0, 1), (0, 1)], mode="edge")
    steps = [np.broadcast_to(np.eye(len(b)), (2, 4, 4, len(b), len(b))) for b in beliefs]
    first = [np.broadcast_to(np.eye(len(b))[-1], (4, len(b))) for b in beliefs]
    policy = mm.MemoryPolicy(policy.model, beliefs, steps, first, table)
    agent = policy.agent()
    assert agent.reset((1, None, "day", False)) == "fix"
    assert str(policy.explain(agent.situation)) == (
        "Action: fix   (one node is remembered for each feature that can go missing)\n\n"
        "Seen\n  load=1\n  shift=day\n\n"
        "Remembered of each feature, and what would be done if it were known\n"
        "  wear  new: 0.333, old: 0.333, broken: 0.333  new → run, old → fix, broken → fix\n"
        "  leak  False"
    )
    agent.reset((1, "old", "day", None))
    assert "leak  False: 0.500, True: 0.500  → fix in any case" in str(policy.explain(agent.situation))


def test_first_actions_are_all_that_may_come_first():
    model = small_model()
    assert mm.MemoryPolicy.from_action(model, "fix").first_actions == ("fix",)
    policy = random_memory(model, 2)
    log = mm.collect(model, 300, seed=0, horizon=1)
    agent = policy.agent(seed=0)
    assert {agent.reset(log.episode(k)[0][0]) for k in range(300)} <= set(policy.first_actions)


def test_what_only_vectors_have_is_not_there_and_says_so():
    policy = random_memory(small_model(), 0)
    with pytest.raises(AttributeError, match="has no 'graph': it has nodes, not α-vectors"):
        policy.graph()
    assert not hasattr(policy, "n_vectors")
    with pytest.raises(AttributeError, match="'MemoryPolicy' object has no attribute 'grap'"):
        policy.grap()
    with pytest.raises(mm.ModelError, match="write an .mmpolicy file"):
        write_policyx(policy, "never.policyx")
    with pytest.raises(mm.ParameterError, match="expected a policy of α-vectors"):
        mm.FiniteController.from_policy(policy)


def test_policies_act_in_models_with_the_same_features_only():
    policy = random_memory(small_model(), 0)
    with pytest.raises(mm.ModelError, match="which has the actions"):
        policy.agent(mm.load_benchmark("example-1"))
    with pytest.raises(mm.ModelError, match="this is a POMDP"):
        mm.evaluate(policy, small_model().to_pomdp(), 2, seed=0)


ARRAYS = {
    name: list(getattr(random_memory(small_model(), 0), name)) for name in ("beliefs", "steps", "first")
}
TABLE = random_memory(small_model(), 0).table


def changed(name, site, array):
    return {
        **ARRAYS,
        name: [array if k == site else old for k, old in enumerate(ARRAYS[name])],
        "actions": TABLE,
    }


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            {**ARRAYS, "beliefs": 3, "actions": TABLE},
            "beliefs must be a list with one array for each feature",
        ),
        (
            {**ARRAYS, "steps": ARRAYS["steps"][:1], "actions": TABLE},
            r"steps.*one array for each.*\(2\), got 1",
        ),
        (changed("beliefs", 0, np.eye(3)[::-1]), "must begin with certainty of each of its 3 values"),
        (changed("beliefs", 1, np.eye(1)), "'leak'"),
        (changed("beliefs", 0, 3.0), "'wear'"),
        (changed("first", 0, np.ones((4, 5))), "'wear', row 0"),
        (changed("first", 0, np.eye(5)), "expected .scenes, nodes. = .4, 5."),
        (changed("steps", 1, ["x"]), "steps of 'leak'"),
        ({**ARRAYS, "actions": TABLE + 2}, "actions must be from 0 to 1"),
        ({**ARRAYS, "actions": TABLE - 2}, "actions must be from 0 to 1"),
        ({**ARRAYS, "actions": TABLE[:2]}, "actions"),
        ({**ARRAYS, "actions": TABLE + 0.5}, "actions"),
    ],
)
def test_wrong_arguments_are_named(arguments, message):
    with pytest.raises(mm.MissMDPError, match=message):
        mm.MemoryPolicy(small_model(), **arguments)


@pytest.mark.parametrize(
    "situation",
    [
        None,
        3,
        (0,),
        (0, (1,)),
        (0, (1, 2, 3)),
        (4, (0, 0)),
        (-1, (0, 0)),
        (0, (5, 0)),
        (0, ("x", 0)),
        np.ones(3),
    ],
)
def test_wrong_situations_are_named(situation):
    policy = random_memory(small_model(), 0)
    for ask in (policy.action, policy.explain, policy.belief):
        with pytest.raises(
            mm.ParameterError, match="a scene from 0 to 3 and a node for each of wear and leak"
        ):
            ask(situation)
    with pytest.raises(mm.ModelError, match="the belief"):
        policy.explain(np.ones(24))


def test_other_wrong_arguments_are_named():
    with pytest.raises(mm.ParameterError, match="expected a MissMDP"):
        mm.MemoryPolicy.from_action(3, "run")
    with pytest.raises(mm.MissMDPError, match="fly"):
        mm.MemoryPolicy.from_action(small_model(), "fly")
    with pytest.raises(mm.ParameterError, match="seed"):
        random_memory(small_model(), 0).agent(seed="x")


def test_certificates_of_a_memory_are_those_of_all_policies():
    """What needs a policy graph says why there is none."""
    model = small_model()
    learner = mm.AsMAR().fit(mm.collect(model, 5000, seed=0))
    learned = model.with_missingness(learner.missingness_)
    policy = mm.MemoryPolicy.from_action(learned, "fix")
    solved = mm.Sarsop(timeout=20).solve(learned)
    exact = exact_value(policy, learned)
    result = dataclasses.replace(solved, policy=policy, make_controller=None, lower=exact)
    assert result.n_vectors == 0
    certificate = mm.certify(result, learner, halve=False, occupancy_episodes=10)
    assert certificate.policy is policy
    assert certificate.deploys == "policy"
    for name in ("occupancy", "robust", "revealing"):
        assert "there is no policy graph" in certificate.alternatives[name].why
    assert certificate.epsilon >= solved.lower - exact
    text = certificate.describe()
    assert "the policy that remembers a node per feature, is within" in text
    assert "tracks the belief" not in text
    with pytest.raises(mm.DataError, match="occupancy, robust, revealing: there is no policy graph"):
        mm.certify(result, learner, deploy="controller")
    with pytest.raises(mm.DataError, match="no such certificate for the policy .robust: there is no"):
        mm.certify(result, learner, method="robust")


def test_commands_know_memories(tmp_path):
    """Solving prints the first action, and evaluating says what is in the file."""
    policy = mm.MemoryPolicy.from_action(small_model(), "fix")
    policy.save(tmp_path / "a.mmpolicy")
    assert first_action(policy) == "fix"
    assert first_action(random_memory(small_model(), 0)) is None
    assert read_policy(tmp_path / "a.mmpolicy", policy.model).how.endswith(
        ": a memory of 5 nodes for 2 features"
    )
