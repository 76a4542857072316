"""Studies beyond the paper: grids of cells, and the tables and pages of docs/results that are made from them.

`study` says what a study is and runs it; `beyond` compares learners that use the dynamics with the paper's,
`diagnosis` counts how often the type of missingness is named right, `certificates` shows what is certified from how
much data, and `catalogue` lists them all.
"""
