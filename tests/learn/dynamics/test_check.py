"""check_dynamics: its statistics against closed forms and direct maximisation, and what it says of known errors."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy import optimize, special, stats

import missmdp as mm
from learn.diagnosis.wards import models, ward
from missmdp.experiments.studies.check_dynamics import GAPS, changed_pumps, pumps
from missmdp.learn.dynamics.ratios import holm

MDP = ward()
TRUTHS = models(MDP)


def log_of(name: str, steps: int = 1500, seed: int = 0) -> mm.Dataset:
    return mm.collect(TRUTHS[name], steps, seed=seed, horizon=20)


def row_of(check: mm.DynamicsCheck, feature: str, **found):
    wanted = {"action": None, "where": "", "first": False} | found
    (row,) = [
        row
        for row in check.rows
        if row.feature == feature and all(getattr(row, name) == value for name, value in wanted.items())
    ]
    return row


def test_without_gaps_it_is_the_g_test():
    """Twice the sum of n · log(n / expected), over the next values of the pulse after one of its values."""
    full = mm.MissMDP(MDP, mm.MissingnessFunction.independent(MDP, {}))
    log = mm.collect(full, 4000, seed=1, horizon=20)
    check = mm.check_dynamics(log, MDP)
    taken = np.flatnonzero(log.actions >= 0)
    before, after = log.observations[taken], log.observations[taken + 1]
    for fever, pulse in itertools.product(range(2), range(3)):
        mine = (before[:, 1] == fever) & (before[:, 2] == pulse)
        counts = np.bincount(after[mine, 2], minlength=3)
        p = np.zeros(3)
        p[pulse] += 0.4
        p[(pulse + 1 + fever) % 3] += 0.6
        some = p > 0.0
        g = stats.power_divergence(counts[some], counts.sum() * p[some], lambda_="log-likelihood")
        row = row_of(check, "pulse", where=f"fever is {fever} and pulse is {pulse}")
        assert row.freedom == some.sum() - 1
        assert row.statistic == pytest.approx(g.statistic, abs=2e-3)
        assert row.p_value == pytest.approx(g.pvalue, abs=2e-3)
        assert row.steps == mine.sum()
        value = int(np.argmax(np.abs(counts / counts.sum() - p)))
        # Where only two values are possible both change by as much.
        assert abs(row.change.asked - row.change.given) == pytest.approx(
            abs(counts[value] / counts.sum() - p[value]), abs=1e-3
        )
    # Which ward is first, and which is next, is certain.
    assert not [row for row in check.rows if row.feature == "ward"]
    assert check.missingness == "there are none"


def filtered(log: mm.Dataset, transition: np.ndarray, initial: np.ndarray, table: np.ndarray) -> float:
    """Return the log-likelihood by a plain forward filter; the table is P(fever, pulse missing | state), (4, S)."""
    codes, total = log.mdp.space.codes, 0.0
    fits = {}
    for e in range(log.n_episodes):
        belief = initial
        for row in range(log.offsets[e], log.offsets[e + 1]):
            z = tuple(log.observations[row].tolist())
            if z not in fits:
                fits[z] = np.all((np.array(z) == -1) | (codes == z), axis=1), 2 * (z[1] < 0) + (z[2] < 0)
            possible, pattern = fits[z]
            joint = belief * table[pattern] * possible
            total += np.log(joint.sum())
            belief = (joint / joint.sum()) @ transition[max(int(log.actions[row]), 0)]
    return total


def test_the_statistic_is_that_of_direct_maximisation():
    """L-BFGS on the likelihood of a plain filter; M may be anything of the form of simple MAR."""
    log = log_of("dependent by ward", 700, seed=3)
    check = mm.check_dynamics(log, MDP, structure="smar")
    codes, dense = MDP.space.codes, np.array([matrix.toarray() for matrix in MDP.transition])
    in_b = codes[:, 0].astype(float)

    def table(m: np.ndarray) -> np.ndarray:
        fever = special.expit(m[0] + m[1] * in_b)
        with_fever, without = special.expit(m[2] + m[3] * in_b + m[4]), special.expit(m[2] + m[3] * in_b)
        return np.array(
            [(1 - fever) * (1 - without), (1 - fever) * without, fever * (1 - with_fever), fever * with_fever]
        )

    def tilted(theta: np.ndarray, rows: np.ndarray, column: int) -> np.ndarray:
        effect = np.zeros(3)
        effect[1 : 1 + len(theta)] = theta
        weight = np.exp(effect[codes[:, column]])
        changed = np.where(rows, dense * weight, dense)
        return changed / changed.sum(axis=2, keepdims=True)

    def best(size: int, rows: np.ndarray, column: int) -> float:
        found = optimize.minimize(
            lambda x: -filtered(log, tilted(x[5:], rows, column), MDP.initial, table(x[:5])),
            np.zeros(5 + size),
            method="L-BFGS-B",
            options={"ftol": 1e-13, "gtol": 1e-5},
        )
        return -float(found.fun)

    everywhere = np.ones((2, len(codes), 1), dtype=bool)
    null = best(0, everywhere, 1)
    stays = np.array([True, False])[:, None, None] & everywhere
    feverish = (codes[:, 1] == 1)[None, :, None] & everywhere
    for column, rows, row in (
        (1, everywhere, row_of(check, "fever")),
        (2, everywhere, row_of(check, "pulse")),
        (1, stays, row_of(check, "fever", action="stay")),
        (1, feverish, row_of(check, "fever", where="fever is 1")),
    ):
        assert row.freedom == (1, 2)[column - 1]
        expected = 2.0 * (best(row.freedom, rows, column) - null)
        assert row.statistic == pytest.approx(expected, abs=5e-3), row.subject


def test_names_and_their_order_change_nothing():
    """The same model with other names, features and values in another order, and actions too."""
    other = mm.FactoredMDP(
        features={"p": ["z", "y", "x"], "w": ["B", "A"], "f": ["no", "yes"]},
        actions=["go", "rest"],
        transition=lambda state, action: [
            (_renamed(after), p)
            for after, p in _successors(_original(state), {"go": "move", "rest": "stay"}[action])
        ],
        reward=0.0,
        initial={_renamed(("a", 0, 0)): 0.5, _renamed(("a", 1, 1)): 0.5},
        discount=0.9,
    )
    log = log_of("own value")
    table = log.to_pandas()[["episode", "step", "ward", "fever", "pulse", "action"]]
    renamed = table.assign(
        p=table.pulse.map({0: "x", 1: "y", 2: "z"}),
        w=table.ward.map({"a": "A", "b": "B"}),
        f=table.fever.map({0: "no", 1: "yes"}),
        action=table.action.map({"stay": "rest", "move": "go"}),
    )[["episode", "step", "p", "w", "f", "action"]]
    one = mm.check_dynamics(log, MDP)
    two = mm.check_dynamics(mm.Dataset.from_table(renamed, other), other)
    assert one.rejected == two.rejected
    assert one.missingness == two.missingness

    def kept(check: mm.DynamicsCheck, names: dict[str, str]) -> list[tuple]:
        return sorted((names[row.feature], row.freedom, round(row.statistic, 2)) for row in check.rows)

    names = {"ward": "w", "fever": "f", "pulse": "p"}
    for mine, theirs in zip(kept(one, names), kept(two, {v: v for v in "wfp"}), strict=True):
        assert mine[:2] == theirs[:2]
        assert mine[2] == pytest.approx(theirs[2], abs=0.03)


def _successors(state: tuple, action: str):
    states = [tuple(s) for s in MDP.states]
    row = MDP.transition[MDP.actions.index(action)].toarray()[states.index(state)]
    return [(after, float(p)) for after, p in zip(states, row, strict=True) if p > 0.0]


def _original(state) -> tuple:
    return ({"A": "a", "B": "b"}[state.w], {"no": 0, "yes": 1}[state.f], {"x": 0, "y": 1, "z": 2}[state.p])


def _renamed(state: tuple) -> tuple:
    return ("xyz"[state[2]], {"a": "A", "b": "B"}[state[0]], ["no", "yes"][state[1]])


def test_threads_change_nothing():
    log = log_of("own value", 600)
    assert (
        mm.check_dynamics(log, MDP, threads=1).as_dict() == mm.check_dynamics(log, MDP, threads=2).as_dict()
    )


def coins(p: float = 0.3) -> mm.FactoredMDP:
    """A coin that is thrown anew at each step."""
    return mm.FactoredMDP(
        features={"coin": ["heads", "tails"]},
        actions=["throw"],
        transition=lambda state, action: {("heads",): p, ("tails",): 1.0 - p},
        reward=0.0,
        initial={("heads",): p, ("tails",): 1.0 - p},
        discount=0.9,
    )


def test_a_coin_that_may_hide_itself_cannot_be_judged():
    """Whatever share of heads is seen, gaps that depend on the coin explain it; gaps by pure chance do not."""
    model = mm.MissMDP(coins(0.5), mm.MissingnessFunction.independent(coins(0.5), {"coin": 0.5}))
    log = mm.collect(model, 2000, seed=0, horizon=50)
    check = mm.check_dynamics(log, coins(0.3))
    assert not check.rejected
    assert {row.verdict for row in check.rows} == {"cannot tell"}
    assert "gaps in coin" in row_of(check, "coin").reason
    assert str(check).startswith("The log cannot tell whether the MDP is right")
    by_chance = mm.check_dynamics(log, coins(0.3), structure="mcar")
    assert by_chance.rejected
    assert by_chance.features == ("coin",)
    change = row_of(by_chance, "coin").change
    assert change.given == pytest.approx({"heads": 0.3, "tails": 0.7}[change.value])
    assert change.asked == pytest.approx(0.5, abs=0.05)


def test_few_steps_cannot_tell():
    check = mm.check_dynamics(log_of("independent", 60), MDP)
    assert not check.rejected
    assert {row.verdict for row in check.rows} == {"cannot tell"}
    assert any("too few steps" in row.reason for row in check.rows)


def test_what_cannot_happen_is_a_contradiction_of_its_own():
    table = {
        "episode": [1, 1, 1, 2, 2],
        "step": [0, 1, 2, 0, 1],
        "ward": ["a", "b", "b", "a", "a"],
        "fever": [0, None, 1, 0, 0],
        "pulse": [0, None, 1, 0, 0],
        "action": ["stay", "stay", None, "stay", None],
    }
    check = mm.check_dynamics(mm.Dataset.from_table(table, MDP), MDP)
    assert check.rejected
    assert check.impossible == 2
    assert "episode 1, step 1" in check.examples[0]
    assert "cannot happen in the MDP, for example episode 1, step 1" in str(check)


def pump_log(truth: str, steps: int, seed: int = 0, gaps: str | dict = "by chance") -> mm.Dataset:
    true = changed_pumps(truth)
    chances = GAPS[gaps] if isinstance(gaps, str) else gaps
    model = mm.MissMDP(true, mm.MissingnessFunction.independent(true, chances))
    return mm.collect(model, steps, lambda z: {"run": 0.9, "overhaul": 0.1}, seed=seed, horizon=60)


def test_gaps_by_chance_and_a_wrong_row_are_not_taken_for_self_censoring():
    """New pumps shake twice as often as the MDP says."""
    log = pump_log("vibration when new", 10_000, gaps={"wear": 0.6, "vibration": 0.3})
    found = mm.diagnose(log, pumps(), draws=0)
    assert found.self_censoring == ("vibration",)  # Which is what one would believe without the check.
    assert found.dynamics is not None
    assert found.dynamics.rejected
    assert found.dynamics.features == ("vibration",)
    clearest = min(found.dynamics.rows, key=lambda row: row.p_value)
    assert clearest.where == "next wear is new"
    first, *_, last = str(found).split("\nMNAR")[0].splitlines()
    assert first.startswith("The MDP is in doubt: the log contradicts it in vibration")
    assert last == "What follows takes T as given, so it is in doubt too."
    assert found.as_dict()["dynamics"]["rejected"]


def test_a_load_that_is_always_seen_and_contradicts_t():
    log = pump_log("load", 3_000)
    assert mm.validate(log, pumps(full=0.45)).ok
    check = mm.check_dynamics(log, pumps(full=0.45))
    assert check.features == ("load",)
    row = row_of(check, "load")
    assert (
        row.change == mm.check_dynamics(log, pumps(full=0.45), threads=1).rows[check.rows.index(row)].change
    )
    assert (row.change.value, row.change.given) == ("full", pytest.approx(0.45))
    assert row.change.asked == pytest.approx(0.85, abs=0.03)
    words = str(check).replace("\N{NARROW NO-BREAK SPACE}", " ").replace("\N{NO-BREAK SPACE}", " ")
    assert f"load: P(full) is 45.0 % in the MDP, {100 * row.change.asked:.1f} % in the log" in words


def test_an_mdp_that_is_right_fits():
    """At the level 0.01 this fails by chance in one seed of a hundred."""
    check = mm.check_dynamics(pump_log("nothing", 5_000, gaps="self-censoring"), pumps())
    assert not check.rejected
    assert check.features == ()
    assert str(check).startswith("The log does not contradict the MDP (5,000 observations")
    verdicts = {row.verdict for row in check.rows}
    assert verdicts == {"fits", "cannot tell"}
    assert all((row.power >= 0.5) == (row.verdict == "fits") for row in check.rows)
    assert all(row.reason for row in check.rows if row.verdict == "cannot tell")


def test_reasons_that_act_together_are_found_and_kept():
    """Where M really needs them, T is not blamed; fails by chance in one seed of a hundred."""
    truth = mm.load_benchmark("icu-mnar-unid")
    check = mm.check_dynamics(mm.collect(truth, 10_000, seed=0), truth.mdp)
    assert not check.rejected
    assert "act together" in check.missingness


def test_a_note_says_what_would_be_in_doubt():
    """Here gaps in vibration that depend on wear and vibration together explain as much as the row that is wrong."""
    log = pump_log("vibration when new", 10_000, 10_003, gaps="self-censoring")
    check = mm.check_dynamics(log, pumps())
    assert not check.rejected
    assert "act together" in check.missingness
    (note,) = check.notes
    assert note.startswith("either reasons for gaps act together")
    assert "or T is wrong: without such reasons, the log would contradict the MDP (vibration" in note
    assert f"Note: {note}." in str(check)


def test_an_m_graph_says_what_gaps_depend_on():
    log = log_of("own value")
    graph = mm.MissingnessGraph(
        [("fever", "fever")], features=MDP.features, can_go_missing=["fever", "pulse"]
    )
    check = mm.check_dynamics(log, MDP, structure=graph)
    assert "m-graph" in check.missingness
    assert "anything" in mm.check_dynamics(log, MDP, structure="saturated").missingness


def test_large_models_are_checked_in_clusters():
    fleet = mm.load_benchmark("fleet-8")
    check = mm.check_dynamics(mm.collect(fleet, 2000, seed=0), fleet.mdp)
    assert not check.rejected
    assert {row.feature for row in check.rows} >= {f"wear_{i}" for i in range(1, 9)}


def test_large_models_without_clusters_are_refused():
    fleet = mm.load_benchmark("fleet-12")
    full = mm.MissMDP(fleet.mdp, mm.MissingnessFunction.independent(fleet.mdp, {}))
    with pytest.raises(mm.DataError, match="states, too many to check as a whole"):
        mm.check_dynamics(mm.collect(full, 50, seed=0), fleet.mdp)
    found = mm.diagnose(mm.collect(full, 50, seed=0), fleet.mdp)
    assert found.dynamics is None
    assert "The dynamics were not checked: the model has" in str(found)


@pytest.mark.parametrize(
    ("p_values", "adjusted"),
    [([], []), ([0.2], [0.2]), ([0.04, 0.01, 0.03], [0.06, 0.03, 0.06]), ([0.9, 0.6], [1.0, 1.0])],
)
def test_holm(p_values, adjusted):
    assert holm(p_values) == pytest.approx(adjusted)


def test_wrong_arguments():
    log = log_of("own value", 60)
    with pytest.raises(mm.DataError, match="check_dynamics learns from whole histories"):
        mm.check_dynamics([1, 2], MDP)
    with pytest.raises(mm.DataError, match="other features, values or actions"):
        mm.check_dynamics(log, coins())
    for name, value in (("level", 0.0), ("shift", 1.5), ("structure", "mnar"), ("threads", -1)):
        with pytest.raises(mm.ParameterError, match=name):
            mm.check_dynamics(log, MDP, **{name: value})
    graph = mm.MissingnessGraph([], features=MDP.features, can_go_missing=["pulse"])
    with pytest.raises(mm.DataError, match="'fever' goes missing, but the m-graph has no indicator"):
        mm.check_dynamics(log, MDP, structure=graph)
    with pytest.raises(mm.ParameterError, match="most"):
        mm.check_dynamics(log, MDP).describe(most=-1)


def test_one_observation_is_no_evidence():
    log = mm.Dataset.from_table(
        {"episode": [1], "step": [0], "ward": ["a"], "fever": [None], "pulse": [0], "action": [None]}, MDP
    )
    check = mm.check_dynamics(log, MDP)
    assert not check.rejected
    assert all(row.verdict == "cannot tell" for row in check.rows)


@pytest.mark.slow
@pytest.mark.parametrize("gaps", GAPS)
def test_the_level_is_kept(gaps):
    """With 100 logs, more than 6 rejections at the level 0.01 have a probability of 1e-4."""
    rejected = sum(
        mm.check_dynamics(pump_log("nothing", 2_000, seed, gaps), pumps(), threads=1).rejected
        for seed in range(5_000, 5_100)
    )
    assert rejected <= 6


@pytest.mark.slow
def test_five_points_are_found():
    """Found in nearly all logs; with a power of 0.95, fewer than 15 of 20 have a probability of 3e-4."""
    found = sum(
        "wear" in mm.check_dynamics(pump_log("wear", 10_000, seed), pumps(), threads=1).features
        for seed in range(6_000, 6_020)
    )
    assert found >= 15
