"""Reading `.pomdpx` files, against brute force over every assignment of values."""

import numpy as np
import pytest
from hypothesis import given

from interop.factored_files import RandomFile, rocksample_file
from interop.same import assert_same_numbers
from missmdp import memory
from missmdp.benchmarks.rocksample import Map, rocksample
from missmdp.errors import FormatError
from missmdp.interop import read_pomdpx
from missmdp.interop.pomdpx import reader, tables
from oracles.pomdpx_files import Brute
from strategies import seeds

ROVER = """<?xml version="1.0" encoding="ISO-8859-1"?>
<pomdpx version="1.0" id="rover">
 <Description>A rover that looks at one rock.</Description>
 <Discount>0.95</Discount>
 <Variable>
  <StateVar vnamePrev="place_0" vnameCurr="place_1" fullyObs="true"><ValueEnum>west mid end</ValueEnum></StateVar>
  <StateVar vnamePrev="rock_0" vnameCurr="rock_1"><ValueEnum>good bad</ValueEnum></StateVar>
  <ActionVar vname="move"><ValueEnum>left right look</ValueEnum></ActionVar>
  <ObsVar vname="sensor"><NumValues>2</NumValues></ObsVar>
  <RewardVar vname="gain"/>
 </Variable>
 <InitialStateBelief>
  <CondProb><Var>place_0</Var><Parent>null</Parent>
   <Parameter type="TBL"><Entry><Instance>-</Instance><ProbTable>0 1 0</ProbTable></Entry></Parameter></CondProb>
  <CondProb><Var>rock_0</Var><Parent>null</Parent>
   <Parameter><Entry><Instance>-</Instance><ProbTable>uniform</ProbTable></Entry></Parameter></CondProb>
 </InitialStateBelief>
 <StateTransitionFunction>
  <CondProb><Var>place_1</Var><Parent>move place_0</Parent>
   <Parameter type="TBL">
    <Entry><Instance>* - -</Instance><ProbTable>identity</ProbTable></Entry>
    <Entry><Instance>left mid west</Instance><ProbTable>1.0</ProbTable></Entry>
    <Entry><Instance>left mid mid</Instance><ProbTable>0.0</ProbTable></Entry>
    <Entry><Instance>right * -</Instance><ProbTable>0 0 1</ProbTable></Entry>
   </Parameter></CondProb>
  <CondProb><Var>rock_1</Var><Parent>rock_0 place_1</Parent>
   <Parameter type="DD">
    <DAG><Node var="place_1">
     <Edge val="west"><SubDAG type="deterministic" var="rock_1" val="bad"/></Edge>
     <Edge val="mid"><SubDAG type="persistent" var="rock_1"/></Edge>
     <Edge val="end"><SubDAG type="template" idref="same"/></Edge>
    </Node></DAG>
    <SubDAGTemplate id="same"><SubDAG type="persistent" var="rock_1"/></SubDAGTemplate>
   </Parameter></CondProb>
 </StateTransitionFunction>
 <ObsFunction>
  <CondProb><Var>sensor</Var><Parent>move rock_1</Parent>
   <Parameter type="TBL">
    <Entry><Instance>* * -</Instance><ProbTable>1 0</ProbTable></Entry>
    <Entry><Instance>look - -</Instance><ProbTable>0.8 0.2 0.3 0.7</ProbTable></Entry>
   </Parameter></CondProb>
 </ObsFunction>
 <RewardFunction>
  <Func><Var>gain</Var><Parent>place_0 place_1 sensor</Parent>
   <Parameter type="TBL">
    <Entry><Instance>mid end *</Instance><ValueTable>10</ValueTable></Entry>
    <Entry><Instance>mid mid -</Instance><ValueTable>-1 -2</ValueTable></Entry>
   </Parameter></Func>
 </RewardFunction>
</pomdpx>
"""


@pytest.fixture
def read(tmp_path):
    def of(text):
        path = tmp_path / "model.pomdpx"
        path.write_text(text)
        return read_pomdpx(path)

    return of


