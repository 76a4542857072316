"""The paper's benchmarks (`icu`, `predator`), small examples (`examples`) and families of any size (`fleet`).

`registry` knows them by name. `rocksample` is a POMDP, and stands apart.
"""
