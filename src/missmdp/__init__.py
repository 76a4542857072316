"""Decisions when part of the state goes missing.

Everything public is here; it is loaded when first used, so that `import missmdp` is quick.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from missmdp._version import __version__
from missmdp.interop.gymnasium_ids import announce as _announce_to_gymnasium

if TYPE_CHECKING:
    from missmdp.benchmarks.registry import list_benchmarks, list_examples, load_benchmark
    from missmdp.data.binning import Binning
    from missmdp.data.collect import collect
    from missmdp.data.counts import ObservationCounts
    from missmdp.data.coverage import Coverage, behaviour_coverage
    from missmdp.data.dataset import Dataset
    from missmdp.data.description.describe import describe
    from missmdp.data.description.description import Description
    from missmdp.data.validation import DataReport, validate
    from missmdp.errors import (
        AssumptionWarning,
        DataError,
        FormatError,
        ImpossibleObservation,
        MissingExtra,
        MissMDPError,
        ModelError,
    )
    from missmdp.evaluation.certificate.certificate import Certificate
    from missmdp.evaluation.certificate.certify import certify
    from missmdp.evaluation.certificate.plan_data import DataPlan, plan_data
    from missmdp.evaluation.certificate.value_interval import ValueInterval, value_interval
    from missmdp.evaluation.compare import (
        Comparison,
        Difference,
        NormalisedValue,
        compare,
        normalised_value,
    )
    from missmdp.evaluation.distance import TotalVariation, total_variation
    from missmdp.evaluation.heldout import HeldOutScore, held_out_likelihood
    from missmdp.evaluation.likelihood import LogLikelihood, log_likelihood
    from missmdp.evaluation.sensitivity import SensitivityRow, sensitivity
    from missmdp.evaluation.value import Evaluation, evaluate
    from missmdp.experiments.reproduce.config import ReproduceConfig
    from missmdp.experiments.reproduce.runner import Reproduction, reproduce
    from missmdp.experiments.run.pipeline import run
    from missmdp.experiments.run.result import RunResult
    from missmdp.experiments.run.settings import RunSettings
    from missmdp.learn.aimi import AIMI
    from missmdp.learn.asmar import AMCAR, AsMAR
    from missmdp.learn.base import CountingEstimator, MissingnessEstimator
    from missmdp.learn.bounds import Bound, GroupBound
    from missmdp.learn.diagnosis.diagnose import diagnose
    from missmdp.learn.diagnosis.result import Diagnosis
    from missmdp.learn.em.estimator import DynamicsEM
    from missmdp.learn.histories_needed import SampleSize, histories_needed
    from missmdp.learn.icin import ICIN
    from missmdp.learn.identifiability.check import identifiability
    from missmdp.learn.identifiability.result import Identifiability
    from missmdp.learn.registry import forget_learner, register_learner
    from missmdp.model.belief import (
        initial_belief,
        initial_belief_ignorable,
        update_belief,
        update_belief_ignorable,
    )
    from missmdp.model.mdp import FactoredMDP
    from missmdp.model.mgraph import MissingnessGraph
    from missmdp.model.missingness import MissingnessFunction
    from missmdp.model.missmdp import MissMDP, fully_observed_model, prior_model
    from missmdp.model.policy import Agent, BlindPolicy, ObservationPolicy, Policy, UniformPolicy
    from missmdp.model.pomdp import POMDP
    from missmdp.model.space import MISSING
    from missmdp.model.types import MissingnessTypes
    from missmdp.plan.alpha import AlphaVectorPolicy
    from missmdp.plan.base import SolveResult
    from missmdp.plan.finite.controller import FiniteController
    from missmdp.plan.load import load_policy
    from missmdp.plan.pomcp.policy import POMCPPolicy
    from missmdp.plan.pomcp.solver import POMCP, POMCPResult
    from missmdp.plan.ppo.policy import PPOPolicy
    from missmdp.plan.ppo.result import PPOResult
    from missmdp.plan.ppo.settings import PPOSettings
    from missmdp.plan.ppo.solver import PPO
    from missmdp.plan.sarsop.solver import Sarsop

_HOME = {
    "missmdp.benchmarks.registry": ("list_benchmarks", "list_examples", "load_benchmark"),
    "missmdp.data.binning": ("Binning",),
    "missmdp.data.collect": ("collect",),
    "missmdp.data.counts": ("ObservationCounts",),
    "missmdp.data.coverage": ("Coverage", "behaviour_coverage"),
    "missmdp.data.dataset": ("Dataset",),
    "missmdp.data.description.describe": ("describe",),
    "missmdp.data.description.description": ("Description",),
    "missmdp.data.validation": ("DataReport", "validate"),
    "missmdp.errors": (
        "AssumptionWarning",
        "DataError",
        "FormatError",
        "ImpossibleObservation",
        "MissMDPError",
        "MissingExtra",
        "ModelError",
    ),
    "missmdp.evaluation.certificate.certificate": ("Certificate",),
    "missmdp.evaluation.certificate.certify": ("certify",),
    "missmdp.evaluation.certificate.plan_data": ("DataPlan", "plan_data"),
    "missmdp.evaluation.certificate.value_interval": ("ValueInterval", "value_interval"),
    "missmdp.evaluation.compare": (
        "Comparison",
        "Difference",
        "NormalisedValue",
        "compare",
        "normalised_value",
    ),
    "missmdp.evaluation.distance": ("TotalVariation", "total_variation"),
    "missmdp.evaluation.heldout": ("HeldOutScore", "held_out_likelihood"),
    "missmdp.evaluation.likelihood": ("LogLikelihood", "log_likelihood"),
    "missmdp.evaluation.sensitivity": ("SensitivityRow", "sensitivity"),
    "missmdp.evaluation.value": ("Evaluation", "evaluate"),
    "missmdp.experiments.reproduce.config": ("ReproduceConfig",),
    "missmdp.experiments.reproduce.runner": ("Reproduction", "reproduce"),
    "missmdp.experiments.run.pipeline": ("run",),
    "missmdp.experiments.run.result": ("RunResult",),
    "missmdp.experiments.run.settings": ("RunSettings",),
    "missmdp.learn.aimi": ("AIMI",),
    "missmdp.learn.asmar": ("AMCAR", "AsMAR"),
    "missmdp.learn.em.estimator": ("DynamicsEM",),
    "missmdp.learn.base": ("CountingEstimator", "MissingnessEstimator"),
    "missmdp.learn.bounds": ("Bound", "GroupBound"),
    "missmdp.learn.diagnosis.diagnose": ("diagnose",),
    "missmdp.learn.diagnosis.result": ("Diagnosis",),
    "missmdp.learn.icin": ("ICIN",),
    "missmdp.learn.registry": ("forget_learner", "register_learner"),
    "missmdp.learn.identifiability.check": ("identifiability",),
    "missmdp.learn.identifiability.result": ("Identifiability",),
    "missmdp.learn.histories_needed": ("SampleSize", "histories_needed"),
    "missmdp.model.belief": (
        "initial_belief",
        "initial_belief_ignorable",
        "update_belief",
        "update_belief_ignorable",
    ),
    "missmdp.model.mdp": ("FactoredMDP",),
    "missmdp.model.mgraph": ("MissingnessGraph",),
    "missmdp.model.missingness": ("MissingnessFunction",),
    "missmdp.model.missmdp": ("MissMDP", "fully_observed_model", "prior_model"),
    "missmdp.model.policy": ("Agent", "BlindPolicy", "ObservationPolicy", "Policy", "UniformPolicy"),
    "missmdp.model.pomdp": ("POMDP",),
    "missmdp.model.space": ("MISSING",),
    "missmdp.model.types": ("MissingnessTypes",),
    "missmdp.plan.alpha": ("AlphaVectorPolicy",),
    "missmdp.plan.base": ("SolveResult",),
    "missmdp.plan.finite.controller": ("FiniteController",),
    "missmdp.plan.load": ("load_policy",),
    "missmdp.plan.pomcp.policy": ("POMCPPolicy",),
    "missmdp.plan.pomcp.solver": ("POMCP", "POMCPResult"),
    "missmdp.plan.ppo.policy": ("PPOPolicy",),
    "missmdp.plan.ppo.result": ("PPOResult",),
    "missmdp.plan.ppo.settings": ("PPOSettings",),
    "missmdp.plan.ppo.solver": ("PPO",),
    "missmdp.plan.sarsop.solver": ("Sarsop",),
}
"""Module → the public names in it."""

_MODULE_OF = {name: module for module, names in _HOME.items() for name in names}

__all__ = [
    "AIMI",
    "AMCAR",
    "ICIN",
    "MISSING",
    "POMCP",
    "POMDP",
    "PPO",
    "Agent",
    "AlphaVectorPolicy",
    "AsMAR",
    "AssumptionWarning",
    "Binning",
    "BlindPolicy",
    "Bound",
    "Certificate",
    "Comparison",
    "CountingEstimator",
    "Coverage",
    "DataError",
    "DataPlan",
    "DataReport",
    "Dataset",
    "Description",
    "Diagnosis",
    "Difference",
    "DynamicsEM",
    "Evaluation",
    "FactoredMDP",
    "FiniteController",
    "FormatError",
    "GroupBound",
    "HeldOutScore",
    "Identifiability",
    "ImpossibleObservation",
    "LogLikelihood",
    "MissMDP",
    "MissMDPError",
    "MissingExtra",
    "MissingnessEstimator",
    "MissingnessFunction",
    "MissingnessGraph",
    "MissingnessTypes",
    "ModelError",
    "NormalisedValue",
    "ObservationCounts",
    "ObservationPolicy",
    "POMCPPolicy",
    "POMCPResult",
    "PPOPolicy",
    "PPOResult",
    "PPOSettings",
    "Policy",
    "ReproduceConfig",
    "Reproduction",
    "RunResult",
    "RunSettings",
    "SampleSize",
    "Sarsop",
    "SensitivityRow",
    "SolveResult",
    "TotalVariation",
    "UniformPolicy",
    "ValueInterval",
    "__version__",
    "behaviour_coverage",
    "certify",
    "collect",
    "compare",
    "describe",
    "diagnose",
    "evaluate",
    "forget_learner",
    "fully_observed_model",
    "held_out_likelihood",
    "histories_needed",
    "identifiability",
    "initial_belief",
    "initial_belief_ignorable",
    "list_benchmarks",
    "list_examples",
    "load_benchmark",
    "load_policy",
    "log_likelihood",
    "normalised_value",
    "plan_data",
    "prior_model",
    "register_learner",
    "reproduce",
    "run",
    "sensitivity",
    "total_variation",
    "update_belief",
    "update_belief_ignorable",
    "validate",
    "value_interval",
]


def __getattr__(name: str) -> Any:
    if name in _MODULE_OF:
        value = getattr(importlib.import_module(_MODULE_OF[name]), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module 'missmdp' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__


_announce_to_gymnasium()
