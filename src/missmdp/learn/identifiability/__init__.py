"""Whether a log can tell M, given T, or T, b₀ and M together.

`check` asks, `result` is the answer. `possible_observations` are all that can be seen; `spans` what histories say of M
at one of them, by linear algebra; `tangent` how M changes with a structure's parameters; `chains` what several steps
add. `global_condition` is sufficient for a unique M, and `counterexample` looks for another M with the same law.

Where T is unknown, `with_dynamics` asks. `dynamics_structures` are what is known of T and b₀, `moving` how they change
with what is free. `one_step` and `open_directions` find small changes that go unnoticed, `same_law` looks for others
with the same law, `theorems` says which are known, and `dynamics_result` what is determined of T and b₀.
"""
