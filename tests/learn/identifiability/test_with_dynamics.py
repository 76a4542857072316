"""T, b₀ and M unknown: closed forms, and ranks against exact differences of the law of all histories."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from scipy import optimize

import missmdp as mm
from learn.identifiability.small_models import graph_of, iid, narrow_problem, random_problem
from missmdp.learn.identifiability.check import as_structure
from missmdp.learn.identifiability.dynamics_structures import any_dynamics, learned_dynamics
from missmdp.learn.identifiability.possible_observations import possible_observations
from missmdp.learn.identifiability.same_law import others_along
from oracles.joint_laws import any_dynamics as any_free
from oracles.joint_laws import joint_jacobian, joint_law, joint_rank
from oracles.observation_laws import random_point


def chain(stay=(0.7, 0.8), start=0.5, values=(0, 1), name="x"):
    """Return a chain of one feature with two values and one action."""
    matrix = np.array([[stay[0], 1.0 - stay[0]], [1.0 - stay[1], stay[1]]])
    return mm.FactoredMDP({name: values}, ["wait"], [matrix], 0.0, np.array([1.0 - start, start]))


def small_problem(seed):
    """Return one to two features of two or three values, some transitions impossible, and a structure."""
    rng = np.random.default_rng([seed, 5])
    sizes = [(2, 1), (3, 1), (2, 2)][int(rng.integers(3))]
    n, n_actions = int(np.prod(sizes)), int(rng.integers(1, 3))
    kind = int(rng.integers(4))
    rows = rng.dirichlet(np.full(n, 2.0), size=(n_actions, n))
    if kind == 1:
        rows[:, :] = rows[:1, :1]
    if kind == 2:
        rows = rows[:, rng.integers(2, size=n)]
    if kind == 3:
        rows = rows * (rng.random(rows.shape) < 0.6) + 0.05 * np.eye(n)
        rows /= rows.sum(axis=2, keepdims=True)
    initial = rows[0, 0] if kind == 1 else rng.dirichlet(np.full(n, 2.0))
    terminal = (rng.random(n) < 0.3) & (np.arange(n) > 0) if rng.random() < 0.3 else None
    mdp = mm.FactoredMDP(
        {"x": range(sizes[0]), "y": range(sizes[1])}, range(n_actions), list(rows), 0.0, initial, terminal
    )
    names = ["x", "y"] if sizes[1] > 1 else ["x"]
    edges = [(a, b) for a in names for b in names if rng.random() < 0.6]
    match int(rng.integers(3)):
        case 0:
            return mdp, as_structure(mdp, "saturated", [[name] for name in names])
        case 1:
            return mdp, as_structure(mdp, "mcar", [[name] for name in names])
        case _:
            graph = mm.MissingnessGraph(edges, features=["x", "y"], can_go_missing=names)
            return mdp, as_structure(mdp, graph, None)


def check_rank(mdp, factors, horizon, seed=0):
    answer = mm.identifiability(mdp, factors, transitions="unknown", horizon=horizon)
    rank, count = joint_rank(mdp, factors, random_point(factors, seed), horizon)
    assert answer.n_parameters == count
    assert answer.rank == rank
    if answer.identified or answer.locally:
        assert rank == count
    if rank < count:
        assert not answer.locally
        assert "open" in answer.describe()
    return answer


@pytest.mark.parametrize("seed", range(24))
def test_the_rank_is_that_of_exact_differences(seed):
    check_rank(*small_problem(seed), horizon=1 + seed % 2)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 220))
def test_many_ranks_are_those_of_exact_differences(seed):
    check_rank(*small_problem(seed), horizon=1 + seed % 2)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(8))
def test_ranks_of_larger_models_are_those_of_exact_differences(seed):
    check_rank(*(random_problem if seed % 2 else narrow_problem)(seed), horizon=1)


def test_gaps_by_chance_are_identified():
    """P(x₁ seen | x₀ = s) = T(· | s) (1 − m) and m is how often x is missing: four numbers, all determined."""
    for mdp in (chain(), chain((0.4, 0.6), 0.6)):
        answer = mm.identifiability(mdp, "mcar", transitions="unknown")
        assert (answer.identified, answer.rank, answer.n_parameters) == (True, 4, 4)
        assert answer.dynamics.missingness
        assert answer.dynamics.initial
        assert answer.dynamics.features == {"x": True}
        assert "simple MAR" in answer.describe()


def test_self_censoring_with_an_unknown_t():
    """G(x′ | x) = T(x′ | x) (1 − m(x′)) is seen, and 1 = Σ_x′ G(x′ | x) / (1 − m(x′)) for x = 0, 1 and at the start.

    These are three equations for two numbers, and two of them are independent unless x has no memory.
    """
    answer = mm.identifiability(chain(), "saturated", transitions="unknown")
    assert (answer.identified, answer.globally, answer.locally) == (True, True, True)
    assert answer.rank == answer.n_parameters == 5
    assert "shadow variable" in answer.describe()
    # Another start is enough.
    assert mm.identifiability(chain((0.4, 0.6), 0.5), "saturated", transitions="unknown").identified


def test_self_censoring_without_memory_is_a_shift_of_t():
    """The same equation three times: one number stays open, and M and T can only move together."""
    mdp = chain((0.4, 0.6), 0.6)
    answer = mm.identifiability(mdp, "saturated", transitions="unknown")
    assert (answer.identified, answer.globally, answer.locally) == (False, False, False)
    assert (answer.rank, answer.n_parameters) == (4, 5)
    assert "Others, close by, were found that share it" in str(answer)
    dynamics = answer.dynamics
    assert (dynamics.missingness, dynamics.initial, dynamics.features) == (False, False, {"x": False})
    assert dynamics.confounded == ("x",)
    assert "A shift of T(x) or b₀ can equal a change in how x hides itself" in str(answer)
    # With T known, the same M is identified.
    assert mm.identifiability(mdp, "saturated").identified


@pytest.mark.parametrize("stay", [(0.7, 0.8), (0.3, 0.6)])
def test_what_is_identified_has_no_other_solution(stay):
    """T, b₀ and a self-censoring M that have the law of z₀ z₁, from many starts: only the truth has it."""
    mdp = chain(stay, 0.4)
    assert mm.identifiability(mdp, "saturated", transitions="unknown").identified
    factors = as_structure(mdp, "saturated", None)
    patterns = factors.blocks.patterns

    def of(chances):
        gaps, t, first = chances[:2], chances[2:4], chances[4]
        table = factors.table([np.stack([1.0 - gaps, gaps], axis=1)])
        return joint_law(
            mdp, [np.stack([1.0 - t, t], axis=1)], np.array([1.0 - first, first]), table, patterns, 1
        )

    truth = np.array([0.2, 0.5, 1.0 - stay[0], stay[1], 0.4])
    rng = np.random.default_rng(0)
    found = 0
    for _ in range(10):
        solved = optimize.least_squares(
            lambda chances: of(chances) - of(truth),
            rng.uniform(0.05, 0.95, size=5),
            bounds=(1e-3, 1.0 - 1e-3),
            xtol=1e-15,
            ftol=1e-15,
            gtol=1e-15,
        )
        if np.abs(solved.fun).max() < 1e-10:
            found += 1
            assert solved.x == pytest.approx(truth, abs=1e-6)
    assert found >= 3


def test_longer_histories_help():
    """Two rows of T for nine states or more: single steps leave open what the future of a gap says."""
    mdp, factors = narrow_problem(7)
    ranks = [mm.identifiability(mdp, factors, transitions="unknown", horizon=h).rank for h in (1, 2, None)]
    assert ranks == sorted(ranks)


def test_known_dynamics_are_asked_about_as_before():
    for seed in (0, 1, 2):
        mdp, factors = random_problem(seed)
        plain = mm.identifiability(mdp, factors)
        known = mm.identifiability(mdp, factors, transitions="known", horizon=2)
        assert str(plain) == str(known)
        assert plain.dynamics is None
        # What is determined with T unknown is determined with T known.
        unknown = mm.identifiability(mdp, factors, transitions="unknown", horizon=2)
        assert not unknown.locally or plain.locally
        left = unknown.n_parameters - unknown.rank
        assert left >= plain.n_parameters - plain.rank


def test_no_self_censoring_and_no_colluder_identify_t_too():
    graph = graph_of([("x", "y")], dependent=[])
    for mdp in (iid(), iid(independent=True)):
        answer = mm.identifiability(mdp, graph, transitions="unknown")
        assert answer.identified
        assert "no colluder" in str(answer)
        rank, count = joint_rank(
            mdp, as_structure(mdp, graph, None), random_point(as_structure(mdp, graph, None), 0), 1
        )
        assert rank == count


def factored(seed=3, drift=True):
    """Return x and y with next values that depend on x and the action, and on y alone; T as products."""
    rng = np.random.default_rng(seed)
    of_x = rng.dirichlet([2.0, 2.0], size=(2, 2)) if drift else np.tile(rng.dirichlet([2.0, 2.0]), (2, 2, 1))
    of_y = rng.dirichlet([2.0, 2.0, 2.0], size=3)
    matrices = [np.einsum("xi,yj->xyij", of_x[a], of_y).reshape(6, 6) for a in range(2)]
    initial = rng.dirichlet(np.full(6, 3.0))
    return mm.FactoredMDP({"x": range(2), "y": range(3)}, ["a", "b"], matrices, 0.0, initial), of_x, of_y


def by_tables(mdp, of_x, of_y):
    """Return T and b₀ as functions of the free entries of the tables: y whatever the action, in each action's table."""

    def raised(by):
        xs, ys, first = of_x.copy(), np.stack([of_y, of_y]), mdp.initial.copy()
        for place, own in zip(np.ndindex(2, 2), by[:4], strict=True):
            xs[place] += [-own, own]
        for (a, y, v), own in zip(np.ndindex(2, 3, 2), by[4:16], strict=True):
            ys[a, y, v + 1] += own
            ys[a, y, 0] -= own
        first[1:] += by[16:]
        first[0] -= by[16:].sum()
        return [np.einsum("xi,yj->xyij", xs[a], ys[a]).reshape(6, 6) for a in range(2)], first

    return 4 + 12 + 5, raised


