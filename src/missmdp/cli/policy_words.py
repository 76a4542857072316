"""From the words that a user typed to policies: which ones, under which names, and what stands in files."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import click

from missmdp.experiments.baselines import BASELINES, MadePolicy
from missmdp.model.missmdp import MissMDP
from missmdp.model.pomdp import POMDP
from missmdp.plan.alpha import AlphaVectorPolicy
from missmdp.plan.finite.controller import FiniteController
from missmdp.plan.ppo.policy import PPOPolicy

__all__ = ["POLICY_FILES", "AskedPolicy", "asked_policies", "read_policy"]

POLICY_FILES = (".mmpolicy", ".policyx")


@dataclass(frozen=True)
class AskedPolicy:
    """A policy as it was asked for: one of the baselines, or a file."""

    name: str
    baseline: str | None = None
    path: Path | None = None


def asked_policies(words: Sequence[str]) -> list[AskedPolicy]:
    """Return what the words say.

    Raises
    ------
    click.UsageError
        If a word is neither a baseline nor a policy's file, or two policies have one name.
    """
    asked = [_asked(word) for word in words]
    names = [policy.name for policy in asked]
    for i, policy in enumerate(asked):
        if policy.name in names[:i]:
            raise click.UsageError(
                f"two policies are called {policy.name!r}; name one of them, as in --policy "
                f"other={policy.path or policy.baseline}"
            )
    return asked


def _asked(word: str) -> AskedPolicy:
    if word in BASELINES:
        return AskedPolicy(word, baseline=word)
    name, equals, rest = word.partition("=")
    if equals and not Path(word).exists():
        if not name or not rest:
            raise click.UsageError(f"--policy {word}: expected NAME=FILE")
        if rest in BASELINES:
            return AskedPolicy(name, baseline=rest)
        return AskedPolicy(name, path=_file(rest))
    return AskedPolicy(Path(word).stem, path=_file(word))


def _file(word: str) -> Path:
    path = Path(word)
    if path.suffix.lower() not in POLICY_FILES:
        raise click.UsageError(
            f"there is no policy {word!r}; there are {', '.join(BASELINES)}, and files that end in "
            f"{' or '.join(POLICY_FILES)}"
        )
    if not path.is_file():
        raise click.UsageError(f"{path}: there is no such file")
    return path


def read_policy(path: Path, model: MissMDP | POMDP) -> MadePolicy:
    """Return the policy in a file.

    Raises
    ------
    FormatError
        If the file is damaged, or not for such a model.
    """
    from missmdp.interop.pomdpx.policyx import read_policyx
    from missmdp.plan.load import load_policy

    policy = read_policyx(path, model) if path.suffix.lower() == ".policyx" else load_policy(path)
    return MadePolicy(
        policy,
        kind="file",
        how=f"from {path}: {_words(policy)}",
        settings={"file": str(path), "sha256": hashlib.sha256(path.read_bytes()).hexdigest()},
    )


def _words(policy: AlphaVectorPolicy | FiniteController | PPOPolicy) -> str:
    if isinstance(policy, AlphaVectorPolicy):
        return f"{policy.n_vectors:,} α-vectors"
    if isinstance(policy, FiniteController):
        return f"a policy graph of {policy.n_nodes:,} nodes"
    return f"a network, {'with' if policy.memory else 'without'} memory"
