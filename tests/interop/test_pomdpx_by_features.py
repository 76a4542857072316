"""`.pomdpx` files feature by feature: what is written and read is the model, and nothing is multiplied out."""

from __future__ import annotations

import re

import numpy as np
import pytest

import missmdp as mm
from interop.factored_files import rocksample_file
from interop.models import every_day_or_slow
from missmdp.benchmarks.rocksample import ROCKSAMPLE_7_8
from missmdp.interop import read_miss_mdp, read_pomdpx, write_model, write_pomdpx
from missmdp.interop.model_files import read_for_planning
from missmdp.interop.pomdpx import shown
from missmdp.interop.pomdpx.sums import sum_of_functions
from missmdp.model.missing_factors import Part
from oracles.pomdpx_files import Brute
from random_factored import random_factored


def there_and_back(model, tmp_path):
    write_pomdpx(model, tmp_path / "model.pomdpx", by_features=True)
    return read_miss_mdp(tmp_path / "model.pomdpx")


def by_pattern(model):
    """Return P(pattern | state) of each pattern."""
    gaps = model.missingness
    return {tuple(k): gaps.probabilities[:, i] for i, k in enumerate(gaps.patterns.tolist())}


def assert_same_missingness(one, other):
    mine, theirs = by_pattern(one), by_pattern(other)
    nothing = np.zeros(one.n_states)
    for pattern in {*mine, *theirs}:
        assert np.abs(mine.get(pattern, nothing) - theirs.get(pattern, nothing)).max() <= 1e-15


@pytest.mark.parametrize("seed", every_day_or_slow(range(200), range(25)))
def test_factored_models_come_back(tmp_path, seed):
    model = random_factored(seed)
    back = there_and_back(model, tmp_path)
    assert [*back.features.items()] == [*model.features.items()]
    goes_on = ~back.mdp.terminal
    assert not (model.mdp.terminal & goes_on).any()  # a file takes what stays for free for terminal
    assert (back.mdp.reachable | ~goes_on == model.mdp.reachable | ~goes_on).all()
    for mine, theirs in zip(model.mdp.transition, back.mdp.transition, strict=True):
        assert np.array_equal(mine.toarray()[goes_on], theirs.toarray()[goes_on])
    scale = max(float(np.abs(model.mdp.reward).max()), 1e-300)
    assert np.abs(model.mdp.reward - back.mdp.reward).max() <= 1e-14 * scale
    assert np.abs(model.mdp.initial - back.mdp.initial).max() <= 1e-14
    assert_same_missingness(model, back)


@pytest.mark.parametrize("seed", every_day_or_slow(range(40), range(6)))
def test_it_is_what_is_read_as_a_whole(tmp_path, seed):
    back = there_and_back(random_factored(seed), tmp_path)
    flat = read_pomdpx(tmp_path / "model.pomdpx")
    sizes = tuple(map(int, back.space.features.sizes))
    place = [np.ravel_multi_index(back.space.features.encode(tuple(state)), sizes) for state in flat.states]
    for mine, theirs in zip(flat.transition, back.mdp.transition, strict=True):
        assert np.allclose(mine.toarray(), theirs.toarray()[np.ix_(place, place)], rtol=0, atol=1e-15)
    assert np.allclose(flat.reward, back.mdp.reward[place], rtol=1e-13)
    assert np.allclose(flat.initial, back.mdp.initial[place], rtol=0, atol=1e-15)
    assert np.array_equal(flat.terminal, back.mdp.terminal[place])
    # In each state, what is seen in the one is what is seen in the other, by other names.
    for row, probabilities in zip(
        flat.observation[0].toarray(), back.missingness.probabilities[place], strict=True
    ):
        mine, theirs = np.sort(row[row > 0.0]), np.sort(probabilities[probabilities > 0.0])
        assert np.allclose(mine, theirs, rtol=0, atol=1e-15)