@pytest.mark.parametrize("drift", [True, False])
@pytest.mark.parametrize(
    "edges", [[("x", "x")], [("x", "x"), ("y", "x")], [("x", "x"), ("y", "y"), ("x", "y")]]
)
def test_parents_are_a_structure_of_t(edges, drift):
    mdp, of_x, of_y = factored(drift=drift)
    graph = graph_of(edges)
    factors = as_structure(mdp, graph, None)
    for horizon in (1, 2):
        answer = mm.identifiability(mdp, graph, transitions={"x": "x", "y": ["y"]}, horizon=horizon)
        rank, count = joint_rank(mdp, factors, random_point(factors, 1), horizon, by_tables(mdp, of_x, of_y))
        assert (answer.rank, answer.n_parameters) == (rank, count)


def test_what_is_always_seen_is_determined_whatever_m_is():
    mdp, _, _ = factored(drift=False)
    hiding = mm.MissingnessGraph([("x", "x"), ("y", "x")], features=["x", "y"], can_go_missing=["x"])
    answer = mm.identifiability(mdp, hiding, transitions={"x": [], "y": "y"})
    assert answer.dynamics.features["y"]
    assert "y is always seen" in str(answer)
    with pytest.raises(mm.ParameterError, match="next value of 'y' depends on more than 'x'"):
        mm.identifiability(mdp, hiding, transitions={"x": "x", "y": "x"})


