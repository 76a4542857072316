"""From the word that a user typed to a model."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from types import ModuleType

from missmdp.benchmarks.registry import load_benchmark
from missmdp.errors import ModelError
from missmdp.model.missmdp import MissMDP

__all__ = ["load_model"]


def load_model(name: str) -> MissMDP:
    """Return the model that a benchmark's name, an `.mmdp` file or `module:function` stands for.

    The module may be given by its path (`models.py:ward`), and what it names may also be a model itself.
    """
    if name.lower().endswith(".mmdp"):
        return MissMDP.load(name)
    if ":" in name:
        return _from_function(name)
    try:
        return load_benchmark(name)
    except ModelError as error:
        raise ModelError(f"{error} (or give an .mmdp file or module:function)") from None


def _from_function(name: str) -> MissMDP:
    module_name, _, attribute = name.rpartition(":")
    module = _module(module_name, name)
    found = getattr(module, attribute, None)
    if found is None:
        raise ModelError(f"{name}: {module_name} has no function {attribute!r}")
    if callable(found):
        try:
            found = found()
        except ModelError as error:
            raise ModelError(f"{name}: {error}") from error
        except Exception as error:
            raise ModelError(f"{name}: calling it raised {type(error).__name__}: {error}") from error
    if not isinstance(found, MissMDP):
        raise ModelError(
            f"{name}: expected a MissMDP or a function that returns one, got {type(found).__name__}"
        )
    return found


def _module(module_name: str, name: str) -> ModuleType:
    """Return a module by its name, from here or installed, or by the path of its file."""
    path = Path(module_name)
    folder, module = (path.parent, path.stem) if path.suffix == ".py" else (Path.cwd(), module_name)
    sys.path.insert(0, str(folder.resolve()))
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        raise ModelError(
            f"{name}: there is no module {error.name!r} here or among the installed ones"
        ) from error
    except Exception as error:
        raise ModelError(f"{name}: importing {module_name} raised {type(error).__name__}: {error}") from error
    finally:
        sys.path.pop(0)