@pytest.mark.parametrize("name", ["fleet-3", "plant-3", "example-1"])
@pytest.mark.parametrize("observe_initial", [True, False])
def test_bounds_overlap_with_those_of_what_is_read_as_a_whole(tmp_path, name, observe_initial):
    back = there_and_back(mm.load_benchmark(name), tmp_path)
    solver = mm.Sarsop(precision=0.1, timeout=2, observe_initial=observe_initial)
    mine, theirs = solver.solve(back), solver.solve(read_pomdpx(tmp_path / "model.pomdpx"))
    assert mine.lower <= theirs.upper + 1e-9
    assert theirs.lower <= mine.upper + 1e-9


@pytest.mark.parametrize("name", ["fleet-6", "plant-6", "fleet-10"])
def test_large_models_are_never_multiplied_out(tmp_path, monkeypatch, name):
    model = mm.load_benchmark(name)
    monkeypatch.setattr(mm.MissMDP, "to_pomdp", lambda self: pytest.fail("it was multiplied out"))
    write_model(model, tmp_path / "large.pomdpx")
    back = read_for_planning(tmp_path / "large.pomdpx")
    assert isinstance(back, mm.MissMDP)
    assert (tmp_path / "large.pomdpx").stat().st_size < 200_000
    assert np.array_equal(back.mdp.reward, model.mdp.reward)
    assert np.array_equal(back.mdp.initial, model.mdp.initial)
    for mine, theirs in zip(model.mdp.factors.scopes, back.mdp.factors.scopes, strict=True):
        assert np.array_equal(_some_entries(mine, model), _some_entries(theirs, model))


def _some_entries(scope, model):
    """Return some entries of a table over all features."""
    sizes = model.mdp.factors.sizes
    whole = scope.over_states(sizes)
    whole = np.broadcast_to(whole, (*sizes, *whole.shape[len(sizes) :]))
    rng = np.random.default_rng(0)
    return whole[tuple(rng.integers(size, size=1000) for size in sizes)]


def test_small_files_and_other_pomdps_are_read_as_a_whole(tmp_path, monkeypatch):
    write_pomdpx(mm.load_benchmark("fleet-3"), tmp_path / "small.pomdpx", by_features=True)
    assert isinstance(read_for_planning(tmp_path / "small.pomdpx"), mm.POMDP)
    monkeypatch.setattr("missmdp.interop.model_files._FEW", 0.0)
    assert isinstance(read_for_planning(tmp_path / "small.pomdpx"), mm.MissMDP)
    (tmp_path / "rocks.pomdpx").write_text(rocksample_file(ROCKSAMPLE_7_8))
    assert isinstance(read_for_planning(tmp_path / "rocks.pomdpx"), mm.POMDP)
    # Too few features go missing for the search for many of them; if all else fails, it is a miss-MDP all the same.
    write_pomdpx(mm.load_benchmark("fleet-2"), tmp_path / "few.pomdpx", by_features=True)
    assert isinstance(read_for_planning(tmp_path / "few.pomdpx"), mm.POMDP)
    monkeypatch.setattr("missmdp.interop.pomdpx.reader.MAX_COUNT", 2)
    assert isinstance(read_for_planning(tmp_path / "few.pomdpx"), mm.MissMDP)
    with pytest.raises(mm.FormatError, match="'sensor' depends on the action"):
        read_miss_mdp(tmp_path / "rocks.pomdpx")


def test_what_is_neither_says_so_in_one_line(tmp_path, monkeypatch):
    text = rocksample_file(ROCKSAMPLE_7_8)
    (tmp_path / "rocks.pomdpx").write_text(text)
    monkeypatch.setattr("missmdp.interop.model_files._FEW", 0.0)
    monkeypatch.setattr("missmdp.memory.free_memory", lambda: 1.45e6)
    with pytest.raises(
        mm.FormatError, match=r"multiplying out the tables.*by features: .*'sensor' depends"
    ) as caught:
        read_for_planning(tmp_path / "rocks.pomdpx")
    assert "\n" not in str(caught.value)


