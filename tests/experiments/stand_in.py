"""A trainer that needs no torch: a network whose weights are drawn with the trial's seed."""

from itertools import pairwise

import numpy as np

from missmdp.plan.ppo.policy import Layer, PPOPolicy
from missmdp.plan.ppo.solver import PPO, PPOResult, TrainingCurve


def result_of(policy, settings, seed, status="trained"):
    nothing = np.empty(0)
    return PPOResult(
        policy=policy,
        curve=TrainingCurve(nothing.astype(np.int64), nothing, nothing.astype(np.int64)),
        steps=settings.steps,
        seconds=0.25,
        environment_seconds=0.0,
        status=status,
        settings=settings,
        seed=seed,
    )


def drawn_network(model, settings, seed):
    """Return an untrained network of the trial's architecture."""
    encoder = PPO.from_settings(settings).encoder(model)
    random = np.random.default_rng(seed)
    sizes = [encoder.size, *[settings.units] * settings.layers, model.n_actions]
    layers = [
        Layer(random.normal(size=(n_in, n_out)) / np.sqrt(n_in), random.normal(size=n_out))
        for n_in, n_out in pairwise(sizes)
    ]
    return PPOPolicy(model.actions, layers, encoder, settings=settings)


def train(model, settings, seed):
    return result_of(drawn_network(model, settings, seed), settings, seed)
