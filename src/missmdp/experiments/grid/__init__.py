"""The engine for grids of experiments: pieces of work that are done once, kept, and found again.

`cell` says what a piece of work is: a frozen dataclass per kind, whose key is a hash of the kind, its version, and
all that decides what comes out. `store` keeps finished cells in a folder, `executors` does the work here, in
processes or on a Dask cluster, and `runner` does what a store does not have yet. `fingerprint` hashes models.

`reproduce` and `studies` are grids; policies that `evaluate` keeps and the trials of a search for PPO's settings are
kept in the same store.
"""
