"""Settings for all tests: hypothesis without deadlines, since the first call of a kernel compiles it.

BLAS gets one thread, unless the environment says otherwise: tests run in several processes already, and with more
threads than cores these wait for each other so long that a second's work takes half a minute.

Set MISSMDP_TEST_EXAMPLES to try more examples of each property than the few of every day.
"""

import os
import signal
from importlib.metadata import version

import pytest
from hypothesis import HealthCheck, settings

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

settings.register_profile(
    "missmdp",
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow],
    max_examples=int(os.environ.get("MISSMDP_TEST_EXAMPLES", "30")),
)
settings.load_profile("missmdp")

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # Started in the background of a script: programs that the tests start and interrupt would ignore Ctrl-C too.
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture
def same_matplotlib(request):
    """Skip a test that compares pictures byte by byte where another matplotlib draws them than our own."""
    pinned = (request.config.rootpath / "constraints.txt").read_text(encoding="utf-8").splitlines()
    if f"matplotlib=={version('matplotlib')}" not in pinned:
        pytest.skip("another matplotlib")