def test_what_cannot_be_written_by_features(tmp_path):
    with pytest.raises(mm.ModelError, match="a POMDP cannot be written by features"):
        write_model(mm.load_benchmark("example-1").to_pomdp(), tmp_path / "x.pomdpx", by_features=True)
    with pytest.raises(mm.ModelError, match="features depend on each other given the state and the action"):
        write_pomdpx(mm.load_benchmark("icu-smar"), tmp_path / "x.pomdpx", by_features=True)
    with pytest.raises(mm.ModelError, match="states are not all combinations"):
        write_pomdpx(mm.load_benchmark("predator-smar"), tmp_path / "x.pomdpx", by_features=True)
    with pytest.raises(mm.ParameterError, match="only .pomdpx files"):
        write_model(mm.load_benchmark("example-1"), tmp_path / "x.pomdp", by_features=True)
    with pytest.raises(mm.ParameterError, match="by_features"):
        write_pomdpx(mm.load_benchmark("example-1"), tmp_path / "x.pomdpx", by_features="yes")


def test_names_that_files_do_not_take(tmp_path):
    mdp = mm.FactoredMDP.from_factors(
        {"a b": ["x y", "missing"], "a_b": [True, False], "3": [2.5]},
        ["go on", "stop!"],
        {name: ([name], lambda value, action: {value: 1.0}) for name in ("a b", "a_b", "3")},
        [("a b", lambda value, action: 1.0 + (value == "missing"))],
        {"a b": {"x y": 0.25, "missing": 0.75}, "a_b": {True: 0.5, False: 0.5}, "3": 2.5},
    )
    gaps = mm.MissingnessFunction.blocks(mdp, {("a b",): 0.25, ("a_b", "3"): 0.5})
    back = there_and_back(mm.MissMDP(mdp, gaps), tmp_path)
    assert [len(values) for values in back.features.values()] == [2, 2, 1]
    assert np.array_equal(back.mdp.reward, mdp.reward)
    assert np.array_equal(back.mdp.initial, mdp.initial)
    assert_same_missingness(mm.MissMDP(mdp, gaps), back)


def test_nothing_goes_missing(tmp_path):
    mdp = mm.load_benchmark("fleet-3").mdp
    back = there_and_back(mm.MissMDP(mdp, mm.MissingnessFunction.fully_observed(mdp)), tmp_path)
    assert back.missingness.can_go_missing == ()


@pytest.mark.parametrize("seed", range(8))
def test_rewards_are_taken_apart(seed):
    rng = np.random.default_rng(seed)
    sizes = [2, 3, 2, 2, 3]
    scopes = [(), (0,), (1, 3), (2, 4), (4,)]
    whole = np.zeros((*sizes, 2))
    for scope in scopes:
        shape = [n if i in scope else 1 for i, n in enumerate(sizes)]
        whole += rng.integers(-8, 9, size=(*shape, 2))
    found = sum_of_functions(whole.reshape(-1, 2), sizes)
    assert {scope.parents for scope in found} <= {(0,), (1,), (3,), (2,), (4,), (1, 3), (2, 4)}
    again = sum(np.broadcast_to(scope.over_states(sizes), whole.shape) for scope in found)
    assert np.array_equal(again, whole)


def test_rewards_that_are_no_sum_stay_one_function():
    reward = np.random.default_rng(0).normal(size=(24, 3))
    (scope,) = sum_of_functions(reward, [2, 3, 4])
    assert scope.parents == (0, 1, 2)
    assert np.array_equal(scope.table.reshape(-1, 3), reward)
    assert sum_of_functions(np.zeros((24, 3)), [2, 3, 4]) == []


