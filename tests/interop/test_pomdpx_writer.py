"""Writing `.pomdpx` files: what is read back is the same model, bit for bit."""

import re
import xml.etree.ElementTree as ET

import numpy as np
import pytest
from hypothesis import given

import missmdp as mm
from interop.models import act_first_pomdps, every_day_or_slow
from interop.same import assert_same_numbers
from missmdp.interop import read_pomdpx, write_pomdpx
from missmdp.interop.outgoing import WrittenNames
from missmdp.interop.pomdpx.factorise import factorise
from oracles.pomdpx_files import Brute
from strategies import missmdps


@given(act_first_pomdps())
def test_plain_pomdps_read_back_bit_for_bit(tmp_path_factory, model):
    path = tmp_path_factory.mktemp("written") / "model.pomdpx"
    write_pomdpx(model, path)
    assert_same_numbers(read_pomdpx(path), model)


def called(labels, letter):
    """Return what values are called after reading: numbers where they are counted, else their names."""
    names = WrittenNames(labels, letter)
    return list(labels) if names.counted else names.names


def reordered(model, back):
    """Return the model's POMDP with the states and observations, which labels tell, in the order of what was read."""
    pomdp, parts = model.to_pomdp(), factorise(model)
    if parts.observed is None or parts.hidden is None:
        return pomdp
    x, y = (np.array(called(p.labels, "s"), dtype=object)[p.of_state] for p in (parts.observed, parts.hidden))
    position = {pair: s for s, pair in enumerate(zip(x, y, strict=True))}
    order = [position[tuple(label)] for label in back.states]
    always = model.space.features.mask(model.missingness.always_observed)
    named = dict(zip(map(repr, parts.signals), called(parts.signals, "o"), strict=True))
    known = dict(zip(map(repr, parts.observed.labels), called(parts.observed.labels, "s"), strict=True))

    def pick(row, mask):
        chosen = tuple(value for value, own in zip(row, mask, strict=True) if own)
        return repr(chosen[0] if len(chosen) == 1 else chosen)

    seen = {(known[pick(z, always)], named[pick(z, ~always)]): i for i, z in enumerate(pomdp.observations)}
    columns = [seen[tuple(label)] for label in back.observations]
    return mm.POMDP(
        states=list(back.states),
        actions=pomdp.actions,
        observations=list(back.observations),
        transition=tuple(matrix[order][:, order] for matrix in pomdp.transition),
        reward=pomdp.reward[order],
        observation=tuple(matrix[order][:, columns] for matrix in pomdp.observation),
        initial=pomdp.initial[order],
        terminal=pomdp.terminal[order],
        discount=pomdp.discount,
        observe_initial=False,
    )


@given(missmdps())
def test_miss_mdps_read_back_bit_for_bit(tmp_path_factory, model):
    path = tmp_path_factory.mktemp("written") / "model.pomdpx"
    write_pomdpx(model, path)
    back = read_pomdpx(path)
    if back.n_states < model.n_states:  # with two variables, states that cannot be reached are left out
        assert back.n_states == model.mdp.reachable.sum()
    assert_same_model(model, back)


@pytest.mark.parametrize(
    "name",
    [*every_day_or_slow(mm.list_benchmarks(), {"icu-mnar-id", "predator-smar"}), *mm.list_examples()],
)
def test_benchmarks_read_back_bit_for_bit(tmp_path, name):
    model = mm.load_benchmark(name)
    write_pomdpx(model, tmp_path / "model.pomdpx")
    assert_same_model(model, read_pomdpx(tmp_path / "model.pomdpx"))


def assert_same_model(model, back):
    expected = reordered(model, back)
    if model.missingness.n_patterns == 1 and not model.missingness.can_go_missing:
        # All is observed: the state is its own observation.
        assert np.array_equal(back.observation[0].toarray(), np.eye(back.n_states))
        object.__setattr__(expected, "observation", back.observation)
        object.__setattr__(expected, "observations", back.observations)
    assert np.array_equal(back.terminal | expected.terminal, back.terminal)
    object.__setattr__(
        expected, "terminal", back.terminal
    )  # what is absorbing for free is terminal in a file
    assert_same_numbers(back, expected)


