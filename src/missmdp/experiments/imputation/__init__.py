"""What people do with gaps in a log today: fill them in, and go on as if nothing had been missing.

`completing` fills in a log and says how an agent fills in what it sees (`chained` does so with scikit-learn).
`steps` counts what followed on what in a completed log, `planning` makes values of that, and `policies` are greedy.
"""
