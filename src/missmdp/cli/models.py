"""From the word that a user typed to a model."""

from __future__ import annotations

import importlib
import os
import sys

from missmdp.benchmarks.registry import load_benchmark
from missmdp.errors import ModelError
from missmdp.model.missmdp import MissMDP

__all__ = ["load_model"]


def load_model(name: str) -> MissMDP:
    """Return the model that a benchmark's name, an `.mmdp` file or `module:function` stands for."""
    if name.lower().endswith(".mmdp"):
        return MissMDP.load(name)
    if ":" in name:
        return _from_function(name)
    try:
        return load_benchmark(name)
    except ModelError as error:
        raise ModelError(f"{error} (or give an .mmdp file or module:function)") from None


def _from_function(name: str) -> MissMDP:
    module_name, _, function_name = name.partition(":")
    sys.path.insert(0, os.getcwd())
    try:
        module = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        raise ModelError(
            f"{name}: there is no module {error.name!r} here or among the installed ones"
        ) from error
    except Exception as error:
        raise ModelError(f"{name}: importing {module_name} raised {type(error).__name__}: {error}") from error
    finally:
        sys.path.pop(0)
    function = getattr(module, function_name, None)
    if not callable(function):
        raise ModelError(f"{name}: {module_name} has no function {function_name!r}")
    try:
        model = function()
    except ModelError as error:
        raise ModelError(f"{name}: {error}") from error
    except Exception as error:
        raise ModelError(f"{name}: calling it raised {type(error).__name__}: {error}") from error
    if not isinstance(model, MissMDP):
        raise ModelError(f"{name}: expected it to return a MissMDP, got {type(model).__name__}")
    return model
