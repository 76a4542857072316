"""Trajectory tables: one row per step, one column per feature, null for missing.

From a source to arrays, in this order: `sources` finds files and frames, `parts` reads files in batches, `cells` has
columns and their distinct values, `matching` and `encoding` turn cells into codes, `rows` whole batches,
`ordered_rows` sorts them, and `structure` checks that they make histories. `read` gives a dataset, a log without a
model, or rows with their faults; `count` counts tables that are too large to load; `write` writes them. `content` has
the options of all readers and the form of what they return.
"""
