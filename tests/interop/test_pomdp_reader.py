"""Reading `.pomdp` files: every construct of the grammar, against an oracle that fills dense tensors."""

import numpy as np
import pytest
from hypothesis import given

from missmdp.interop import read_pomdp
from oracles.pomdp_files import dense_pomdp
from strategies import seeds

HEAD = """
discount: 0.9
values: reward
states: dry wet flooded
actions: wait pump
observations: quiet noisy
"""
TABLES = """
T: * uniform
O: * uniform
"""
LISTENER = """
# Two doors, a tiger behind one of them.
discount : 0.75
values: reward
states: left right
actions: listen open-left open-right
observations: roar-left roar-right
T: listen
identity
T: open-left
uniform
T: open-right uniform
O: listen
0.8 0.2
0.2 0.8
O: open-left
uniform
O:open-right
uniform
R:listen:*:*:* -1
R: open-left : left : * : * -50
R: open-left : right : * : * 20
R: open-right : left : * : * 20
R: open-right : right : * : * -50
"""


@pytest.fixture
def read(tmp_path):
    def of(text):
        path = tmp_path / "model.pomdp"
        path.write_text(text)
        return read_pomdp(path)

    return of


def assert_means(model, text):
    """Compare a model with the oracle's reading of the same text."""
    dense = dense_pomdp(text)
    for a in range(model.n_actions):
        assert np.allclose(model.transition[a].toarray(), dense.transition[a], rtol=0, atol=1e-12)
        assert np.allclose(model.observation_of(a).toarray(), dense.observation[a], rtol=0, atol=1e-12)
    assert np.allclose(model.initial, dense.initial, rtol=0, atol=1e-12)
    assert np.allclose(model.reward, dense.reward, rtol=1e-12, atol=1e-12)
    assert model.discount == dense.discount


def test_a_small_file_is_read(read):
    model = read(LISTENER)
    assert_means(model, LISTENER)
    assert list(model.states) == ["left", "right"]
    assert list(model.actions) == ["listen", "open-left", "open-right"]
    assert model.reward.tolist() == [[-1, -50, 20], [-1, 20, -50]]
    assert model.initial.tolist() == [0.5, 0.5]
    assert len(model.observation) == 3
    assert not model.observe_initial
    assert not model.terminal.any()


@pytest.mark.parametrize(
    "body",
    [
        "T: wait identity O: * uniform T: pump uniform",
        "T: * identity O: 1 : 2 0.25 .75 O: * : * 1 0 O: pump : flooded : noisy 1e0 O: 1 : 2 : 0 0",
        "T: * uniform O: * uniform T: wait : dry : * 0 T: wait : dry : 1 1.0",
        "T: * uniform O: * uniform T: * : wet 0.5 0.25 0.25 T: pump : * 1 0 0 T: 1 : 2 : 2 +1.0 T: 1 : 2 : 0 0.0",
        "T: * : * : dry 1 O: * : * : 1 1",
        "T: * identity T: pump : wet reset O: * uniform O: wait : dry uniform",
        "T: * reset O: * uniform",
        "T: wait\n1 0 0\n0 .5 .5\n.25 .25 .5\nT: pump identity\nO: wait\n1 0\n0 1\n.5 .5\nO: pump uniform",
        "T:*uniform O:*:dry .5 .5 O:*:wet:* 0.5 O : * : flooded : quiet 0.5 O: * : flooded : noisy 0.5",
        "T: * : * : * 0.3333333333333333 O: * uniform",
        "T : wait : dry : wet 1 # a comment : with T: in it\nT: wait : wet : wet 1 T: * : 2 : 2 1\n"
        "T: 1:0:0 1 T: 1:1:1 1 O: * uniform",
    ],
)
@pytest.mark.parametrize("start", ["", "start: 0.5 0.25 .25", "start: wet", "start: 2", "start: uniform"])
def test_tables_mean_what_they_say(read, body, start):
    text = HEAD + start + "\n" + body
    assert_means(read(text), text)