def as_words(label, names, values):
    """Return a label as the tuple of names that the oracle uses."""
    parts = label if isinstance(label, tuple) else (label,)
    return tuple(
        values[name][part] if isinstance(part, int) else part for name, part in zip(names, parts, strict=True)
    )


def assert_means(model, text):
    """Compare a model with brute force over the states that it has."""
    brute = Brute(text)
    states = [as_words(label, brute.previous, brute.values) for label in model.states]
    actions = [as_words(label, brute.acting, brute.values) for label in model.actions]
    seen = [*brute.shown, *brute.signals]
    shown = [as_words(label, seen, brute.values) if seen else () for label in model.observations]
    assert [brute.initial(s) for s in states] == pytest.approx(model.initial.tolist(), abs=1e-12)
    assert sum(map(brute.initial, states)) == pytest.approx(1.0)
    position = [brute.current.index(name) for name in brute.shown]
    for a, action in enumerate(actions):
        expected = np.array([[brute.transition(s, action, t) for t in states] for s in states])
        assert np.allclose(model.transition[a].toarray(), expected, rtol=0, atol=1e-12)
        for t, state in enumerate(states):
            row = model.observation_of(a)[[t]].toarray()[0]
            visible = tuple(state[i] for i in position)
            weights = [
                brute.signal(action, state, z[len(position) :]) * (z[: len(position)] == visible)
                for z in shown
            ]
            assert row.tolist() == pytest.approx(weights, abs=1e-12)
            assert model.reward[t, a] == pytest.approx(brute.reward(state, action), abs=1e-9)


def test_a_factored_file_is_read(read):
    model = read(ROVER)
    assert_means(model, ROVER)
    assert set(model.states) == {
        ("west", "bad"),
        ("mid", "good"),
        ("mid", "bad"),
        ("end", "good"),
        ("end", "bad"),
    }
    assert model.states[0].place == "west"
    assert model.states[0].rock == "bad"
    assert model.observations[0] == ("west", 0)
    assert model.observations[0].sensor == 0
    assert list(model.actions) == ["left", "right", "look"]
    assert model.discount == 0.95
    assert not model.observe_initial
    west, end = list(model.states).index(("west", "bad")), list(model.states).index(("end", "good"))
    assert not model.terminal[west]
    assert model.terminal[end]


@given(seeds())
def test_random_files_mean_the_same_to_brute_force(tmp_path_factory, seed):
    text = RandomFile(np.random.default_rng(seed)).text
    path = tmp_path_factory.mktemp("random") / "model.pomdpx"
    path.write_text(text)
    assert_means(read_pomdpx(path), text)


def test_one_variable_keeps_all_its_values(read):
    text = (
        ROVER[: ROVER.index("<Variable>")]
        + """
     <Variable><StateVar vnamePrev="s" vnameCurr="t"><NumValues>3</NumValues></StateVar>
      <ActionVar vname="a"><NumValues>2</NumValues></ActionVar></Variable>
     <InitialStateBelief><CondProb><Var>s</Var><Parent>null</Parent><Parameter>
      <Entry><Instance>s1</Instance><ProbTable>1</ProbTable></Entry></Parameter></CondProb></InitialStateBelief>
     <StateTransitionFunction><CondProb><Var>t</Var><Parent>a s</Parent><Parameter>
      <Entry><Instance>* - -</Instance><ProbTable>identity</ProbTable></Entry>
      <Entry><Instance>1 0 -</Instance><ProbTable>uniform</ProbTable></Entry></Parameter></CondProb>
     </StateTransitionFunction></pomdpx>"""
    )
    model = read(text)
    assert list(model.states) == [0, 1, 2]
    assert list(model.observations) == ["none"]
    assert model.terminal.tolist() == [False, True, True]
    assert model.transition[1].toarray()[0].tolist() == [1 / 3] * 3
    assert model.reward.tolist() == [[0.0, 0.0]] * 3


