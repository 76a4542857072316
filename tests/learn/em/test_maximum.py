"""What the iterations end at: against a general optimiser on the sum over all paths, and against themselves."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import optimize, special

import missmdp as mm
from missmdp.data.counts import as_counts
from missmdp.learn.blocks import Blocks
from missmdp.learn.em.histories import prepare_histories
from missmdp.learn.em.iterate import asmar_table, iterate, penalised, perturbed
from missmdp.learn.em.logistic import logistic_model
from missmdp.learn.em.structures import Factors, graph_factors, named_factors
from oracles.expectation import log_likelihood_by_paths
from strategies import random_mdp


def tiny(seed: int) -> tuple[mm.MissMDP, mm.Dataset]:
    """Return a miss-MDP with two binary features, of which the second censors itself, and a short log of it."""
    rng = np.random.default_rng(seed)
    mdp = random_mdp(rng, {"a": (0, 1), "b": (0, 1)}, 2, full=True)
    rates = rng.uniform(0.2, 0.8, size=4)
    model = mm.MissMDP(
        mdp,
        mm.MissingnessFunction.independent(
            mdp, {"a": float(rates[0]), "b": lambda s: float(rates[1 + s.b + (s.a and s.b)])}
        ),
    )
    return model, mm.collect(model, 60, seed=seed, horizon=4)


def factors_of(name: str, mdp: mm.FactoredMDP, blocks: Blocks) -> Factors:
    if name != "graph":
        return named_factors(mdp, blocks, name)
    graph = mm.MissingnessGraph([("b", "b"), ("a", "b")], can_go_missing=["a", "b"])
    return graph_factors(mdp, blocks, graph)


@pytest.mark.filterwarnings("ignore::missmdp.AssumptionWarning")
@pytest.mark.parametrize(
    ("name", "seed"),
    [
        *((name, seed) for name in ("mcar", "smar", "graph") for seed in range(2)),
        pytest.param("saturated", 0, marks=pytest.mark.slow),
        pytest.param("saturated", 1, marks=pytest.mark.slow),
    ],
)
def test_brute_force_maximum_likelihood(name, seed):
    """With no pseudo-counts, no M with the structure has a higher likelihood."""
    model, log = tiny(seed)
    blocks = Blocks.seen_in(model.mdp, as_counts(log).observed)
    assert len(blocks.names) == 2
    factors = factors_of(name, model.mdp, blocks)
    learner = mm.DynamicsEM(
        model.mdp,
        {"graph": mm.MissingnessGraph([("b", "b"), ("a", "b")], can_go_missing=["a", "b"])}.get(name, name),
        pseudo_count=0.0,
        lump=False,
        starts=4,
        tolerance=1e-12,
        max_iterations=20_000,
    )
    learner.fit(log)
    shapes = [(part.n_groups, part.n_outcomes) for part in factors.parts]

    def loss(free: np.ndarray) -> float:
        thetas, at = [], 0
        for groups, outcomes in shapes:
            size = groups * (outcomes - 1)
            logits = np.zeros((groups, outcomes))
            logits[:, 1:] = free[at : at + size].reshape(groups, outcomes - 1)
            thetas.append(special.softmax(logits, axis=1))
            at += size
        return -log_likelihood_by_paths(log, blocks.patterns, factors.table(thetas))

    size = sum(groups * (outcomes - 1) for groups, outcomes in shapes)
    rng = np.random.default_rng(seed)
    tries = [
        optimize.minimize(loss, rng.normal(size=size), method="L-BFGS-B", bounds=[(-25.0, 25.0)] * size)
        for _ in range(2)
    ]
    best = -min(one.fun for one in tries)
    assert learner.log_likelihood_ >= best - 1e-4
    # And it is a likelihood: the sum over paths under what was learned is the same number.
    table = np.stack(
        [
            sum(
                (
                    learner.missingness_.probabilities[:, k]
                    for k, own in enumerate(learner.missingness_.patterns)
                    if (own == pattern).all()
                ),
                np.zeros(model.n_states),
            )
            for pattern in blocks.patterns
        ]
    )
    assert learner.log_likelihood_ == pytest.approx(
        log_likelihood_by_paths(log, blocks.patterns, table), abs=1e-8
    )


@pytest.mark.parametrize("pseudo_count", [0.0, 1.0, 7.5])
@pytest.mark.parametrize("name", ["icu-mnar-unid", "predator-mnar-unid"])
def test_the_penalised_likelihood_never_falls(name, pseudo_count):
    truth = mm.load_benchmark(name)
    log = mm.collect(truth, 3000, seed=5)
    counts = as_counts(log)
    blocks = Blocks.seen_in(truth.mdp, counts.observed)
    histories = prepare_histories(log, blocks)
    prior = asmar_table(counts, blocks)
    visits = histories.expect(prior).counts.sum(axis=0)
    names = [truth.mdp.space.features.names] * len(blocks.names)
    models = [
        *(
            penalised(named_factors(truth.mdp, blocks, s), prior, visits, pseudo_count)
            for s in ("mcar", "smar", "saturated")
        ),
        penalised(graph_factors(truth.mdp, blocks, truth.mgraph()), prior, visits, pseudo_count),
        logistic_model(truth.mdp, blocks, names, prior, pseudo_count, order=1),
    ]
    start = perturbed(prior, np.random.default_rng(0))
    for model in models:
        fit = iterate(histories, model, start, max_iterations=40)
        assert min(np.diff(fit.trace), default=0.0) >= -1e-9 * abs(fit.trace[-1])
        assert np.allclose(fit.table.sum(axis=0), 1.0)


def renamed(
    model: mm.MissMDP, log: mm.Dataset, order: list[int], rng: np.random.Generator
) -> tuple[mm.FactoredMDP, mm.Dataset, np.ndarray]:
    """Return the same MDP and log with features in another order, and features and values called otherwise.

    The third is the old index of each new state.
    """
    features = model.mdp.space.features
    shuffles = [rng.permutation(len(features.values[place])) for place in order]
    fresh = {f"f{i}": [f"v{k}" for k in range(len(shuffle))] for i, shuffle in enumerate(shuffles)}
    inverse = [np.argsort(shuffle) for shuffle in shuffles]
    codes = np.stack([inverse[i][model.mdp.space.codes[:, place]] for i, place in enumerate(order)], axis=1)
    states = [tuple(f"v{k}" for k in row) for row in codes]
    mdp = mm.FactoredMDP(
        fresh,
        model.actions,
        list(model.mdp.transition),
        model.mdp.reward,
        model.mdp.initial,
        model.mdp.terminal,
        discount=model.mdp.discount,
        states=states,
    )
    seen = log.observations[:, order]
    told = np.stack(
        [np.where(seen[:, i] < 0, -1, inverse[i][np.maximum(seen[:, i], 0)]) for i in range(len(order))],
        axis=1,
    ).astype(np.int8)
    return mdp, mm.Dataset(mdp, told, log.actions, log.offsets, log.terminated), np.arange(model.n_states)


@pytest.mark.parametrize("structure", ["auto", "smar", "logistic"])
@pytest.mark.parametrize("name", ["icu-mnar-unid", "predator-mnar-unid"])
def test_names_and_order_do_not_matter(name, structure):
    truth = mm.load_benchmark(name)
    log = mm.collect(truth, 3000, seed=6)
    rng = np.random.default_rng(1)
    order = rng.permutation(len(truth.mdp.space.features.names)).tolist()
    mdp, told, _ = renamed(truth, log, order, rng)
    tolerance = 1e-6 if structure == "logistic" else 1e-10
    one = mm.DynamicsEM(truth.mdp, structure, starts=1, tolerance=tolerance).fit(log).missingness_
    other = mm.DynamicsEM(mdp, structure, starts=1, tolerance=tolerance).fit(told).missingness_
    back = mm.MissingnessFunction(truth.mdp.space, other.patterns[:, np.argsort(order)], other.probabilities)
    assert mm.total_variation(one, back).worst < 1e-3
