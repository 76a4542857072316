"""How the ids of environments become known to Gymnasium, whether it is there or not."""

import importlib.util
import subprocess
import sys

import pytest

needs_gymnasium = pytest.mark.skipif(importlib.util.find_spec("gymnasium") is None, reason="needs gymnasium")


def run(code):
    done = subprocess.run(
        [sys.executable, "-W", "error::UserWarning", "-c", code], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_importing_missmdp_does_not_import_gymnasium():
    assert run("import sys, missmdp; print('gymnasium' in sys.modules)") == "False"


def test_where_gymnasium_is_absent_its_import_fails_as_it_would():
    code = (
        "import sys, missmdp\n"
        "sys.path = [p for p in sys.path if 'site-packages' not in p]\n"
        "try: import gymnasium\n"
        "except ModuleNotFoundError as error: print(error.name)\n"
    )
    assert run(code) == "gymnasium"
    blocked = "import sys, missmdp\nsys.modules['gymnasium'] = None\n"
    assert run(blocked + "try: import gymnasium\nexcept ImportError: print('as ever')") == "as ever"
    told = (
        "import sys; sys.modules['gymnasium'] = None\nimport missmdp\n"
        "try: import missmdp.interop.gymnasium\nexcept missmdp.MissMDPError as error: print(error)"
    )
    assert 'pip install "missmdp[ppo]"' in run(told)
    assert 'pip install "missmdp[ppo]"' in run(told.replace("missmdp.MissMDPError", "ImportError"))


@needs_gymnasium
def test_finders_that_cannot_find_are_passed_over_as_importlib_does():
    code = (
        "import sys, missmdp\n"
        "class Old:\n"
        "    def find_module(self, name, path=None): return None\n"
        f"sys.meta_path.insert(1, Old())\nimport gymnasium\n{MAKE}"
    )
    assert run(code) == MADE


MAKE = "env = gymnasium.make('missmdp/ICU-sMAR-v0'); print(env.spec.id, env.reset(seed=1)[0].shape)"
MADE = "missmdp/ICU-sMAR-v0 (4,)"


@needs_gymnasium
@pytest.mark.parametrize(
    "imports",
    [
        "import missmdp, gymnasium",
        "import gymnasium, missmdp",
        "import missmdp; from gymnasium.envs.registration import make; import gymnasium",
        "import importlib.util, missmdp; importlib.util.find_spec('gymnasium'); import gymnasium",
        "import missmdp, sys; [sys.modules.pop(m) for m in list(sys.modules) if 'missmdp' in m]; "
        "import missmdp, gymnasium",
    ],
)
def test_ids_are_known_in_either_order_of_imports(imports):
    assert run(f"{imports}\n{MAKE}") == MADE


@needs_gymnasium
def test_ids_can_name_the_package():
    code = "import gymnasium; env = gymnasium.make('missmdp:missmdp/ICU-sMAR-v0'); print(env.spec.id)"
    assert run(code) == "missmdp/ICU-sMAR-v0"


@needs_gymnasium
def test_the_hook_leaves_when_it_is_done_and_changes_nothing_else():
    code = (
        "import sys; before = list(sys.meta_path)\n"
        "import missmdp; assert len(sys.meta_path) == len(before) + 1\n"
        "import json, wave\n"
        "import gymnasium; assert sys.meta_path == before, sys.meta_path\n"
        "import inspect; assert inspect.getsource(gymnasium)\n"
        "assert gymnasium.__spec__.loader.get_filename() == gymnasium.__file__\n"
        "print('ok')"
    )
    assert run(code) == "ok"
