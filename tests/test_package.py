"""The package as a whole: public names, quick import, what can be sent to other processes."""

import importlib
import pickle
import subprocess
import sys

import pytest

import missmdp as mm


def test_every_public_name_exists():
    assert {"AsMAR", "Dataset", "ParameterError", "__version__", "collect"} < set(mm.__all__)
    for name in mm.__all__:
        assert getattr(mm, name) is not None
    assert dir(mm) == mm.__all__ == sorted(set(mm.__all__))
    with pytest.raises(AttributeError, match="no_such_name"):
        _ = mm.no_such_name


def test_every_public_name_is_listed_with_the_module_that_defines_it():
    for name, module in mm._modules().items():
        found = getattr(importlib.import_module(module), name)
        assert getattr(found, "__module__", module) == module


def test_a_star_brings_the_public_names():
    names = {}
    exec("from missmdp import *", names)
    assert set(mm.__all__) <= set(names)


def test_importing_loads_nothing_heavy():
    heavy = ["numba", "scipy", "matplotlib", "pyarrow", "networkx", "rich", "click", "pandas"]
    code = f"import sys, missmdp; print([name for name in {heavy} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_a_model_can_be_used_without_numba_or_matplotlib_being_loaded():
    code = (
        "import sys, missmdp as mm; m = mm.load_benchmark('icu-smar'); m.types(); m.mgraph(); m.to_pomdp(); "
        "print([name for name in ['numba', 'matplotlib', 'pyarrow'] if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_models_survive_pickling_for_worker_processes():
    model = mm.load_benchmark("predator-smar")
    copy = pickle.loads(pickle.dumps(model))
    assert copy.missingness == model.missingness
    assert copy.states[3] == model.states[3]
    assert mm.collect(copy, 50, seed=0).episode(0) == mm.collect(model, 50, seed=0).episode(0)


def test_models_cannot_be_changed_by_accident():
    model = mm.load_benchmark("example-1")
    for array in (model.mdp.transition[0].data, model.mdp.reward, model.missingness.probabilities):
        with pytest.raises(ValueError, match="read-only"):
            array[:] = 0.0


def test_the_citation_file_has_the_version_of_the_package(request):
    text = (request.config.rootpath / "CITATION.cff").read_text()
    assert f"version: {mm.__version__}\n" in text
