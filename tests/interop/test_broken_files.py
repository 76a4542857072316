"""Files that are broken in every way that came to mind: always a `FormatError` that says where, never anything else."""

import re

import numpy as np
import pytest

import missmdp as mm
from interop.factored_files import RandomFile
from interop.test_pomdp_reader import HEAD, LISTENER, TABLES, random_text
from interop.test_pomdpx_reader import ROVER
from missmdp.interop import read_model, read_pomdp, read_pomdpx, write_model

PLACE = r"model\.pomdpx?:\d+:\d+: "


def failure(tmp_path, name, content):
    """Return the message with which a file is refused."""
    path = tmp_path / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(mm.FormatError) as caught:
        read_model(path)
    return str(caught.value)


@pytest.mark.parametrize(
    ("text", "place", "message"),
    [
        ("", "1:1", "the file is empty"),
        ("# only a comment\n", "1:1", "the file is empty"),
        ("hello: 3", "1:1", "expected a statement such as"),
        (HEAD.replace("0.9", "1.0") + TABLES, "2:11", "must be in [0, 1), not 1; without discounting"),
        (HEAD.replace("0.9", "-0.5") + TABLES, "2:11", "must be in [0, 1), not -0.5"),
        (HEAD.replace("0.9", "") + TABLES, "3:1", "expected 1 numbers, found 0"),
        (HEAD.replace("0.9", "high") + TABLES, "2:11", "expected a number, found 'high'"),
        (HEAD.replace("reward", "rewards") + TABLES, "3:9", "`values:` must be `reward` or `cost`"),
        (HEAD.replace("states: dry wet flooded", "") + TABLES, "9:", "there is no `states:`"),
        (HEAD.replace("actions: wait pump", "") + TABLES, "9:", "there is no `actions:`"),
        (HEAD.replace("dry wet flooded", "") + TABLES, "5:1", "needs a number or a list of names"),
        (HEAD.replace("dry wet flooded", "0") + TABLES, "4:9", "must be 1 to 5,000,000, not 0"),
        (HEAD.replace("dry wet flooded", "9" * 30) + TABLES, "4:9", "must be 1 to 5,000,000"),
        (HEAD.replace("dry wet flooded", "5000000").replace("wait pump", "5000000"), "4:1", "are more than"),
        (HEAD.replace("dry wet flooded", "20000") + TABLES, "8:1", "numbers that are not zero, too many"),
        (HEAD.replace("dry wet flooded", "dry wet dry") + TABLES, "4:17", "'dry' is named twice"),
        (HEAD.replace("dry wet flooded", "1 2 3") + TABLES, "4:9", "cannot be a name"),
        (HEAD.replace("dry wet flooded", "dry -1.5") + TABLES, "4:13", "cannot be a name"),
        (HEAD + "states: 3" + TABLES, "7:1", "`states:` is given twice"),
        (HEAD + "start: 0.5 0.5" + TABLES, "8:1", "start: expected 3 numbers, found 2"),
        (HEAD + "start: 0.5 0.4 0.2" + TABLES, "7:1", "sum to 1.1, not 1"),
        (HEAD + "start: 1.5 -0.5 0" + TABLES, "7:8", "must be in [0, 1], not 1.5"),
        (HEAD + "start: nowhere" + TABLES, "7:8", "'nowhere' is not one of the states: dry, wet, flooded"),
        (HEAD + "start: 3" + TABLES, "", "start: expected 3 numbers"),
        (HEAD + "start include: dry sea" + TABLES, "7:20", "'sea' is not one of the states"),
        (HEAD + "start exclude: 0 1 2" + TABLES, "7:1", "every state is excluded"),
        (HEAD + "start:" + TABLES, "8:1", "`start:` is empty"),
        (HEAD + TABLES + "T: wait : dry : sea 0.5", "10:17", "'sea' is not one of the states"),
        (HEAD + TABLES + "T: 2 : dry : wet 0.5", "10:4", "'2' is not one of the actions: wait, pump"),
        (HEAD + TABLES + "T: wait : dry : wet -0.5", "10:21", "must be in [0, 1], not -0.5"),
        (HEAD + TABLES + "T: wait : dry : wet nan", "10:21", "expected a finite number, found 'nan'"),
        (HEAD + TABLES + "T: wait : dry : wet 1e999", "10:21", "expected a finite number"),
        (HEAD + TABLES + "T: wait : dry : wet 1_0", "10:21", "expected a finite number"),
        (HEAD + TABLES + "T: wait : dry : wet 0x1", "10:21", "expected a number"),
        (HEAD + TABLES + "T: wait : dry : wet", "10:20", "expected 1 numbers, found 0"),
        (HEAD + TABLES + "T: wait : dry : wet 0.5 0.5", "10:25", "expected 1 numbers, found 2"),
        (HEAD + TABLES + "T: wait : dry : wet : quiet 1", "10:23", "takes at most 3 fields"),
        (HEAD + TABLES + "T: wait : dry 0.5 0.5", "10:22", "expected 3 numbers, found 2"),
        (HEAD + TABLES + "T: wait 1 0 0 0 1 0", "10:20", "expected 9 numbers, found 6"),
        (HEAD + TABLES + "T:", "10:3", "the file ends where one of the actions"),
        (HEAD + TABLES + "T: wait :", "10:10", "the file ends where one of the states"),
        (HEAD + TABLES + "T: : dry", "10:4", "':' is not one of the actions"),
        (HEAD + TABLES + "T: wait : dry identity", "10:15", "expected a number, found 'identity'"),
        (HEAD + TABLES + "O: wait identity", "10:9", "identity needs as many observations as states"),
        (HEAD + TABLES + "O: wait : dry reset", "10:15", "expected a number, found 'reset'"),
        (
            HEAD + TABLES + "T: wait : dry 0.5 0.4 0.05",
            "10:1",
            "state 'dry', action 'wait': the probabilities sum to 0.95",
        ),
        (HEAD + TABLES + "\nO: * : wet : noisy 0.6\n", "11:1", "sum to 1.1, not 1 (and 1 more rows)"),
        (HEAD + "T: * uniform", "7:13", "observation of state 'dry', action 'wait': no `O:` gives this row"),
        (HEAD + TABLES + "R: wait -1", "10:9", "needs at least an action and a state"),
        (HEAD + TABLES + "R: wait : dry : dry : loud 1", "10:23", "'loud' is not one of the observations"),
        (HEAD + TABLES + "R: wait : dry : dry : quiet much", "10:29", "expected a number"),
        (HEAD + TABLES + "R: wait : dry : dry 1 2 3", "10:25", "expected 2 numbers, found 3"),
        (HEAD + TABLES + "R: wait : dry 1 2 3", "10:20", "expected 6 numbers, found 3"),
        (b"discount: 0.9\n\x00\x01\x02", "2:1", "zero byte"),
    ],
)
def test_mistakes_in_pomdp_files_are_named_with_their_place(tmp_path, text, place, message):
    error = failure(tmp_path, "model.pomdp", text)
    assert f"model.pomdp:{place}" in error
    assert re.search(PLACE, error)
    assert message in error