HAND_MADE = """<pomdpx><Discount>0.9</Discount><Variable>
<StateVar vnamePrev="room_0" vnameCurr="room_1" fullyObs="true"><ValueEnum>in out end</ValueEnum></StateVar>
<StateVar vnamePrev="heat_0" vnameCurr="heat_1"><ValueEnum>low mid high</ValueEnum></StateVar>
<StateVar vnamePrev="damp_0" vnameCurr="damp_1"><NumValues>2</NumValues></StateVar>
<StateVar vnamePrev="dark_0" vnameCurr="dark_1"><ValueEnum>no yes</ValueEnum></StateVar>
<ObsVar vname="sensor"><ValueEnum>unknown high low mid</ValueEnum></ObsVar>
<ObsVar vname="drops"><ValueEnum>none one missing</ValueEnum></ObsVar>
<ActionVar vname="move"><ValueEnum>stay go</ValueEnum></ActionVar>
<ActionVar vname="fan"><NumValues>2</NumValues></ActionVar>
<RewardVar vname="comfort"/><RewardVar vname="news"/>
</Variable>
<InitialStateBelief>
<CondProb><Var>room_0</Var><Parent>null</Parent><Parameter type="TBL">
<Entry><Instance>-</Instance><ProbTable>0.5 0.5 0</ProbTable></Entry></Parameter></CondProb>
<CondProb><Var>heat_0</Var><Parent>room_0</Parent><Parameter type="TBL">
<Entry><Instance>* -</Instance><ProbTable>1 0 0</ProbTable></Entry>
<Entry><Instance>out -</Instance><ProbTable>0.25 0.75 0</ProbTable></Entry></Parameter></CondProb>
<CondProb><Var>damp_0</Var><Parent>null</Parent><Parameter type="TBL">
<Entry><Instance>-</Instance><ProbTable>uniform</ProbTable></Entry></Parameter></CondProb>
<CondProb><Var>dark_0</Var><Parent>null</Parent><Parameter type="TBL">
<Entry><Instance>no</Instance><ProbTable>1</ProbTable></Entry></Parameter></CondProb>
</InitialStateBelief>
<StateTransitionFunction>
<CondProb><Var>room_1</Var><Parent>move fan room_0 damp_0</Parent><Parameter type="TBL">
<Entry><Instance>* * - * -</Instance><ProbTable>identity</ProbTable></Entry>
<Entry><Instance>go * in * -</Instance><ProbTable>0 0.75 0.25</ProbTable></Entry></Parameter></CondProb>
<CondProb><Var>heat_1</Var><Parent>room_0 heat_0 fan</Parent><Parameter type="DD"><DAG>
<Node var="room_0"><Edge val="end"><SubDAG type="persistent" var="heat_1"/></Edge>
<Edge val="in"><Node var="fan"><Edge val="a0"><SubDAG type="uniform" var="heat_1"/></Edge>
<Edge val="a1"><SubDAG type="persistent" var="heat_1"/></Edge></Node></Edge>
<Edge val="out"><SubDAG type="deterministic" var="heat_1" val="low"/></Edge></Node>
</DAG></Parameter></CondProb>
<CondProb><Var>damp_1</Var><Parent>damp_0 room_0</Parent><Parameter type="TBL">
<Entry><Instance>- * -</Instance><ProbTable>0.5 0.5 0 1</ProbTable></Entry>
<Entry><Instance>- end -</Instance><ProbTable>identity</ProbTable></Entry></Parameter></CondProb>
<CondProb><Var>dark_1</Var><Parent>dark_0</Parent><Parameter type="TBL">
<Entry><Instance>- -</Instance><ProbTable>identity</ProbTable></Entry></Parameter></CondProb>
</StateTransitionFunction>
<ObsFunction>
<CondProb><Var>sensor</Var><Parent>heat_1 room_1</Parent><Parameter type="TBL">
<Entry><Instance>* * unknown</Instance><ProbTable>0.25</ProbTable></Entry>
<Entry><Instance>low * low</Instance><ProbTable>0.75</ProbTable></Entry>
<Entry><Instance>mid * mid</Instance><ProbTable>0.75</ProbTable></Entry>
<Entry><Instance>high * high</Instance><ProbTable>0.75</ProbTable></Entry>
<Entry><Instance>low out -</Instance><ProbTable>1 0 0 0</ProbTable></Entry></Parameter></CondProb>
<CondProb><Var>drops</Var><Parent>damp_1</Parent><Parameter type="TBL">
<Entry><Instance>- -</Instance><ProbTable>1 0 0 0 0.5 0.5</ProbTable></Entry></Parameter></CondProb>
</ObsFunction>
<RewardFunction>
<Func><Var>comfort</Var><Parent>room_0 heat_1 move</Parent><Parameter type="TBL">
<Entry><Instance>in * *</Instance><ValueTable>1</ValueTable></Entry>
<Entry><Instance>in - go</Instance><ValueTable>-1 2 -3</ValueTable></Entry></Parameter></Func>
<Func><Var>news</Var><Parent>sensor room_0</Parent><Parameter type="TBL">
<Entry><Instance>high out</Instance><ValueTable>4</ValueTable></Entry>
<Entry><Instance>unknown in</Instance><ValueTable>-2</ValueTable></Entry></Parameter></Func>
</RewardFunction></pomdpx>"""


