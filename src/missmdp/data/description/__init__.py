"""What is missing in a log, before any model.

`describe` counts, `groups` puts steps and values into groups, `description` is the result in numbers and sentences,
and `picture` draws it.
"""
