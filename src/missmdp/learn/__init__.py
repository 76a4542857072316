"""Learning how values go missing, from a log and an MDP.

`base` has what all learners share, and what those share that count; `registry` the table of learners that commands,
runs and reports draw from. `asmar` (AMCAR too), `aimi`, `icin` and the package `em` are the learners. Counting is in
`groups`, features that go missing together in `blocks`, tests of what learners assume in `assumptions`. How sure an
estimate is: `bounds` and `limits` for counts, `bootstrap` for the rest; `table` writes both down. `histories_needed`
with `visits` plans how much data to collect. `diagnosis` says why values go missing, `identifiability` whether a log
can tell, and `dynamics` whether T, which all of them rest on, fits the log.
"""
