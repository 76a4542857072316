"""Policies in `.policyx` files: exact round trips, files of other tools, and mistakes named by line and column."""

from __future__ import annotations

import xml.etree.ElementTree as ET

import numpy as np
import pytest
from hypothesis import given

import missmdp as mm
from missmdp.interop.pomdpx.policyx import read_policyx, write_policyx
from missmdp.plan.value_function import ComponentVectors
from oracles.alpha import backed_up, tiger
from policies import policies, random_policy


def assert_same_vectors(first, second):
    assert len(first.components) == len(second.components)
    for a, b in zip(first.components, second.components, strict=True):
        for name in ("states", "values", "actions"):
            assert getattr(a, name).tobytes() == getattr(b, name).tobytes()
            assert getattr(a, name).shape == getattr(b, name).shape


@given(policies())
def test_round_trips_are_exact(tmp_path_factory, policy):
    path = tmp_path_factory.mktemp("policies") / "a.policyx"
    write_policyx(policy, path)
    assert_same_vectors(policy, read_policyx(path, policy.model))


def test_factored_files_are_for_the_factored_model(tmp_path):
    """Always observed is `first`, so vectors run over `second`, and obsValue is the value of `first`."""
    model = mm.load_benchmark("example-1")
    policy = random_policy(model, 1)
    path = tmp_path / "a.policyx"
    write_policyx(policy, path, factored=True)
    root = ET.parse(path).getroot().find("AlphaVector")
    assert (root.get("vectorLength"), root.get("numObsValue")) == ("2", "2")
    assert [int(e.get("obsValue")) for e in root] == [0] * len(policy.components[0]) + [1] * len(
        policy.components[1]
    )
    np.testing.assert_array_equal(rows(path)[0][1], policy.components[0].values[0])
    assert_same_vectors(policy, read_policyx(path, model))


@given(policies(plain=False))
def test_factored_round_trips_keep_values_and_decisions(tmp_path_factory, policy):
    """Components that are coarser than need be come back finer; nothing else changes."""
    path = tmp_path_factory.mktemp("policies") / "a.policyx"
    write_policyx(policy, path, factored=True)
    read = read_policyx(path, policy.model)
    if len(policy.components) == len(read.components):
        assert_same_vectors(policy, read)
    for s in np.flatnonzero(~policy.pomdp.terminal):
        corner = np.eye(policy.pomdp.n_states)[s]
        assert read.value(corner) == policy.value(corner)
        assert read.action(corner) == policy.action(corner)


def test_factored_files_of_other_tools_are_read(tmp_path):
    model = mm.load_benchmark("example-1")
    path = tmp_path / "a.policyx"
    path.write_text(
        '<Policy><AlphaVector vectorLength="2" numObsValue="2" numVectors="3">'
        '<Vector action="0" obsValue="0">1 2</Vector><Vector action="1" obsValue="1">4 3</Vector>'
        '<Vector action="1" obsValue="0">4 3</Vector></AlphaVector></Policy>'
    )
    components = read_policyx(path, model).components
    assert [component.states.tolist() for component in components] == [[0, 1], [2, 3]]
    assert [component.values.tolist() for component in components] == [[[1, 2], [4, 3]], [[4, 3]]]
    assert [component.actions.tolist() for component in components] == [[0, 1], [1]]


def test_round_trips_are_exact_where_values_are_as_low_as_they_can_be(tmp_path):
    """The filler must differ from every value, also from min ρ/(1 − γ) itself."""
    model = mm.load_benchmark("example-1")
    pomdp = model.to_pomdp()
    worst = pomdp.reward.min() / (1 - pomdp.discount)
    components = [
        ComponentVectors(np.array(states), np.array([[worst, 1 / 3], [0.1, worst - 2.0]]), np.array([0, 1]))
        for states in ([0, 1], [2, 3])
    ]
    policy = mm.AlphaVectorPolicy(model, components)
    write_policyx(policy, tmp_path / "a.policyx")
    assert_same_vectors(policy, read_policyx(tmp_path / "a.policyx", model))


def rows(path):
    """Return the action and the numbers of every vector, read by another parser."""
    return [
        (int(element.get("action")), [float(word) for word in element.text.split()])
        for element in ET.parse(path).getroot().iter("Vector")
    ]


@given(policies())
def test_outside_their_component_vectors_are_sound_and_never_best(tmp_path_factory, policy):
    path = tmp_path_factory.mktemp("policies") / "a.policyx"
    write_policyx(policy, path)
    pomdp, written = policy.pomdp, rows(path)
    head = ET.parse(path).getroot().find("AlphaVector")
    assert head.attrib == {
        "vectorLength": str(pomdp.n_states),
        "numObsValue": "1",
        "numVectors": str(policy.n_vectors),
    }
    number = 0
    for component in policy.components:
        for values, action in zip(component.values, component.actions, strict=True):
            taken, numbers = written[number]
            number += 1
            assert taken == action
            for s in range(pomdp.n_states):
                if pomdp.terminal[s]:
                    assert numbers[s] == 0.0
                elif s in component.states:
                    assert numbers[s] == values[list(component.states).index(s)]
                else:
                    worst = min(0.0 if pomdp.terminal.any() else np.inf, pomdp.reward[~pomdp.terminal].min())
                    assert numbers[s] <= worst / (1 - pomdp.discount)
                    assert all(numbers[s] < other.values.min() for other in policy.components)


