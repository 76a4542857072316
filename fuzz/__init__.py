"""Hostile input, made at random from valid input: `python -m fuzz --help`.

`harness` runs cases in worker processes and keeps the books, `mutations` damages values, arrays, texts and archives,
`archives`, `texts` and `logs` have a kind of case per reader, `api` calls public names, `commands` the command line.
"""