def test_the_line_that_wrote_a_row_last_is_named(tmp_path):
    text = (
        HEAD
        + TABLES
        + "T: pump : wet : dry 0.9\nT: pump : dry : dry 0.9\nT: pump : wet : wet 0.0\nO: * uniform\n"
    )
    error = failure(tmp_path, "model.pomdp", text)
    assert "model.pomdp:11:1: transition of state 'dry', action 'pump'" in error
    error = failure(tmp_path, "model.pomdp", text.replace("T: pump : dry : dry 0.9\n", "\n"))
    assert "model.pomdp:12:1: transition of state 'wet', action 'pump'" in error


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("</pomdpx>", "", "not well-formed XML"),
        ("<Discount>", "<Discount", "not well-formed XML"),
        ("<pomdpx version", "<model version", "not well-formed XML"),
        ("0.95", "1.0", "without discounting use one close to 1"),
        ("0.95", "nan", "must be a number in [0, 1)"),
        ("0.95", "", "must hold one word, not 0"),
        ("<Discount>0.95</Discount>", "", "<pomdpx> has no <Discount>"),
        ("<Discount>0.95</Discount>", "<Discount>0.95</Discount>" * 2, "has <Discount> twice"),
        ("<Discount>", "<Horizon>9</Horizon><Discount>", "<Horizon> has no place in <pomdpx>"),
        ('vnamePrev="place_0" ', "", '<StateVar> has no vnamePrev="…"'),
        ('vnamePrev="place_0"', 'vnamePrev="place_1"', "they must differ"),
        ('vname="move"', 'vname="rock_0"', "there is already a variable 'rock_0'"),
        ('fullyObs="true"', 'fullyObs="maybe"', 'fullyObs must be "true" or "false"'),
        ("<ValueEnum>west mid end</ValueEnum>", "", "needs one <ValueEnum> or one <NumValues>"),
        ("west mid end", "west mid mid", "the value 'mid' is listed twice"),
        ("west mid end", "west mid *", "cannot be a value"),
        ("west mid end", " ", "lists no values"),
        ("<NumValues>2", "<NumValues>0", "must be 1 to 5,000,000"),
        ("<NumValues>2", "<NumValues>99999999999", "must be 1 to 5,000,000"),
        ("<NumValues>2", "<NumValues>two", "must be 1 to 5,000,000, not 'two'"),
        ("<Var>place_0</Var>", "<Var>place_1</Var>", "'place_1' has no place in <InitialStateBelief>"),
        ("<Var>rock_0</Var>", "<Var>place_0</Var>", "has 'place_0' twice"),
        ("<Var>sensor</Var>", "<Var>sensor rock_1</Var>", "<Var> must hold one word, not 2"),
        (
            "<Parent>move place_0</Parent>",
            "<Parent>move sensor</Parent>",
            "'sensor' cannot be a parent of 'place_1'",
        ),
        (
            "<Parent>move rock_1</Parent>",
            "<Parent>move rock_0</Parent>",
            "'rock_0' cannot be a parent of 'sensor'",
        ),
        ("<Parent>move rock_1</Parent>", "<Parent>rock_1 rock_1</Parent>", "named twice"),
        ("0 1 0", "0 1", "expected 3 numbers, found 2"),
        ("0 1 0", "0 1 0 0", "expected 3 numbers, found 4"),
        ("0 1 0", "0 0.9 0", "P(place_0): the probabilities sum to 0.9, not 1"),
        ("0 1 0", "0 nan 0", "expected a finite number, found 'nan'"),
        ("0 1 0", "-1 2 0", "must be in [0, 1], not -1"),
        ("0 1 0", "identity", "needs `-` for one parent"),
        (
            "<Instance>* - -</Instance>",
            "<Instance>* - * -</Instance>",
            "expected 3 values (move place_0 place_1), found 4",
        ),
        (
            "<Instance>left mid west</Instance>",
            "<Instance>left mid east</Instance>",
            "'east' is not a value of place_1",
        ),
        (
            "<Instance>left mid west</Instance>",
            "<Instance>3 mid west</Instance>",
            "'3' is not a value of move",
        ),
        ("<ProbTable>1.0</ProbTable>", "<ValueTable>1.0</ValueTable>", "<Entry> has no <ProbTable>"),
        ("<ProbTable>1.0</ProbTable>", "<ProbTable>uniform</ProbTable>", "needs `-` as the last word"),
        ("<ProbTable>uniform</ProbTable>", "<ProbTable>uniform 1</ProbTable>", "must stand alone"),
        ("<Entry><Instance>left mid mid</Instance><ProbTable>0.0</ProbTable></Entry>", "", "sum to 2, not 1"),
        (
            "<Entry><Instance>* * -</Instance><ProbTable>1 0</ProbTable></Entry>",
            "",
            "no entry gives this row",
        ),
        ('<Parameter type="DD">', '<Parameter type="CONT">', 'is "TBL" or "DD", not \'CONT\''),
        ('<Edge val="mid">', '<Edge val="sea">', "'sea' is not a value of place_1"),
        ('idref="same"', 'idref="other"', "there is no <SubDAGTemplate id='other'>"),
        ('type="deterministic"', 'type="random"', "not 'random'"),
        ('<Node var="place_1">', '<Node var="sensor">', "neither the variable nor one of its parents"),
        (
            '<SubDAGTemplate id="same"><SubDAG type="persistent" var="rock_1"/>',
            '<SubDAGTemplate id="same"><SubDAG type="template" idref="same"/>',
            "does a template refer to itself?",
        ),
        ('<Edge val="mid"><SubDAG type="persistent" var="rock_1"/></Edge>', "", "no entry gives this row"),
        ("mid end *", "mid end", "expected 3 values (place_0 place_1 sensor), found 2"),
        (
            "<ValueTable>10</ValueTable>",
            "<ValueTable>ten</ValueTable>",
            "expected a finite number, found 'ten'",
        ),
        ("<Var>gain</Var>", "<Var>loss</Var>", "'loss' has no place in <RewardFunction>"),
        (
            '<RewardVar vname="gain"/>',
            '<RewardVar vname="gain"/><RewardVar vname="loss"/>',
            "no <Func> for 'loss'",
        ),
    ],
)
def test_mistakes_in_pomdpx_files_are_named_with_their_place(tmp_path, old, new, message):
    assert old in ROVER
    error = failure(tmp_path, "model.pomdpx", ROVER.replace(old, new, 1))
    assert re.search(PLACE, error)
    assert message in error