def test_the_file_is_what_appl_accepts(tmp_path):
    """Observed variables have no parents of their own time, hidden ones only observed ones, and all rows are there."""
    model = mm.load_benchmark("predator-smar")
    write_pomdpx(model, tmp_path / "model.pomdpx")
    root = ET.parse(tmp_path / "model.pomdpx").getroot()
    sections = [child.tag for child in root]
    assert sections == [
        "Description",
        "Discount",
        "Variable",
        "InitialStateBelief",
        "StateTransitionFunction",
        "ObsFunction",
        "RewardFunction",
    ]
    states = root.findall("Variable/StateVar")
    assert [s.get("fullyObs") for s in states] == ["true", "false"]
    assert [s.get("vnameCurr") for s in states] == ["u_v_1", "x_y_1"]
    assert len(root.findall("Variable/ObsVar")) == 1
    parents = {
        t.find("Var").text: t.find("Parent").text for t in root.findall("StateTransitionFunction/CondProb")
    }
    assert parents == {"u_v_1": "action u_v_0 x_y_0", "x_y_1": "action u_v_0 x_y_0 u_v_1"}
    first, second = root.findall("InitialStateBelief/CondProb")
    assert (first.find("Parent").text, second.find("Parent").text) == ("null", "u_v_0")
    written = [entry.text.split() for entry in second.findall("Parameter/Entry/Instance")]
    assert len({x for x, _ in written}) == len(states[0].find("ValueEnum").text.split())
    assert not any("*" in words for words in written)
    for table in root.findall("StateTransitionFunction/CondProb"):
        assert set(table.find("Parameter/Entry/Instance").text.split()[:-1]) == {"*"}
    assert root.find("ObsFunction/CondProb/Parent").text == "u_v_1 x_y_1"
    assert not re.search(r"\de[-+]?\d", (tmp_path / "model.pomdpx").read_text())


def test_brute_force_reads_it_too(tmp_path):
    model = mm.load_benchmark("example-1")
    write_pomdpx(model, tmp_path / "model.pomdpx")
    brute, pomdp = Brute((tmp_path / "model.pomdpx").read_text()), model.to_pomdp()
    for s, state in enumerate(model.states):
        assert brute.initial(state) == pomdp.initial[s]
        assert brute.reward(state, ("guess_x",)) == pytest.approx(pomdp.reward[s, 0])
        for t, after in enumerate(model.states):
            assert brute.transition(state, ("guess_x",), after) == pomdp.transition[0].toarray()[s, t]


def test_the_description_says_that_the_file_acts_first(tmp_path):
    write_pomdpx(mm.load_benchmark("example-1"), tmp_path / "model.pomdpx")
    assert "This file acts first" in ET.parse(tmp_path / "model.pomdpx").getroot().find("Description").text


def test_odd_names_become_well_formed_xml(tmp_path):
    mdp = mm.FactoredMDP(
        {"a <&> --": ["<", "--", "\x07"], "7": [1.5, "é"]},
        ["]]>", "&amp;"],
        lambda s, a: {s: 1.0},
        lambda s, a: 1.0,
        [(("<", 1.5), 0.5), (("--", "é"), 0.5)],
    )
    model = mm.MissMDP(mdp, mm.MissingnessFunction.independent(mdp, {"7": 0.5}), name="<b> & \x00 --")
    write_pomdpx(model, tmp_path / "model.pomdpx")
    back = read_pomdpx(tmp_path / "model.pomdpx")
    assert back.n_states == 2
    assert (tmp_path / "model.pomdpx").read_text().isascii() is False


def test_a_second_round_trip_changes_nothing(tmp_path):
    """Rows with hundreds of random numbers cannot all be split exactly; what was read once stays as it is."""
    rng = np.random.default_rng(0)
    states = [(x, y) for x in range(2) for y in range(60)]
    mdp = mm.FactoredMDP(
        {"x": range(2), "y": range(60)},
        ["go"],
        [rng.dirichlet(np.ones(120), size=120)],
        rng.normal(size=(120, 1)),
        rng.dirichlet(np.ones(120)),
        states=states,
    )
    model = mm.MissMDP(mdp, mm.MissingnessFunction.independent(mdp, {"y": 0.5}))
    write_pomdpx(model, tmp_path / "one.pomdpx")
    back = read_pomdpx(tmp_path / "one.pomdpx")
    mine, theirs = mdp.transition[0].toarray(), back.transition[0].toarray()
    assert np.abs(mine.view(np.int64) - theirs.view(np.int64)).max() <= 1
    again = mm.MissMDP(
        mm.FactoredMDP(
            mdp.features, ["go"], [theirs], back.reward, back.initial, discount=back.discount, states=states
        ),
        model.missingness,
    )
    write_pomdpx(again, tmp_path / "two.pomdpx")
    assert_same_numbers(read_pomdpx(tmp_path / "two.pomdpx"), back)