@pytest.mark.parametrize(
    ("start", "expected"),
    [
        ("start include: wet", [0, 1, 0]),
        ("start include : dry 2", [0.5, 0, 0.5]),
        ("start exclude: dry", [0, 0.5, 0.5]),
        ("start exclude: 1 flooded", [1, 0, 0]),
        ("start: 0.2\n0.3 # here\n0.5", [0.2, 0.3, 0.5]),
        ("start: 0 1 0", [0, 1, 0]),
    ],
)
def test_all_forms_of_start(read, start, expected):
    assert read(HEAD + start + TABLES).initial.tolist() == expected


@pytest.mark.parametrize(
    "rules",
    [
        "R: * : * : * : * 2",
        "R: wait : dry : wet : quiet 3 R: * : * : flooded : * -7.5",
        "R: * : * : * : * 1 R: pump : wet : * : * 4 R: pump : wet : dry : noisy -1",
        "R: pump : wet : dry : noisy -1 R: * : * : * : * 1",
        "R: wait : dry : wet 5 6 R: pump : dry 1 2 3 4 5 6 R: pump : dry : flooded : * 0",
        "R: * : * : dry 1 -1 R: * : wet : * : noisy 9 R: 1 : * : * : 0 - 2",
        "R: * : * 1 2 3 4 5 6 R: * : 0 : 0 : 0 100 R: * : * : 2 0 0",
        "R: wait : dry : * 1 2 R: wait : * : wet : * 8 R: wait : dry : * : quiet 3 R: * : * : * : noisy + 1",
        "R: wait : dry : * : * 1 R: wait : * : * : * 2 R: wait : dry : wet : * 3",
    ],
)
@pytest.mark.parametrize("values", ["reward", "cost"])
def test_layers_of_rewards_are_averaged(read, rules, values):
    text = HEAD.replace("reward", values) + (
        "T: * uniform T: wait : dry 0 0.25 0.75 T: pump identity O: * uniform O: * : wet 0.9 0.1 O: pump : dry 0 1\n"
    )
    assert_means(read(text + rules), text + rules)


def test_rewards_by_state_and_action_are_not_rounded(read):
    """ρ(s, a) as written: the probabilities, which sum to one only up to rounding, do not touch it."""
    text = HEAD + "T: * : * 0.1 0.2 0.7 O: * : * 0.1 0.9 R: * : * : * : * 0.1 R: pump : wet : * : * 0.3"
    assert read(text).reward.tolist() == [[0.1, 0.1], [0.1, 0.3], [0.1, 0.1]]


@given(seeds())
def test_random_files_mean_the_same_to_the_oracle(tmp_path_factory, seed):
    text = random_text(np.random.default_rng(seed))
    path = tmp_path_factory.mktemp("random") / "model.pomdp"
    path.write_text(text)
    assert_means(read_pomdp(path), text)


