import os
from dataclasses import fields, replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from missmdp.errors import DataError, FormatError
from missmdp.experiments.reproduce.config import PROFILES, SIZES, ReproduceConfig, profile

CONFIGS = st.builds(
    ReproduceConfig,
    benchmarks=st.just(("icu-smar", "predator-mcar")),
    sizes=st.lists(st.integers(1, 10**7), unique=True, max_size=4),
    runs=st.integers(1, 50),
    value_sizes=st.lists(st.integers(1, 10**7), unique=True, max_size=3),
    episodes=st.integers(2, 10**6),
    precision=st.floats(0.0, 1.0),
    max_trials=st.none() | st.integers(0, 100),
    solve_timeout=st.none() | st.floats(0.0, 1e6),
    fully_observed=st.booleans(),
    seed=st.integers(0, 2**63),
    only=st.just({}) | st.just({"icu-smar": {"max_trials": 3, "sizes": (5, 6)}}),
)


@given(CONFIGS)
def test_what_is_written_is_read_again(tmp_path_factory, config):
    path = tmp_path_factory.mktemp("config") / "config.toml"
    config.save(path)
    assert ReproduceConfig.load(path) == config


@pytest.mark.parametrize("name", PROFILES)
def test_profiles_survive_a_file(tmp_path, name):
    profile(name).save(tmp_path / "config.toml")
    assert ReproduceConfig.load(tmp_path / "config.toml") == PROFILES[name]


def test_the_paper_profile_is_the_papers_grid():
    config = profile("paper")
    assert (
        config.sizes
        == config.value_sizes
        == (10, 50, 100, 500, 1000, 5000, 10**4, 10**5, 10**6, 10**7)
        == SIZES
    )
    assert (config.runs, config.value_runs, config.episodes, config.precision) == (20, 20, 2000, 1e-3)
    assert (config.solve_timeout, config.baseline_timeout) == (180.0, 300.0)
    assert config.max_trials is None
    assert (config.tree_queries, config.ppo_steps) == (1000, 10**6)


@pytest.mark.parametrize("name", ["smoke", "small"])
def test_profiles_that_must_come_out_the_same_are_limited_by_trials(name):
    for benchmark in profile(name).benchmarks:
        own = profile(name).of(benchmark)
        assert own.solve_timeout is own.baseline_timeout is None
        assert None not in (own.max_trials, own.optimal_trials, own.prior_trials)


def test_a_file_changes_what_it_names_and_nothing_else(tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text('runs = 3\nmax_trials = "none"\n[only.icu-smar]\nepisodes = 2500\n')
    base = PROFILES["smoke"]
    config = ReproduceConfig.load(path, base)
    assert config == replace(base, runs=3, max_trials=None, only={"icu-smar": {"episodes": 2500}})
    assert config.of("icu-smar").episodes == 2500
    assert config.of("predator-smar").episodes == base.episodes


@pytest.mark.parametrize(
    ("settings", "word"),
    [
        ({"benchmarks": ["icu"]}, "no benchmark 'icu'"),
        ({"benchmarks": []}, "at least one"),
        ({"learners": ["asmar"]}, "AsMAR"),
        ({"baselines": ["optimal"]}, "normalised"),
        ({"baselines": ["optimal", "prior", "dqn"]}, "dqn"),
        ({"sizes": 100}, "a list"),
        ({"sizes": [100, 100]}, "twice"),
        ({"sizes": [0]}, "integer from 1"),
        ({"runs": 2.5}, "integer"),
        ({"runs": None}, "needed"),
        ({"episodes": 1}, "two"),
        ({"value_runs": 3}, "baseline_seeds"),
        ({"precision": -1.0}, "precision"),
        ({"precision": float("nan")}, "precision"),
        ({"fully_observed": "yes"}, "True or False"),
        ({"seed": -1}, "seed"),
        ({"only": {"icu": {}}}, "no benchmark 'icu'"),
        ({"only": {"icu-smar": {"seed": 1}}}, "cannot differ"),
        ({"only": {"icu-smar": {"runs": 0}}}, "runs"),
        ({"only": 3}, "per benchmark"),
        ({"colour": "red"}, "no setting 'colour'"),
    ],
)
def test_what_cannot_be_is_said(settings, word):
    with pytest.raises(DataError, match=word):
        ReproduceConfig.from_dict(settings)


@pytest.mark.parametrize("content", [b"runs = ", b"\xff\xfe", None])
def test_a_file_that_is_no_configuration(tmp_path, content):
    path = tmp_path / "config.toml"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(FormatError, match=r"config\.toml"):
        ReproduceConfig.load(path)


def test_every_field_has_a_help_text():
    assert all(known.metadata["help"] for known in fields(ReproduceConfig))


@pytest.mark.parametrize(
    "content",
    [
        b"seed = " + b"9" * 5_000,
        b"seed = 9" + b"9" * 4_000,
        b"seed = 0x" + b"f" * 100_000,
        b"seed = " + b"[" * 20_000,
        b"only = {icu-smar = 5}",
        b"only = {icu-smar = [1]}",
        b"only = 5",
        b'only = {icu-smar = {runs = "x"}}',
        b"only.icu-smar.only.icu-smar.runs = 1",
        b"seed = 1\nseed = 2",
        b"\xff\xfes",
        b"runs = 1e999",
        b"episodes = 1" + b"0" * 400,
        b"precision = nan",
        b"benchmarks = [{a = 1}]",
        b"sizes = [1979-05-27]",
        b"sizes = [true]",
        b"fully_observed = 1",
        b"#" * (2 * 2**20),
    ],
    ids=lambda content: content[:24].decode(errors="replace"),
)
def test_a_file_that_is_no_configuration_is_refused_in_one_line(content, tmp_path):
    path = tmp_path / "mine.toml"
    path.write_bytes(content)
    with pytest.raises((FormatError, DataError), match=r"mine\.toml: ") as caught:
        ReproduceConfig.load(path)
    assert "\n" not in str(caught.value)


@pytest.mark.skipif(not Path("/dev/zero").exists(), reason="there are no such devices")
def test_what_never_ends_is_not_read(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for path in ("/dev/zero", tmp_path / "pipe", tmp_path):
        with pytest.raises(FormatError, match="cannot be read"):
            ReproduceConfig.load(path)
