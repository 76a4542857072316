"""Settings for all tests: hypothesis without deadlines, since the first call of a kernel compiles it.

Set MISSMDP_TEST_EXAMPLES to try more examples of each property than the few of every day.
"""

import os

from hypothesis import HealthCheck, settings

settings.register_profile(
    "missmdp",
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow],
    max_examples=int(os.environ.get("MISSMDP_TEST_EXAMPLES", "30")),
)
settings.load_profile("missmdp")
