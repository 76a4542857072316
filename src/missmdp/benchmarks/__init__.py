"""The paper's benchmarks (`icu`, `predator`) and small examples (`examples`), by name in `registry`; `rocksample`, a POMDP."""