def random_text(rng):
    """Return a file with statements in random forms, ended by rows where what they say is no distribution."""
    S, A, Z = rng.integers(1, 5, size=3)
    names = {kind: [f"{kind}{i}" for i in range(n)] for kind, n in (("s", S), ("a", A), ("z", Z))}

    def one(kind):
        i = int(rng.integers(len(names[kind])))
        return str(rng.choice(["*", names[kind][i], str(i)]))

    def numbers(n, form):
        own = rng.dirichlet(np.ones(n)) if form == "row" else rng.integers(-4, 5, size=n) / 2
        return " ".join(repr(float(x)) for x in own)

    def table(letter, kind, width):
        match rng.integers(6):
            case 0:
                return f"{letter}: {one('a')} uniform"
            case 1:
                return f"{letter}: {one('a')} : {one('s')} " + ("reset" if letter == "T" else "uniform")
            case 2:
                return f"{letter}: {one('a')} : {one('s')}\n{numbers(width, 'row')}"
            case 3:
                return f"{letter}: {one('a')}\n" + "\n".join(numbers(width, "row") for _ in range(S))
            case 4 if letter == "T":
                return f"T: {one('a')} identity"
            case _:
                return f"{letter}: {one('a')} : {one('s')} : {one(kind)} {rng.random():.3f}"

    def reward():
        match rng.integers(4):
            case 0:
                return f"R: {one('a')} : {one('s')}\n" + numbers(S * Z, "any")
            case 1:
                return f"R: {one('a')} : {one('s')} : {one('s')}\n" + numbers(Z, "any")
            case _:
                return f"R: {one('a')} : {one('s')} : {one('s')} : {one('z')} {numbers(1, 'any')}"

    head = [
        "discount: 0.9",
        f"values: {rng.choice(['reward', 'cost'])}",
        *(
            f"{word}: {' '.join(names[word[0] if word != 'observations' else 'z'])}"
            for word in ("states", "actions")
        ),
        f"observations: {' '.join(names['z'])}",
    ]
    rng.shuffle(head)
    body = [table("T", "s", S) for _ in range(rng.integers(1, 8))]
    body += [table("O", "z", Z) for _ in range(rng.integers(1, 8))]
    body += [reward() for _ in range(rng.integers(0, 8))]
    rng.shuffle(body)
    text = "\n".join([*head, *body])
    dense = dense_pomdp(text)
    for letter, tensor, width in (("T", dense.transition, S), ("O", dense.observation, Z)):
        for a, s in np.argwhere(np.abs(tensor.sum(axis=2) - 1.0) > 1e-9):
            text += f"\n{letter}: {a} : {s} {numbers(width, 'row')}"
    return text


def test_counts_give_numbers_as_labels_and_the_order_of_the_head_is_free(read):
    text = "observations: 2\nactions: 1\nvalues: reward\nstates: 3\nT: 0 identity O: * uniform\ndiscount: 0.5"
    model = read(text)
    assert [list(model.states), list(model.actions), list(model.observations)] == [[0, 1, 2], [0], [0, 1]]
    assert model.initial.tolist() == [1 / 3] * 3


def test_states_that_are_absorbing_without_rewards_are_terminal(read):
    text = HEAD + "T: * identity T: pump : dry 0 1 0 O: * uniform R: wait : wet : * : * 1"
    assert read(text).terminal.tolist() == [False, False, True]


def test_equal_observations_are_one_matrix(read):
    assert len(read(HEAD + TABLES).observation) == 1
    assert len(read(HEAD + TABLES + "O: pump : dry 1 0").observation) == 2


def test_rows_with_six_digits_are_scaled(read):
    model = read(HEAD + TABLES + "T: wait : dry 0.333333 0.333333 0.333333")
    assert model.transition[0][[0]].sum() == pytest.approx(1.0, abs=1e-15)


def test_names_may_be_words_of_the_grammar_where_that_is_clear(read):
    text = "discount: 0.9\nstates: T start\nactions: R\nobservations: O\n"
    text += "T: R : T : start 1 T: R : start : start 1 O: * uniform"
    assert read(text).transition[0].toarray().tolist() == [[0, 1], [0, 1]]


def test_large_sparse_rewards_do_not_make_a_dense_tensor(read):
    """Wildcards over 400 states and 300 observations, with one reward per state and one per observation."""
    n, z = 400, 300
    lines = [f"discount: 0.9 states: {n} actions: 2 observations: {z} T: * identity O: * uniform"]
    lines += [f"R: * : * : * : {k} {k}" for k in range(z)]
    lines += [f"R: 0 : {s} : * : * {s}" for s in range(n)]
    model = read("\n".join(lines))
    assert model.reward[:, 0].tolist() == list(range(n))
    assert np.allclose(model.reward[:, 1], (z - 1) / 2)