APPL = """<?xml version="1.0" encoding="ISO-8859-1"?>
<!-- written by another tool -->
<Policy version="0.1" type="value" model="Tiger.pomdp" xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance">
<AlphaVector vectorLength="2" numObsValue="1" numVectors="2">
<Vector action="1" obsValue="0">-81.5972 28.4028 </Vector>
<SparseVector action="0" obsValue="0"><Entry>1 3.0147</Entry></SparseVector> </AlphaVector> </Policy>
"""


def test_files_of_other_tools_are_read(tmp_path):
    path = tmp_path / "tiger.policyx"
    path.write_text(APPL)
    (component,) = read_policyx(path, tiger()).components
    assert component.values.tolist() == [[-81.5972, 28.4028], [0.0, 3.0147]]
    assert component.actions.tolist() == [1, 0]
    assert read_policyx(path, tiger(), observe_initial=True).observe_initial


def test_vectors_of_other_tools_are_cut_to_every_component(tmp_path):
    model = mm.load_benchmark("example-1")
    path = tmp_path / "a.policyx"
    path.write_text(
        '<Policy><AlphaVector vectorLength="4"><Vector action="0">1 2 3 4</Vector>'
        '<Vector action="1">4 3 2 1</Vector></AlphaVector></Policy>'
    )
    policy = read_policyx(path, model)
    assert [component.states.tolist() for component in policy.components] == [[0, 1], [2, 3]]
    assert [component.values.tolist() for component in policy.components] == [
        [[1, 2], [4, 3]],
        [[3, 4], [2, 1]],
    ]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            'vectorLength="2"',
            'vectorLength="3"',
            ":4:1: vectorLength and numObsValue are 3 and 1; .* 2 and 1",
        ),
        ('vectorLength="2"', 'vectorLength="two"', ":4:1: vectorLength is 'two'"),
        ('numObsValue="1"', 'numObsValue="4"', ":4:1: .* are 2 and 4"),
        ('numVectors="2"', 'numVectors="3"', ":4:1: numVectors is 3, but there are 2"),
        ('action="1"', 'action="3"', ":5:1: action 3; the model has 3 actions"),
        ('action="1"', "", ":5:1: <Vector> has no action"),
        ('<Vector action="1" obsValue="0"', '<Vector action="1" obsValue="2"', ":5:1: obsValue is 2"),
        ("28.4028 ", "28.4028 1", ":5:1: a vector of 3 numbers; expected 2"),
        ("28.4028 ", "twenty", ":5:1: expected a finite number, found 'twenty'"),
        ("28.4028 ", "nan", ":5:1: expected a finite number, found 'nan'"),
        ("<Entry>1 3.0147", "<Entry>2 3.0147", ":6:39: position 2; there are 2"),
        ("<Entry>1 3.0147", "<Entry>1", ":6:39: an entry is"),
        ("<Entry>1 3.0147</Entry>", "<Vector/>", ":6:39: <Vector> has no place in <SparseVector>"),
        ("</AlphaVector>", "</AlphaVectors>", ":6:.*: .*not well-formed XML"),
        ("</Policy>", "", "not well-formed XML"),
        ('type="value"', 'type="graph"', ":3:1: not a policy of vectors"),
        ("<Policy ", "<!-- --><Policys ", "not well-formed XML"),
    ],
)
def test_mistakes_are_named_with_line_and_column(tmp_path, old, new, message):
    assert old in APPL
    path = tmp_path / "tiger.policyx"
    path.write_text(APPL.replace(old, new, 1))
    with pytest.raises(mm.FormatError, match="tiger.policyx.*" + message):
        read_policyx(path, tiger())


def test_other_files_are_refused(tmp_path):
    path = tmp_path / "a.policyx"
    for content, message in [
        (b"", "XML"),
        (b"discount: 0.95", "XML"),
        (b"<Policy/>", "has no <AlphaVector>"),
        (b"<Policy><AlphaVector/></Policy>", "no vector is for the state 'tiger left'"),
        (b"<pomdpx/>", ":1:1: not a policy of vectors"),
        (b'<!DOCTYPE Policy [<!ENTITY a "b">]><Policy/>', "entities"),
    ]:
        path.write_bytes(content)
        with pytest.raises(mm.FormatError, match=message):
            read_policyx(path, tiger())
    with pytest.raises(mm.FormatError, match="cannot be read"):
        read_policyx(tmp_path / "nothing.policyx", tiger())


def test_a_policy_of_another_model_does_not_fit(tmp_path):
    path = tmp_path / "a.policyx"
    write_policyx(random_policy(mm.load_benchmark("example-1"), 0), path)
    with pytest.raises(
        mm.FormatError, match=r":4:1: the vectors do not fit the model \(.*must be in one component"
    ):
        read_policyx(path, mm.load_benchmark("example-2-mar"))


def test_names_of_models_are_written_as_xml_can(tmp_path):
    model = mm.load_benchmark("example-1")
    odd = mm.MissMDP(model.mdp, model.missingness, name='a<b & "c"\x07\n')
    policy = random_policy(odd, 0)
    write_policyx(policy, tmp_path / "a.policyx")
    assert ET.parse(tmp_path / "a.policyx").getroot().get("model") == 'a<b & "c"  '
    assert_same_vectors(policy, read_policyx(tmp_path / "a.policyx", odd))


def test_tiger_is_written_as_other_tools_write_it(tmp_path):
    policy = mm.AlphaVectorPolicy(tiger(), [backed_up(tiger(), 1)])
    write_policyx(policy, tmp_path / "a.policyx")
    assert sorted(rows(tmp_path / "a.policyx")) == [
        (0, [-1.0, -1.0]),
        (1, [-100.0, 10.0]),
        (2, [10.0, -100.0]),
    ]
