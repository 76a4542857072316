"""The only numba code: arrays and scalars in, arrays out. Friendly functions elsewhere check and document."""