def test_names_and_order_do_not_matter():
    mdp, of_x, of_y = factored()
    renamed = mm.FactoredMDP(
        {"ward": ["p", "q", "r"], "Fever": [True, False]},
        ["b", "a"],
        [np.einsum("xi,yj->yxji", of_x[a][::-1, ::-1], of_y).reshape(6, 6) for a in (1, 0)],
        0.0,
        mdp.initial.reshape(2, 3)[::-1].T.reshape(-1),
    )
    for edges in ([("x", "x")], [("x", "x"), ("y", "x"), ("x", "y"), ("y", "y")]):
        other = {"x": "Fever", "y": "ward"}
        graph = mm.MissingnessGraph(
            [(other[a], other[b]) for a, b in edges],
            features=["ward", "Fever"],
            can_go_missing=["Fever", "ward"],
        )
        for parents in ("unknown", {"x": ["x", "y"], "y": ["y"]}):
            theirs = (
                parents
                if isinstance(parents, str)
                else {other[name]: [other[p] for p in own] for name, own in parents.items()}
            )
            one = mm.identifiability(mdp, graph_of(edges), transitions=parents)
            two = mm.identifiability(renamed, graph, transitions=theirs)
            assert (one.identified, one.locally, one.rank) == (two.identified, two.locally, two.rank)
            assert {other[n]: known for n, known in one.dynamics.features.items()} == two.dynamics.features


def test_what_a_policy_never_does_is_open():
    mdp, _, _ = factored()
    answer = mm.identifiability(mdp, "mcar", transitions="unknown", policy=mm.BlindPolicy({"a": 1.0}))
    assert answer.identified is False
    assert answer.dynamics.open_pairs == {"x": 6, "y": 6}
    assert answer.dynamics.missingness
    assert "no theorem was applied" in str(answer)


