"""A run on a new machine compiles ahead, in a second process."""

import pytest

from missmdp._kernels import alpha, product, table_episodes
from missmdp._kernels.cache import is_compiled
from missmdp._kernels.sarsop.exploring import refine_entries
from missmdp.experiments.run import ahead


@pytest.mark.filterwarnings("ignore::missmdp.AssumptionWarning")
def test_what_a_run_needs_is_compiled():
    ahead.compile_ahead()
    needed = (
        refine_entries,
        alpha.run_alpha_episodes,
        table_episodes.run_memoryless_episodes,
        product.sweep_pairs,
        product.start_value,
    )
    assert all(map(is_compiled, needed))
