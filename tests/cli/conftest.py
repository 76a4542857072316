"""What the tests of commands share."""

import pytest
from click.testing import CliRunner

import missmdp as mm
from experiments import stand_in
from missmdp.cli.main import cli
from missmdp.plan.ppo.solver import PPO
from tiger import TIGER


@pytest.fixture
def run():
    """Run a command with arguments of any type, and give what it printed, how it ended, and the error behind that."""

    def invoke(*arguments):
        result = CliRunner().invoke(cli, [str(argument) for argument in arguments], prog_name="missmdp")
        if isinstance(result.exception, SystemExit):
            result.exception = result.exception.__cause__ or result.exception
        return result

    return invoke


@pytest.fixture
def tiger(tmp_path):
    path = tmp_path / "tiger.pomdp"
    path.write_text(TIGER)
    return path


@pytest.fixture
def ward(tmp_path):
    """A file with a model in which the prior's policy is worse than the optimal one: the sick are seldom tested."""
    mdp = mm.FactoredMDP(
        features={"infection": range(3)},
        actions=["wait", "treat"],
        transition=lambda state, action: (
            [((max(state.infection - 1, 0),), 0.9), (state, 0.1)]
            if action == "treat"
            else [((min(state.infection + 1, 2),), 0.3), (state, 0.7)]
        ),
        reward=lambda state, action: -5 * state.infection - 4 * (action == "treat"),
        initial={(0,): 0.5, (1,): 0.5},
        discount=0.95,
    )
    missing = mm.MissingnessFunction.independent(
        mdp, {"infection": lambda state: 0.1 if state[0] == 0 else 0.9}
    )
    mm.MissMDP(mdp, missing).save(tmp_path / "ward.mmdp")
    return tmp_path / "ward.mmdp"


@pytest.fixture
def model():
    return mm.load_benchmark("example-1")


@pytest.fixture
def trained_without_torch(monkeypatch):
    """Stand in for training; give the settings and seeds that it was asked for."""
    asked = []

    def train(self, model):
        asked.append((self.settings, self.seed))
        return stand_in.train(model, self.settings, self.seed)

    monkeypatch.setattr(PPO, "solve", train)
    monkeypatch.setattr("missmdp.experiments.baselines.require", lambda module: None)
    return asked
