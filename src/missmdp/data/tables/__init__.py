"""Trajectory tables: one row per step, one column per feature, null for missing.

From a source to arrays, in this order: `sources` finds files and frames, `parts` reads files in batches, `cells` has
columns and their distinct values, `matching` and `encoding` turn cells into codes, `rows` whole batches,
`ordered_rows` sorts them, and `structure` checks that they make histories. `read` gives a dataset, or rows with their
faults; `discovery` finds features, values and actions where there is no model, with `identifiers` for columns that are
no features. `endings` says how episodes end, `rewards` which rewards there are, and `reward_check` whether they fit a
model. `count` counts tables that are too large to load; `write` writes them. `content` has the options of all readers
and the form of what they return.
"""
