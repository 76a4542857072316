"""Kernels of the solver are made ready by two processes, each of which begins at another end."""

from missmdp._kernels.cache import is_compiled
from missmdp._kernels.sarsop.exploring import expand_points, refine_entries
from missmdp._kernels.sarsop.lower import backup_points
from missmdp._kernels.sarsop.points import follow_policy
from missmdp._kernels.sarsop.pruning import prune_vectors
from missmdp.plan.sarsop import ready


def test_the_second_process_begins_at_the_end():
    ready.compile_from_the_end()
    assert all(map(is_compiled, (backup_points, prune_vectors, follow_policy, refine_entries)))


def test_the_exercise_needs_all_kernels():
    ready.exercise()
    assert is_compiled(expand_points)
