"""Coverage of behaviour policies, against simulation and by hand."""

import dataclasses
import math

import numpy as np
import pytest

import missmdp as mm


def chain(length):
    """Walk up a line with "up", fall back to 0 with "down"; the last cell is terminal."""
    mdp = mm.FactoredMDP(
        features={"cell": range(length)},
        actions=["up", "down"],
        transition=lambda s, a: {(s.cell + 1,): 1.0} if a == "up" else {(0,): 1.0},
        reward=lambda s, a: 1.0,
        initial={(0,): 1.0},
        terminal=lambda s: s.cell == length - 1,
        discount=0.5,
    )
    return mm.MissMDP(mdp, mm.MissingnessFunction.independent(mdp, {"cell": 0.25}))


def test_shares_by_hand():
    """Three cells, horizon 3: paths 0 0 0, 0 0 1, 0 1 0, 0 1 2 with probability 1/4 each."""
    coverage = mm.behaviour_coverage(chain(3), horizon=3)
    assert coverage.exact
    assert coverage.fair
    assert coverage.episode_length == pytest.approx(3.0)
    assert coverage.share * 12 == pytest.approx([8, 3, 1])
    assert coverage.steps_for(visits=5) == pytest.approx(60)


def test_a_terminal_state_ends_the_episode():
    coverage = mm.behaviour_coverage(chain(3), mm.BlindPolicy({"up": 1.0}), horizon=10)
    assert coverage.episode_length == pytest.approx(3.0)
    assert coverage.share == pytest.approx([1 / 3, 1 / 3, 1 / 3])


def test_an_unfair_policy_is_found_out():
    coverage = mm.behaviour_coverage(chain(4), mm.BlindPolicy({"down": 1.0}))
    assert not coverage.fair
    assert [state.cell for state in coverage.never] == [1, 2, 3]
    assert math.isinf(coverage.steps_for())
    assert "NOT fair" in str(coverage)


def test_a_state_beyond_the_horizon_is_not_visited():
    assert not mm.behaviour_coverage(chain(6), horizon=5).fair
    assert mm.behaviour_coverage(chain(6), horizon=6).fair


def test_tiny_probabilities_are_not_taken_for_none():
    """The last of 1,200 cells has probability 2⁻¹¹⁹⁹, which is 0 in floating point."""
    coverage = mm.behaviour_coverage(chain(1200), horizon=1200)
    assert coverage.fair
    assert coverage.share[-1] == 0.0


def test_policies_that_look_at_observations_are_computed_exactly():
    """Up when the cell is seen (3/4), down when it is not."""
    policy = mm.ObservationPolicy(lambda seen: "down" if seen.cell is None else "up")
    coverage = mm.behaviour_coverage(chain(3), policy, horizon=3)
    visits = np.array([1 + 1 / 4 + (1 / 16 + 3 / 16), 3 / 4 + 3 / 16, 9 / 16])
    assert coverage.exact
    assert coverage.share == pytest.approx(visits / visits.sum())


@pytest.mark.parametrize("name", ["icu-mnar-unid", "predator-mnar-unid"])
def test_computed_shares_agree_with_a_simulation(name):
    """The largest deviation stays within 6 standard errors, taking steps of an episode as fully dependent."""
    model = mm.load_benchmark(name)
    coverage = mm.behaviour_coverage(model)
    data = mm.collect(model, 2_000_000, seed=0, keep_states=True)
    share = np.bincount(data.states, minlength=model.n_states) / len(data)
    error = np.sqrt(coverage.share * (1 - coverage.share) / data.n_episodes)
    assert (np.abs(share - coverage.share) < 6 * error + 1e-6).all()
    assert data.lengths.mean() == pytest.approx(coverage.episode_length, rel=0.02)
    assert coverage.fair


def test_policies_with_memory_are_simulated():
    class Up:
        def agent(self, model=None, *, seed=None):
            return self

        def reset(self, observation):
            return "up"

        step = reset

    coverage = mm.behaviour_coverage(chain(3), Up(), horizon=2, steps=1000)
    assert not coverage.exact
    assert not coverage.fair
    assert coverage.share == pytest.approx([0.5, 0.5, 0.0])
    assert "1,000 simulated" in str(coverage)


def test_rare_states_come_rarest_first():
    rare = mm.behaviour_coverage(chain(5), horizon=5).rare(steps=100, visits=1000)
    counts = [expected for _, expected in rare]
    assert counts == sorted(counts)
    assert len(rare) == 5


def test_a_discount_next_to_one_takes_no_longer():
    """The chain settles after some steps; those that follow are not taken one by one."""

    def found(discount, horizon=None):
        mdp = mm.FactoredMDP(
            features={"x": range(2)},
            actions=["go"],
            transition=lambda state, action: {(0,): 0.75, (1,): 0.25},
            reward=1.0,
            initial={(0,): 1.0},
            discount=discount,
        )
        model = mm.MissMDP(mdp, mm.MissingnessFunction.fully_observed(mdp))
        return mm.behaviour_coverage(model, horizon=horizon)

    endless = found(1.0 - 1e-12)
    assert endless.episode_length == pytest.approx(endless.horizon, rel=1e-9)
    np.testing.assert_allclose(endless.share, [0.75, 0.25], atol=1e-9)
    np.testing.assert_allclose(
        found(0.9, 12_000).share * 12_000, [0.75 * 12_000 + 0.25, 0.25 * 12_000 - 0.25]
    )


def test_a_description_makes_only_the_states_that_it_names(monkeypatch):
    model = mm.load_benchmark("icu-smar")
    coverage = mm.behaviour_coverage(model, horizon=1)
    never, rare = coverage.never, coverage.rare(1000, 5.0)
    assert coverage.rare(1000, 5.0, most=3) == rare[:3]
    assert coverage.count_rare(1000, 5.0) == len(rare)
    made = []
    state = type(model.space).state
    monkeypatch.setattr(type(model.space), "state", lambda space, s: made.append(s) or state(space, s))
    text = coverage.describe(1000, 5.0)
    assert f"for example: {never[0]!r}" in text
    assert f"{len(rare)} states are" in text
    assert f"the rarest, {rare[0][0]!r}, {rare[0][1]:.2g} times." in text
    assert len(made) == 2


def test_what_a_simulation_has_not_seen_is_not_said_to_come_zero_times(monkeypatch):
    coverage = mm.behaviour_coverage(mm.load_benchmark("icu-smar"), horizon=1)
    assert coverage.exact
    assert "0 times" in coverage.describe(1000, 5.0)
    guessed = dataclasses.replace(coverage, exact=False)
    assert " was not seen in the simulation." in guessed.describe(1000, 5.0)
    assert "0 times" not in guessed.describe(1000, 5.0)