@pytest.mark.parametrize(
    "section", ["Variable", "InitialStateBelief", "StateTransitionFunction", "ObsFunction", "RewardFunction"]
)
def test_sections_that_are_missing_are_named(tmp_path, section):
    text = re.sub(rf"<{section}>.*</{section}>", "", ROVER, flags=re.DOTALL)
    assert f"<pomdpx> has no <{section}>" in failure(tmp_path, "model.pomdpx", text)


def test_variables_that_depend_on_each_other_are_named(tmp_path):
    table = """<CondProb><Var>place_1</Var><Parent>rock_1</Parent><Parameter>
     <Entry><Instance>* -</Instance><ProbTable>uniform</ProbTable></Entry></Parameter></CondProb>"""
    text = re.sub(r"<CondProb><Var>place_1.*?</CondProb>", table, ROVER, flags=re.DOTALL)
    error = failure(tmp_path, "model.pomdpx", text)
    assert "these variables depend on each other: place_1, rock_1" in error
    assert "model.pomdpx:19:3:" in error


def test_entities_are_refused(tmp_path):
    bomb = "<!DOCTYPE pomdpx [<!ENTITY a 'ha'>" + "".join(
        f"<!ENTITY {new} '{f'&{old};' * 10}'>" for old, new in zip("abcdefgh", "bcdefghi", strict=True)
    )
    text = ROVER[ROVER.index("<pomdpx") :]
    error = failure(tmp_path, "model.pomdpx", f"{bomb}]>{text.replace('A rover', '&i;')}")
    assert "model.pomdpx:1:" in error
    assert "it declares entities" in error
    (tmp_path / "secret.txt").write_text("0.95")
    outside = f"<!DOCTYPE pomdpx [<!ENTITY x SYSTEM 'file://{tmp_path}/secret.txt'>]>"
    assert "it declares entities" in failure(tmp_path, "model.pomdpx", outside + text.replace("0.95", "&x;"))


