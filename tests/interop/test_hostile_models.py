"""Models and policies of other tools that are made to do harm: one line with the place, soon, and little memory."""

import pytest

import missmdp as mm
from missmdp.interop.pomdp.reader import read_pomdp
from missmdp.interop.pomdpx.policyx import read_policyx
from missmdp.interop.pomdpx.reader import read_pomdpx
from tiger import TIGER

LONG = "9" * 5_000
ZEROS = "0" * 5_000

POMDPS = {
    "a state of many digits": TIGER.replace("T: listen", f"T: listen : {LONG}\nT: listen"),
    "an action of many digits": TIGER + f"\nR: {LONG} : * : * : * 1\n",
    "an observation of zeros": TIGER + f"\nR: listen : * : * : {ZEROS} 1\n",
    "start of many digits": TIGER.replace("discount: 0.95", f"discount: 0.95\nstart: {LONG}"),
    "many states": TIGER.replace("states: ", f"states: {LONG}\n# "),
    "a discount of many digits": TIGER.replace("discount: 0.95", f"discount: {LONG}"),
    "a reward that overflows": TIGER + "\nR: listen : * : * : * 1e999\n",
    "a reward of many digits": TIGER + f"\nR: listen : * : * : * {LONG}\n",
}


@pytest.mark.parametrize("name", POMDPS)
def test_pomdp_files_that_are_too_much(tmp_path, name):
    path = tmp_path / "x.pomdp"
    path.write_text(POMDPS[name])
    with pytest.raises(mm.FormatError, match=r"x\.pomdp:\d+:\d+: ") as caught:
        read_pomdp(path)
    assert "\n" not in str(caught.value)


VARIABLES = """<Variable>
<StateVar vnamePrev="s_0" vnameCurr="s_1">{states}</StateVar>
<ActionVar vname="a"><ValueEnum>go</ValueEnum></ActionVar>
<RewardVar vname="r"/>
</Variable>"""
UNIFORM = "<Entry><Instance>-</Instance><ProbTable>uniform</ProbTable></Entry>"
STAY = "<Entry><Instance>- * -</Instance><ProbTable>{}</ProbTable></Entry>"
REWARD = "<Entry><Instance>*</Instance><ValueTable>{}</ValueTable></Entry>"


def pomdpx(states="<NumValues>2</NumValues>", moves=None, reward=None, **more):
    kind = more.get("kind", "TBL")
    moves, reward = moves or STAY.format("identity"), reward or REWARD.format("1")
    return f"""<?xml version="1.0"?><pomdpx version="1.0">
<Discount>{more.get("discount", "0.9")}</Discount>
{more.get("variables", VARIABLES.format(states=states))}
<InitialStateBelief><CondProb><Var>s_0</Var><Parent>null</Parent>
<Parameter type="TBL">{UNIFORM}</Parameter></CondProb></InitialStateBelief>
<StateTransitionFunction><CondProb><Var>s_1</Var><Parent>s_0 a</Parent>
<Parameter type="{kind}">{moves}</Parameter></CondProb></StateTransitionFunction>
<RewardFunction><Func><Var>r</Var><Parent>s_0</Parent>
<Parameter type="TBL">{reward}</Parameter></Func></RewardFunction>
</pomdpx>"""


def twice(k):
    """Return a template that leads to the next one twice, and so to 2ᵏ ways in all."""
    edge = f'<Edge val="s0"><SubDAG type="template" idref="t{k + 1}"/></Edge>'
    return f'<SubDAGTemplate id="t{k}"><Node var="s_0">{edge}{edge}</Node></SubDAGTemplate>'


BLOW_UP = (
    '<DAG><SubDAG type="template" idref="t0"/></DAG>'
    + "".join(map(twice, range(60)))
    + '<SubDAGTemplate id="t60"><Node var="s_0"/></SubDAGTemplate>'
)
MANY = "".join(
    f'<StateVar vnamePrev="x{i}_0" vnameCurr="x{i}_1"><NumValues>1</NumValues></StateVar>'
    for i in range(5_000)
)
POMDPXS = {
    "many values": pomdpx(states=f"<NumValues>{LONG}</NumValues>"),
    "a large identity": pomdpx(states="<NumValues>100000</NumValues>"),
    "a large table": pomdpx(states="<NumValues>100000</NumValues>", moves=STAY.format("uniform")),
    "a reward that overflows": pomdpx(reward=REWARD.format("1e999")),
    "a reward of many digits": pomdpx(reward=REWARD.format(LONG)),
    "a discount of many digits": pomdpx(discount=LONG),
    "nested elements": "<pomdpx>" + "<a>" * 100_000,
    "a value of many digits": pomdpx(reward=REWARD.replace("*", LONG).format("1")),
    "ways that lead nowhere": pomdpx(moves=BLOW_UP, kind="DD"),
    "a template in itself": pomdpx(
        moves='<DAG><SubDAG type="template" idref="t"/></DAG>'
        '<SubDAGTemplate id="t"><SubDAG type="template" idref="t"/></SubDAGTemplate>',
        kind="DD",
    ),
    "many variables": pomdpx(variables=f"<Variable>{MANY}</Variable>"),
}


def test_the_sample_is_a_model(tmp_path):
    (tmp_path / "x.pomdpx").write_text(pomdpx())
    assert read_pomdpx(tmp_path / "x.pomdpx").n_states == 2


@pytest.mark.parametrize("name", POMDPXS)
def test_pomdpx_files_that_are_too_much(tmp_path, name):
    path = tmp_path / "x.pomdpx"
    path.write_text(POMDPXS[name])
    with pytest.raises(mm.FormatError, match=r"x\.pomdpx:\d+:\d+: ") as caught:
        read_pomdpx(path)
    assert "\n" not in str(caught.value)


POLICY = """<?xml version="1.0"?><Policy version="0.1" type="value">
<AlphaVector vectorLength="{length}" numObsValue="1" numVectors="{count}">
<{tag} action="{action}" obsValue="{seen}">{vector}</{tag}></AlphaVector></Policy>"""
POLICIES = {
    "a length of many digits": {"length": LONG},
    "a count of many digits": {"count": LONG},
    "an action of many digits": {"action": LONG},
    "a negative action": {"action": "-1"},
    "an observation of many digits": {"seen": LONG},
    "a value that overflows": {"vector": "1e999 0"},
    "a value of many digits": {"vector": f"{LONG} 0"},
    "an underscore": {"vector": "1_0 0"},
    "a position of many digits": {"tag": "SparseVector", "vector": f"<Entry>{LONG} 1</Entry>"},
    "a position of zeros": {"tag": "SparseVector", "vector": f"<Entry>{ZEROS} 1</Entry>"},
}


@pytest.mark.parametrize("name", POLICIES)
def test_policyx_files_that_are_too_much(tmp_path, name):
    (tmp_path / "tiger.pomdp").write_text(TIGER)
    model = read_pomdp(tmp_path / "tiger.pomdp")
    path = tmp_path / "x.policyx"
    usual = {"length": "2", "count": "1", "action": "0", "seen": "0", "vector": "1 0", "tag": "Vector"}
    path.write_text(POLICY.format(**usual))
    assert read_policyx(path, model).n_vectors == 1
    path.write_text(POLICY.format(**usual | POLICIES[name]))
    with pytest.raises(mm.FormatError, match=r"x\.policyx:\d+:\d+: ") as caught:
        read_policyx(path, model)
    assert "\n" not in str(caught.value)