def read(tmp_path, text):
    path = tmp_path / "hand.pomdpx"
    path.write_text(text)
    return read_miss_mdp(path)


def test_a_file_written_by_hand(tmp_path):
    model, brute = read(tmp_path, HAND_MADE), Brute(HAND_MADE)
    assert list(model.features) == ["room", "heat", "damp", "dark"]
    assert model.missingness.can_go_missing == ("heat", "damp", "dark")
    states, actions = brute.all(brute.previous), brute.all(brute.acting)
    for s, state in enumerate(states):
        stays = all(
            brute.transition(state, a, state) == 1.0 and brute.reward(state, a) == 0.0 for a in actions
        )
        assert model.mdp.terminal[s] == stays
    for s, state in enumerate(states):
        assert model.mdp.initial[s] == brute.initial(state)
        for a, action in enumerate(actions):
            assert model.mdp.reward[s, a] == pytest.approx(brute.reward(state, action), abs=1e-14)
            row = [brute.transition(state, action, after) for after in states]
            assert model.mdp.transition[a][[s]].toarray()[0].tolist() == pytest.approx(row, abs=1e-15)
    space = model.space
    for s, state in enumerate(states):
        seen = {
            (signal[0], signal[1]): brute.signal(actions[0], state, signal)
            for signal in brute.all(brute.signals)
        }
        distribution = model.missingness.distribution(space.state(s))
        for (heat, damp), probability in seen.items():
            observation = (
                state[0],
                None if heat == "unknown" else heat,
                {"none": 0, "one": 1, "missing": None}[damp],
                None,
            )
            assert distribution.get(observation, 0.0) == pytest.approx(probability, abs=1e-15)


def changed(old, new):
    assert HAND_MADE.count(old) == 1, old
    return HAND_MADE.replace(old, new)


IDENTITY = "<Entry><Instance>- -</Instance><ProbTable>identity</ProbTable></Entry>"
DARK = f'<Var>dark_1</Var><Parent>dark_0</Parent><Parameter type="TBL">\n{IDENTITY}'
DROPS = """<Var>drops</Var><Parent>damp_1</Parent><Parameter type="TBL">
<Entry><Instance>- -</Instance><ProbTable>1 0 0 0 0.5 0.5</ProbTable></Entry>"""


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        (
            DARK,
            DARK.replace(">dark_0<", ">damp_1<"),
            "the next value 'dark_1' depends on the next value 'damp_1'",
        ),
        (
            DROPS,
            '<Var>drops</Var><Parent>fan</Parent><Parameter type="TBL">\n'
            "<Entry><Instance>- -</Instance><ProbTable>1 0 0 0 0.5 0.5</ProbTable></Entry>",
            "'drops' depends on the action",
        ),
        (
            DROPS,
            DROPS.replace("1 0 0 0 0.5 0.5", "0.9 0.1 0 0.1 0.8 0.1"),
            "'drops' does not just show the value",
        ),
        (
            DROPS,
            DROPS.replace("damp_1", "heat_1").replace("1 0 0 0 0.5 0.5", "1 0 0 0 1 0 0 0 1"),
            "'drops' does not just show the value of a feature that nothing else",
        ),
        (
            DROPS,
            '<Var>drops</Var><Parent>sensor</Parent><Parameter type="TBL">\n'
            "<Entry><Instance>- -</Instance><ProbTable>1 0 0 0 1 0 0 1 0 0 0 1</ProbTable></Entry>",
            "'drops' depends on another observation, 'sensor'",
        ),
        (DROPS, DROPS.replace("0.5 0.5", "0.5 0.4"), r"P\(drops \| damp_1 = 1.*sum to 0.9"),
        (
            "1 0 0 0</ProbTable></Entry></Parameter>",
            "1 1 0 0</ProbTable></Entry></Parameter>",
            "sum to 2",
        ),
        ("0.5 0.5 0</ProbTable>", "0.5 0.4 0</ProbTable>", r"P\(room_0\).*sum to 0.9"),
        ("0 0.75 0.25</ProbTable>", "0 0.75 0</ProbTable>", r"P\(room_1 \|.*sum to 0.75"),
    ],
)
def test_what_no_miss_mdp_says(tmp_path, old, new, problem):
    with pytest.raises(mm.FormatError, match=r"hand\.pomdpx:\d+:\d+: .*" + problem) as caught:
        read(tmp_path, changed(old, new))
    assert "\n" not in str(caught.value)