def test_files_that_cannot_be_read(tmp_path):
    (tmp_path / "folder.pomdp").mkdir()
    (tmp_path / "folder.pomdpx").mkdir()
    for name in ("folder.pomdp", "folder.pomdpx", "absent.pomdp", "absent.pomdpx"):
        with pytest.raises(mm.FormatError, match="cannot be read"):
            read_model(tmp_path / name)
    with pytest.raises(mm.FormatError, match="must end in .pomdp or .pomdpx"):
        read_model(tmp_path / "model.xml")
    with pytest.raises(mm.FormatError, match="must end in .pomdp or .pomdpx"):
        write_model(mm.load_benchmark("example-1"), tmp_path / "model.json")
    with pytest.raises(mm.FormatError, match="cannot be read"):
        read_pomdp("a\0b.pomdp")
    deep = "<pomdpx>" + "<a>" * 500 + "</a>" * 500 + "</pomdpx>"
    assert "nested more than 200 deep" in failure(tmp_path, "model.pomdpx", deep)
    assert "expected <pomdpx>, found <html>" in failure(tmp_path, "model.pomdpx", "<html/>")
    assert re.search(PLACE, failure(tmp_path, "model.pomdpx", bytes(range(256))))


def test_endings_may_be_in_capitals(tmp_path):
    model = mm.load_benchmark("example-1")
    for name in ("Model.POMDP", "Model.PomdpX"):
        write_model(model, tmp_path / name)
        assert read_model(tmp_path / name).n_states == 4


@pytest.mark.parametrize("seed", range(150))
def test_damaged_files_never_fail_in_another_way(tmp_path, seed):
    """Cut, double, delete or replace parts of correct files: they are read, or refused by a `FormatError`."""
    rng = np.random.default_rng(seed)
    for kind, reader in (("pomdp", read_pomdp), ("pomdpx", read_pomdpx)):
        text = {
            "pomdp": LISTENER if seed % 2 else random_text(rng),
            "pomdpx": ROVER if seed % 2 else RandomFile(rng).text,
        }[kind]
        for _ in range(4):
            path = tmp_path / f"model.{kind}"
            path.write_bytes(damaged(rng, text.encode()))
            message = str(path)
            try:
                reader(path)
            except mm.FormatError as error:
                message = str(error)
            assert message.startswith(str(path))


def damaged(rng, content):
    """Return bytes with a few random changes."""
    words = re.split(rb"(\s+|[<>:])", content)
    for _ in range(rng.integers(1, 4)):
        i, j = sorted(int(x) for x in rng.integers(len(words), size=2))
        match rng.integers(7):
            case 0:
                words = words[:i] + words[i + 1 :]
            case 1:
                words = words[:j] or [b""]
            case 2:
                words[i] = words[j]
            case 3:
                words = words[:i] + words[i : i + 5] + words[i:]
            case 4:
                words[i] = rng.choice(
                    [
                        b"nan",
                        b"-1",
                        b"*",
                        b"-",
                        b":",
                        b"99999999999",
                        b"0.3",
                        b"uniform",
                        b"T",
                        b"\xff",
                        b"&x;",
                    ]
                )
            case 5:
                words[i] = bytes(rng.integers(0, 256, size=3, dtype=np.uint8))
            case _:
                words = words[:i] + words[i + 3 :] or [b""]
    return b"".join(words)