def test_a_learner_is_asked_about_what_it_found():
    mdp = chain((0.8, 0.7))
    gaps = mm.MissingnessFunction.independent(mdp, {"x": lambda s: 0.2 + 0.3 * s.x})
    log = mm.collect(mm.MissMDP(mdp, gaps), 2_000, horizon=20, seed=0)
    graph = mm.MissingnessGraph([("x", "x")])
    learner = mm.JointEM(graph, {"x": "x"}, discount=0.9, reward=0.0, progress=False).fit(log)
    answer = mm.identifiability(learner)
    assert answer.dynamics.structure == "T as it was learned"
    assert answer.identified
    given = mm.identifiability(learner.miss_mdp_, graph, transitions={"x": "x"})
    assert (answer.rank, answer.n_parameters) == (given.rank, given.n_parameters)
    assert mm.identifiability(learner, transitions="known").dynamics is None
    assert "found in the data" in str(answer)
    partly = mm.JointEM(
        graph,
        discount=0.9,
        reward=0.0,
        known={"x": lambda s, _: {0: 0.8, 1: 0.2} if s.x == 0 else None},
        progress=False,
    ).fit(log)
    assert mm.identifiability(partly).n_parameters == answer.n_parameters - 1
    assert mm.identifiability(learner, graph, transitions="unknown").n_parameters == given.n_parameters


def test_an_open_direction_at_almost_every_point():
    """Three values, no memory by structure: two distributions, of b₀ and T, for three odds of going missing."""
    row = np.array([0.2, 0.3, 0.5])
    mdp = mm.FactoredMDP({"x": range(3)}, ["wait"], [np.tile(row, (3, 1))], 0.0, np.array([0.4, 0.4, 0.2]))
    answer = mm.identifiability(mdp, "saturated", transitions={"x": []})
    assert (answer.identified, answer.locally) == (False, False)
    assert (answer.rank, answer.n_parameters) == (6, 7)
    assert answer.dynamics.evidence.for_good
    assert "leaves 1 of 7 probabilities open" in str(answer)


@pytest.mark.parametrize("seed", [18, 27, 41, 113])
def test_others_with_the_same_law_have_it(seed):
    """Found by linear algebra on forward vectors; here all histories of four observations are compared."""
    mdp, factors = small_problem(seed)
    assert mm.identifiability(mdp, factors, transitions="unknown").dynamics.evidence.moves
    seen = possible_observations(mdp, factors.blocks.patterns, None)
    known = np.outer(~mdp.terminal & mdp.reachable, np.ones(mdp.n_actions, dtype=bool))
    point = random_point(factors, 1)
    n_gaps, n_dynamics = factors.n_parameters(mdp.reachable), any_free(mdp)[0]
    rng = np.random.default_rng(0)
    open_ = np.linalg.qr(rng.normal(size=(n_gaps + n_dynamics, 1)))[0]
    # A direction at random is none that is open.
    assert others_along(factors, point, mdp.reachable, any_dynamics(mdp), seen, known, open_) is None
    jacobian = joint_jacobian(mdp, factors, point, 2)
    _, size, basis = np.linalg.svd(jacobian)
    open_ = basis[int((size > 1e-9 * size[0]).sum()) :].T
    one, other = others_along(factors, point, mdp.reachable, any_dynamics(mdp), seen, known, open_)
    laws = [
        joint_law(mdp, *written_out(place.moving, mdp), place.tangent.table, factors.blocks.patterns, 3)
        for place in (one, other)
    ]
    assert laws[0] == pytest.approx(laws[1], abs=1e-11)
    assert np.abs(one.tangent.table - other.tangent.table).max() > 1e-3


def written_out(moving, mdp):
    matrices = [np.eye(mdp.n_states) for _ in range(mdp.n_actions)]
    for s, a in {*zip(moving.entries.before.tolist(), moving.entries.action.tolist(), strict=True)}:
        matrices[a][s] = 0.0
    for s, a, t, value in zip(
        moving.entries.before, moving.entries.action, moving.entries.after, moving.entries.value, strict=True
    ):
        matrices[a][s, t] = value
    first = np.zeros(mdp.n_states)
    first[moving.starts] = moving.start_value
    return matrices, first


def test_logistic_structures_have_ranks_too():
    mdp, _, _ = factored()
    answer = mm.identifiability(mdp, "logistic", blocks=[["x"]], transitions="unknown")
    assert (answer.identified, answer.locally) == (None, True)
    assert "Whether quite different ones share it is open" in str(answer)
    assert "hidden Markov models" in str(answer)