def test_rows_that_nothing_leads_to_may_be_left_out(tmp_path):
    # It is never dark.
    only = "<Entry><Instance>no no</Instance><ProbTable>1</ProbTable></Entry>"
    model = read(tmp_path, changed(DARK, DARK.replace(IDENTITY, only)))
    assert not model.mdp.reachable[[state.dark == "yes" for state in model.states]].any()


def test_a_value_that_is_missing_where_it_is_what_it_is(tmp_path):
    # Missing only if it is 1, always: by structure "missing" would show the value.
    model = read(tmp_path, changed(DROPS, DROPS.replace("0.5 0.5", "0 1")))
    assert model.missingness.distribution(("in", "low", 1, "no")).keys() == {
        ("in", "low", None, None),
        ("in", None, None, None),
    }


def test_too_many_states(tmp_path):
    many = "".join(
        f'<StateVar vnamePrev="x{i}_0" vnameCurr="x{i}_1"><NumValues>10</NumValues></StateVar>'
        for i in range(8)
    )
    first = "".join(
        f'<CondProb><Var>x{i}_0</Var><Parent>null</Parent><Parameter type="TBL"><Entry><Instance>-</Instance>'
        "<ProbTable>uniform</ProbTable></Entry></Parameter></CondProb>"
        for i in range(8)
    )
    moves = first.replace("_0<", "_1<")
    text = (
        f'<pomdpx><Discount>0.9</Discount><Variable>{many}<ActionVar vname="a"><NumValues>1</NumValues></ActionVar>'
        f"</Variable><InitialStateBelief>{first}</InitialStateBelief><StateTransitionFunction>{moves}"
        "</StateTransitionFunction></pomdpx>"
    )
    with pytest.raises(mm.FormatError, match=re.escape("1e+08 combinations of values, more than 20,000,000")):
        read(tmp_path, text)


def model_of(values, parts, *, initial=None):
    """Return a miss-MDP in which nothing moves, with one part of missingness after the other."""
    transitions = {
        name: ([name], np.eye(len(own))[:, None, :].repeat(2, axis=1)) for name, own in values.items()
    }
    first = initial or {name: dict.fromkeys(own, 1.0 / len(own)) for name, own in values.items()}
    mdp = mm.FactoredMDP.from_factors(values, ["a", "b"], transitions, 1.0, first)
    return mm.MissMDP(mdp, mm.MissingnessFunction.from_parts(mdp.space, parts))


ALONE = np.array([[True], [False]])
TOGETHER = np.array([[True, True], [False, False]])


@pytest.mark.parametrize(
    ("values", "part"),
    [
        # Missing only where the value is called missing, in whatever way.
        ({"x": ["missing", "b"]}, Part((0,), ALONE, np.array([[0.5, 0.5], [1.0, 0.0]]), (0,))),
        ({"x": ["MISSING", "b"]}, Part((0,), ALONE, np.array([[1.0, 0.0], [0.0, 1.0]]), (0,))),
        ({"x": ["MISSING"]}, Part((0,), ALONE, np.array([[0.5, 0.5]]), ())),
        # A hyphen is also what stands between the values of two features.
        ({"x": ["a-b", "a"], "y": [1]}, Part((0, 1), TOGETHER, np.array([[0.25, 0.75]]), ())),
        ({"x": ["a-b", "a_b"], "y": [-1, 1]}, Part((0, 1), TOGETHER, np.array([[0.25, 0.75]]), ())),
        (
            {"x": ["Missing", "missing"], "y": ["a-missing", "b"]},
            Part((0, 1), TOGETHER, np.array([[0.25, 0.75], [1.0, 0.0]]), (0,)),
        ),
    ],
)
def test_values_whose_names_mean_something_in_a_file(tmp_path, values, part):
    model = model_of(values, [part])
    back = there_and_back(model, tmp_path)
    assert back.missingness.can_go_missing == model.missingness.can_go_missing
    assert_same_missingness(model, back)


