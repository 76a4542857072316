"""The point-based solver, a file for each step.

`solver` is `Sarsop`, what users see; `loop` runs trials until the bounds are close enough. `compile` turns a POMDP into
components, classes and nodes; `search` holds the state of a search and its limits. `start` has the first points and
vectors, `lower` and `upper` the two bounds, `sampling` the beliefs that the optimistic policy reaches, `controller`
the policy that the vectors make. `listing` refuses what is too large for all that, and `structured` is the way for many
features that go missing. The kernels are in `_kernels.sarsop`.
"""
