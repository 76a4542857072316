"""What a policy of a user's own needs: `agent` is enough, and `runner` makes it fast."""

from __future__ import annotations

import numpy as np
import pytest

import missmdp as mm
from missmdp._kernels.random import episode_key
from missmdp._kernels.simulator import first_state, next_state, seen_as
from missmdp.data.simulation import BulkPolicy, EpisodeRunner, Episodes, empty_episodes
from policies import random_policy
from random_pomdps import tiger

QUIET = {"progress": False}


class Alternating:
    """Takes the actions in turn, whatever is seen. It has nothing but `agent`."""

    def agent(self, model=None, *, seed=None):
        return AlternatingAgent(model.actions)


class AlternatingAgent:
    def __init__(self, actions):
        self.actions, self.steps, self.seen = actions, 0, []

    def reset(self, *observation):
        self.steps, self.seen = 0, list(observation)
        return self.actions[0]

    def step(self, observation):
        self.steps += 1
        self.seen.append(observation)
        return self.actions[self.steps % len(self.actions)]


class AlternatingInBulk(Alternating):
    """The same with a `runner`, as the contract says: draws by `episode_key`, the functions of the simulator."""

    def agent(self, model=None, *, seed=None):
        raise AssertionError("a bulk policy is not asked for agents")

    def runner(self, model, simulation, words, horizon):
        def run(first, count):
            episodes = empty_episodes(count, 2)
            for e in range(count):
                key = np.uint64(episode_key(words, first + e))
                state, step, total, extra = first_state(simulation, key), 0, 0.0, 0.0
                blanks = 0
                while step < horizon and not simulation.terminal[state]:
                    seen = seen_as(
                        simulation, key, step, state, (step - 1) % simulation.n_actions if step else 0
                    )
                    blanks += seen == 0
                    action = step % simulation.n_actions
                    total += model.discount**step * simulation.reward[state, action]
                    extra += model.discount**step * simulation.advantage[state, action]
                    step += 1
                    state = next_state(simulation, key, step, state, action)
                extra -= model.discount**step * simulation.potential[state]
                episodes.returns[e], episodes.advantages[e] = total, extra
                episodes.decisions[e], episodes.terminated[e] = step, simulation.terminal[state]
                episodes.events[e] = blanks, step
            return episodes

        return EpisodeRunner(run, events=("blanks", "steps"), task=7)


@pytest.mark.parametrize(
    "make", [lambda: mm.load_benchmark("icu-smar"), tiger, lambda: tiger(observe_initial=True)]
)
@pytest.mark.parametrize("control_variate", [False, True])
def test_agents_and_runners_of_users_give_the_same(make, control_variate):
    model = make()
    options = {"horizon": 11, "control_variate": control_variate, **QUIET}
    slow = mm.evaluate(Alternating(), model, 40, 3, **options)
    fast = mm.evaluate(AlternatingInBulk(), model, 40, 3, **options)
    np.testing.assert_allclose(fast.returns, slow.returns, rtol=1e-12)
    np.testing.assert_allclose(fast.estimates, slow.estimates, rtol=1e-9)
    np.testing.assert_array_equal(fast.decisions, slow.decisions)
    np.testing.assert_array_equal(fast.terminated, slow.terminated)
    assert fast.events["steps"] == fast.decisions.sum()
    assert "blanks" in fast.describe()
    assert fast.impossible == 0
    assert slow.events == {}


def test_who_is_a_bulk_policy():
    assert isinstance(AlternatingInBulk(), BulkPolicy)
    assert isinstance(AlternatingInBulk(), mm.Policy)
    assert isinstance(random_policy(tiger(), 0), BulkPolicy)
    assert not isinstance(Alternating(), BulkPolicy)
    assert not isinstance(mm.UniformPolicy(), BulkPolicy)
    assert isinstance(Alternating(), mm.Policy)


def test_another_attribute_of_that_name_makes_no_bulk_policy():
    class Named(Alternating):
        runner = "me"

    model = mm.load_benchmark("icu-smar")
    found, expected = (
        mm.evaluate(policy, model, 5, 3, horizon=6, **QUIET) for policy in (Named(), Alternating())
    )
    np.testing.assert_array_equal(found.returns, expected.returns)


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_their_luck_is_that_of_all_others(threads):
    model = mm.load_benchmark("icu-smar")
    found = mm.compare(
        {"one": Alternating(), "two": AlternatingInBulk(), "uniform": None},
        model,
        30,
        1,
        horizon=9,
        threads=threads,
        **QUIET,
    )
    assert found.difference("two").stderr < 1e-9
    assert found.difference("two").correlation == pytest.approx(1.0)
    assert found["two"].events["steps"] == found["two"].decisions.sum()


def test_agents_see_what_the_model_shows():
    """Observations are named tuples with None for missing, or labels; those that act first are reset without one."""
    agents = []

    class Kept(Alternating):
        def agent(self, model=None, *, seed=None):
            agents.append(super().agent(model, seed=seed))
            return agents[-1]

    model = mm.load_benchmark("icu-smar")
    found = mm.evaluate(Kept(), model, 6, 0, horizon=8, **QUIET)
    shown = set(model.occurring_observations)
    for agent, decisions in zip(agents, found.decisions, strict=True):
        assert len(agent.seen) == decisions
        assert set(agent.seen) <= shown
    assert any(None in z for agent in agents for z in agent.seen)
    for observe_initial in (False, True):
        agents.clear()
        world = tiger(observe_initial=observe_initial)
        mm.evaluate(Kept(), world, 6, 0, horizon=8, **QUIET)
        assert all(len(agent.seen) == 7 + observe_initial for agent in agents)
        assert all(set(agent.seen) <= set(world.observations) for agent in agents)


def test_room_for_outcomes():
    room = empty_episodes(3, 2)
    assert isinstance(room, Episodes)
    assert room.events.shape == (3, 2)
    assert [part.shape[0] for part in room] == [3] * 5
    assert empty_episodes(0).events.shape == (0, 0)
