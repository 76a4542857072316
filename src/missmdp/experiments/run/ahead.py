"""Kernels compiled ahead: on a new machine, a second process begins with those that a run needs last."""

from __future__ import annotations

from contextlib import AbstractContextManager

from missmdp._kernels import second
from missmdp._kernels.sarsop.exploring import refine_entries
from missmdp.benchmarks.registry import load_benchmark
from missmdp.data.collect import collect
from missmdp.evaluation.certificate.certify import certify
from missmdp.evaluation.compare import compare
from missmdp.learn.asmar import AsMAR
from missmdp.model.policy import UniformPolicy
from missmdp.plan.sarsop import ready
from missmdp.plan.sarsop.solver import Sarsop


def compiling_ahead() -> AbstractContextManager[None]:
    """Return what lets a second process compile while the first steps of a run go on."""
    return second.compiling(f"{__name__}.compile_ahead", refine_entries)


def compile_ahead() -> None:
    """Compile the kernels of the solver, and then those that evaluate what it finds."""
    ready.compile_from_the_end()
    ready.exercise()
    model = load_benchmark("example-1")
    learner = AsMAR().fit(collect(model, 50, seed=0))
    solved = Sarsop(max_trials=1, progress=False).solve(model.with_missingness(learner.missingness_))
    policies = {"learned": solved.policy, "random": UniformPolicy()}
    compare(policies, model, 2, 0, reference="random", control_variate=True, progress=False)
    certify(solved, learner, timeout=0.0, progress=False)
