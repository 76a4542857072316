"""Logged rewards against a model's: what cannot be is refused, what is unlikely leads to a warning."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import missmdp as mm


@pytest.fixture(autouse=True)
def _warnings_are_errors():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


def walk(reward=lambda state, action: -1.0 if action == "stay" else 2.0, p=1.0):
    """Return an MDP on a ring of three places; moving succeeds with probability p."""
    return mm.FactoredMDP(
        features={"place": range(3)},
        actions=["stay", "move"],
        transition=lambda state, action: (
            [((state.place,), 1.0)]
            if action == "stay" or p == 0
            else [(((state.place + 1) % 3,), p), *([((state.place,), 1 - p)] if p < 1 else [])]
        ),
        reward=reward,
        initial={(0,): 1.0},
    )


def log_of(mdp, n, reward, seed=0, hidden=0.2):
    """Return a table of n steps in episodes of 11 rows; `reward` gets the place, the action, the next one, random."""
    rng = np.random.default_rng(seed)
    table = {name: [] for name in ("episode", "step", "place", "action", "reward")}
    for episode in range(n // 10):
        place = 0
        for step in range(11):
            action = mdp.actions[rng.integers(2)]
            row = mdp.transition[mdp.actions.index(action)].toarray()[place]
            after = int(rng.choice(3, p=row))
            last = step == 10
            shown = None if rng.random() < hidden else place
            cells = (
                episode, step, shown, None if last else action, None if last else reward(place, action, after, rng)
            )  # fmt: skip
            for name, cell in zip(table, cells, strict=True):
                table[name].append(cell)
            place = after
    return table


def rho(place, action, after, rng):
    return -1.0 if action == "stay" else 2.0


def test_the_model_s_own_rewards_pass():
    mdp = walk()
    table = log_of(mdp, 300, rho)
    log = mm.Dataset.from_table(table, mdp, reward="reward")
    taken = log.actions >= 0
    assert np.array_equal(log.logged_rewards[taken], np.where(log.actions[taken] == 0, -1.0, 2.0))
    assert np.isnan(log.logged_rewards[~taken]).all()
    assert log.notes == ()


def test_constant_rewards_that_differ_are_refused_with_their_first_row():
    mdp = walk()
    table = log_of(mdp, 300, lambda place, action, after, rng: rho(place, action, after, rng) + (place == 1))
    rows = [
        row for row in range(len(table["step"])) if table["place"][row] == 1 and table["action"][row] is not None
    ]  # fmt: skip
    first = rows[0]
    with pytest.raises(mm.DataError) as caught:
        mm.Dataset.from_table(table, mdp, reward="reward")
    message = str(caught.value)
    assert message.startswith(
        f"row {first + 1}, episode {table['episode'][first]}, step {table['step'][first]}: the reward in State(place=1)"
    )
    assert "no reward with this mean fits" in message
    assert "(1 more such difference)" in message


def test_a_file_is_named(tmp_path):
    path = tmp_path / "log.csv"
    path.write_text("episode,step,place,action,reward\n7,0,0,stay,-3\n7,1,0,stay,-3\n7,2,0,,\n")
    with pytest.raises(
        mm.DataError, match=r"log\.csv, row 1, episode '7', step 0: the reward .* is -3 in all 2 steps"
    ):
        mm.Dataset.from_table(path, walk(), reward="reward")


def test_a_single_difference_is_a_warning(tmp_path):
    path = tmp_path / "log.csv"
    path.write_text("episode,step,place,action,reward\n7,0,0,stay,-3\n7,1,0,,\n")
    with pytest.warns(
        mm.AssumptionWarning, match="row 1, .* the reward .* is -3, but the model's is -1"
    ) as caught:
        mm.Dataset.from_table(path, walk(), reward="reward")
    assert caught[0].filename == __file__


def test_states_that_were_not_seen_completely_prove_nothing():
    mdp = walk()
    table = log_of(mdp, 100, lambda *_: 9.0)
    table["place"] = [None] * len(table["place"])
    assert mm.Dataset.from_table(table, mdp, reward="reward").rewards.max() == 9


@pytest.mark.parametrize("seed", range(5))
def test_rewards_on_the_next_state_with_the_right_mean_pass(seed):
    """ρ(s, move) = p · 10; a false alarm has a chance below 10⁻³ per seed, and seeds are fixed."""
    mdp = walk(lambda state, action: 0.0 if action == "stay" else 3.0, p=0.3)
    table = log_of(mdp, 2000, lambda place, action, after, rng: 10.0 * (after != place), seed)
    log = mm.Dataset.from_table(table, mdp, reward="reward")
    assert set(np.unique(log.rewards)) == {0.0, 10.0}


@pytest.mark.parametrize("seed", range(5))
def test_rare_rewards_that_have_hardly_come_yet_are_no_alarm(seed):
    """In 3,000 steps about three are expected; in the first place there are fewer, or none."""
    mdp = walk(lambda state, action: 0.0 if action == "stay" else 0.02, p=0.002)
    table = log_of(mdp, 3000, lambda place, action, after, rng: 10.0 * (after != place), seed)
    mm.Dataset.from_table(table, mdp, reward="reward")


def test_rewards_on_the_next_state_with_the_wrong_mean_lead_to_a_warning():
    mdp = walk(lambda state, action: 0.0 if action == "stay" else 5.0, p=0.3)
    table = log_of(mdp, 2000, lambda place, action, after, rng: 10.0 * (after != place))
    with pytest.warns(mm.AssumptionWarning, match=r"the mean reward in State.*but the model's is 5"):
        mm.Dataset.from_table(table, mdp, reward="reward")


def test_noise_passes_and_a_shift_in_noise_leads_to_a_warning():
    mdp = walk()
    noisy = log_of(mdp, 3000, lambda *step: rho(*step) + step[3].normal())
    mm.Dataset.from_table(noisy, mdp, reward="reward")
    shifted = log_of(mdp, 3000, lambda *step: rho(*step) + step[3].normal() + 0.5)
    with pytest.warns(mm.AssumptionWarning, match="the mean reward"):
        mm.Dataset.from_table(shifted, mdp, reward="reward")


def test_coins_are_luck_and_no_contradiction():
    """With one successor per pair, two heads in a row would be refused, did not other pairs show that there is luck."""
    mdp = walk(lambda state, action: 0.0)
    for seed in range(20):
        table = log_of(mdp, 40, lambda place, action, after, rng: float(rng.choice([-1, 1])), seed)
        mm.Dataset.from_table(table, mdp, reward="reward")


def test_a_small_shift_in_many_states_shows_in_their_sum():
    """Each of 300 states is seen a few times; all rewards are off by the same small amount."""
    size = 300
    mdp = mm.FactoredMDP(
        {"x": range(size)},
        ["go"],
        [np.full((size, size), 1 / size)],
        np.linspace(-5, 5, size)[:, None],
        np.full(size, 1 / size),
    )
    rng = np.random.default_rng(0)
    x = rng.integers(size, size=3000)
    last = np.arange(3000) % 10 == 9
    table = {
        "episode": np.arange(3000) // 10,
        "step": np.arange(3000) % 10,
        "x": x,
        "action": np.where(last, None, "go"),
        "reward": np.linspace(-5, 5, size)[x] + rng.normal(0, 0.5, 3000),
    }
    table["reward"][last] = np.nan
    mm.Dataset.from_table(table, mdp, reward="reward")
    table["reward"] = table["reward"] + 0.15
    with pytest.warns(mm.AssumptionWarning, match="the mean reward with action 'go' is"):
        mm.Dataset.from_table(table, mdp, reward="reward")


def test_rounding_in_the_log_is_no_difference():
    mdp = walk(lambda state, action: -1 / 3 if action == "stay" else 2 / 3)
    mm.Dataset.from_table(
        log_of(mdp, 200, lambda p, action, n, rng: round(-1 / 3 if action == "stay" else 2 / 3, 2)),
        mdp,
        reward="reward",
    )
    with pytest.raises(mm.DataError, match=r"is 0\.6 .*, but the model's is 0\.666667"):
        mm.Dataset.from_table(
            log_of(mdp, 200, lambda p, action, n, rng: -0.33 if action == "stay" else 0.6),
            mdp,
            reward="reward",
        )


def test_steps_in_terminal_states_do_not_count():
    mdp = mm.FactoredMDP(
        {"x": [0, 1]}, ["go"], lambda s, a: {(1,): 1.0}, lambda s, a: 1.0, {(0,): 1.0}, lambda s: s.x == 1
    )
    table = {
        "episode": [1] * 4,
        "step": [0, 1, 2, 3],
        "x": [0, 1, 1, 1],
        "action": ["go"] * 3 + [None],
        "reward": [1, 7, 7, None],
    }
    assert mm.Dataset.from_table(table, mdp, reward="reward").rewards.tolist() == [1, 7, 7, 0]


@pytest.mark.parametrize("name", ["icu-mnar-unid", "fleet-4"])
def test_simulated_logs_have_the_rewards_of_their_model(name):
    model = mm.load_benchmark(name)
    table = mm.collect(model, 3000, seed=1, keep_states=True).to_pandas()
    log = mm.Dataset.from_table(table, model.mdp, reward="reward")
    assert np.allclose(log.rewards[log.actions >= 0], table["reward"].dropna().astype(float))
    table["reward"] = -table["reward"]
    with pytest.warns(mm.AssumptionWarning, match="the mean reward"):
        mm.Dataset.from_table(table, model.mdp, reward="reward")


def test_with_two_successors_the_same_reward_is_impossible_only_after_many_steps():
    """(1 − 0.3)ⁿ falls below 10⁻⁹ at n = 59, for the one pair that occurs."""
    mdp = walk(lambda state, action: 0.0 if action == "stay" else 5.0, p=0.3)

    def table(n):
        """Return one episode that stays where it is, whatever it does."""
        return {
            "episode": [1] * (n + 1),
            "step": [*range(n + 1)],
            "place": [0] * (n + 1),
            "action": ["move"] * n + [None],
            "reward": [0.0] * n + [None],
        }

    with pytest.raises(mm.DataError, match="is 0 in all 59 steps, but the model's is 5; no reward"):
        mm.Dataset.from_table(table(59), mdp, reward="reward")
    with pytest.warns(mm.AssumptionWarning, match="is 0 in all 58 steps, but the model's is 5"):
        mm.Dataset.from_table(table(58), mdp, reward="reward")
    mm.Dataset.from_table(table(2), mdp, reward="reward")
