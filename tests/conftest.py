"""Settings for all tests: hypothesis without deadlines, since the first call of a kernel compiles it."""

from hypothesis import HealthCheck, settings

settings.register_profile(
    "missmdp", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow], max_examples=60
)
settings.load_profile("missmdp")
