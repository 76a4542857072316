"""Whether a log can tell M, given T.

`check` asks, `result` is the answer. `possible_observations` are all that can be seen; `spans` what histories say of M
at one of them, by linear algebra; `tangent` how M changes with a structure's parameters; `chains` what several steps
add. `global_condition` is sufficient for a unique M, and `counterexample` looks for another M with the same law.
"""