@pytest.mark.parametrize("seed", range(60))
def test_rows_only_for_parents_that_matter_say_the_same(seed, tmp_path, monkeypatch):
    path = tmp_path / "random.pomdpx"
    path.write_text(RandomFile(np.random.default_rng(seed)).text)
    whole = read_pomdpx(path)
    monkeypatch.setattr(tables, "_MANY_ROWS", 0)
    assert_same_numbers(read_pomdpx(path), whole)


@pytest.mark.parametrize("seed", range(40))
def test_in_pieces_it_is_the_same(seed, tmp_path, monkeypatch):
    path = tmp_path / "random.pomdpx"
    path.write_text(RandomFile(np.random.default_rng(seed)).text)
    whole = read_pomdpx(path)
    monkeypatch.setattr(reader, "_CHUNK", 5)
    monkeypatch.setattr(reader, "_EXPANDED", 3)
    assert_same_numbers(read_pomdpx(path), whole)


@pytest.mark.parametrize("seed", range(40))
def test_what_fits_is_not_refused(seed, tmp_path, monkeypatch):
    """Estimates never exceed what there is: a file is read if there is room for all of its probabilities."""
    path = tmp_path / "random.pomdpx"
    path.write_text(RandomFile(np.random.default_rng(seed)).text)
    wanted: list[float] = []
    monkeypatch.setattr(reader, "check_fits", lambda what, nbytes, instead: wanted.append(nbytes))
    monkeypatch.setattr(reader, "_BYTES_PER_MOVE", 1.0)
    monkeypatch.setattr(reader, "_BYTES_PER_SIGHT", 1.0)
    monkeypatch.setattr(reader, "_BYTES_HELD", 0.0)
    model = read_pomdpx(path)
    moves = sum(matrix.nnz for matrix in model.transition)
    sights = sum(model.observation_of(a).nnz for a in range(model.n_actions))
    assert 0.0 < max(wanted) <= max(moves, sights)


@pytest.mark.parametrize("what", ["transition", "observation"])
def test_what_does_not_fit_is_refused_in_one_line(what, tmp_path, monkeypatch):
    path = tmp_path / "rover.pomdpx"
    path.write_text(ROVER)
    monkeypatch.setattr(memory, "free_memory", lambda: 1e6)
    read_pomdpx(path)
    monkeypatch.setattr(
        reader, {"transition": "_BYTES_PER_MOVE", "observation": "_BYTES_PER_SIGHT"}[what], 1e9
    )
    with pytest.raises(
        FormatError, match=rf"rover.pomdpx: .*\d {what} probabilities .* give the model by features"
    ):
        read_pomdpx(path)


def test_a_sensor_with_all_rocks_among_its_parents(tmp_path):
    """Each action asks for one rock; with 18 rocks, a table over all would have 23 · 10 · 2¹⁸ rows."""
    world = Map(3, (0, 1), [(0, 0), (1, 1), (2, 2)])
    path = tmp_path / "rocks.pomdpx"
    path.write_text(rocksample_file(world))
    read, built = read_pomdpx(path), rocksample(world)
    # The file has one state for every way to have left, and good before bad: so bits are turned round.
    live = np.flatnonzero(~read.terminal)
    place = {label: s for s, label in enumerate(built.states)}
    own = []
    for s in live.tolist():
        state = read.states[s]
        x, y = map(int, state.rover[1:].split("-"))
        own.append(place[x, y, sum((state[1 + i] == "good") << i for i in range(3))])
    assert sorted(own) == list(range(built.n_states - 1))
    for a in range(built.n_actions):
        between = read.transition[a][live][:, live].toarray()
        assert np.array_equal(between, built.transition[a][own][:, own].toarray())
        assert np.array_equal(read.reward[live, a], built.reward[own, a])
        assert read.observation_of(a)[live].max(axis=1).toarray() == pytest.approx(
            built.observation_of(a)[own].max(axis=1).toarray()
        )
    many = Map(3, (0, 1), [(i % 3, i // 3) for i in range(9)] * 2)
    text = rocksample_file(many)
    text = text.replace("<ProbTable>0.5 0.5<", "<ProbTable>1 0<")
    path.write_text(text)
    assert read_pomdpx(path).n_states > 512