def test_first_distributions_stay_the_same_when_written_again(tmp_path):
    rng = np.random.default_rng(4)
    values = {name: list(range(3)) for name in "uvwxyz"} | {"one": ["only"]}
    first = {name: dict(enumerate(rng.dirichlet(np.ones(3)))) for name in "uvwxyz"} | {"one": "only"}
    model = model_of(values, [Part((0,), ALONE, np.array([[0.5, 0.5]]), ())], initial=first)
    back = model
    for _ in range(5):
        back = there_and_back(back, tmp_path)
        text = (tmp_path / "model.pomdpx").read_text()
        assert "<Instance>-</Instance><ProbTable>1.0</ProbTable>" in text
    assert np.abs(back.mdp.initial - model.mdp.initial).max() <= 1e-16


def test_what_is_seen_of_many_features_together_is_counted_before_it_is_listed(tmp_path):
    n = 12
    patterns = np.array(list(np.ndindex(*[2] * n))) == 0
    table = np.random.default_rng(0).dirichlet(np.ones(len(patterns)), size=1)
    model = model_of({f"x{i}": [0, 1] for i in range(n)}, [Part(tuple(range(n)), patterns, table, ())])
    with pytest.raises(mm.ModelError, match=r"its tables have 2\.2e\+09 numbers"):
        write_pomdpx(model, tmp_path / "x.pomdpx", by_features=True)
    assert not (tmp_path / "x.pomdpx").exists()


def many_variables(n, first, *, values=2, moves="", rewards=""):
    """Return a file with n variables that keep their values, if not said otherwise."""
    variables = "".join(
        f'<StateVar vnamePrev="x{i}_0" vnameCurr="x{i}_1" fullyObs="true"><NumValues>{values}</NumValues></StateVar>'
        for i in range(n)
    )
    moves = moves or "".join(
        table(f"x{i}_1", f"x{i}_0", "<Instance>- -</Instance><ProbTable>identity</ProbTable>")
        for i in range(n)
    )
    reward = '<RewardVar vname="r"/>' if rewards else ""
    return (
        f"<pomdpx><Discount>0.9</Discount><Variable>{variables}"
        f'<ActionVar vname="a"><NumValues>1</NumValues></ActionVar>{reward}'
        f"</Variable><InitialStateBelief>{first}</InitialStateBelief><StateTransitionFunction>{moves}"
        f"</StateTransitionFunction><RewardFunction>{rewards}</RewardFunction></pomdpx>"
    )


def table(child, parents, *entries):
    inside = "".join(f"<Entry>{one}</Entry>" for one in entries)
    return (
        f'<CondProb><Var>{child}</Var><Parent>{parents}</Parent><Parameter type="TBL">{inside}</Parameter>'
        "</CondProb>"
    )


EVEN = "<Instance>- </Instance><ProbTable>uniform</ProbTable>"
EVEN_UNLESS_ZERO = (
    "<Instance>* -</Instance><ProbTable>uniform</ProbTable>",
    "<Instance>s0 -</Instance><ProbTable>1 0</ProbTable>",
)


def test_first_values_that_depend_on_each_other_are_counted_on_the_way(tmp_path):
    # Where x0 = 0, all others are certain: from that alone, one state is possible.
    first = table("x0_0", "null", EVEN) + "".join(
        table(f"x{i}_0", "x0_0", *EVEN_UNLESS_ZERO) for i in range(1, 23)
    )
    with pytest.raises(mm.FormatError, match="initial values depend on each other, and at least 2.1e"):
        read(tmp_path, many_variables(23, first))


