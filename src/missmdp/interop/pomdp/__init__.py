"""Models in `.pomdp` files, the format of Cassandra's pomdp-solve.

`header` finds the words and reads what comes before the tables, `reader` reads the tables and makes a POMDP, `writer`
writes one.
"""