def test_nothing_goes_missing():
    answer = mm.identifiability(chain(), mm.MissingnessGraph([], features=["x"]), transitions="unknown")
    assert answer.identified
    assert answer.n_parameters == 3
    assert "frequencies show that part of T" in str(answer)


@pytest.mark.parametrize(("memory", "expected"), [(1e-3, True), (1e-8, None), (0.0, False)])
def test_almost_no_memory_cannot_be_told(memory, expected):
    """The next value hardly depends on this one: in between, the rank is a matter of rounding."""
    mdp = chain((0.4 + memory, 0.6), 0.6)
    answer = mm.identifiability(mdp, "saturated", transitions="unknown")
    assert answer.locally is expected
    assert answer.identified is expected
    assert ("rounding" in str(answer)) is (expected is None)


def test_what_is_too_large_is_refused(monkeypatch):
    monkeypatch.setattr("missmdp.learn.identifiability.open_directions._MOST_PARAMETERS", 3)
    with pytest.raises(
        mm.ModelError, match=r"4 free .* too many to say which are identified \(at most 3\); give T"
    ):
        mm.identifiability(chain((0.4, 0.6), 0.6), "saturated", transitions={"x": []})
    monkeypatch.setattr("missmdp.learn.identifiability.open_directions._MOST_NUMBERS_OPEN", 10)
    iids = iid()
    with pytest.raises(mm.ModelError, match="too many to follow; give T"):
        mm.identifiability(iids, "saturated", blocks=[["x"], ["y"]], transitions="unknown")


def test_learned_trees_have_the_right_derivatives():
    """T̂ as products of chances: raised chances against differences, and against rows that add up to one."""
    truth = mm.load_benchmark("predator-mnar-unid")
    log = mm.collect(truth, 3_000, seed=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", mm.AssumptionWarning)
        learner = mm.JointEM(truth.mgraph(), discount=0.9, reward=0.0, progress=False).fit(log)
    made = learned_dynamics(learner.mdp_, learner.fit_.dynamics, learner.fit_.parameters.dynamics)
    rng = np.random.default_rng(0)
    for moving in (made.here(), made.elsewhere(rng)):
        entries = moving.entries
        row = entries.action * learner.mdp_.n_states + entries.before
        sums = np.bincount(row, entries.value)[np.unique(row)]
        assert sums == pytest.approx(np.ones(len(sums)))
        assert moving.start_value.sum() == pytest.approx(1.0)
        for change, label in ((moving.change, row), (moving.start_change, 0 * moving.starts)):
            _, number = np.unique(label, return_inverse=True)
            add = np.zeros((int(number.max()) + 1, change.shape[1]))
            np.add.at(add, number, change.toarray())
            assert np.abs(add).max() < 1e-9
    by = 1e-6 * rng.normal(size=made.here().n_parameters)
    up, down = made.raised(by), made.raised(-by)
    assert (up.entries.value - down.entries.value) / 2.0 == pytest.approx(made.here().change @ by, abs=1e-13)
    assert (up.start_value - down.start_value) / 2.0 == pytest.approx(
        made.here().start_change @ by, abs=1e-13
    )


WRONG = [
    (lambda: mm.identifiability(chain()), "structure"),
    (lambda: mm.identifiability(chain(), "mcar", transitions="trees"), "transitions must be"),
    (lambda: mm.identifiability(chain(), "mcar", transitions={}), "transitions"),
    (lambda: mm.identifiability(chain(), "mcar", transitions={"x": "z"}), "transitions"),
    (lambda: mm.identifiability(chain(), "mcar", transitions={"x": 3}), "transitions"),
    (lambda: mm.identifiability(None, graph_of([]), transitions="unknown"), "without an MDP"),
]


@pytest.mark.parametrize(("question", "message"), WRONG)
def test_wrong_questions_are_refused(question, message):
    with pytest.raises(mm.ParameterError, match=message):
        question()


def test_too_many_histories_are_drawn_at_random(monkeypatch):
    """What is determined stays so; that something is open is then not claimed for good."""
    mdp, factors = narrow_problem(7)
    whole = mm.identifiability(mdp, factors, transitions="unknown", horizon=3)
    monkeypatch.setattr("missmdp.learn.identifiability.open_directions._MOST_NUMBERS", 2_000)
    some = mm.identifiability(mdp, factors, transitions="unknown", horizon=3)
    assert some.rank <= whole.rank
    if some.rank < some.n_parameters:
        assert not some.dynamics.evidence.complete
        assert some.locally is None
        assert "Only some histories" in str(some)