def test_expectations_are_counted_on_the_way(tmp_path, monkeypatch):
    first = "".join(table(f"x{i}_0", "null", EVEN) for i in range(14))
    moves = table("x0_1", "x0_0", "<Instance>- -</Instance><ProbTable>identity</ProbTable>") + "".join(
        table(f"x{i}_1", "x0_0", *EVEN_UNLESS_ZERO) for i in range(1, 14)
    )
    nexts = " ".join(f"x{i}_1" for i in range(14))
    rewards = (
        f'<Func><Var>r</Var><Parent>{nexts}</Parent><Parameter type="TBL"><Entry><Instance>{" ".join(["s1"] * 14)}'
        "</Instance><ValueTable>1</ValueTable></Entry></Parameter></Func>"
    )
    text = many_variables(14, first, moves=moves, rewards=rewards)
    monkeypatch.setattr("missmdp.memory.free_memory", lambda: 2.0e6)
    with pytest.raises(mm.FormatError, match="the expectation of 'r' over what comes next, with 8.2e"):
        read(tmp_path, text)


def test_what_combinations_of_parents_take_is_counted(tmp_path, monkeypatch):
    first = "".join(table(f"x{i}_0", "null", EVEN) for i in range(14))
    parents = " ".join(f"x{i}_0" for i in range(14))
    rewards = (
        f'<Func><Var>r</Var><Parent>{parents}</Parent><Parameter type="TBL"><Entry><Instance>{" ".join(["s1"] * 14)}'
        "</Instance><ValueTable>1</ValueTable></Entry></Parameter></Func>"
    )
    text = many_variables(14, first, rewards=rewards)
    assert read(tmp_path, text).mdp.reward.sum() == 1.0
    monkeypatch.setattr("missmdp.memory.free_memory", lambda: 250.0 * 2**14)
    with pytest.raises(mm.FormatError, match="'r' over x0, x1.*would take about 4.8 MB"):
        read(tmp_path, text)


def test_parents_with_one_value_tie_nothing_together(tmp_path):
    moves = table("x0_1", "x0_0", "<Instance>- -</Instance><ProbTable>identity</ProbTable>")
    moves += table("k_1", "null", "<Instance>-</Instance><ProbTable>1</ProbTable>")
    one = '<StateVar vnamePrev="k_0" vnameCurr="k_1" fullyObs="true"><NumValues>1</NumValues></StateVar></Variable>'
    plain = many_variables(1, table("x0_0", "null", EVEN) + table("k_0", "null", EVEN), moves=moves)
    plain = plain.replace("</Variable>", one)
    tied = plain.replace("<Parent>x0_0</Parent>", "<Parent>k_1 x0_0</Parent>").replace(
        "<Instance>- -</Instance>", "<Instance>s0 - -</Instance>"
    )
    assert tied != plain
    for mine, theirs in zip(
        read(tmp_path, tied).mdp.transition, read(tmp_path, plain).mdp.transition, strict=True
    ):
        assert np.array_equal(mine.toarray(), theirs.toarray())


def test_few_sets_of_variables_are_tried_where_all_together_are_not_enough(tmp_path, monkeypatch):
    n, says = 10, 50
    tried = []
    monkeypatch.setattr(shown, "_meanings", lambda *given: tried.append(given))
    first = "".join(table(f"x{i}_0", "null", EVEN) for i in range(n))
    text = many_variables(n, first).replace(' fullyObs="true"', "")
    signal = f'<ObsVar vname="o"><NumValues>{says}</NumValues></ObsVar></Variable>'
    # Each of the first values tells something of one variable; the others tell nothing.
    never = (
        f"<Instance>{' '.join('s1' if j == i else '*' for j in range(n))} o{i}</Instance><ProbTable>0</ProbTable>"
        for i in range(n)
    )
    uniform = f"<Instance>{'* ' * n}-</Instance><ProbTable>uniform</ProbTable>"
    sights = table("o", " ".join(f"x{i}_1" for i in range(n)), uniform, *never)
    text = text.replace("</Variable>", signal).replace(
        "<RewardFunction>", f"<ObsFunction>{sights}</ObsFunction><RewardFunction>"
    )
    with pytest.raises(mm.FormatError, match="'o' does not just show"):
        read(tmp_path, text)
    assert len(tried) <= 2 * n


def test_more_variables_than_arrays_have_axes(tmp_path):
    first = "".join(table(f"x{i}_0", "null", EVEN) for i in range(70))
    with pytest.raises(mm.FormatError, match="the 70 features have about"):
        read(tmp_path, many_variables(70, first, values=1))
